"""mariadb-operator: ``MariaDB`` with ``spec.myCnf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.config_files import my_cnf
from hugeplan.recognition.images import leading_version, parse_image

_GROUP: Final = ("k8s.mariadb.com", "MariaDB")


def references(pod: PodView) -> Sequence[Reference]:
    """The recommended labels, as the operator sets them."""
    if label(pod, "app.kubernetes.io/name") != "mariadb" or not any(c.name == "mariadb" for c in pod.containers):
        return ()
    name = label(pod, "k8s.mariadb.com/mariadb", "app.kubernetes.io/instance")
    return [] if name is None else [Reference(*_GROUP, name)]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """``myCnf`` is a whole file; it may instead lie in a ConfigMap, which the operator mounts."""
    text, image = inside(resource, "spec", "myCnf"), inside(resource, "spec", "image")
    settings, _ = my_cnf(text) if isinstance(text, str) else ({}, False)
    version = leading_version(parse_image(image).tag) if isinstance(image, str) else None
    return Reading.of("MariaDB spec.myCnf", settings, version=version)


OPERATOR = Operator(
    name="mariadb-operator",
    engine="mariadb",
    labels=("app.kubernetes.io/name",),
    references=references,
    containers=frozenset({"mariadb"}),
    read=read,
    resources=(_GROUP,),
    limits_in="spec.resources",
)
