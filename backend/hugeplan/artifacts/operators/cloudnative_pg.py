"""CloudNativePG: Cluster. Its webhook accepts shared_buffers up to the memory request or any huge page quantity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hugeplan.artifacts.base import Artifact
from hugeplan.artifacts.operators.common import Operator, patches
from hugeplan.planner.model import Plan, PlanRequest


def _spec(_: str, resources: Mapping[str, Any], settings: Mapping[str, str]) -> Mapping[str, Any]:
    return {"resources": dict(resources), "postgresql": {"parameters": dict(settings)}}


OPERATOR = Operator(
    kind="cloudnative_pg",
    title="CloudNativePG Cluster",
    api_version="postgresql.cnpg.io/v1",
    object_kind="Cluster",
    resource="clusters.postgresql.cnpg.io",
    engine="postgresql",
    spec=_spec,
    limit_path="{{.spec.resources.limits.{limit}}}",
    comments=("Its initdb job runs with the same limits.",),
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One patch per PostgreSQL."""
    return patches(OPERATOR, plan, request)
