"""Bitpoke's (Presslabs') MySQL operator: ``MysqlCluster`` with ``spec.mysqlConf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label, text_map

_GROUP: Final = ("mysql.presslabs.org", "MysqlCluster")


def references(pod: PodView) -> Sequence[Reference]:
    """The operator's label with the cluster's name."""
    name = label(pod, "mysql.presslabs.org/cluster")
    return [] if name is None else [Reference(*_GROUP, name)]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """``mysqlConf`` is a map of settings; names may be written with dashes."""
    settings = {
        name.replace("-", "_"): value for name, value in text_map(inside(resource, "spec", "mysqlConf")).items()
    }
    version = inside(resource, "spec", "mysqlVersion")
    return Reading.of("MysqlCluster spec.mysqlConf", settings, version=None if version is None else str(version))


OPERATOR = Operator(
    name="Bitpoke MySQL operator",
    engine="mysql",
    labels=("mysql.presslabs.org/cluster",),
    references=references,
    containers=frozenset({"mysql"}),
    read=read,
    resources=(_GROUP,),
)
