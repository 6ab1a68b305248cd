"""Nanoseconds of translation that one operation saves when shared memory moves to a larger page size.

Per kind of place: how often its TLB entry is missing (Che over all the pages an operation touches), how often its
page-table entry is no longer in the cache (Che over data lines and page-table lines, private tables counted once a
process), and what such a walk costs on this node. The range adds independent uncertainties in quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hugeplan.planner.model import Range
from hugeplan.planner.touches import TouchProfile, TouchRegion
from hugeplan.planner.translation import (
    CACHE_LINE_BYTES,
    class_hits,
    page_popularity_of_scattered_rows,
)
from hugeplan.planner.walk_price import ASSUMED_L1_MISS_NS, Reach, WalkPrice

BASE_BYTES_OF_WARM_PAGES = 4096
ZIPF_GROUPS = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """What the sum needs of a node: reach and prices at both sizes, and how many processes share a core.

    ``table_line_bytes``: memory covered by one line of leaf entries, base size then large size.
    ``processes``: private page tables that compete; ``processes_per_core``: address spaces that take turns.
    """

    base: Reach
    large: Reach
    price: WalkPrice
    table_line_bytes: tuple[int, int]
    l1_miss_ns: float
    processes: float
    processes_per_core: float


@dataclass(frozen=True, slots=True)
class _Misses:
    """Per region: first- and second-level miss probability; ``warm`` for the pages every operation uses."""

    m1: tuple[float, ...]
    m2: tuple[float, ...]
    warm_m1: float
    warm_m2: float


def _groups(region: TouchRegion, zipf_s: float, unit_bytes: float) -> tuple[tuple[float, float], ...]:
    """Classes (share of places' items, share of references) of a region seen in units of ``unit_bytes``."""
    if region.popularity_rows is None or zipf_s <= 0.0:
        return ((1.0, 1.0),)
    units = max(1.0, region.span_bytes / max(unit_bytes, region.place_bytes))
    return _zipf_groups(_rounded(region.popularity_rows), zipf_s, _rounded(region.popularity_rows / units))


def _rounded(value: float) -> int:
    """A count to two significant digits: shares of popularity hardly change, and a slider's next step is remembered."""
    if value < 100.0:
        return max(1, round(value))
    scale = int(10.0 ** (math.floor(math.log10(value)) - 1))
    return round(value / scale) * scale


@lru_cache(maxsize=256)
def _zipf_groups(rows: int, s: float, rows_per_unit: int) -> tuple[tuple[float, float], ...]:
    """Scattered Zipf rows folded into groups of units of like popularity: (share of units, share of references)."""
    popularity, counts = page_popularity_of_scattered_rows(rows, s, rows_per_unit)
    references = popularity * counts
    # Equal steps in the logarithm of popularity keep the hottest units apart from the rest.
    logs = np.log(popularity)
    span = float(logs.max() - logs.min())
    bins = (
        np.zeros(len(logs), dtype=int)
        if span < 1e-9
        else ((logs - logs.min()) / span * (ZIPF_GROUPS - 1e-6)).astype(int)
    )
    units = float(counts.sum())
    unit_sums = np.bincount(bins, weights=counts)
    reference_sums = np.bincount(bins, weights=references)
    present = np.bincount(bins) > 0
    return tuple(zip((unit_sums[present] / units).tolist(), reference_sums[present].tolist(), strict=True))


def _distinct(region: TouchRegion, unit_bytes: float, near: float) -> float:
    """Distinct units of ``unit_bytes`` that a region's places occupy, places lying at random in its span."""
    units = max(1.0, region.span_bytes / unit_bytes)
    if unit_bytes < region.place_bytes:
        return min(units, region.places * (1.0 + near))
    return max(1.0, -units * math.expm1(-region.places / units))


def _near(region: TouchRegion, unit_bytes: float) -> float:
    """Near touches that are pages of their own: none once a unit holds the whole place."""
    return region.near_touches if unit_bytes < region.place_bytes else 0.0


def _expand(
    profile: TouchProfile, unit_bytes: float, touches: Callable[[TouchRegion, float], float]
) -> tuple[list[float], list[float], list[tuple[int, ...]]]:
    """(items, references, indices of each region's classes) in units of ``unit_bytes``, as lists of the caller's own.

    ``touches`` says how many references an operation makes to units of a region, given its near touches there.
    """
    items, references, owners = _expanded(profile, unit_bytes, touches)
    return list(items), list(references), list(owners)


@lru_cache(maxsize=2048)  # the same places are asked for at every cache size and both bounds of a walk's price
def _expanded(
    profile: TouchProfile, unit_bytes: float, touches: Callable[[TouchRegion, float], float]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[tuple[int, ...], ...]]:
    items: list[float] = []
    references: list[float] = []
    owners: list[tuple[int, ...]] = []
    for region in profile.regions:
        near = _near(region, unit_bytes)
        distinct = _distinct(region, unit_bytes, near)
        groups = _groups(region, profile.zipf_s, unit_bytes)
        owners.append(tuple(range(len(items), len(items) + len(groups))))
        for item_share, reference_share in groups:
            items.append(max(1.0, distinct * item_share))
            references.append(touches(region, near) * reference_share)
    return tuple(items), tuple(references), tuple(owners)


def _page_touches(region: TouchRegion, near: float) -> float:
    return region.touches * (1.0 + near)


def _line_touches(region: TouchRegion, near: float) -> float:  # noqa: ARG001 - one signature for both
    return region.touches * region.lines


def _mean_hits(hits: tuple[float, ...], references: list[float], owners: list[tuple[int, ...]]) -> list[float]:
    """Each region's hit rate, its classes weighted by references."""
    means = []
    for owner in owners:
        total = sum(references[i] for i in owner)
        means.append(sum(hits[i] * references[i] for i in owner) / total if total > 0 else 1.0)
    return means


@lru_cache(maxsize=4096)
def tlb_misses(profile: TouchProfile, reach: Reach, processes_per_core: float) -> _Misses:
    """TLB misses per touch of each region, and of the warm pages, at one page size (Che over every class at once)."""
    items, references, owners = _expand(profile, reach.granule_bytes, _page_touches)
    warm_items = max(1.0, profile.warm_pages * BASE_BYTES_OF_WARM_PAGES / reach.granule_bytes)
    if reach.granule_bytes > BASE_BYTES_OF_WARM_PAGES:
        warm_items = max(warm_items, min(profile.warm_pages, 4.0))  # spread over a few separate structures
    items += [warm_items * processes_per_core, profile.private_pages * processes_per_core]
    references += [profile.warm_pages, profile.private_pages]
    rates = []
    for entries in (reach.l1_entries, reach.entries):
        hits = class_hits(items, references, entries)
        rates.append((_mean_hits(hits, references, owners), hits[-2]))
    (first, warm_first), (second, warm_second) = rates
    return _Misses(tuple(1.0 - h for h in first), tuple(1.0 - h for h in second), 1.0 - warm_first, 1.0 - warm_second)


@lru_cache(maxsize=4096)
def uncached_entries(
    profile: TouchProfile, m2: tuple[float, ...], table_line_bytes: int, processes: float, cache_bytes: float
) -> tuple[float, ...]:
    """Share of each region's walks whose leaf entry is not in the cache, private tables counted once a process."""
    data_items, data_references, _ = _expand(profile, CACHE_LINE_BYTES, _line_touches)
    table_items, table_references, owners = _expand(profile, table_line_bytes, _page_touches)
    for owner, region_m2 in zip(owners, m2, strict=True):
        for i in owner:
            table_items[i] *= processes
            table_references[i] *= region_m2
    hits = class_hits(table_items + data_items, table_references + data_references, cache_bytes / CACHE_LINE_BYTES)
    return tuple(1.0 - h for h in _mean_hits(hits, table_references, owners))


@dataclass(frozen=True, slots=True)
class _Walk:
    """ns of one walk: entry in the nearest cache, added when only the last-level cache has it, added from memory."""

    cached: float
    inner: float
    uncached: float


def _translation_ns(
    profile: TouchProfile,
    *,
    misses: _Misses,
    beyond: tuple[tuple[float, ...], tuple[float, ...]],
    unit_bytes: int,
    walk: _Walk,
    l1_miss_ns: float,
) -> float:
    """Translation time of one operation: first-level misses, and walks by where their entry is found.

    ``beyond``: per region, share of walks beyond the second-level and beyond the last-level cache. Near touches find
    their entry in the line just read.
    """
    total = profile.warm_pages * (misses.warm_m1 * l1_miss_ns + misses.warm_m2 * walk.cached)
    for region, m1, m2, past_l2, past_l3 in zip(profile.regions, misses.m1, misses.m2, *beyond, strict=True):
        pages = region.touches * (1.0 + _near(region, unit_bytes))
        total += pages * (m1 * l1_miss_ns + m2 * walk.cached)
        total += region.touches * m2 * (past_l2 * walk.inner + past_l3 * walk.uncached)
    return total


def _saving_at(profile: TouchProfile, machine: Machine, cache_bytes: float, bound: str) -> float:
    """Saving in ns with all of a walk exposed, for one cache size and one bound of the walk price."""
    price = machine.price

    def translation(reach: Reach, line_bytes: int, walk: _Walk) -> float:
        misses = tlb_misses(profile, reach, machine.processes_per_core)
        nowhere = (0.0,) * len(profile.regions)

        def share(size: float, ns: float) -> tuple[float, ...]:
            return uncached_entries(profile, misses.m2, line_bytes, machine.processes, size) if ns else nowhere

        beyond = (share(price.inner_cache_bytes, walk.inner), share(cache_bytes, walk.uncached))
        return _translation_ns(
            profile,
            misses=misses,
            beyond=beyond,
            unit_bytes=reach.granule_bytes,
            walk=walk,
            l1_miss_ns=machine.l1_miss_ns,
        )

    base_line, large_line = machine.table_line_bytes
    inner, uncached = getattr(price.inner, bound), getattr(price.uncached, bound)
    before = translation(machine.base, base_line, _Walk(getattr(price.cached, bound), inner, uncached))
    if machine.large.granule_bytes < machine.large.page_bytes:
        # Fractured: both sizes miss alike and the price is already the difference of the two walks.
        return before - translation(machine.large, large_line, _Walk(0.0, 0.0, 0.0))
    # The dearer the base walk is taken to be, the cheaper the large one, and the other way round.
    opposite = {"low": "high", "likely": "likely", "high": "low"}[bound]
    return before - translation(machine.large, large_line, _Walk(getattr(price.large, opposite), inner, uncached))


def switched_warm_ns(profile: TouchProfile, machine: Machine) -> float:
    """What the warm shared pages add when every operation starts with an empty TLB.

    With more processes than cores each operation follows a context switch; entries survive it only as long as the
    kernel keeps the address space's tag. This is the extra saving if they never do.
    """
    if machine.processes_per_core <= 1.0:
        return 0.0
    base = tlb_misses(profile, machine.base, machine.processes_per_core)
    folded = min(1.0, machine.base.granule_bytes / machine.large.page_bytes)
    return profile.warm_pages * (1.0 - base.warm_m2) * machine.price.cached.likely * (1.0 - folded)


def scattered_loss_ns(profile: TouchProfile, machine: Machine) -> float:
    """Loss when the hot places are few, scattered one to a large page, and the large size has fewer entries.

    Up to ``E_base`` hot places hit with base pages; spread over large pages only ``E_large`` of them do.
    Source: article D on AMD K8 (8 large entries against 544); sheet section 7. Zero where the large size has as
    many entries as the base size, or the mapping has no more large pages than entries.
    """
    if machine.large.granule_bytes < machine.large.page_bytes:
        return 0.0
    loss = 0.0
    for region in profile.regions:
        pages = region.span_bytes / machine.large.granule_bytes
        hot = min(machine.base.entries, pages)
        miss = max(0.0, 1.0 - machine.large.entries / hot) if hot > 0 else 0.0
        loss += region.touches * miss * machine.price.large.likely
    return loss


def is_extrapolated(profile: TouchProfile, machine: Machine) -> bool:
    """Whether more of the walks' entries are out of the cache than at any footprint the curves were measured at."""
    price = machine.price
    if not price.measured:
        return False
    misses = tlb_misses(profile, machine.base, machine.processes_per_core)
    shares = uncached_entries(profile, misses.m2, machine.table_line_bytes[0], machine.processes, price.cache_bytes)
    walks = [region.touches * m2 for region, m2 in zip(profile.regions, misses.m2, strict=True)]
    total = sum(walks)
    share = sum(w * s for w, s in zip(walks, shares, strict=True)) / total if total > 0.0 else 0.0
    return share > price.max_uncached + 0.05


@lru_cache(maxsize=256)
def half_the_entries(machine: Machine) -> Machine:
    """The same machine with half of its TLB entries: a busy sibling thread takes them, or nested paging fills them.

    Source: sheet section 2 (SMT). Whether a sibling is busy cannot be seen from a guest.
    """

    def half(reach: Reach) -> Reach:
        return replace(reach, l1_entries=reach.l1_entries / 2.0, l2_entries=reach.l2_entries / 2.0)

    return replace(machine, base=half(machine.base), large=half(machine.large))


@lru_cache(maxsize=4096)
def saving_range(profile: TouchProfile, machine: Machine, described: bool) -> Range:
    """Saving in ns per operation: likely value and range.

    Args:
        profile: what the operation touches.
        machine: what a walk costs at both sizes.
        described: the reader gave a working set or a skew. If not, a scattered hot set cannot be ruled out and the
            range reaches down to its loss.
    """
    cache = machine.price.cache_bytes
    smaller, larger = machine.price.cache_factors
    full = _saving_at(profile, machine, cache, "likely")
    likely = profile.exposed.likely * full
    down, up = profile.uncertainty
    below = [
        likely * (1.0 - profile.exposed.low / profile.exposed.likely),
        likely * (1.0 - down),
        likely - profile.exposed.likely * _saving_at(profile, machine, cache, "low"),
        likely - profile.exposed.likely * _saving_at(profile, machine, cache * larger, "likely"),
    ]
    above = [
        likely * (profile.exposed.high / profile.exposed.likely - 1.0),
        likely * (up - 1.0),
        profile.exposed.likely * _saving_at(profile, machine, cache, "high") - likely,
        profile.exposed.likely * _saving_at(profile, machine, cache * smaller, "likely") - likely,
        profile.exposed.likely * _saving_at(profile, half_the_entries(machine), cache, "likely") - likely,
        switched_warm_ns(profile, machine),
    ]
    low = likely - math.sqrt(sum(max(0.0, d) ** 2 for d in below))
    high = likely + math.sqrt(sum(max(0.0, d) ** 2 for d in above))
    if not described:
        low = min(low, -scattered_loss_ns(profile, machine))
    return Range(low, likely, max(high, likely))


def l1_miss_ns(measured: float | None) -> float:
    """Cost of a first-level miss that hits the second level: measured, else assumed."""
    return measured if measured is not None else ASSUMED_L1_MISS_NS.likely
