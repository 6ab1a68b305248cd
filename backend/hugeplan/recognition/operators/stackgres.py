"""StackGres: ``SGCluster``, whose parameters lie in the ``SGPostgresConfig`` that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reading, Reference, inside, label

_CLUSTER = CustomResource(
    group="stackgres.io",
    kind="SGCluster",
    limits_words="spec.memory and spec.hugePages of the SGInstanceProfile that is named in spec.sgInstanceProfile",
    settings_words="'postgresql.conf' of the SGPostgresConfig that is named in spec.configurations.sgPostgresConfig",
)
_CONFIG = CustomResource(
    group="stackgres.io",
    kind="SGPostgresConfig",
    title="StackGres SGPostgresConfig",
    resources=("resources",),
    parameters=("postgresql.conf",),
    version=("postgresVersion",),
    texts_only=True,
)


def references(pod: PodView) -> Sequence[Reference]:
    """StackGres labels pods with the cluster's name and marks those that hold a server."""
    name = label(pod, "stackgres.io/cluster-name")
    server = "stackgres.io/cluster" in pod.labels
    return [Reference(_CLUSTER.group, _CLUSTER.kind, name)] if name is not None and server else []


def read(resource: Mapping[str, Any], _: PodView) -> Reading:
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
    resources=(_CLUSTER, _CONFIG),
)
