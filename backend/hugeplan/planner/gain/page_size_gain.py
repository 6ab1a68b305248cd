"""What a page size buys an instance: nanoseconds saved per operation first, the percentage second.

The saving comes from ``translation_saving.py``; the percentage is the same saving over the operation's own cost: from
the throughput per busy core that the user measured at base pages, else a stated range by the class of operation.
Published gains stand beside it as evidence. Every input is listed with where it came from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hugeplan.planner.demand import engine_named
from hugeplan.planner.demand.accesses import AccessProfile
from hugeplan.planner.demand.model_error import ModelError
from hugeplan.planner.demand.published_bands import band_of
from hugeplan.planner.gain.cases import Case, Scenario, is_described, savings_of
from hugeplan.planner.gain.measured_here import measured_in_place, moved_alike, shape_of
from hugeplan.planner.gain.translation_saving import NATIVE_BOUND, NESTED_BOUND, Saving, l1_miss_ns
from hugeplan.planner.gain.walk_bound import bounded_by_walks, most_speedup
from hugeplan.planner.gain.walk_cost import ASSUMED_MEMORY_NS
from hugeplan.planner.memory.page_tables import instance_tables
from hugeplan.planner.model import (
    KIB,
    MIB,
    Confidence,
    DatabaseInstance,
    Demand,
    Gain,
    NodeFacts,
    Range,
    Source,
    Term,
    WalkShare,
)
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_change, with_minus

HIGH_WIDTH_POINTS, MEDIUM_WIDTH_POINTS = 20.0, 60.0
"""Widest range, in points of throughput, that may be called high (plus or minus 10) and medium confidence."""

THP_PAGE_BYTES, THP_BASE_PAGE_BYTES = 2 * MIB, 4 * KIB
"""Size of a transparent huge page, one page-table level above base pages of 4K (x86-64, AArch64)."""


def gains(node: NodeFacts, instance: DatabaseInstance, demands: Mapping[int, Demand]) -> tuple[Gain, ...]:
    """The gains of one instance; see :func:`gains_of_all`."""
    return gains_of_all(node, [(instance, demands)])[0].shown


@dataclass(frozen=True, slots=True)
class Gains:
    """``shown``: what is said of each page size. ``own``: by page size of a pool, the likely speed-up (x) that decides.

    Trials of other nodes move what is shown, and never what is chosen: anybody with an agent's token sends them, and
    took huge pages away from nodes that he never saw (docs/adr/0049).
    """

    shown: tuple[Gain, ...]
    own: Mapping[int, float]


def gains_of_all(node: NodeFacts, wanted: Sequence[tuple[DatabaseInstance, Mapping[int, Demand]]]) -> list[Gains]:
    """By instance, the gain of every page size in its demands (page bytes -> demand) against the node's base page.

    Smallest first. The base page size itself, where asked for, gets a gain of zero and its page-table bytes. Where the
    node's THP setting is known and not ``never``, 2M is followed by what transparent huge pages would give without a
    pool.
    """
    solved = savings_of(node, wanted)
    return [
        _gains(node, instance, demands, weighed) for (instance, demands), weighed in zip(wanted, solved, strict=True)
    ]


def _gains(
    node: NodeFacts,
    instance: DatabaseInstance,
    demands: Mapping[int, Demand],
    weighed: Mapping[int, tuple[Case, Saving]],
) -> Gains:
    results: list[Gain] = []
    own: dict[int, float] = {}
    for page_bytes in sorted(demands):
        if page_bytes not in weighed:
            results.append(_base_gain(node, instance, demands[page_bytes]))
            continue
        case, saving = weighed[page_bytes]
        results.append(_gain(node, instance, case, saving))
        has_rate = instance.workload.operations_per_second_per_busy_core is not None
        own[page_bytes] = _own(node, case, saving, has_rate=has_rate)
        if page_bytes == THP_PAGE_BYTES and node.base_page_bytes == THP_BASE_PAGE_BYTES:
            results.extend(_thp_gain(node, case.demand, results[-1]))
    if not weighed or not (node.trials or instance.walks_now):
        return Gains(tuple(results), own)
    case, _ = next(iter(weighed.values()))
    clients = case.processes if case.demand.process_per_connection else instance.workload.active_connections
    shape, cost = shape_of(instance, case.demand, clients), case.profile.operation_ns.likely
    tried = [measured_in_place(gain, node.trials, shape, cost) for gain in results]
    shown = tuple(bounded_by_walks(gain, instance.walks_now, cost) for gain in moved_alike(tried, cost))
    return Gains(shown, _own_here(own, shown, instance.walks_now))


def _own(node: NodeFacts, case: Case, found: Saving, *, has_rate: bool) -> float:
    """The likely speed-up of a pool without the trials of other nodes."""
    virtualised = _is_virtualised(node)
    likely = Range(found.own_ns, found.own_ns, found.own_ns)
    saving = _within_operation(likely, case.profile.operation_ns.likely, virtualised) if has_rate else likely
    cost = case.profile.operation_ns if has_rate else _cost_with(saving, case.profile)
    return _ratio(saving.likely, cost.likely, _bound(virtualised))


def _own_here(own: Mapping[int, float], shown: Sequence[Gain], walks: WalkShare | None) -> dict[int, float]:
    """These as a trial of the node itself and its page walks have them, which move what is shown in the same way."""
    most = math.inf if walks is None else most_speedup(walks)
    measured = {
        gain.page_bytes: gain.speedup.likely
        for gain in shown
        if gain.backing_kind == "hugetlb" and gain.measured_here is not None and gain.speedup is not None
    }
    first = next((page_bytes for page_bytes in measured if page_bytes in own), None)
    factor = 1.0 if first is None else measured[first] / own[first]
    return {
        page_bytes: measured.get(page_bytes, likely if likely == 1.0 else min(factor * likely, most))
        for page_bytes, likely in own.items()
    }


def _base_gain(node: NodeFacts, instance: DatabaseInstance, demand: Demand) -> Gain:
    return Gain(
        instance=instance.name,
        backing=page_label(node.base_page_bytes),
        page_bytes=node.base_page_bytes,
        saving_ns_per_operation=Range(0.0, 0.0, 0.0),
        speedup=Range(1.0, 1.0, 1.0),
        page_tables_bytes=instance_tables(node, demand, instance.workload).bytes,
        confidence=Confidence.HIGH,
        inputs=(),
        statement="The base page size: what the others are compared with.",
        backing_kind="base",
    )


def _thp_gain(node: NodeFacts, demand: Demand, pool: Gain) -> tuple[Gain, ...]:
    """THP beside a pool of the same size: at best the same saving, at worst none, since nothing is guaranteed.

    Shared memory of a process-per-connection engine is not covered by the ``enabled`` setting at all (it follows
    ``shmem_enabled``, ``never`` by default), and ``madvise`` helps only engines that ask for it.
    """
    if node.thp_enabled not in {"always", "madvise"}:
        return ()
    covered = node.thp_enabled == "always" and not demand.process_per_connection
    saving, speedup = pool.saving_ns_per_operation, pool.speedup
    why = (
        "THP may be granted, split or withheld at any time: up to the saving of a pool, and nothing is certain."
        if covered
        else "THP does not reach this memory as the node is set: shared memory follows shmem_enabled, and under "
        "madvise an engine must ask for it."
    )
    return (
        replace(
            pool,
            backing="THP",
            backing_kind="thp",
            saving_ns_per_operation=Range(
                min(0.0, saving.low), saving.likely if covered else 0.0, max(0.0, saving.high)
            ),
            speedup=None
            if speedup is None
            else Range(min(1.0, speedup.low), speedup.likely if covered else 1.0, max(1.0, speedup.high)),
            one_measurement=None,
            confidence=Confidence.LOW,
            inputs=(*pool.inputs, Term("transparent_hugepage/enabled", node.thp_enabled, Source.GIVEN)),
            statement=why,
        ),
    )


def _gain(node: NodeFacts, instance: DatabaseInstance, case: Case, found: Saving) -> Gain:
    page_bytes, profile, scenarios = case.page_bytes, case.profile, case.scenarios
    virtualised = _is_virtualised(node)
    rate = instance.workload.operations_per_second_per_busy_core
    cost_source = Source.GIVEN if rate else Source.ASSUMED
    saving = found.ns if rate is None else _within_operation(found.ns, profile.operation_ns.likely, virtualised)
    cost_ns = profile.operation_ns if rate else _cost_with(saving, profile)
    speedup, basis = _speedup(saving, cost_ns, cost_source, virtualised)
    published = band_of(engine_named(instance.engine).published, instance.workload.operation_class)
    fractured = len(scenarios) == 1 and scenarios[0].granule_bytes < page_bytes
    inputs = (
        *_hardware_terms(scenarios, page_bytes, node),
        *_extrapolation(found.extrapolated),
        *profile.inputs,
        Term("private page tables in use", f"{case.processes}", case.processes_source),
        *(() if profile.model_error is None else (profile.model_error.term(),)),
        basis,
    )
    return Gain(
        instance=instance.name,
        backing=page_label(page_bytes),
        page_bytes=page_bytes,
        saving_ns_per_operation=saving,
        speedup=speedup,
        one_measurement=_one_measurement(speedup, profile.model_error),
        page_tables_bytes=instance_tables(node, case.demand, instance.workload).bytes,
        confidence=Confidence.LOW
        if saving.likely < found.ns.likely
        else _confidence(scenarios, is_described(instance), basis.source, speedup),
        inputs=inputs,
        statement=_statement(
            page_bytes,
            saving,
            speedup,
            profile,
            basis,
            fractured=fractured,
            known=len(scenarios) == 1,
            may_lose=found.may_lose,
        )
        + _contradiction(found.ns, saving, profile.operation_ns.likely)
        + ("" if profile.model_error is None or not profile.model_error.said else f" {profile.model_error.said}"),
        published=published,
    )


def _one_measurement(speedup: Range, error: ModelError | None) -> Range | None:
    """What one measurement on a quiet machine will show: the gain's range and the noise of measuring it.

    None where no noise is known, which is so for operations inside the server and for programs.
    """
    if error is None:
        return None
    low, high = (shown - gained for shown, gained in zip(error.one_measurement, error.gained, strict=True))
    return Range(speedup.low + low, speedup.likely, speedup.high + high)


def _within_operation(saving: Range, cost_ns: float, virtualised: bool) -> Range:
    """The saving, bounded by the share of a given operation that translation can be."""
    most = cost_ns * (1.0 - 1.0 / _bound(virtualised))
    return Range(min(saving.low, most), min(saving.likely, most), min(saving.high, most))


def _contradiction(modelled: Range, bounded: Range, cost_ns: float) -> str:
    """What to check where the model would save more than the given operation can have cost; nothing where it fits."""
    if bounded.likely >= modelled.likely:
        return ""
    return (
        f" The model alone would save {_whole_ns(modelled.likely)} ns of an operation that is said to cost"
        f" {_whole_ns(cost_ns)} ns: check operations_per_second_per_busy_core and the operation."
    )


def _cost_with(saving: Range, profile: AccessProfile) -> Range:
    """The assumed cost of an operation, at least what it waits for translation and for the memory behind it.

    An assumed cost below the saving itself would turn nanoseconds into any percentage.
    """
    lines = profile.exposed.likely * profile.cold_accesses

    def at_least(cost: float, ns: float, memory_ns: float) -> float:
        return max(cost, ns + lines * memory_ns)

    cost, memory = profile.operation_ns, ASSUMED_MEMORY_NS
    likely = at_least(cost.likely, saving.likely, memory.likely)
    low = min(likely, at_least(cost.low, saving.likely, memory.low))
    return Range(low, likely, max(likely, cost.high))


def _is_virtualised(node: NodeFacts) -> bool:
    """Also where it is not known."""
    return node.hardware is None or node.hardware.virtualised is not False


def _ratio(saving_ns: float, cost_ns: float, bound: float) -> float:
    return cost_ns / (cost_ns - min(saving_ns, cost_ns * (1.0 - 1.0 / bound)))


def _bound(virtualised: bool) -> float:
    return NESTED_BOUND if virtualised else NATIVE_BOUND


def _speedup(saving: Range, cost_ns: Range, source: Source, virtualised: bool) -> tuple[Range, Term]:
    """The saving over the operation's own cost, so that percentage and nanoseconds never disagree.

    Cost and saving are uncertain independently of each other: their effects add in quadrature, and the range never
    leaves what their bounds allow together. Never above what translation alone can give.
    """
    bound = _bound(virtualised)

    def of(ns: float, cost: float) -> float:
        return _ratio(ns, cost, bound)

    likely = of(saving.likely, cost_ns.likely)
    corners = [of(ns, cost) for ns in (saving.low, saving.high) for cost in (cost_ns.low, cost_ns.high)]
    of_saving = [of(saving.low, cost_ns.likely), of(saving.high, cost_ns.likely)]
    of_cost = sorted([of(saving.likely, cost_ns.low), of(saving.likely, cost_ns.high)])
    low = likely - math.hypot(likely - of_saving[0], likely - of_cost[0])
    high = likely + math.hypot(of_saving[1] - likely, of_cost[1] - likely)
    speedup = Range(min(likely, max(low, min(corners))), likely, max(likely, min(high, max(corners))))
    if source is Source.GIVEN:
        return speedup, Term("operation's own cost", f"{cost_ns.likely:.0f} ns at base pages", source)
    text = f"{cost_ns.low / 1000:g} to {cost_ns.high / 1000:g} microseconds, likely {cost_ns.likely / 1000:g}"
    return speedup, Term("operation's own cost", text, source, "the class of its operation; measure it to be surer")


def _extrapolation(extrapolated: bool) -> tuple[Term, ...]:
    """The input that says a walk's cost lies outside what was measured; nothing when it lies inside."""
    text = "extrapolated: more page-table entries are out of the cache than at any measured footprint"
    return (Term("walk price", text, Source.COMPUTED),) if extrapolated else ()


def _hardware_terms(scenarios: tuple[Scenario, ...], page_bytes: int, node: NodeFacts) -> tuple[Term, ...]:
    first = scenarios[0]
    terms = [
        Term(f"TLB entries for {page_label(node.base_page_bytes)}", f"{first.base.entries:.0f}", first.base.source)
    ]
    if len(scenarios) > 1:
        terms.append(Term(f"effective page size of {page_label(page_bytes)}", "not measured", Source.UNKNOWN))
    else:
        probed = bool(node.hardware and node.hardware.granules)
        source = Source.MEASURED if probed else Source.COMPUTED
        terms.append(Term(f"effective page size of {page_label(page_bytes)}", page_label(first.granule_bytes), source))
    for scenario in scenarios:
        if scenario.granule_bytes == page_bytes:
            label = f"TLB entries for {page_label(page_bytes)}"
            terms.append(Term(label, f"{scenario.large.entries:.0f}", scenario.large.source))
    measured_c1 = node.hardware is not None and node.hardware.l2_hit_penalty_ns is not None
    c1 = l1_miss_ns(node.hardware.l2_hit_penalty_ns if node.hardware else None)
    terms.append(Term("first-level miss", f"{c1:.2f} ns", Source.MEASURED if measured_c1 else Source.ASSUMED))
    return (*terms, *first.walk_cost.inputs)


def _confidence(scenarios: tuple[Scenario, ...], described: bool, basis: Source, speedup: Range) -> Confidence:
    """High only when curves, effective page size, working set and operation cost are known and the range is narrow.

    Low without curves or effective page size, and for a range so wide that it does not help to decide.
    """
    width_points = 100.0 * (speedup.high - speedup.low)
    if len(scenarios) > 1 or not all(s.walk_cost.measured for s in scenarios) or width_points > MEDIUM_WIDTH_POINTS:
        return Confidence.LOW
    walks = scenarios[0].walk_cost.confidence
    narrow = width_points <= HIGH_WIDTH_POINTS
    if walks is Confidence.HIGH and described and basis is Source.GIVEN and narrow:
        return Confidence.HIGH
    return Confidence.MEDIUM


def _whole_ns(ns: float) -> str:
    """Whole nanoseconds; what is less than a half keeps its first digit, so that it does not read as nothing."""
    return with_minus(f"{ns:.1g}" if 0.0 < abs(ns) < 0.5 else f"{round(ns):,}")


def _statement(
    page_bytes: int,
    saving: Range,
    speedup: Range,
    profile: AccessProfile,
    basis: Term,
    *,
    fractured: bool,
    known: bool,
    may_lose: bool,
) -> str:
    label = page_label(page_bytes)
    low, likely, high = (_whole_ns(ns) for ns in (saving.low, saving.likely, saving.high))
    sentences = [
        f"{label} pages: {likely} ns less per operation ({low} to {high}), "
        f"from {profile.cold_accesses:.1f} cold places touched."
    ]
    low_change, high_change = format_change(speedup.low - 1.0, ""), format_change(speedup.high - 1.0)
    against = (
        "of the operation's given cost"
        if basis.source is Source.GIVEN
        else f"of an operation that is taken to cost {basis.value}"
    )
    sentences.append(f"That is {format_change(speedup.likely - 1.0)} ({low_change} to {high_change}) {against}.")
    if fractured:
        sentences.append("The host maps this guest with smaller pages: walks get shorter, TLB reach stays the same.")
    if not known:
        sentences.append("What a TLB entry covers here was not measured; the range holds with and without more reach.")
    if may_lose:
        sentences.append(f"A loss is possible: {label} entries are few and the hot places may be scattered.")
    elif saving.low < 0.0:
        sentences.append("It may gain nothing: likely gains of clients were off by as much. A trial narrows that.")
    return " ".join(sentences)
