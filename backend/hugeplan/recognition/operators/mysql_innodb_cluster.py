"""Oracle's MySQL Operator: ``InnoDBCluster`` with ``spec.mycnf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label
from hugeplan.recognition.config_files import my_cnf

_GROUP: Final = ("mysql.oracle.com", "InnoDBCluster")


def references(pod: PodView) -> Sequence[Reference]:
    """Server pods are of component mysqld; router pods are not."""
    name = label(pod, "mysql.oracle.com/cluster")
    return [Reference(*_GROUP, name)] if name is not None and label(pod, "component") == "mysqld" else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """``mycnf`` is a whole file."""
    text, version = inside(resource, "spec", "mycnf"), inside(resource, "spec", "version")
    settings, _ = my_cnf(text) if isinstance(text, str) else ({}, False)
    return Reading.of("InnoDBCluster spec.mycnf", settings, version=None if version is None else str(version))


OPERATOR = Operator(
    name="MySQL Operator",
    engine="mysql",
    labels=("mysql.oracle.com/cluster",),
    references=references,
    containers=frozenset({"mysql"}),
    read=read,
    resources=(_GROUP,),
)
