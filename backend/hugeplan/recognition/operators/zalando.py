"""Zalando's postgres-operator: ``postgresql`` with ``spec.postgresql.parameters``; pods run Spilo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.planner.model import MIB
from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label, text_map

_GROUP: Final = ("acid.zalan.do", "postgresql")
#: Spilo gives shared_buffers a fifth of the memory on Kubernetes.
_SHARE: Final = 5


def references(pod: PodView) -> Sequence[Reference]:
    """Spilo's labels; the name of the second can be changed in the operator's configuration."""
    name = label(pod, "cluster-name")
    spilo = label(pod, "application") == "spilo" or "spilo-role" in pod.labels
    return [Reference(*_GROUP, name)] if name is not None and spilo else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """Parameters and version; Patroni's own section holds what is not a parameter of the server."""
    parameters = text_map(inside(resource, "spec", "postgresql", "parameters"))
    version = inside(resource, "spec", "postgresql", "version")
    return Reading.of(
        "postgresql spec.postgresql.parameters",
        parameters,
        version=None if version is None else str(version),
    )


def defaults(pod: PodView) -> Reading:
    """What Spilo computes from the container's memory limit when it starts (configure_spilo.py)."""
    limit = next((one.memory_limit_bytes for one in pod.containers if one.name == "postgres"), None)
    if limit is None:
        return Reading(unknown=("shared_buffers and max_connections: Spilo computes them from the node's memory",))
    mebibytes = limit // MIB
    settings = {
        "shared_buffers": f"{mebibytes // _SHARE}MB",
        "max_connections": str(min(max(100, mebibytes // 30), 1000)),
    }
    return Reading.of("computed by Spilo from the memory limit", settings)


OPERATOR = Operator(
    name="Zalando postgres-operator",
    engine="postgresql",
    labels=("cluster-name",),
    references=references,
    containers=frozenset({"postgres"}),
    read=read,
    defaults=defaults,
    resources=(_GROUP,),
    limits_in="spec.resources",
)
