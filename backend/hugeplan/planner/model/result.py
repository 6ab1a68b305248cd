"""The answer: pools and instances with their gains, findings, net memory, risk and forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hugeplan.planner.model.demand import Demand
from hugeplan.planner.model.ledger import Ledger, LedgerKind, PoolPlan
from hugeplan.planner.model.request import BenefitPoint
from hugeplan.planner.model.trial import MeasuredHere
from hugeplan.planner.model.words import Confidence, Explanation, Range, State, Term


@dataclass(frozen=True, slots=True)
class PublishedGain:
    """Gain in per cent of throughput that others published for a class of work, base pages to large pages.

    Evidence beside a prediction, from other machines; no prediction is made from it.
    """

    percent: Range
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one page size buys one instance against base pages.

    ``saving_ns_per_operation`` is the primary result; ``speedup`` (x) is the same saving over the operation's own
    cost, given or assumed by its class. ``published``: what others measured for this class of work.
    ``backing_kind`` is ``base``, ``thp`` or ``hugetlb``, as tlbbench names it. ``is_chosen``: the plan reserves this
    size for the instance, or leaves it on base pages. ``speedup`` is what is gained; ``one_measurement`` (x) is what
    one measurement on a quiet machine will show, noise included, None where that noise is not known.
    ``measured_here``: a trial on this node that all of these figures stand on, in place of a prediction.
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
    backing_kind: str = "hugetlb"
    is_chosen: bool = False
    published: PublishedGain | None = None
    one_measurement: Range | None = None
    measured_here: MeasuredHere | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One candidate the optimiser weighed for an instance.

    Its parts add up to ``score``: 1 is one per cent of the instance's throughput times its weight, or one per cent of
    the node's memory. They and ``waste_bytes`` (lost to rounding) are None where the candidate is not
    feasible or reserves no pool; ``why`` says which.
    """

    page_bytes: int
    pages: int
    feasible: bool
    score: float
    why: str
    gain_score: float | None = None
    memory_score: float | None = None
    operation_score: float | None = None
    waste_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBenefit:
    """What a measured table says of the planned buffer pool; throughputs in the table's unit.

    ``measured`` are the table's points by size, ``pool_bytes`` is the planned pool.
    ``limit``, ``slope`` and ``end_bytes`` are the fitted curve's parameters, ``error_fraction`` its root mean square
    residual over the best throughput. The knees are the pools that reach 95 and 99 % of the best measured throughput.
    ``extrapolated``: the planned pool lies outside the measured sizes. ``fitted`` is the curve between the smallest and
    the largest measured size, the measured sizes among its points; outside them nothing is known.
    """

    points: int
    measured: tuple[BenefitPoint, ...]
    pool_bytes: int
    limit: float
    slope: float
    end_bytes: int
    error_fraction: float
    knee_95_bytes: int
    knee_99_bytes: int
    throughput: float
    marginal_per_gib: float
    extrapolated: bool
    statement: str
    fitted: tuple[BenefitPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePlan:
    """The plan for one database instance: its demand at the chosen size and why not another.

    ``why`` is the whole reason in sentences; ``why_besides_score`` leaves out the score that ``chosen`` holds.
    ``runs_as`` is the key of the server that runs it, where one was observed when the plan was made. ``pod``: namespace
    and name of the pod that it is in, or of its StatefulSet; with a hyphen at the end, how an operator's pods begin.
    ``owner_uid`` is the user that this server ran as.
    ``pool_benefit`` is None without a table of at least four sizes that a curve can be fitted to.
    ``counted_settings``: the given ones that its pages depend on, as text, without the advised; what it preloads, too.
    None in an older plan.
    """

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
    pool_benefit: PoolBenefit | None = None
    why_besides_score: str = ""
    runs_as: str | None = None
    pod: str | None = None
    owner_uid: int | None = None
    counted_settings: Mapping[str, str] | None = None


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
class NumaRisk:
    """Probability that one NUMA node cannot hold what is bound to it; ``room_bytes`` is left for workloads bound there.

    Whatever is not bound is taken to lie elsewhere: the kernel falls back to another node before it gives up.
    """

    numa_node: int
    room_bytes: int
    probability: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Probability that ordinary memory runs out under the plan. None: cannot be said, ``basis`` says why.

    ``probability`` is for the node as a whole and for each NUMA node that something is bound to; ``numa_nodes`` are
    those NUMA nodes by themselves, empty on a node with one.
    """

    probability: Range | None
    policy: float
    meets_policy: bool | None
    basis: str
    numa_nodes: tuple[NumaRisk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Growth of a workload's demand and the days until the headroom under the plan is gone.

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
class PoolChange:
    """One pool now and as planned, in pages. ``in_use_pages`` are mapped or reserved now; None is unknown.

    ``held_pages`` of them belong to what the scenario does not describe, ``held_by`` names who.
    """

    numa_node: int
    page_bytes: int
    now_pages: int | None
    in_use_pages: int | None
    held_pages: int
    held_by: tuple[str, ...]
    planned_pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One kind of the ledger now and as planned, over all NUMA nodes."""

    kind: LedgerKind
    now_bytes: int
    planned_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTenant:
    """A workload that the sample saw: its ordinary memory now, what the plan sets aside for it, and how it was derived.

    ``planned_bytes`` is None for one that the scenario excludes or replaces. ``database_bytes`` of it belong to
    databases that the scenario describes; the plan counts those with the databases.
    """

    name: str
    key: str | None
    kind: str
    now_bytes: int
    database_bytes: int
    planned_bytes: int | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseMatch:
    """A database of the scenario and the observed one that it describes, which is then not counted twice.

    ``in_pool_bytes``: what of its segments lies in huge page pools today; None in plans of before it was kept.
    """

    instance: str
    key: str
    why: str
    in_pool_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """The node as the sample saw it: a ledger that sums to MemTotal, its workloads, and the databases that run.

    ``available_bytes`` is the sample's MemAvailable. ``notes`` say what was not reported and how it was filled.
    """

    taken_at_seconds: float | None
    available_bytes: int | None
    ledger: Ledger
    tenants: tuple[ObservedTenant, ...]
    matches: tuple[DatabaseMatch, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Now -> planned: every pool, every kind of memory, and in words what moves."""

    pools: tuple[PoolChange, ...]
    memory: tuple[MemoryChange, ...]
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOption:
    """One change that makes a plan fit: ``kind`` is pool, page_size, numa_node, connections or node.

    ``text`` is a whole sentence.

    ``node``: the other node on which the instance fits.
    """

    kind: str
    text: str
    instance: str | None = None
    setting: str | None = None
    value: str | None = None
    pool_bytes: int | None = None
    page_bytes: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why a plan does not fit. ``constraint`` is workloads, numa_node, provider_cap or memory.

    ``shortfall_bytes`` is what is missing there; ``options`` are changes that fit, the least intrusive first.
    """

    constraint: str
    shortfall_bytes: int
    numa_node: int | None
    reason: str
    options: tuple[FitOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer. ``headline`` is the first line a reader sees: what to do, in words with a number.

    ``fits`` is the answer: None where what is not known decides it, as ``memory_fit`` says. ``feasible`` False: as
    counted it has no room, so no file is handed out; ``shortfall`` says what is missing, why, and what would fit.
    ``now`` and ``difference`` are None where the node was not observed.
    """

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
    feasible: bool = True
    fits: bool | None
    shortfall: Shortfall | None = None
    now: StartingPoint | None = None
    difference: Difference | None = None
