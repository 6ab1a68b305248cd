"""Responses about nodes, their reports and their samples."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from hugeplan.api.schemas import ResponseModel
from hugeplan.documents.report import (
    CollectorResult,
    GlobalPool,
    Inventory,
    NumaPool,
    ProcessMemory,
    SampleMemory,
    SampleNuma,
)
from hugeplan.documents.tlbbench import Clock, Disagreement, Granule, Penalty, TlbLevelDocument
from hugeplan.planner.model import NodeFacts


class ReportReceipt(ResponseModel):
    """The service has the report. ``created`` is false when it had it before; ``run_id`` is null without a run."""

    report_id: UUID
    node_id: UUID
    created: bool
    run_id: UUID | None


class PoolSummary(ResponseModel):
    """One page size's pool over the whole node, in pages; ``free_hugepages`` null is unknown."""

    page_bytes: int
    nr_hugepages: int
    free_hugepages: int | None


class NodeSummary(ResponseModel):
    """One line of the fleet. ``effective_granule_bytes`` is what one TLB entry covers with 2 MiB pages here."""

    id: UUID
    name: str
    machine_id: str
    architecture: str
    cpu_brand: str | None
    virtualised: bool | None
    mem_total_bytes: int
    numa_node_count: int
    last_report_at: datetime
    pools: list[PoolSummary]
    latest_run_id: UUID | None
    effective_granule_bytes: int | None
    synthetic: bool


class LatestSample(ResponseModel):
    """The newest memory sample of a node, without its processes."""

    taken_at: datetime
    memory: SampleMemory
    pools: list[NumaPool]
    global_pools: list[GlobalPool]
    numa: list[SampleNuma]


class GeometrySummary(ResponseModel):
    """The newest measured geometry of a node, without curves."""

    run_id: UUID
    measured_at: datetime
    status: str | None
    reason: str | None
    levels: list[TlbLevelDocument]
    effective_granule: list[Granule]
    penalty: list[Penalty]
    clock: Clock | None
    disagreements: list[Disagreement]


class NodeDetail(NodeSummary):
    """Everything the newest report says of a node. ``facts`` is the node as the planner takes it;
    it is null, with ``facts_unknown_because``, when the report lacks what the planner needs.
    """

    first_report_at: datetime
    agent_version: str
    collectors: list[CollectorResult]
    inventory: Inventory
    sample: LatestSample
    geometry: GeometrySummary | None
    facts: NodeFacts | None
    facts_unknown_because: str | None


class SampleRow(ResponseModel):
    """One sample of a node's history."""

    taken_at: datetime
    memory: SampleMemory
    pools: list[NumaPool]


class NodeProcesses(ResponseModel):
    """The processes of the newest sample, largest resident set first."""

    node_id: UUID
    taken_at: datetime
    processes: list[ProcessMemory]
