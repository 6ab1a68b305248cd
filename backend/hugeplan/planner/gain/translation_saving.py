"""Nanoseconds of translation that one operation saves when shared memory moves to a larger page size.

Per kind of item: how often its TLB entry is missing (Che over all the pages an operation accesses), how often its
page-table entry is no longer in the cache (Che over data lines, page-table lines and the lines that neighbours bring
while the operation runs; private tables counted once per process), and what such a walk costs on this node. The range
adds independent uncertainties in quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from hugeplan.planner.demand.accesses import AccessProfile
from hugeplan.planner.gain.access_units import access_units
from hugeplan.planner.gain.pressure_fit import nested_line_bytes
from hugeplan.planner.gain.tlb_misses import (
    ALL_ENTRIES,
    HALF_THE_ENTRIES,
    Cache,
    TranslationMisses,
    TranslationSetup,
    translation_misses,
)
from hugeplan.planner.gain.walk_cost import ASSUMED_L1_MISS_NS, Reach, WalkCost
from hugeplan.planner.model import Range


@dataclass(frozen=True, slots=True)
class Machine:
    """What the sum needs of a node: reach and prices at both sizes, and how many processes share a core.

    ``table_line_bytes``: memory covered by one line of leaf entries, base size then large size.
    ``processes``: private page tables that compete; ``processes_per_core``: address spaces that take turns.
    ``busy_cores``: cores that run operations at the same time.
    """

    base: Reach
    large: Reach
    price: WalkCost
    table_line_bytes: tuple[int, int]
    l1_miss_ns: float
    processes: float
    processes_per_core: float
    busy_cores: float

    @property
    def fractured(self) -> bool:
        """Whether one entry of the large size covers less than its page."""
        return self.large.granule_bytes < self.large.page_bytes


class _CacheCase(IntEnum):
    """Which of a machine's caches: the inner one, the outer one, and the outer one with less and with more room."""

    INNER = 0
    OUTER = 1
    LESS_ROOM = 2
    MORE_ROOM = 3


def _caches(machine: Machine, operation_ns: Range) -> tuple[Cache, ...]:
    """The caches by ``_CacheCase``. Neighbours fill the outer one while an operation of the busy cores runs.

    Less room: a smaller cache, neighbours at their busiest, and the longest operation; more room the other way round.
    """
    price, foreign = machine.price, machine.price.foreign_lines_per_ns
    smaller, larger = price.cache_factors
    per_core = 1.0 / max(1.0, machine.busy_cores)
    return (
        Cache(price.inner_cache_bytes),
        Cache(price.cache_bytes, foreign.likely * operation_ns.likely * per_core),
        Cache(price.cache_bytes * smaller, foreign.high * operation_ns.high * per_core),
        Cache(price.cache_bytes * larger, foreign.low * operation_ns.low * per_core),
    )


def _setups(machine: Machine, caches: tuple[Cache, ...]) -> tuple[TranslationSetup, TranslationSetup]:
    """A machine's base size and large size. A fractured large size is priced by the difference of the two walks."""
    base_line, large_line = machine.table_line_bytes
    inner = caches[: _CacheCase.OUTER] if machine.price.inner.high > 0.0 else ()
    looked_at = ((*inner, *caches[_CacheCase.OUTER :]), (*inner, caches[_CacheCase.OUTER]))
    nested = nested_line_bytes(base_line) if machine.price.nested else 0
    shared = (machine.processes, machine.processes_per_core)
    return (
        TranslationSetup(machine.base, base_line, nested, looked_at, *shared),
        TranslationSetup(machine.large, large_line, 0, ((), ()) if machine.fractured else looked_at, *shared),
    )


@dataclass(frozen=True, slots=True)
class _Crossing:
    """A profile on a machine: the walks of one operation at both sizes, for each share of the TLB's entries."""

    profile: AccessProfile
    machine: Machine
    caches: tuple[Cache, ...]
    base: tuple[TranslationMisses, ...]
    large: tuple[TranslationMisses, ...]

    def saving_ns(
        self, cache: _CacheCase = _CacheCase.OUTER, bound: str = "likely", entries: int = ALL_ENTRIES
    ) -> float:
        """Saving of an operation as far as it waits for walks, for one case of cache and one bound of a price."""
        price = self.machine.price
        before = self._translation_ns(self.base[entries], getattr(price.cached, bound), cache, bound)
        if self.machine.fractured:
            # Both sizes miss alike and the price is already the difference of the two walks.
            saved = before - self.large[entries].l1_misses * self.machine.l1_miss_ns
        else:
            # The dearer the base walk is taken to be, the cheaper the large one, and the other way round.
            opposite = {"low": "high", "likely": "likely", "high": "low"}[bound]
            large_walk = getattr(price.large, opposite)
            saved = before - self._translation_ns(self.large[entries], large_walk, cache, bound)
        return self.profile.exposed.likely * saved

    def _translation_ns(self, walks: TranslationMisses, cached_ns: float, cache: _CacheCase, bound: str) -> float:
        """Translation time of one operation: first-level misses, and walks by where their entry is found."""
        price = self.machine.price
        return (
            walks.l1_misses * self.machine.l1_miss_ns
            + walks.walks * cached_ns
            + walks.uncached.get(self.caches[_CacheCase.INNER], 0.0) * float(getattr(price.inner, bound))
            + walks.uncached[self.caches[cache]] * float(getattr(price.uncached, bound))
        )

    def switched_warm_ns(self) -> float:
        """What the warm shared pages add when every operation starts with an empty TLB.

        With more processes than cores each operation follows a context switch; entries survive it only as long as
        the kernel keeps the address space's tag. This is the extra saving if they never do.
        """
        machine = self.machine
        if machine.processes_per_core <= 1.0:
            return 0.0
        folded = min(1.0, machine.base.granule_bytes / machine.large.page_bytes)
        kept = 1.0 - self.base[ALL_ENTRIES].warm_m2
        return self.profile.warm_pages * kept * machine.price.cached.likely * (1.0 - folded)

    def is_extrapolated(self) -> bool:
        """Whether more of the walks' entries are out of the cache than at any footprint that was measured."""
        price, walks = self.machine.price, self.base[ALL_ENTRIES]
        if not price.measured or walks.fetches <= 0.0:
            return False
        return walks.uncached[self.caches[_CacheCase.OUTER]] / walks.fetches > price.max_uncached + 0.05


def scattered_loss_ns(profile: AccessProfile, machine: Machine) -> float:
    """Loss when the hot items are few, scattered one to a large page, and the large size has fewer entries.

    Up to ``E_base`` hot items hit with base pages; spread over large pages only ``E_large`` of them do.
    Source: article D on AMD K8 (8 large entries against 544); sheet section 7. Zero where the large size has as
    many entries as the base size, or the mapping has no more large pages than entries.
    """
    if machine.fractured:
        return 0.0
    loss = 0.0
    for region in profile.regions:
        pages = region.span_bytes / machine.large.granule_bytes
        hot = min(machine.base.entries, pages)
        miss = max(0.0, 1.0 - machine.large.entries / hot) if hot > 0 else 0.0
        loss += region.accesses * miss * machine.price.large.likely
    return loss


@dataclass(frozen=True, slots=True)
class Saving:
    """ns that an operation saves, and whether a walk's price lies outside what was measured."""

    ns: Range
    extrapolated: bool


@lru_cache(maxsize=4096)
def savings(profile: AccessProfile, machines: tuple[Machine, ...], described: bool) -> tuple[Saving, ...]:
    """Saving in ns per operation on each machine: likely value and range.

    Args:
        profile: what the operation accesses.
        machines: what a walk costs at the base size and at a large size, one machine for each case to be compared.
        described: the user supplied a working set or a skew. If not, a scattered hot set cannot be ruled out and the
            range reaches down to its loss.
    """
    caches = [_caches(machine, profile.operation_ns) for machine in machines]
    setups = [_setups(machine, of) for machine, of in zip(machines, caches, strict=True)]
    walks = translation_misses(access_units(profile), [setup for pair in setups for setup in pair])
    crossings = [
        _Crossing(profile, machine, of, walks[base], walks[large])
        for machine, of, (base, large) in zip(machines, caches, setups, strict=True)
    ]
    return tuple(Saving(_saving_range(crossing, described), crossing.is_extrapolated()) for crossing in crossings)


def _saving_range(crossing: _Crossing, described: bool) -> Range:
    profile, machine, saving_ns = crossing.profile, crossing.machine, crossing.saving_ns
    likely = saving_ns()
    down, up = profile.uncertainty
    below = [
        likely * (1.0 - profile.exposed.low / profile.exposed.likely),
        likely * (1.0 - down),
        likely - saving_ns(bound="low"),
        likely - saving_ns(_CacheCase.MORE_ROOM),
    ]
    above = [
        likely * (profile.exposed.high / profile.exposed.likely - 1.0),
        likely * (up - 1.0),
        saving_ns(bound="high") - likely,
        saving_ns(_CacheCase.LESS_ROOM) - likely,
        saving_ns(entries=HALF_THE_ENTRIES) - likely,
        crossing.switched_warm_ns(),
    ]
    low = likely - math.sqrt(sum(max(0.0, d) ** 2 for d in below))
    high = likely + math.sqrt(sum(max(0.0, d) ** 2 for d in above))
    if not described:
        low = min(low, -scattered_loss_ns(profile, machine))
    return Range(low, likely, max(high, likely))


def l1_miss_ns(measured: float | None) -> float:
    """Cost of a first-level miss that hits the second level: measured, else assumed."""
    return measured if measured is not None else ASSUMED_L1_MISS_NS.likely
