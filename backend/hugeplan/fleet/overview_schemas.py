"""Responses about many nodes at once."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from hugeplan.api.schemas import Labels, PageBytes, PageCount, RequestModel, ResponseModel, SmallCount
from hugeplan.fleet.schemas import PlanInForce

DriftState = Literal["match", "short", "idle", "drifted"]
Grouping = Literal["machine_type", "provider", "architecture", "group", "label"]


class FleetMemory(ResponseModel):
    """Memory of all selected nodes by use, in bytes.

    ``pool_used_bytes`` and ``pool_idle_bytes`` are the parts of ``pool_bytes`` of the nodes that report free pages;
    ``nodes_unknown`` do not say how much memory is available or what their pools hold.
    """

    mem_total_bytes: int
    mem_available_bytes: int
    pool_bytes: int
    pool_used_bytes: int
    pool_idle_bytes: int
    page_tables_bytes: int
    anon_huge_pages_bytes: int
    nodes_unknown: int


class FleetPool(ResponseModel):
    """The pools of one page size over all selected nodes. ``nodes_unknown`` do not report their free pages."""

    page_bytes: int
    nodes: int
    nr_hugepages: int
    free_hugepages: int
    total_bytes: int
    free_bytes: int
    nodes_unknown: int


class FleetFinding(ResponseModel):
    """A finding that holds somewhere: how many nodes have it, and since when the first of them.

    ``pool_idle_bytes`` is the memory in these nodes' pools that nothing uses or has reserved, as far as it is known.
    ``title`` and ``fix`` are those of the example, the node with the most of it.
    """

    code: str
    state: Literal["wrong", "attention"]
    title: str
    fix: str | None
    nodes: int
    oldest_since: datetime
    pool_idle_bytes: int
    example_node_id: UUID
    example_node_name: str


class FleetPart(ResponseModel):
    """The nodes of one group. ``key`` null: the nodes that have none."""

    key: str | None
    nodes: int
    mem_total_bytes: int
    pool_bytes: int
    pool_idle_bytes: int
    nodes_wrong: int
    nodes_attention: int
    nodes_short: int
    nodes_stale: int


class FleetSummary(ResponseModel):
    """The selected nodes in numbers.

    ``plan_states`` counts nodes by their pools beside the plan in force; ``none`` have no plan. ``parts`` are groups of
    nodes, the largest first, at most 200.
    """

    nodes: int
    nodes_synthetic: int
    nodes_stale: int
    nodes_wrong: int
    nodes_attention: int
    nodes_fractured: int
    nodes_measured: int
    time_bombs: int
    silent_fallbacks: int
    memory: FleetMemory
    pools: list[FleetPool]
    plan_states: dict[Literal["match", "short", "idle", "drifted", "none"], int]
    findings: list[FleetFinding]
    parts: list[FleetPart]
    updated_at: datetime | None


class DriftPool(ResponseModel):
    """One pool beside the plan in force. ``numa_node`` null: over the whole node."""

    numa_node: int | None
    page_bytes: int
    planned_pages: int
    actual_pages: int
    state: DriftState


class NodeDrift(ResponseModel):
    """A node beside its plan in force. No ``pools`` where its newest report cannot be read back."""

    node_id: UUID
    node_name: str
    state: DriftState
    since: datetime | None
    sampled_at: datetime
    plan_in_force: PlanInForce
    pools: list[DriftPool]
    pools_unknown_because: str | None


class SizeWins(ResponseModel):
    """One page size over all cases. ``mean_delta_percent`` is the geometric mean of time against base pages; negative
    is faster.
    """

    backing: str
    cases: int
    wins: int
    share: float
    lowest_share: float
    mean_delta_percent: float | None


class MachineWins(ResponseModel):
    """The cases of one machine type, over all of its runs that are counted."""

    machine_type: str | None
    nodes: int
    runs: int
    cases: int
    best: str | None
    sizes: list[SizeWins]


class PageSizeWins(ResponseModel):
    """How often each page size is best. A case is one point measured with two or more page sizes; a size wins it when
    its interval lies below every other's, else it is a ``tie``. Shares of all sizes and ties sum to 1. ``machines`` are
    at most 200, those with the most runs; ``sizes`` are over all.
    """

    nodes: int
    runs: int
    cases: int
    sizes: list[SizeWins]
    machines: list[MachineWins]


class NodeGroup(ResponseModel):
    """Like nodes: of one machine type, with the same memory to the GiB, NUMA nodes and pools."""

    group_key: str
    machine_type: str | None
    nodes: int
    numa_node_count: int
    mem_total_bytes_min: int
    mem_total_bytes_max: int
    pools: list[dict[str, int]]
    nodes_wrong: int
    nodes_attention: int
    nodes_measured: int
    example_node_id: UUID
    example_node_name: str


class LabelsWrite(RequestModel):
    """Labels written over those that the agent reports."""

    labels: Labels


class PlannedPoolWrite(RequestModel):
    """Pages that a node is meant to have. ``numa_node`` null: over all NUMA nodes."""

    page_bytes: PageBytes
    pages: PageCount
    numa_node: SmallCount | None = None


class PlanInForceWrite(RequestModel):
    """The plan that a node is meant to follow: a saved plan, or its pools. A caller says ``hand`` alone."""

    plan_id: UUID | None = None
    pools: list[PlannedPoolWrite] | None = Field(default=None, max_length=256)
    source: Literal["hand"] = "hand"
