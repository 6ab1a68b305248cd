"""Requests and responses about plans of many nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from hugeplan.api.schemas import JsonObject, Name, RequestModel, ResponseModel
from hugeplan.fleet.selector import NodeSelector
from hugeplan.planner.model import Plan
from hugeplan.scenario_file import ScenarioDocument

JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]


class FleetPlanRequest(RequestModel):
    """A scenario without a node of its own, for every selected node."""

    name: Name = "Fleet plan"
    selector: NodeSelector = Field(default_factory=NodeSelector)
    scenario: ScenarioDocument


class FleetPlanSummary(ResponseModel):
    """All nodes of a finished job in numbers. ``locked_bytes`` is what the plans reserve."""

    nodes: int
    groups: int
    plans_computed: int
    nodes_wrong: int
    nodes_attention: int
    nodes_without_facts: int
    nodes_not_fitting: int
    nodes_missing_pages: int
    nodes_idle_pages: int
    mem_total_bytes: int
    locked_bytes: int
    seconds: float


class FleetPlanJob(ResponseModel):
    """A job. ``nodes_done`` of ``nodes_total`` are planned; ``summary`` is set when it is done."""

    id: UUID
    name: str
    status: JobStatus
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    nodes_total: int
    nodes_done: int
    plans_computed: int
    cancel_requested: bool
    error: str | None
    model_version: str
    selector: NodeSelector
    summary: FleetPlanSummary | None


class FleetPlanDetail(FleetPlanJob):
    """A job with its scenario as it was sent."""

    scenario: JsonObject


class FleetPlanGroup(ResponseModel):
    """Nodes that get the same pools; the plan is the whole plan of the one with the least memory."""

    number: int
    nodes: int
    machine_type: str | None
    headline: str
    pools: list[dict[str, Any]]


class FleetPlanGroupDetail(FleetPlanGroup):
    """A group with its whole plan."""

    plan: Plan


class FleetPlanNode(ResponseModel):
    """One node of a job. ``severity`` wrong or attention puts it first, ``exceptions`` say why.

    ``missing_pages`` are planned and not there, ``idle_pages`` there and not planned; null: unknown.
    """

    node_id: UUID
    name: str
    severity: Literal["fine", "attention", "wrong"]
    exceptions: list[str]
    group_number: int | None
    mem_total_bytes: int
    locked_bytes: int | None
    free_bytes: int | None
    fits: bool | None
    missing_pages: int | None
    idle_pages: int | None
