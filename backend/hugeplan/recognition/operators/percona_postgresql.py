"""Percona Operator for PostgreSQL: ``PerconaPGCluster``; its pods carry labels of Crunchy PGO, which it builds on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, label
from hugeplan.recognition.operators import crunchy

_GROUP: Final = ("pgv2.percona.com", "PerconaPGCluster")


def references(pod: PodView) -> Sequence[Reference]:
    """Crunchy's labels on a pod that carries Percona's version label, or runs Percona's image."""
    percona = "pgv2.percona.com/version" in pod.labels or any("percona" in one.image for one in pod.containers)
    name = label(pod, "postgres-operator.crunchydata.com/cluster")
    instance = label(pod, "postgres-operator.crunchydata.com/instance")
    return [Reference(*_GROUP, name)] if percona and name is not None and instance is not None else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """The same fields as Crunchy's resource."""
    return crunchy.parameters_of(resource)


OPERATOR = Operator(
    name="Percona Operator for PostgreSQL",
    engine="postgresql",
    labels=("postgres-operator.crunchydata.com/cluster",),
    references=references,
    containers=frozenset({"database"}),
    read=read,
    resources=(_GROUP,),
    limits_in="spec.instances[].resources",
)
