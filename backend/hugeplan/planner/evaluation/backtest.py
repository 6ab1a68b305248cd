"""The model against published results: predicted beside published, with the error, for every row.

Rows the model has inputs for are predicted by the same functions that plan. Rows it cannot explain stay, with the
reason. No parameter of the model was fitted to any of them: what is not published is assumed, and widens the range.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hugeplan.planner.demand import access_profile
from hugeplan.planner.demand.accesses import CHAINED, INDEPENDENT, AccessProfile, AccessRegion
from hugeplan.planner.gain.cases import machine_of, over_scenarios, scenarios_of
from hugeplan.planner.gain.translation import expected_pages_touched
from hugeplan.planner.gain.translation_saving import NATIVE_BOUND, NESTED_BOUND, SavingProblem, savings
from hugeplan.planner.model import (
    GIB,
    BenefitPoint,
    DatabaseInstance,
    Demand,
    HardwareFacts,
    NodeFacts,
    NumaNode,
    Range,
    Workload,
)
from hugeplan.planner.pool_benefit.throughput_curve import fit_benefit

HardwareLookup = Callable[[str | None, bool | None, int | None, int], HardwareFacts]
"""(catalogue id, virtualised, measured granule bytes, large page bytes) -> hardware facts."""

TOLERANCE_POINTS = 1.0
"""Percentage points by which a published figure may lie outside for run-to-run scatter and rounding, which no source
states: such results are counted apart."""

# Assumed where the source does not say. A read-only lookup by a client costs a core 10 to 40 us (client and server on
# one machine); an in-memory row read over local messages 0.3 to 5 us. A line of memory takes 80 to 150 ns, and rows
# stream at 5 to 20 bytes per ns.
CLIENT_LOOKUP_NS = Range(10_000.0, 20_000.0, 40_000.0)
MESSAGE_NS = Range(0.0, 1_000.0, 5_000.0)
LINE_NS = Range(80.0, 100.0, 150.0)
STREAM_BYTES_PER_NS = 10.0


@dataclass(frozen=True, slots=True)
class BacktestRow:
    """One published result. Percentages are throughput gains, B over A.

    ``group``: what it is about. ``status``: ``inside`` the predicted range, outside of it ``by_tolerance`` alone,
    ``outside``, ``unexplained`` (the physics cannot give it), or ``no_inputs``; ``reason`` says why for the last two.
    ``is_wide``: the range is over 50 points. ``error_percentage_points`` is likely minus published.
    """

    id: str
    source: str
    system: str | None
    workload: str | None
    page_size_a: str | None
    page_size_b: str | None
    published: str
    published_percent: float | None
    predicted_percent: Range | None
    error_percentage_points: float | None
    status: str
    is_wide: bool
    reason: str | None
    group: str


GROUPS = ("database_huge_pages", "memory_access", "buffer_pool_size", "no_inputs")
"""What a result is about: huge pages under a database's rows; under single memory accesses; throughput over the size
of a buffer pool, in which no huge page occurs; or nothing that the model has inputs for."""

HUGE_PAGE_GROUPS = ("database_huge_pages", "memory_access")

_GROUP_OF_KIND = {
    "lookup": "database_huge_pages",
    "rows": "database_huge_pages",
    "rows_1g": "database_huge_pages",
    "access": "memory_access",
    "benefit": "buffer_pool_size",
}


def backtest(items: Sequence[Mapping[str, Any]], hardware_of: HardwareLookup) -> tuple[BacktestRow, ...]:
    """Every published item in its order, predicted where the model has inputs."""
    series = benefit_series(items)
    return tuple(_row(item, hardware_of, series) for item in items)


def counts(rows: Sequence[BacktestRow]) -> dict[str, int]:
    """Rows by status, every status present."""
    found = Counter(row.status for row in rows)
    return {status: found[status] for status in ("inside", "by_tolerance", "outside", "unexplained", "no_inputs")}


def counts_by_group(rows: Sequence[BacktestRow]) -> dict[str, dict[str, int]]:
    """Rows by status within each group."""
    return {group: counts([row for row in rows if row.group == group]) for group in GROUPS}


WIDE_POINTS = 50.0
"""Percentage points from which on a predicted range says too little for a result inside it to count for the model."""


@dataclass(frozen=True, slots=True)
class Headline:
    """Huge-page results alone, without throughput over buffer pools; what the physics cannot give is outside.

    ``inside`` lie in the predicted range itself; ``by_tolerance`` only within the run-to-run scatter of it; ``wide`` of
    the two have a range over 50 points.
    """

    results: int
    inside: int
    by_tolerance: int
    outside: int
    wide: int
    databases: int
    databases_inside: int


def headline(rows: Sequence[BacktestRow]) -> Headline:
    """What the backtest says of huge pages, in numbers that a reader can add up."""
    mine = [row for row in rows if row.group in HUGE_PAGE_GROUPS]
    found = counts(mine)
    databases = [row for row in mine if row.group == "database_huge_pages"]
    return Headline(
        results=len(mine),
        inside=found["inside"],
        by_tolerance=found["by_tolerance"],
        outside=found["outside"] + found["unexplained"],
        wide=sum(row.is_wide and row.status in {"inside", "by_tolerance"} for row in mine),
        databases=len(databases),
        databases_inside=counts(databases)["inside"],
    )


# --- one row ---------------------------------------------------------------------------------------


def published_range(gain_percent: object) -> tuple[float, float] | None:
    """The published gain as an interval: a number, or the numbers in words such as ``+8 to +10``; None without any."""
    if isinstance(gain_percent, (int, float)):
        return float(gain_percent), float(gain_percent)
    if not isinstance(gain_percent, str):
        return None
    # "about +700 (8x)" names the same gain twice; the bracket is left out.
    numbers = [float(n) for n in re.findall(r"[+-]?\d+(?:\.\d+)?", re.sub(r"\([^()]*\)", "", gain_percent))]
    return (min(numbers), max(numbers)) if numbers else None


def _row(
    item: Mapping[str, Any], hardware_of: HardwareLookup, series: Mapping[str, Sequence[_SeriesPoint]]
) -> BacktestRow:
    published = published_range(item["gain_percent"])
    inputs = item.get("model")
    predicted: Range | None = None
    reason = item.get("unusable")
    if inputs is not None and published is not None:
        predicted, reason = _predict(inputs, hardware_of, series)
    middle = None if published is None else (published[0] + published[1]) / 2.0
    status = "no_inputs"
    if inputs is not None and predicted is not None and published is not None:
        status = _status(predicted, published, inputs)
        if status == "unexplained":
            reason = (
                "above what translation alone can give dependent reads "
                f"({NATIVE_BOUND:g}x native, {NESTED_BOUND:g}x nested): private page tables, first-touch faults or "
                "memory pressure must be in it, and the source does not say how much"
            )
    return BacktestRow(
        id=item["id"],
        source=item["source"],
        system=item["system"],
        workload=item["workload"],
        page_size_a=item["page_size_a"],
        page_size_b=item["page_size_b"],
        published=_published_text(item["gain_percent"]),
        published_percent=middle,
        predicted_percent=predicted,
        error_percentage_points=None if predicted is None or middle is None else predicted.likely - middle,
        status=status,
        is_wide=predicted is not None and predicted.high - predicted.low > WIDE_POINTS,
        reason=reason,
        group="no_inputs" if status == "no_inputs" or inputs is None else _GROUP_OF_KIND[inputs["kind"]],
    )


def _published_text(gain_percent: object) -> str:
    if gain_percent is None:
        return "no figure"
    return f"{gain_percent:+g} %" if isinstance(gain_percent, (int, float)) else f"{gain_percent} %"


def _status(predicted: Range, published: tuple[float, float], inputs: Mapping[str, Any]) -> str:
    beside = max(predicted.low - published[1], published[0] - predicted.high)
    if beside <= TOLERANCE_POINTS:
        return "inside" if beside <= 0.0 else "by_tolerance"
    bound = 100.0 * (NESTED_BOUND - 1.0)
    return "unexplained" if inputs["kind"] == "rows" and published[0] > bound else "outside"


def _predict(
    inputs: Mapping[str, Any], hardware_of: HardwareLookup, series: Mapping[str, Sequence[_SeriesPoint]]
) -> tuple[Range, str | None]:
    """(gain in percent, note) of a row by its kind of inputs."""
    if inputs["kind"] == "benefit":
        return predict_benefit(series[inputs["series"]], inputs["pool_gib"])
    hardware = hardware_of(
        inputs["catalogue_id"], inputs["virtualised"], inputs.get("granule_bytes"), inputs["large_page_bytes"]
    )
    kinds = {"access": _access, "rows": _rows, "rows_1g": _rows_1g, "lookup": _lookup}
    return kinds[inputs["kind"]](inputs, hardware), None


# --- translation ------------------------------------------------------------------------------------


def _saving(profile: AccessProfile, hardware: HardwareFacts, page_bytes: int, processes: int) -> Range:
    """The planner's saving for a profile, over the granules that are possible."""
    node = NodeFacts(name="published", numa=(NumaNode(id=0, mem_total_bytes=GIB),), cpus=processes, hardware=hardware)
    scenarios = scenarios_of(hardware, node.base_page_bytes, page_bytes, node.arch)
    machines = tuple(machine_of(node, scenario, page_bytes, processes, busy=processes) for scenario in scenarios)
    return over_scenarios(savings((SavingProblem(profile, machines, described=True),))[0]).ns


def _uniform_reads(
    footprint_bytes: float, operation_ns: Range, *, exposed: Range, near: float = 0.0, item_bytes: float = 64.0
) -> AccessProfile:
    """A loop that does nothing but read uniform random places, one per operation."""
    region = AccessRegion("read", footprint_bytes, max(1.0, footprint_bytes / item_bytes), item_bytes, 1.0, near)
    return AccessProfile((region,), 0.0, 0.0, 0.0, (1.0, 1.0), (), operation_ns, exposed)


def _percent(operation_ns: float, saving_ns: float, bound: float = NESTED_BOUND) -> float:
    """Gain in percent of an operation that gets shorter; bounded where a saving would eat most of the operation."""
    kept = max(operation_ns - saving_ns, operation_ns / bound)
    return 100.0 * (operation_ns / kept - 1.0)


def _access(inputs: Mapping[str, Any], hardware: HardwareFacts) -> Range:
    """A measured ns per random read at 4K: the saving over it."""
    cost = float(inputs["operation_ns"])
    exposed = CHAINED if inputs["dependent"] else INDEPENDENT
    profile = _uniform_reads(inputs["footprint_bytes"], Range(cost, cost, cost), exposed=exposed)
    saving = _saving(profile, hardware, inputs["large_page_bytes"], 1)
    bound = NATIVE_BOUND if hardware.virtualised is False else NESTED_BOUND
    low, likely, high = (_percent(cost, ns, bound) for ns in (saving.low, saving.likely, saving.high))
    return Range(low, likely, high)


def _row_read_ns(stream_ns: float) -> Range:
    """Time of a row read without its translation: the first line, the rest of the row, the message."""
    parts = [(LINE_NS.low, MESSAGE_NS.low), (LINE_NS.likely, MESSAGE_NS.likely), (LINE_NS.high, MESSAGE_NS.high)]
    return Range(*(line + message + stream_ns for line, message in parts))


def _rows(inputs: Mapping[str, Any], hardware: HardwareFacts) -> Range:
    """Row reads without a published cost: from message-bound (low) to memory-bound (high), see oracles 6 and 7."""
    width = int(inputs["row_bytes"])
    pages = expected_pages_touched(width, 4096)
    stream = width / STREAM_BYTES_PER_NS
    profile = _uniform_reads(
        inputs["footprint_bytes"],
        _row_read_ns(stream),
        exposed=INDEPENDENT,
        near=pages - 1.0,
        item_bytes=float(width),
    )
    saving = _saving(profile, hardware, inputs["large_page_bytes"], inputs["processes"])

    def cost(line_ns: float, message_ns: float, saved_ns: float) -> float:
        # What the operation costs at 4K: the data, the message, and the translation that large pages would save.
        return line_ns + stream + message_ns + max(0.0, saved_ns)

    return Range(
        _percent(cost(LINE_NS.high, MESSAGE_NS.high, saving.low), saving.low),
        _percent(cost(LINE_NS.likely, MESSAGE_NS.likely, saving.likely), saving.likely),
        _percent(cost(LINE_NS.low, MESSAGE_NS.low, saving.high), saving.high),
    )


def _rows_1g(inputs: Mapping[str, Any], hardware: HardwareFacts) -> Range:
    """1G over 2M: the difference of both sizes' savings against 4K, over what is left of the operation."""
    profile = _uniform_reads(
        inputs["footprint_bytes"],
        _row_read_ns(inputs["row_bytes"] / STREAM_BYTES_PER_NS),
        exposed=INDEPENDENT,
        item_bytes=float(inputs["row_bytes"]),
    )
    at_2m = _saving(profile, hardware, 2 << 20, inputs["processes"])
    at_1g = _saving(profile, hardware, inputs["large_page_bytes"], inputs["processes"])
    # Both savings share their largest uncertainty, the base walk; their difference is compared bound by bound.
    more = sorted(max(0.0, getattr(at_1g, bound) - getattr(at_2m, bound)) for bound in ("low", "likely", "high"))
    costs = (LINE_NS.high + MESSAGE_NS.high, LINE_NS.likely + MESSAGE_NS.likely, LINE_NS.low + MESSAGE_NS.low)
    low, likely, high = (_percent(cost + saved, saved) for cost, saved in zip(costs, more, strict=True))
    return Range(low, likely, high)


def _lookup(inputs: Mapping[str, Any], hardware: HardwareFacts) -> Range:
    """Primary-key lookups by a client, PostgreSQL's accesses, cost of an operation assumed."""
    page_bytes, pool = inputs["large_page_bytes"], inputs["pool_bytes"]
    workload = Workload(row_bytes=inputs["row_bytes"], working_set_bytes=inputs["working_set_bytes"])
    demand = Demand(
        engine="postgresql",
        version=None,
        page_bytes=page_bytes,
        wants_pool=True,
        segments=(),
        segment_bytes=pool,
        pages=-(-pool // page_bytes),
        error_pages=0,
        waste_bytes=0,
        pool_bytes=pool,
        private_bytes_per_connection=None,
        connections=None,
        process_per_connection=True,
        page_cache_bytes=None,
    )
    profile = access_profile(DatabaseInstance(name="published", engine="postgresql", workload=workload), demand)
    saving = _saving(profile, hardware, page_bytes, 8)
    return Range(
        _percent(CLIENT_LOOKUP_NS.high, saving.low),
        _percent(CLIENT_LOOKUP_NS.likely, saving.likely),
        _percent(CLIENT_LOOKUP_NS.low, saving.high),
    )


# --- buffer-pool benefit ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SeriesPoint:
    pool_gib: float
    value_a: float
    value_b: float


def benefit_series(items: Sequence[Mapping[str, Any]]) -> dict[str, list[_SeriesPoint]]:
    """Pool-size series among the items, by name: throughput at both database block sizes."""
    series: dict[str, list[_SeriesPoint]] = {}
    for item in items:
        model = item.get("model")
        if model is not None and model["kind"] == "benefit":
            point = _SeriesPoint(model["pool_gib"], item["value_a"], item["value_b"])
            series.setdefault(model["series"], []).append(point)
    return series


def predict_benefit(series: Sequence[_SeriesPoint], pool_gib: float) -> tuple[Range, str | None]:
    """Gain of the second block size at one pool size, from curves fitted to every other pool size.

    The range is twice each fit's residual. At the ends of a series the left-out size is outside the fitted ones.
    """
    others = [point for point in series if point.pool_gib != pool_gib]
    first, second = (
        fit_benefit(
            tuple(BenefitPoint(pool_bytes=round(p.pool_gib * GIB), throughput=getattr(p, value)) for p in others)
        )
        for value in ("value_a", "value_b")
    )
    pool_bytes = round(pool_gib * GIB)
    a, b = first.estimate(pool_bytes), second.estimate(pool_bytes)
    spread_a, spread_b = (2.0 * curve.nrmse * curve.best for curve in (first, second))
    low = 100.0 * (max(0.0, b.throughput - spread_b) / (a.throughput + spread_a) - 1.0)
    # Where the residual is as large as the value itself, only the other direction is known.
    high = 100.0 * ((b.throughput + spread_b) / max(a.throughput - spread_a, 0.2 * a.throughput) - 1.0)
    likely = 100.0 * (b.throughput / a.throughput - 1.0)
    return Range(low, likely, high), ("extrapolated: " + a.note if a.extrapolated else None)
