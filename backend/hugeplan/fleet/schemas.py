"""Responses about nodes, their reports and their samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from hugeplan.api.schemas import ResponseModel
from hugeplan.documents.observed import WalkCounters
from hugeplan.documents.report import (
    CollectorResult,
    GlobalPool,
    Inventory,
    NumaPool,
    ProcessMemory,
    SampleMemory,
    SampleNuma,
    SpoolSummary,
)
from hugeplan.documents.tlbbench import Clock, Disagreement, Granule, Penalty, TlbLevelDocument
from hugeplan.planner.model import Finding, NodeFacts


@dataclass(slots=True)
class ReportReceipt:
    """The service has the report. ``created`` is false when it had it before; ``run_id`` is null without a run.
    ``state`` is ``newer_schema`` for a report that is kept until a later version of the service can read it.
    """

    __pydantic_config__ = ResponseModel.model_config

    report_id: UUID
    node_id: UUID
    created: bool
    run_id: UUID | None
    state: Literal["parsed", "newer_schema"]
    _event_bytes: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._event_bytes = 0


class PoolSummary(ResponseModel):
    """One page size's pool over the whole node, in pages; ``free_hugepages`` null is unknown."""

    page_bytes: int
    nr_hugepages: int
    free_hugepages: int | None


class NodeSummary(ResponseModel):
    """One line of the fleet. ``effective_granule_bytes`` is what one TLB entry covers with 2M pages here.

    ``pool_idle_bytes`` are pages that nothing uses or has reserved. ``plan_state`` compares the pools with the plan in
    force; null without one. ``stale``: the node stopped reporting.
    """

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
    labels: dict[str, str]
    machine_type: str | None
    group_key: str | None
    mem_available_bytes: int | None
    pool_bytes: int | None
    pool_idle_bytes: int | None
    findings_wrong: int
    findings_attention: int
    plan_state: Literal["match", "short", "idle", "drifted"] | None
    stale: bool


class LatestSample(ResponseModel):
    """The newest memory sample of a node, without its processes."""

    taken_at: datetime
    memory: SampleMemory
    pools: list[NumaPool]
    global_pools: list[GlobalPool]
    numa: list[SampleNuma]


class NodeFinding(ResponseModel):
    """What is wrong with a node by its newest report, since when, and what to do."""

    code: str
    subject: str
    state: Literal["wrong", "attention"]
    title: str
    reason: str
    fix: str
    since: datetime


class PlannedPool(ResponseModel):
    """Pages that a plan in force reserves. ``numa_node`` null: over all NUMA nodes."""

    page_bytes: int
    pages: int
    numa_node: int | None = None


class PlanInForce(ResponseModel):
    """The plan that a node is meant to follow. ``source``: set by hand, found by ``verify``, or by a GitOps label.

    ``outcome`` and ``checks`` are the newest report beside the saved plan; null and empty: no report since then, or
    pools were put in force without a saved plan.
    """

    plan_id: UUID | None
    digest: str | None
    """Of the kept plan; null for pools alone, and for a plan that was kept before there was one."""
    short_digest: str | None
    pools: list[PlannedPool]
    source: Literal["hand", "verify", "label"]
    since: datetime
    set_by: str
    outcome: Literal["in_force", "not_in_force", "undecided"] | None
    verified_at: datetime | None
    checks: list[Finding]


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


class BootPool(ResponseModel):
    """Pages of one size that the kernel command line reserves at boot, over all NUMA nodes."""

    page_bytes: int
    pages: int


class NodeDetail(NodeSummary):
    """Everything the newest report says of a node. ``facts`` is the node as the planner takes it;
    it is null, with ``facts_unknown_because``, when the report lacks what the planner needs. ``boot_pools`` is the
    kernel command line as this kernel reads it; null when it is not known. ``unread_reports`` are kept until a later
    version of the service can read them.
    """

    first_report_at: datetime
    agent_version: str
    collectors: list[CollectorResult]
    inventory: Inventory
    sample: LatestSample
    geometry: GeometrySummary | None
    facts: NodeFacts | None
    facts_unknown_because: str | None
    boot_pools: list[BootPool] | None
    findings: list[NodeFinding]
    spool: SpoolSummary | None
    clock_ahead_seconds: float | None
    plan_in_force: PlanInForce | None
    unread_reports: int


class SampleRow(ResponseModel):
    """One sample of a node's history."""

    taken_at: datetime
    memory: SampleMemory
    pools: list[NumaPool]


class ProcessUnit(ResponseModel):
    """A pod, container or service that processes belong to by ``key``. ``limit_bytes``: of ordinary memory."""

    key: str
    kind: str
    name: str
    pod: str | None
    limit_bytes: int | None


class HugePageLimit(ResponseModel):
    """What a unit may use and reserve of one page size, in bytes. ``limited`` false: as much as there is."""

    unit: str | None
    cgroup_path: str
    page_bytes: int
    usage_bytes: int | None
    limit_bytes: int | None
    limited: bool | None
    rsvd_limit_bytes: int | None
    rsvd_limited: bool | None
    failures: int | None


class DatabaseWalks(ResponseModel):
    """Page walks of a database server whose main process is ``pid``, as its processor counted them last, or why not."""

    key: str
    engine: str
    pid: int
    counters: WalkCounters


class NodeProcesses(ResponseModel):
    """The processes of the newest sample, largest resident set first.

    ``walks`` are the databases whose page walks the agent tried to count. ``units`` are what processes belong to by
    ``unit``, and ``huge_page_limits`` what each may use of huge pages; null: the agent did not report them.
    """

    node_id: UUID
    taken_at: datetime
    processes: list[ProcessMemory]
    units: list[ProcessUnit] | None
    huge_page_limits: list[HugePageLimit] | None
    walks: list[DatabaseWalks]


class HistoryPoint(ResponseModel):
    """A node's samples in one span of ``width_seconds`` that begins at ``start_at``. Bytes; null is unknown.

    ``ordinary_bytes_max`` is memory in use that is not in a huge page pool.
    """

    start_at: datetime
    samples: int
    mem_total_bytes_max: int
    mem_available_bytes_min: int | None
    mem_available_bytes_mean: int | None
    page_tables_bytes_max: int | None
    anon_huge_pages_bytes_max: int | None
    hugetlb_bytes_min: int | None
    hugetlb_bytes_max: int | None
    pool_idle_bytes_min: int | None
    pool_idle_bytes_max: int | None
    ordinary_bytes_max: int | None


class HistoryGap(ResponseModel):
    """A time without samples between two points."""

    start_at: datetime
    end_at: datetime


class NodeHistory(ResponseModel):
    """A node over time, oldest first. ``source``: the samples themselves, or their roll-ups by hour or day.

    Where the source does not reach back to ``start_at``, older points come from the next coarser roll-up and span an
    hour or a day.
    """

    node_id: UUID
    start_at: datetime
    end_at: datetime
    width_seconds: int
    source: Literal["samples", "hours", "days"]
    points: list[HistoryPoint]
    gaps: list[HistoryGap]
