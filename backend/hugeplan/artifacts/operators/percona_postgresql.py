"""Percona: PerconaPGCluster. Settings stand in Patroni's dynamic configuration, limits in each instance set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hugeplan.artifacts.base import Artifact
from hugeplan.artifacts.operators.common import Operator, patches
from hugeplan.planner.model import Plan, PlanRequest


def _spec(name: str, resources: Mapping[str, Any], settings: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "instances": [{"name": name, "resources": dict(resources)}],
        "patroni": {"dynamicConfiguration": {"postgresql": {"parameters": dict(settings)}}},
    }


OPERATOR = Operator(
    kind="percona_postgresql_cluster",
    title="Percona PerconaPGCluster",
    api_version="pgv2.percona.com/v2",
    object_kind="PerconaPGCluster",
    resource="perconapgclusters.pgv2.percona.com",
    engine="postgresql",
    spec=_spec,
    limit_path="{{.spec.instances[0].resources.limits.{limit}}}",
    comments=(
        "The instance set's name is not in the plan: write the name of yours, else a second set is made.",
        "The operator sets huge_pages itself, to try or off, from the limits: its own value is replaced here.",
    ),
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One patch per PostgreSQL."""
    return patches(OPERATOR, plan, request)
