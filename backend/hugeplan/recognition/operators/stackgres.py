"""StackGres: ``SGCluster``, whose parameters lie in the ``SGPostgresConfig`` that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hugeplan.recognition.base import Operator, PodView, Reading, Reference, inside, label

_GROUP: Final = ("stackgres.io", "SGCluster")


def references(pod: PodView) -> Sequence[Reference]:
    """StackGres labels pods with the cluster's name and marks those that hold a server."""
    name = label(pod, "stackgres.io/cluster-name")
    return [Reference(*_GROUP, name)] if name is not None and "stackgres.io/cluster" in pod.labels else []


def read(resource: Mapping[str, Any], pod: PodView) -> Reading:  # noqa: ARG001 - one shape for all operators
    """The version; the parameters are in another resource, which is named."""
    version = inside(resource, "spec", "postgres", "version")
    config = inside(resource, "spec", "configurations", "sgPostgresConfig")
    unknown = (f"parameters: they are in SGPostgresConfig {config}",) if config else ()
    return Reading(version=None if version is None else str(version), unknown=unknown)


OPERATOR = Operator(
    name="StackGres",
    engine="postgresql",
    labels=("stackgres.io/cluster-name",),
    references=references,
    containers=frozenset({"patroni"}),
    read=read,
    resources=(_GROUP,),
)
