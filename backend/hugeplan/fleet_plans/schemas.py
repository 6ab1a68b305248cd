"""Requests and responses about plans of many nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from hugeplan.api.schemas import JsonObject, Name, RequestModel, ResponseModel
from hugeplan.fleet.selector import NodeSelector
from hugeplan.planner.model import Plan
from hugeplan.scenario_file.unchecked import UncheckedScenario

JobStatus = Literal["queued", "running", "done", "failed", "cancelled"]


class FleetPlanRequest(RequestModel):
    """A scenario without a node of its own, for every selected node; null: each node as it runs today."""

    name: Name = "Fleet plan"
    selector: NodeSelector = Field(default_factory=NodeSelector)
    scenario: UncheckedScenario | None = None


class FleetPlanSummary(ResponseModel):
    """All nodes of a finished job in numbers. ``locked_bytes`` is what the plans reserve.

    ``nodes_fit_unknown``: neither fits nor does not, nodes without a plan among them; null in jobs of earlier versions.
    """

    nodes: int
    groups: int
    plans_computed: int
    nodes_wrong: int
    nodes_attention: int
    nodes_without_facts: int
    nodes_not_fitting: int
    nodes_fit_unknown: int | None = None
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
    """A job with its scenario as it was sent; null: each node as it runs."""

    scenario: JsonObject | None


class GroupSize(ResponseModel):
    """Pages of one size on each node of a group, now and as planned. ``present_pages`` null: not reported."""

    page_bytes: int
    present_pages: int | None
    planned_pages: int


class GroupFigures(ResponseModel):
    """What a plan changes on each node of a group.

    ``returned_bytes`` goes back from the pools to ordinary memory on each node, negative: the pools take it; null: the
    pools of today are not known. ``answers`` counts the nodes' verdicts. ``reason`` is that of the verdict which a
    reader has to see first, with the name of its node; null in plans of an older version. ``risk_high`` is the highest
    upper bound of the risk of shortage, null where it is not known for any node, and ``risk_unknown`` counts those of
    which it is not known.
    """

    sizes: list[GroupSize]
    returned_bytes: int | None
    answers: dict[str, int]
    nodes_wrong: int
    nodes_attention: int
    nodes_not_fitting: int
    risk_high: float | None
    risk_policy: float | None
    risk_unknown: int
    reason: str | None


class FleetPlanGroup(ResponseModel):
    """Nodes of one machine type with the same pools now and in the plan, and the same files; the plan is of the one
    with the least memory. ``figures`` is null in fleet plans of earlier versions.
    """

    number: int
    nodes: int
    machine_type: str | None
    headline: str
    pools: list[dict[str, Any]]
    figures: GroupFigures | None


class FleetPlanGroupDetail(FleetPlanGroup):
    """A group with its whole plan."""

    plan: Plan


class FleetPlanNode(ResponseModel):
    """One node of a job. ``severity`` wrong or attention puts it first, ``exceptions`` say why.

    ``name``: as it was planned, and behind it in brackets how the node is called now, or that it is gone.
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
