"""The planner's words as frozen dataclasses: what goes in, what comes out.

Everything here is plain data. Bytes and pages are integers; times are floats in the unit of their name.
``None`` always means *unknown*: it widens a range or becomes a finding, and is never read as zero.
A tuple is used wherever order matters or hashing is wanted; an empty tuple means *known to be none*
unless a field says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

KIB = 1024
MIB = 1024**2
GIB = 1024**3


class Source(StrEnum):
    """Where a value comes from; the interface draws each of them differently."""

    MEASURED = "measured"
    CPUID = "cpuid"
    CATALOGUE = "catalogue"
    GIVEN = "given"
    COMPUTED = "computed"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class State(StrEnum):
    """The verdict of a finding. UNKNOWN is a verdict of its own, never OK."""

    OK = "ok"
    ATTENTION = "attention"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval with its most likely value, low <= likely <= high; one unit for all three."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Term:
    """One input of a computed number: its name, its value as printed, and where it came from."""

    name: str
    value: str
    source: Source
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a number came about: the formula in symbols, its inputs, and the rule's source."""

    formula: str
    inputs: tuple[Term, ...]
    reference: str


# --- hardware -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TlbLevel:
    """Entries of one TLB level for one page size. ``kind``: data, instr, unified, load or store."""

    level: int
    kind: str
    page_bytes: int
    entries: int | None
    entries_min: int | None = None
    entries_max: int | None = None
    ways: int | str | None = None
    source: Source = Source.UNKNOWN
    confidence: Confidence = Confidence.LOW


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveGranule:
    """What one TLB entry covers for a backing here. Smaller than ``page_bytes``: the guest is fractured."""

    backing: str
    page_bytes: int
    granule_bytes: int | None
    status: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Nanoseconds per access (median, with an interval) at one footprint."""

    footprint_bytes: int
    ns: float
    ns_low: float
    ns_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """ns per dependent access over footprint for one backing.

    ``backing`` is the tlbbench label (``4K``, ``THP``, ``2M``, ``1G``, ``64K`` ...), ``layout`` is
    ``line_per_page`` or ``random_64b``. Points are sorted by footprint.
    """

    backing: str
    page_bytes: int
    layout: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFacts:
    """What is known of a node's translation hardware, measured first, catalogue second."""

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    uarch: str | None = None
    catalogue_id: str | None = None
    virtualised: bool | None = None
    core_hz: float | None = None
    l2_hit_penalty_ns: float | None = None
    levels: tuple[TlbLevel, ...] = ()
    granules: tuple[EffectiveGranule, ...] = ()
    curves: tuple[LatencyCurve, ...] = ()


# --- node ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The kernel's huge page pool of one size on one NUMA node, as observed. Counts are pages."""

    page_bytes: int
    nr_hugepages: int
    free_hugepages: int | None = None
    resv_hugepages: int | None = None
    surplus_hugepages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """One NUMA node's memory. ``pools`` is None when nothing is known of its pools."""

    id: int
    mem_total_bytes: int
    mem_free_bytes: int | None = None
    pools: tuple[Pool, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """A node as the planner sees it. ``numa`` holds at least one node; their sum is MemTotal.

    ``kernel_used_source`` says how ``kernel_used_bytes`` is known.
    """

    name: str
    arch: str = "x86_64"
    base_page_bytes: int = 4 * KIB
    huge_page_sizes_bytes: tuple[int, ...] = (2 * MIB, GIB)
    default_huge_page_bytes: int = 2 * MIB
    numa: tuple[NumaNode, ...]
    cpus: int | None = None
    kernel_used_bytes: int | None = None
    kernel_used_source: Source = Source.GIVEN
    thp_enabled: str | None = None
    hvo_enabled: bool | None = None
    kernel_release: str | None = None
    kernel_command_line: str | None = None
    hugetlb_cma_bytes: int | None = None
    hardware: HardwareFacts | None = None

    @property
    def mem_total_bytes(self) -> int:
        """MemTotal: the sum over NUMA nodes."""
        return sum(n.mem_total_bytes for n in self.numa)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservations:
    """Memory set aside before any pod or database. Without Kubernetes only ``system_reserved_bytes`` counts.

    ``provider`` (``gke``, ``eks``, ``aks`` or None) fills what is None by that provider's formula.
    """

    kubernetes: bool = False
    provider: str | None = None
    kube_reserved_bytes: int | None = None
    system_reserved_bytes: int | None = None
    eviction_hard_bytes: int | None = None
    max_pods: int | None = None
    hugepage_aware_eviction: bool | None = None
    memory_manager_static: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHistory:
    """Measured use of a tenant: parallel tuples of seconds since the epoch and bytes, sorted by time."""

    times_seconds: tuple[float, ...]
    used_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A co-located consumer of ordinary memory. ``count`` identical copies; per-copy figures in bytes."""

    name: str
    kind: str = "pod"  # pod | service | page_cache
    count: int = 1
    request_bytes: int | None = None
    limit_bytes: int | None = None
    history: MemoryHistory | None = None
    numa_node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenefitPoint:
    """One row of a throughput-over-pool-size table."""

    pool_bytes: int
    throughput: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a database instance does; every field may be unknown."""

    row_bytes: int | None = None
    working_set_bytes: int | None = None
    zipf_s: float | None = None
    active_connections: int | None = None
    cold_touches_per_operation: float | None = None
    operations_per_second_per_busy_core: float | None = None
    operation_class: str | None = None  # key_lookup | nested_loop | scan | oltp ...
    benefit_points: tuple[BenefitPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInstance:
    """An engine with its settings, verbatim as the engine spells them (``shared_buffers`` -> ``8GB``).

    ``page_bytes``: None lets the planner choose; 0 forbids huge pages; else that size is used.
    ``pool_min_bytes``/``pool_max_bytes``: when both are set the optimiser may size the buffer pool between them.
    """

    name: str
    engine: str
    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int | None = None
    numa_node: int | None = None
    page_bytes: int | None = None
    weight: float = 1.0
    pool_min_bytes: int | None = None
    pool_max_bytes: int | None = None
    workload: Workload = field(default_factory=Workload)
    pod_hugepages_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The reader's choices. ``slack_fraction`` applies to each pool's demand, rounded up to whole pages."""

    slack_fraction: float = 0.01
    slack_min_pages: int = 2
    risk: float = 0.01
    allowed_page_bytes: tuple[int, ...] | None = None
    reserve_at: str = "boot"  # boot | runtime
    free_margin_bytes: int | None = None


# --- observed state -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalPool:
    """A huge page pool over all NUMA nodes, as /sys/kernel/mm/hugepages shows it. Counts are pages."""

    page_bytes: int
    nr_hugepages: int
    free_hugepages: int | None = None
    resv_hugepages: int | None = None
    surplus_hugepages: int | None = None
    nr_overcommit_hugepages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMemory:
    """One observed process. ``instance`` names the database instance it belongs to, where that is known."""

    name: str
    instance: str | None = None
    huge_pages_status: str | None = None  # PostgreSQL 17+: on | off | unknown
    shared_hugetlb_bytes: int | None = None
    private_hugetlb_bytes: int | None = None
    anon_huge_bytes: int | None = None
    vm_pte_bytes: int | None = None
    memlock_limit_bytes: int | None = None  # None: unknown; -1: unlimited


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaMemory:
    """Observed memory of one NUMA node. ``free_blocks`` maps a block size in bytes to free blocks of at least it."""

    id: int
    mem_free_bytes: int | None = None
    free_blocks: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """The memory state of a node at one moment, for findings. Every None is unknown; an empty tuple is known none."""

    taken_at_seconds: float | None = None
    mem_available_bytes: int | None = None
    page_tables_bytes: int | None = None
    hugetlb_bytes: int | None = None
    anon_huge_pages_bytes: int | None = None
    pools: tuple[GlobalPool, ...] | None = None
    processes: tuple[ProcessMemory, ...] | None = None
    numa: tuple[NumaMemory, ...] | None = None
    thp_enabled: str | None = None
    kubelet_capacity: Mapping[str, int] | None = None  # node.status.capacity, bytes by resource name
    non_default_pools_monitored: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Everything ``plan()`` takes. ``sample`` is the latest observed state: findings that need it are else unknown."""

    node: NodeFacts
    reservations: Reservations = field(default_factory=Reservations)
    tenants: tuple[Tenant, ...] = ()
    databases: tuple[DatabaseInstance, ...] = ()
    policy: Policy = field(default_factory=Policy)
    sample: NodeSample | None = None


# --- results ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingAdvice:
    """A setting to write into the engine's configuration, and why."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSuggestion:
    """A buffer pool setting that fills whole pages: the setting's new value and the waste before and after."""

    setting: str
    value: str
    direction: str  # grow | shrink
    waste_before_bytes: int
    waste_after_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One mapping the engine asks for: ``count`` mappings of ``segment_bytes``, each rounded up on its own."""

    name: str
    segment_bytes: int
    count: int
    pages: int
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one instance needs at one page size.

    ``pages`` = sum of the segments' pages; ``error_pages`` is the rule's stated error bar, +- pages.
    ``also_pages`` are (page_bytes, pages) of smaller huge page sizes that it takes too, where such a pool exists;
    without one those parts use base pages. ``private_fixed_bytes`` is base-page memory that no connection causes.
    ``wants_pool`` False: the right answer for this engine is no hugetlb pool (``notes`` says why).
    """

    engine: str
    version: str | None
    page_bytes: int
    wants_pool: bool
    segments: tuple[Segment, ...]
    segment_bytes: int
    pages: int
    error_pages: int
    waste_bytes: int
    pool_bytes: int | None
    private_bytes_per_connection: int | None
    connections: int | None
    process_per_connection: bool
    page_cache_bytes: int | None
    settings: tuple[SettingAdvice, ...] = ()
    fits: tuple[FitSuggestion, ...] = ()
    notes: tuple[str, ...] = ()
    also_pages: tuple[tuple[int, int], ...] = ()
    private_fixed_bytes: int | None = None


class LedgerKind(StrEnum):
    """Parts of the ledger, in drawing order."""

    KERNEL = "kernel"
    SYSTEM_RESERVED = "system_reserved"
    KUBE_RESERVED = "kube_reserved"
    EVICTION = "eviction"
    TENANTS = "tenants"
    ENGINE_PRIVATE = "engine_private"
    PAGE_TABLES = "page_tables"
    PAGE_CACHE = "page_cache"
    POOL = "pool"
    POOL_SLACK = "pool_slack"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPart:
    """One part of one NUMA node's memory. ``page_bytes`` is set for pools."""

    kind: LedgerKind
    name: str
    numa_node: int
    bytes: int
    source: Source
    page_bytes: int | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All of MemTotal: the parts' bytes sum to it exactly, per NUMA node and in total.

    FREE may be negative; then the plan does not fit and a finding says so. ``struct_page_bytes`` is the kernel's
    page metadata: it lies outside MemTotal and is shown beside the parts, not among them.
    """

    mem_total_bytes: int
    parts: tuple[LedgerPart, ...]
    struct_page_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Pages of one size to reserve on one NUMA node. ``present_pages`` is what the node has now."""

    numa_node: int
    page_bytes: int
    demand_pages: int
    slack_pages: int
    pages: int
    present_pages: int | None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one page size buys one instance against base pages.

    ``saving_ns_per_operation`` is the primary result; ``speedup`` (x) needs the operation's own cost.
    """

    instance: str
    backing: str
    page_bytes: int
    saving_ns_per_operation: Range
    speedup: Range | None
    page_tables_bytes: int
    confidence: Confidence
    inputs: tuple[Term, ...]
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One candidate the optimiser weighed for an instance."""

    page_bytes: int
    pages: int
    feasible: bool
    score: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePlan:
    """The plan for one database instance: its demand at the chosen size and why not another."""

    name: str
    engine: str
    numa_nodes: tuple[int, ...]
    page_bytes: int | None
    demand: Demand
    page_tables_base_bytes: int
    page_tables_huge_bytes: int
    chosen: Choice | None
    runner_up: Choice | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A tri-state check with its reason, evidence and fix. ``code`` is stable."""

    code: str
    state: State
    subject: str
    title: str
    reason: str
    fix: str | None = None
    evidence: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetMemory:
    """Locked by pools against returned by them. ``net_bytes`` > 0: the reservation frees more than it idles."""

    locked_bytes: int
    used_bytes: int
    idle_bytes: int
    returned_page_tables_bytes: int
    returned_hvo_bytes: int | None
    net_bytes: int
    break_even_idle_bytes: int
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Probability that ordinary memory runs out under the plan. None: cannot be said, ``basis`` says why."""

    probability: Range | None
    policy: float
    meets_policy: bool | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Growth of a tenant's demand and the days until the headroom under the plan is gone.

    None in ``growth_bytes_per_day``: the history is too short, ``basis`` says what is missing.
    None in ``days_until_full``: no growth, or further away than the history can carry.
    """

    subject: str
    headroom_bytes: int
    points: int
    growth_bytes_per_day: Range | None
    days_until_full: Range | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesView:
    """What the kubelet will report once the plan is applied. Quantities in bytes, by resource name."""

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    reserved_memory: tuple[Mapping[str, int], ...]
    phantom_eviction_bytes: int
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer. ``headline`` is the first line a reader sees: what to do, in words with a number."""

    node: str
    headline: str
    pools: tuple[PoolPlan, ...]
    instances: tuple[InstancePlan, ...]
    ledger: Ledger
    gains: tuple[Gain, ...]
    findings: tuple[Finding, ...]
    net_memory: NetMemory
    risk: Risk
    kubernetes: KubernetesView | None
    assumptions: tuple[str, ...]
    unknowns: tuple[str, ...]
    forecasts: tuple[Forecast, ...] = ()
