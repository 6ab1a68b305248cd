"""Zalando: postgresql. Its resources take cpu, memory, hugepages-2Mi and hugepages-1Gi."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hugeplan.artifacts.base import Artifact
from hugeplan.artifacts.operators.common import Operator, patches
from hugeplan.planner.model import Plan, PlanRequest


def _spec(_: str, resources: Mapping[str, Any], settings: Mapping[str, str]) -> Mapping[str, Any]:
    return {"resources": dict(resources), "postgresql": {"parameters": dict(settings)}}


OPERATOR = Operator(
    kind="zalando_postgresql",
    title="Zalando postgresql",
    api_version="acid.zalan.do/v1",
    object_kind="postgresql",
    resource="postgresqls.acid.zalan.do",
    engine="postgresql",
    spec=_spec,
    limit_path="{{.spec.resources.limits.{limit}}}",
    comments=("postgresql.version: left out, the object has it.",),
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One patch per PostgreSQL."""
    return patches(OPERATOR, plan, request)
