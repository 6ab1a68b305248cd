"""Percona Operator for PostgreSQL: ``PerconaPGCluster``; its pods carry labels of Crunchy PGO, which it builds on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, label
from hugeplan.recognition.operators import crunchy

_GROUP: Final = ("pgv2.percona.com", "PerconaPGCluster")


def references(pod: PodView) -> Sequence[Reference]:
    """The operator's own label, or Crunchy's on a pod with Percona's image."""
    name = label(pod, "pgv2.percona.com/cluster", "upstream.pgv2.percona.com/cluster")
    if name is None and any("percona" in container.image for container in pod.containers):
        name = label(pod, "postgres-operator.crunchydata.com/cluster")
    instance = label(
        pod,
        "postgres-operator.crunchydata.com/instance",
        "upstream.pgv2.percona.com/instance",
        "pgv2.percona.com/instance",
    )
    return [] if name is None or instance is None else [Reference(*_GROUP, name)]


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """The same fields as Crunchy's resource."""
    return crunchy.parameters_of(resource)


OPERATOR = Operator(
    name="Percona Operator for PostgreSQL",
    engine="postgresql",
    labels=(
        "pgv2.percona.com/cluster",
        "upstream.pgv2.percona.com/cluster",
        "postgres-operator.crunchydata.com/cluster",
    ),
    references=references,
    containers=frozenset({"database"}),
    read=read,
    resources=(_GROUP,),
)
