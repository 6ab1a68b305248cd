"""What one page walk costs on a node, as a function of how often its page-table entry is still cached.

Best from accesses measured under cache pressure (:mod:`hugeplan.planner.gain.pressure_fit`). Else from the node's plain
curves: the difference of two page sizes over footprint is fitted as ``a + b (1 - h)``, h being the hit rate of leaf
page-table lines in the last-level cache (two-class Che), with the cache's effective size free. The data's own latency
cancels in the difference. Outside the measured hit rates the fitted line goes on and the result says so. Without
curves the same shape is filled with assumed latencies. Source: sheet sections 4 and 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hugeplan.planner.gain.pressure_fit import (
    CANDIDATE_CACHE_BYTES,
    PressureFit,
    Walker,
    fit_pressure,
    nested_line_bytes,
)
from hugeplan.planner.gain.translation import CACHE_LINE_BYTES, page_table_cache, uniform_miss
from hugeplan.planner.memory.page_tables import leaf_entry_bytes
from hugeplan.planner.model import MIB, Confidence, HardwareFacts, LatencyCurve, Range, Source, Term
from hugeplan.planner.remembered import remembered

# Assumed where nothing is measured: (low, likely, high). Server parts of the catalogue's years lie inside.
ASSUMED_L1_ENTRIES = (32.0, 64.0, 96.0)
ASSUMED_L2_ENTRIES = (1024.0, 2048.0, 4096.0)
ASSUMED_L2_NS = Range(3.0, 5.0, 7.0)
ASSUMED_L3_NS = Range(12.0, 25.0, 45.0)
ASSUMED_MEMORY_NS = Range(75.0, 100.0, 160.0)
ASSUMED_LARGE_WALK_NS = Range(3.0, 6.0, 25.0)  # one entry from the second- or last-level cache
ASSUMED_L1_MISS_NS = Range(1.5, 2.3, 3.0)
ASSUMED_L2_BYTES = 1 * MIB
ASSUMED_CACHE_BYTES = 32 * MIB
ASSUMED_FOREIGN_LINES_PER_NS = {True: Range(0.0, 0.02, 0.15), False: Range(0.0, 0.002, 0.02)}
"""Lines per ns that neighbours bring into the shared last-level cache: in a guest (True), on bare metal.
0.1 per ns, that is 6 GB/s, was measured in a guest on a shared host (docs/model-results.md); of other nodes nothing is
known."""

POOR_FIT = 2.5
"""Residual of a pressure fit, in errors of its points, from which on its confidence is not high."""

MEASURED_MEMORY_SHARE = 0.3
"""Neighbours move memory latency too: fits of one node gave 113 to 199 ns within an hour (docs/model-results.md)."""

MEASURED_FOREIGN_FACTORS = (0.4, 2.5)
"""Neighbours come and go: their rate while a database runs may be this much below or above the measured one."""

MEASURED_CACHE_FACTORS = (0.125, 2.0)
"""A chase has the cache to itself. An engine shares it with its own code and rows, and on a shared host with
neighbours: page tables may keep as little as an eighth of what the chase's did. Assumed, on the safe side."""


@dataclass(frozen=True, slots=True)
class Reach:
    """TLB entries that serve a page size, and the bytes one entry covers (the effective granule)."""

    page_bytes: int
    granule_bytes: int
    l1_entries: float
    l2_entries: float
    source: Source

    @property
    def entries(self) -> float:
        """Entries of the last level that holds the size."""
        return max(self.l1_entries, self.l2_entries)


@dataclass(frozen=True, slots=True)
class WalkCost:
    """Cost in ns of one walk at the base size and at a large size, for a page-table hit rate h.

    base = ``cached + inner (1 - h2) + uncached (1 - h3)``, h2 and h3 being the hit rates in caches of
    ``inner_cache_bytes`` and ``cache_bytes``; a fit to curves has an inner step in its upper bound alone. ``large`` is
    the large size's walk (zero for a fractured guest, where only the difference is known and both sizes miss alike).
    ``cache_factors``: by how much the cache left to page tables may be smaller and larger.
    ``foreign_lines_per_ns``: lines that neighbours bring into the outer cache. ``nested``: a walk also reads the
    host's entry for the guest's page table, which may be in memory as well.
    ``max_uncached``: most references of a walk out of the cache that were measured; beyond it is extrapolated.
    ``fit_covariance``: variance of ``cached``, covariance, variance of ``uncached`` in ns squared, where both come
    from one fit; ``memory_share``: by what share memory's latency may have moved since.
    """

    cached: Range
    inner: Range
    uncached: Range
    large: Range
    inner_cache_bytes: float
    cache_bytes: float
    cache_factors: tuple[float, float]
    foreign_lines_per_ns: Range
    nested: bool
    max_uncached: float
    measured: bool
    confidence: Confidence
    inputs: tuple[Term, ...]
    fit_covariance: tuple[float, float, float] | None = None
    memory_share: float = 0.0


def tlb_entries(hardware: HardwareFacts | None, page_bytes: int) -> tuple[float | None, float | None, Source]:
    """(first-level, second-level) data entries for a page size, measured before anything else.

    None: the level is not known to hold the size. Load-only entries count, store-only and instruction ones do not.
    """
    best: dict[int, tuple[int, float, Source]] = {}
    rank = {Source.MEASURED: 0, Source.CPUID: 2, Source.CATALOGUE: 1}
    for level in hardware.levels if hardware else ():
        if level.page_bytes != page_bytes or level.entries is None or level.kind in {"instr", "store"}:
            continue
        order = rank.get(level.source, 3)
        if level.level not in best or order < best[level.level][0]:
            best[level.level] = (order, float(level.entries), level.source)
    sources = [entry[2] for entry in best.values()]
    source = sources[0] if sources else Source.ASSUMED
    return (best[1][1] if 1 in best else None), (best[2][1] if 2 in best else None), source


def granule_of(hardware: HardwareFacts | None, page_bytes: int) -> int | None:
    """Bytes one TLB entry covers for a page size here; None when it was not measured.

    Bare metal that was not probed covers the page itself; a guest that was not probed is unknown.
    """
    if hardware is None:
        return None
    for granule in hardware.granules:
        if granule.page_bytes == page_bytes and granule.granule_bytes is not None:
            return min(granule.granule_bytes, page_bytes)
    probed = [g.granule_bytes for g in hardware.granules if g.granule_bytes is not None]
    fractured = [g for g in hardware.granules if g.granule_bytes is not None and g.granule_bytes < g.page_bytes]
    if fractured:  # a host that splits one large size splits the others too
        return min(g for g in probed if g is not None)
    return page_bytes if hardware.virtualised is False else None


def reach_of(hardware: HardwareFacts | None, page_bytes: int, granule_bytes: int) -> Reach:
    """The entries that serve a page: those of its granule, since a fractured page fills entries of the smaller size."""
    l1, l2, source = tlb_entries(hardware, granule_bytes)
    if l1 is None and l2 is None:
        known = hardware is not None and any(level.entries for level in hardware.levels)
        if known and granule_bytes > 4096:
            # The node's TLB is known and lists nothing for this size: count one small structure, as old parts have.
            return Reach(page_bytes, granule_bytes, 4.0, 0.0, Source.ASSUMED)
        return Reach(page_bytes, granule_bytes, ASSUMED_L1_ENTRIES[1], ASSUMED_L2_ENTRIES[1], Source.ASSUMED)
    return Reach(page_bytes, granule_bytes, l1 or 0.0, l2 or 0.0, source)


# --- from measured curves --------------------------------------------------------------------------


LAYOUTS = ("line_per_page", "random_64b")
"""Layouts whose difference between page sizes is translation. A packed layout is a control of the caches alone."""


def _curve_pairs(hardware: HardwareFacts, base: int, page: int) -> list[tuple[LatencyCurve, LatencyCurve]]:
    """(base curve, large curve) of each layout; the large one is of the size asked, else the nearest below it."""
    pairs = []
    for layout in LAYOUTS:
        of_layout = [curve for curve in hardware.curves if curve.layout == layout and curve.points]
        bases = [c for c in of_layout if c.page_bytes == base and c.backing.upper() != "THP"]
        larger = sorted(
            (c for c in of_layout if base < c.page_bytes <= page),
            key=lambda c: (c.page_bytes, c.backing.upper() != "THP"),
        )
        if bases and larger:
            pairs.append((bases[0], larger[-1]))
    return pairs


@dataclass(frozen=True, slots=True)
class _Sample:
    """One footprint measured at both sizes: the difference in ns and its half-width."""

    footprint_bytes: int
    difference_ns: float
    half_width_ns: float


def _samples(pairs: list[tuple[LatencyCurve, LatencyCurve]]) -> list[_Sample]:
    samples = []
    for base, large in pairs:
        by_footprint = {point.footprint_bytes: point for point in large.points}
        for point in base.points:
            other = by_footprint.get(point.footprint_bytes)
            if other is None:
                continue
            half = math.hypot(point.ns_high - point.ns_low, other.ns_high - other.ns_low) / 2.0
            samples.append(_Sample(point.footprint_bytes, point.ns - other.ns, half))
    return samples


@dataclass(frozen=True, slots=True)
class _Fit:
    cached: float
    uncached: float
    cache_bytes: float
    residual: float
    max_uncached: float
    points: int


def _fit_line(walks: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """Weighted non-negative ``walk = a + b share``: (a, b, weighted root mean square residual)."""
    w = weights / weights.sum()
    mean_x, mean_y = float(np.dot(w, shares)), float(np.dot(w, walks))
    variance = float(np.dot(w, (shares - mean_x) ** 2))
    slope = float(np.dot(w, (shares - mean_x) * (walks - mean_y))) / variance if variance > 1e-9 else 0.0
    slope = max(0.0, slope)
    intercept = mean_y - slope * mean_x
    if intercept < 0.0:
        intercept = 0.0
        square = float(np.dot(w, shares**2))
        slope = max(0.0, float(np.dot(w, shares * walks)) / square) if square > 1e-9 else 0.0
    residual = float(np.sqrt(np.dot(w, (walks - intercept - slope * shares) ** 2)))
    return intercept, slope, residual


def _fit_curves(samples: list[_Sample], base: Reach, large: Reach, large_walk_ns: float) -> _Fit | None:
    """Fit cached and uncached walk cost over candidate cache sizes; None with fewer than three usable footprints."""
    usable = [s for s in samples if s.footprint_bytes >= 4 * base.entries * base.granule_bytes]
    if len(usable) < 3:
        return None
    walks, weights = [], []
    for sample in usable:
        m2 = uniform_miss(base.entries, sample.footprint_bytes / base.granule_bytes)
        m2_large = uniform_miss(large.entries, sample.footprint_bytes / large.granule_bytes)
        walks.append((sample.difference_ns + m2_large * large_walk_ns) / m2)
        # A point's weight falls with its own scatter; 3 ns stands for what no batch statistic shows (placement).
        weights.append(1.0 / (9.0 + sample.half_width_ns**2))
    best: _Fit | None = None
    for cache in CANDIDATE_CACHE_BYTES:
        shares = np.array([uncached_share(s.footprint_bytes, cache, base.page_bytes) for s in usable])
        a, b, residual = _fit_line(np.array(walks), shares, np.array(weights))
        if best is None or residual < best.residual * 0.999:
            best = _Fit(a, b, float(cache), residual, float(shares.max()), len(usable))
    return best


@remembered(4096)
def uncached_share(footprint_bytes: int, cache_bytes: int, page_bytes: int) -> float:
    """Share of walks over a uniform chase whose leaf entry is not in a cache of ``cache_bytes``."""
    return 1.0 - page_table_cache(footprint_bytes, cache_bytes / CACHE_LINE_BYTES, 1, page_bytes).page_table_hit


def _from_curves(hardware: HardwareFacts, base: Reach, large: Reach, fractured: bool) -> WalkCost | None:
    samples = _samples(_curve_pairs(hardware, base.page_bytes, large.page_bytes))
    large_walk = Range(0.0, 0.0, 0.0) if fractured else ASSUMED_LARGE_WALK_NS
    fit = _fit_curves(samples, base, large, large_walk.likely)
    if fit is None:
        return None
    spread = max(fit.residual, 1.0)
    uncached, source = Range(fit.uncached, fit.uncached, fit.uncached), Source.MEASURED
    if fit.max_uncached < 0.1:
        # The curves end before leaf entries leave the cache: what memory adds there is assumed.
        step = ASSUMED_MEMORY_NS.likely - ASSUMED_L3_NS.likely
        uncached, source = Range(0.4 * step, step, 1.6 * step), Source.ASSUMED
    largest = max(sample.footprint_bytes for sample in samples)
    return WalkCost(
        cached=Range(max(0.0, fit.cached - spread), fit.cached, fit.cached + spread),
        # The chase keeps its entries in the second-level cache longer than an engine with rows and code of its own:
        # at worst an engine's come from the last level. The fit holds what the chase saw, so only the bound grows.
        inner=Range(0.0, 0.0, _step(ASSUMED_L2_NS, ASSUMED_L3_NS).high),
        inner_cache_bytes=ASSUMED_L2_BYTES,
        uncached=Range(0.75 * uncached.low, uncached.likely, 1.25 * uncached.high),
        large=large_walk,
        cache_bytes=fit.cache_bytes if source is Source.MEASURED else ASSUMED_CACHE_BYTES,
        cache_factors=MEASURED_CACHE_FACTORS,
        foreign_lines_per_ns=_assumed_neighbours(hardware),
        nested=False,
        max_uncached=fit.max_uncached,
        measured=True,
        confidence=Confidence.HIGH if source is Source.MEASURED else Confidence.MEDIUM,
        inputs=(
            Term("curves", f"{fit.points} footprints up to {largest} bytes", Source.MEASURED),
            Term("walk with its entry cached, against the large size", f"{fit.cached:.1f} ns", Source.MEASURED),
            Term("added when the entry is in memory", f"{uncached.likely:.1f} ns", source),
            Term("cache that holds page-table entries", f"{fit.cache_bytes / MIB:.0f} MiB", source),
        ),
    )


def _assumed_neighbours(hardware: HardwareFacts | None) -> Range:
    return ASSUMED_FOREIGN_LINES_PER_NS[hardware is None or hardware.virtualised is not False]


def _pressure_fit(
    hardware: HardwareFacts, base: Reach, large: Reach, arch: str, large_walk_ns: float, *, fractured: bool
) -> PressureFit | None:
    """The fit of the size asked, else of the nearest below it that has enough points; a pool before THP."""
    small_walker, large_walker = (_walker(reach, base.page_bytes, arch, nested=fractured) for reach in (base, large))
    sizes = {p.page_bytes for p in hardware.pressure if base.page_bytes < p.page_bytes <= large.page_bytes}
    for size in sorted(sizes, reverse=True):
        of_size = [p for p in hardware.pressure if p.page_bytes == size]
        pooled = [p for p in of_size if p.backing.upper() != "THP"]
        for points in (pooled, of_size):
            fit = fit_pressure(points, small_walker, large_walker, large_walk_ns, fractured=fractured)
            if fit is not None:
                return fit
    return None


def _from_pressure(hardware: HardwareFacts, base: Reach, large: Reach, arch: str, fractured: bool) -> WalkCost | None:
    """The cost from accesses under cache pressure; None where too few were measured."""
    large_walk = Range(0.0, 0.0, 0.0) if fractured else ASSUMED_LARGE_WALK_NS
    fit = _pressure_fit(hardware, base, large, arch, large_walk.likely, fractured=fractured)
    if fit is None:
        return None
    of_cached, _, of_uncached = fit.covariance
    cached = _around(fit.cached_ns, 2.0 * math.sqrt(of_cached))
    moved = MEASURED_MEMORY_SHARE * fit.uncached_ns
    uncached = _around(fit.uncached_ns, math.hypot(moved, 2.0 * math.sqrt(of_uncached)))
    foreign = fit.foreign_lines_per_ns
    smaller, larger = MEASURED_FOREIGN_FACTORS
    return WalkCost(
        cached=cached,
        inner=Range(0.0, 0.0, 0.0),
        inner_cache_bytes=ASSUMED_L2_BYTES,
        uncached=uncached,
        large=large_walk,
        cache_bytes=fit.cache_bytes,
        cache_factors=(0.5, 1.5),
        foreign_lines_per_ns=Range(smaller * foreign, foreign, larger * foreign),
        nested=fractured,
        max_uncached=fit.max_uncached,
        measured=True,
        confidence=Confidence.HIGH if fit.residual < POOR_FIT else Confidence.MEDIUM,
        inputs=(
            Term("accesses under pressure", f"{fit.points}, up to {fit.largest_bytes} bytes", Source.MEASURED),
            Term("walk with its entry cached, against the large size", f"{cached.likely:.1f} ns", Source.MEASURED),
            Term("added by each of its reads from memory", f"{uncached.likely:.1f} ns", Source.MEASURED),
            Term("cache that holds page-table entries", f"{fit.cache_bytes / MIB:.0f} MiB", Source.MEASURED),
            Term("neighbours' lines in that cache", f"{1000 * foreign:.0f} per microsecond", Source.MEASURED),
        ),
        fit_covariance=fit.covariance,
        memory_share=MEASURED_MEMORY_SHARE,
    )


def _around(value: float, half_width: float) -> Range:
    return Range(max(0.0, value - half_width), value, value + half_width)


def _walker(reach: Reach, base_page_bytes: int, arch: str, *, nested: bool) -> Walker:
    line = table_line_bytes(reach.page_bytes, base_page_bytes, arch)
    return Walker(reach.entries, reach.granule_bytes, line, nested_line_bytes(line) if nested else 0)


def _from_assumptions(hardware: HardwareFacts | None, fractured: bool) -> WalkCost:
    """No curves: one leaf reference from the second-level cache, the last-level cache or memory.

    A guest reads a second entry for the host: where the host maps 4K, the guest's large page saves one of the two;
    where it maps large pages, the second is cached and adds about a last-level hit at most. Source: sheet section 4.
    """
    native = hardware is not None and hardware.virtualised is False
    guest_extra = 0.0 if native or fractured else ASSUMED_L3_NS.likely
    return WalkCost(
        cached=Range(ASSUMED_L2_NS.low, ASSUMED_L2_NS.likely, ASSUMED_L2_NS.high + guest_extra),
        inner=_step(ASSUMED_L2_NS, ASSUMED_L3_NS),
        uncached=_step(ASSUMED_L3_NS, ASSUMED_MEMORY_NS),
        large=Range(0.0, 0.0, 0.0) if fractured else ASSUMED_LARGE_WALK_NS,
        inner_cache_bytes=ASSUMED_L2_BYTES,
        cache_bytes=ASSUMED_CACHE_BYTES,
        cache_factors=(0.25, 4.0),
        foreign_lines_per_ns=_assumed_neighbours(hardware),
        nested=False,
        max_uncached=0.0,
        measured=False,
        confidence=Confidence.LOW,
        inputs=(
            _latency("second-level cache latency", ASSUMED_L2_NS),
            _latency("last-level cache latency", ASSUMED_L3_NS),
            _latency("memory latency", ASSUMED_MEMORY_NS),
            Term("last-level cache", f"{ASSUMED_CACHE_BYTES // MIB} MiB", Source.ASSUMED),
        ),
    )


def _latency(name: str, value: Range) -> Term:
    return Term(name, f"{value.low:g} to {value.high:g} ns", Source.ASSUMED)


def _step(near: Range, far: Range) -> Range:
    """Extra time of the farther memory, bounds taken the wide way round."""
    return Range(far.low - near.high, far.likely - near.likely, far.high - near.low)


_Costs = dict[tuple[int, int, int, str], tuple[Reach, Reach, WalkCost]]


@remembered(128)
def _costs_of(_hardware: HardwareFacts | None) -> _Costs:
    """Where the costs of a node's hardware are remembered."""
    return {}


_recent: tuple[tuple[HardwareFacts | None, _Costs], ...] = ()
_RECENT_MAX: Final = 8


def _remembered_costs(hardware: HardwareFacts | None) -> _Costs:
    """:func:`_costs_of`, found by the object first: the hash of measured hardware reads all of its curves."""
    global _recent  # noqa: PLW0603 - one assignment of a whole tuple, so that threads see the old or the new one
    for known, costs in _recent:
        if known is hardware:
            return costs
    costs = _costs_of(hardware)
    _recent = ((hardware, costs), *_recent[: _RECENT_MAX - 1])
    return costs


def walk_cost(
    hardware: HardwareFacts | None, base_page_bytes: int, page_bytes: int, granule_bytes: int, arch: str
) -> tuple[Reach, Reach, WalkCost]:
    """(base reach, large reach, walk cost) of a node for one large size whose effective granule is given."""
    costs, key = _remembered_costs(hardware), (base_page_bytes, page_bytes, granule_bytes, arch)
    found = costs.get(key)
    if found is None:
        found = costs[key] = _walk_cost(hardware, *key)
    return found


def _walk_cost(
    hardware: HardwareFacts | None, base_page_bytes: int, page_bytes: int, granule_bytes: int, arch: str
) -> tuple[Reach, Reach, WalkCost]:
    fractured = granule_bytes < page_bytes
    base = reach_of(hardware, base_page_bytes, base_page_bytes)
    large = reach_of(hardware, page_bytes, granule_bytes)
    cost = None
    if hardware is not None:
        cost = _from_pressure(hardware, base, large, arch, fractured) or _from_curves(hardware, base, large, fractured)
    return base, large, cost or _from_assumptions(hardware, fractured)


def table_line_bytes(page_bytes: int, base_page_bytes: int, arch: str) -> int:
    """Memory covered by one 64-byte line of leaf entries: eight entries."""
    return 8 * leaf_entry_bytes(page_bytes, base_page_bytes, arch)
