"""Percona's operators for MySQL: ``PerconaXtraDBCluster`` and ``PerconaServerMySQL`` with a my.cnf text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.config_files import my_cnf
from hugeplan.recognition.images import leading_version, parse_image

_XTRADB: Final = ("pxc.percona.com", "PerconaXtraDBCluster")
_SERVER: Final = ("ps.percona.com", "PerconaServerMySQL")
_SECTION: Final = {"PerconaXtraDBCluster": "pxc", "PerconaServerMySQL": "mysql"}


def references(pod: PodView) -> Sequence[Reference]:
    """The recommended labels; the component tells servers from proxies."""
    name, component = label(pod, "app.kubernetes.io/instance"), label(pod, "app.kubernetes.io/component")
    product = label(pod, "app.kubernetes.io/name") or ""
    if name is None or "percona" not in product:
        return ()
    if component == "pxc":
        return [Reference(*_XTRADB, name)]
    return [Reference(*_SERVER, name)] if component in {"mysql", "database"} else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """``configuration`` is a my.cnf; without a buffer pool there the operator computes one from the memory limit."""
    section = inside(resource, "spec", _SECTION.get(str(resource.get("kind")), "mysql"))
    text, image = inside(section, "configuration"), inside(section, "image")
    settings, _ = my_cnf(text) if isinstance(text, str) else ({}, False)
    unknown: tuple[str, ...] = ()
    if "innodb_buffer_pool_size" not in settings:
        unknown = ("innodb_buffer_pool_size: the operator computes it from the container's memory",)
    version = leading_version(parse_image(image).tag) if isinstance(image, str) else None
    return Reading.of(f"{resource.get('kind')} configuration", settings, version=version, unknown=unknown)


OPERATOR = Operator(
    name="Percona Operator for MySQL",
    engine="mysql",
    labels=("app.kubernetes.io/instance",),
    references=references,
    containers=frozenset({"pxc", "mysql"}),
    read=read,
    resources=(_XTRADB, _SERVER),
)
