"""Zalando's postgres-operator: ``postgresql`` with ``spec.postgresql.parameters``; pods run Spilo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label, text_map

_GROUP: Final = ("acid.zalan.do", "postgresql")


def references(pod: PodView) -> Sequence[Reference]:
    """Spilo's labels; the name of the second can be changed in the operator's configuration."""
    name = label(pod, "cluster-name")
    spilo = label(pod, "application") == "spilo" or "spilo-role" in pod.labels
    return [Reference(*_GROUP, name)] if name is not None and spilo else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """Parameters and version; Patroni's own section holds what is not a parameter of the server."""
    parameters = text_map(inside(resource, "spec", "postgresql", "parameters"))
    version = inside(resource, "spec", "postgresql", "version")
    unknown: tuple[str, ...] = ()
    if "shared_buffers" not in parameters:
        unknown = ("shared_buffers: Spilo computes it from the container's memory (a quarter or a fifth, by version)",)
    return Reading.of(
        "postgresql spec.postgresql.parameters",
        parameters,
        version=None if version is None else str(version),
        unknown=unknown,
    )


OPERATOR = Operator(
    name="Zalando postgres-operator",
    engine="postgresql",
    labels=("cluster-name",),
    references=references,
    containers=frozenset({"postgres"}),
    read=read,
    resources=(_GROUP,),
)
