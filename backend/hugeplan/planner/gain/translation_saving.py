"""Nanoseconds of translation that one operation saves when shared memory moves to a larger page size.

Per kind of item: how often its TLB entry is missing (Che over all the pages an operation accesses), how often its
page-table entry is no longer in the cache (Che over data lines, page-table lines and the lines that neighbours bring
while the operation runs; private tables counted once per process), and what such a walk costs on this node. The range
adds independent uncertainties in quadrature. For a client's operation it is how far the model errs, fitted with the
measuring noise taken out; where the cost of a walk was not measured, or not that far, the wider of the two. An
operation that is slower than a quiet one pays more for its walks, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from hugeplan.planner.demand.accesses import AccessProfile
from hugeplan.planner.demand.model_error import ModelError
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
from hugeplan.planner.remembered import Answers, Key

NATIVE_BOUND, NESTED_BOUND = 2.8, 3.0
"""Largest speed-up (x) that translation alone can give random accesses, on bare metal and in a guest (sheet section 7).

With one read from memory per walk the sheet gives 2.1 on bare metal. Published shares of cycles refute that: 83.1 % in
TLB misses with 4K pages and 53.2 % with 2M are 2.77 (GUPS; Basu et al., ISCA 2013). Upper levels come from memory, too.
"""

LARGEST_COMPARED_GAIN = 0.1
"""Largest likely gain beside which one was measured (docs/model-results.md); larger ones may be off in proportion."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the sum needs of a node: reach and costs at both sizes, and how many processes share a core.

    ``table_line_bytes``: memory covered by one line of leaf entries, base size then large size;
    ``upper_line_bytes``: the same of the level above the base size's leaf. ``processes``: those that run operations,
    each with base page tables of its own; ``large_tables``: copies of the large size's tables among them.
    ``processes_per_core``: address spaces that take turns on a core. ``busy_cores``: cores that run operations at the
    same time.
    """

    base: Reach
    large: Reach
    walk_cost: WalkCost
    table_line_bytes: tuple[int, int]
    upper_line_bytes: int
    l1_miss_ns: float
    processes: float
    large_tables: float
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
    cost, foreign = machine.walk_cost, machine.walk_cost.foreign_lines_per_ns
    smaller, larger = cost.cache_factors
    per_core = 1.0 / max(1.0, machine.busy_cores)
    return (
        Cache(cost.inner_cache_bytes),
        Cache(cost.cache_bytes, foreign.likely * operation_ns.likely * per_core),
        Cache(cost.cache_bytes * smaller, foreign.high * operation_ns.high * per_core),
        Cache(cost.cache_bytes * larger, foreign.low * operation_ns.low * per_core),
    )


def _setups(machine: Machine, caches: tuple[Cache, ...]) -> tuple[TranslationSetup, TranslationSetup]:
    """A machine's base size and large size.

    The level above the leaf is read at both sizes where the large one is a step above the base: it cancels, except for
    what many private copies of it at the base size add over the shared ones of the large size.
    """
    base_line, large_line = machine.table_line_bytes
    inner = caches[: _CacheCase.OUTER] if machine.walk_cost.inner.high > 0.0 else ()
    looked_at = ((*inner, *caches[_CacheCase.OUTER :]), (*inner, caches[_CacheCase.OUTER]))
    nested = nested_line_bytes(base_line) if machine.walk_cost.nested else 0
    processes = machine.processes
    return (
        TranslationSetup(machine.base, base_line, nested, machine.upper_line_bytes, looked_at, processes, processes),
        TranslationSetup(machine.large, large_line, 0, 0, looked_at, processes, machine.large_tables),
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
        """Saving of an operation as far as it waits for walks, for one case of cache and one bound of a cost."""
        cost = self.machine.walk_cost
        before = self._translation_ns(self.base[entries], getattr(cost.cached, bound), cache, bound)
        if self.machine.fractured:
            # Both sizes miss alike and the cost with cached entries is already the difference of the two walks: of
            # the large walk's own cost only its entries in memory are left.
            saved = before - self._translation_ns(self.large[entries], 0.0, cache, bound)
        else:
            # The dearer the base walk is taken to be, the cheaper the large one, and the other way round.
            opposite = {"low": "high", "likely": "likely", "high": "low"}[bound]
            large_walk = getattr(cost.large, opposite)
            saved = before - self._translation_ns(self.large[entries], large_walk, cache, bound)
        return self.profile.exposed.likely * saved

    def _translation_ns(self, walks: TranslationMisses, cached_ns: float, cache: _CacheCase, bound: str) -> float:
        """Translation time of one operation: first-level misses, and walks by where their entry is found."""
        cost = self.machine.walk_cost
        return (
            walks.l1_misses * self.machine.l1_miss_ns
            + walks.walks * cached_ns
            + walks.uncached.get(self.caches[_CacheCase.INNER], 0.0) * float(getattr(cost.inner, bound))
            + walks.uncached[self.caches[cache]] * float(getattr(cost.uncached, bound))
        )

    def whole_walk_ns(self) -> float:
        """All that translation takes of an operation at the base size, every cost and every miss at its highest."""
        cost, base = self.machine.walk_cost, self.base
        most = max(
            self._translation_ns(walks, cost.cached.high, cache, "high")
            for walks, cache in ((base[HALF_THE_ENTRIES], _CacheCase.OUTER), (base[ALL_ENTRIES], _CacheCase.LESS_ROOM))
        )
        return self.profile.exposed.high * most + self.switched_warm_ns()

    def switched_warm_ns(self) -> float:
        """What the warm shared pages add when every operation starts with an empty TLB.

        With more processes than cores each operation follows a context switch. Entries survive it as long as the kernel
        keeps the address space's tag: Linux keeps six per x86 CPU (arch/x86/mm/tlb.c, TLB_NR_DYN_ASIDS), and none where
        a processor or its hypervisor has no PCID. What these walks cost has not been measured apart, so that they widen
        the range and are no part of the likely value. Their entries were last read when the same process ran, as its
        own lines were, and are in memory where those are.
        """
        machine = self.machine
        if machine.processes_per_core <= 1.0:
            return 0.0
        folded = min(1.0, machine.base.granule_bytes / machine.large.page_bytes)
        kept = 1.0 - self.base[ALL_ENTRIES].warm_m2
        uncached = self.base[ALL_ENTRIES].own_lines_uncached.get(self.caches[_CacheCase.LESS_ROOM], 0.0)
        walk_ns = machine.walk_cost.cached.likely + uncached * machine.walk_cost.uncached.likely
        return self.profile.exposed.likely * self.profile.warm_pages * kept * walk_ns * (1.0 - folded)

    def cost_errors_ns(self) -> tuple[float, float]:
        """How far the saving may lie below and above for the costs alone.

        The two costs of a fit to pressure are uncertain together (what one takes, the other gives), so the error is
        that of their sum; memory's own latency may have moved since they were measured.
        """
        cost, likely = self.machine.walk_cost, self.saving_ns()
        below, above = likely - self.saving_ns(bound="low"), self.saving_ns(bound="high") - likely
        if cost.fit_covariance is None:
            return below, above
        outer = self.caches[_CacheCase.OUTER]
        walks, before, after = self.base[ALL_ENTRIES].walks, self.base[ALL_ENTRIES], self.large[ALL_ENTRIES]
        in_memory = before.uncached[outer] - after.uncached[outer]
        of_cached, of_both, of_uncached = cost.fit_covariance
        variance = walks * walks * of_cached + 2.0 * walks * in_memory * of_both + in_memory * in_memory * of_uncached
        fitted = 2.0 * math.sqrt(max(0.0, variance))
        moved = cost.memory_share * cost.uncached.likely * in_memory
        error = self.profile.exposed.likely * math.hypot(fitted, moved)
        return min(below, error), min(above, error)

    def is_extrapolated(self) -> bool:
        """Whether more of the walks' entries are out of the cache than at any footprint that was measured."""
        cost, walks = self.machine.walk_cost, self.base[ALL_ENTRIES]
        if not cost.measured or walks.fetches <= 0.0:
            return False
        above_the_leaf = 1.0 if self.machine.processes > 1.0 else 0.0  # of private tables; one table's stays cached
        return walks.uncached[self.caches[_CacheCase.OUTER]] / walks.fetches > cost.max_uncached + above_the_leaf + 0.05


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
        loss += region.accesses * miss * machine.walk_cost.large.likely
    return loss


@dataclass(frozen=True, slots=True)
class Saving:
    """ns that an operation saves, and whether a walk's cost lies outside what was measured.

    ``may_lose``: whether the model itself allows a loss; a range also reaches below zero where measurements differed.
    ``own_ns``: the likely saving as it is without trials of other nodes.
    """

    ns: Range
    extrapolated: bool
    may_lose: bool = False
    own_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class SavingProblem:
    """An operation and the machines whose savings are asked.

    ``profile``: what the operation accesses. ``machines``: what a walk costs at the base size and at a large size, one
    machine for each case to be compared. ``described``: the user supplied a working set or a skew. If not, a scattered
    hot set cannot be ruled out and the range reaches down to its loss.
    """

    profile: AccessProfile
    machines: tuple[Machine, ...]
    described: bool


_answers: Answers[Key, tuple[Saving, ...]] = Answers(4096)


def savings(problems: Sequence[SavingProblem]) -> list[tuple[Saving, ...]]:
    """Saving in ns per operation, likely value and range, of each problem on each of its machines.

    Problems that were not solved before are solved together, since a solution's cost is mostly that of starting it.
    """
    keys = [Key(problem) for problem in problems]
    fresh = {key: problem for key, problem in zip(keys, problems, strict=True) if key not in _answers}
    known = {key: _answers[key] for key in keys if key not in fresh}
    if fresh:
        solved = dict(zip(fresh, _solved(list(fresh.values())), strict=True))
        known |= solved
        _answers.keep(solved)
    return [known[key] for key in keys]


def _solved(problems: Sequence[SavingProblem]) -> list[tuple[Saving, ...]]:
    caches = [[_caches(machine, p.profile.operation_ns) for machine in p.machines] for p in problems]
    asked = [
        (accesses, setup)
        for p, of in zip(problems, caches, strict=True)
        for accesses in (access_units(p.profile),)
        for machine, cache in zip(p.machines, of, strict=True)
        for setup in _setups(machine, cache)
    ]
    walks = iter(translation_misses(asked))
    found = []
    for p, of in zip(problems, caches, strict=True):
        crossings = [
            _Crossing(p.profile, machine, cache, next(walks), next(walks))
            for machine, cache in zip(p.machines, of, strict=True)
        ]
        found.append(tuple(_saving(c, p.described) for c in crossings))
    return found


def _saving(crossing: _Crossing, described: bool) -> Saving:
    profile, machine, saving_ns = crossing.profile, crossing.machine, crossing.saving_ns
    likely = saving_ns()
    down, up = profile.uncertainty
    cost_below, cost_above = crossing.cost_errors_ns()
    below = [
        likely * (1.0 - profile.exposed.low / profile.exposed.likely),
        likely * (1.0 - down),
        cost_below,
        likely - saving_ns(_CacheCase.MORE_ROOM),
    ]
    above = [
        likely * (profile.exposed.high / profile.exposed.likely - 1.0),
        likely * (up - 1.0),
        cost_above,
        saving_ns(_CacheCase.LESS_ROOM) - likely,
        saving_ns(entries=HALF_THE_ENTRIES) - likely,
        crossing.switched_warm_ns(),
    ]
    slow = profile.slowdown
    whole = slow * crossing.whole_walk_ns()
    low = slow * (likely - math.sqrt(sum(max(0.0, d) ** 2 for d in below)))
    high = slow * (likely + math.sqrt(sum(max(0.0, d) ** 2 for d in above)))
    if not described:
        low = min(low, -scattered_loss_ns(profile, machine))
    may_lose, extrapolated = low < 0.0, crossing.is_extrapolated()
    own_ns = likely_ns = slow * likely
    if profile.model_error is not None:
        least, likely_ns, most = _as_measured(likely_ns, profile, profile.model_error)
        if machine.walk_cost.measured and described and not extrapolated:
            low, high = least, most  # what the parts may be off is in these differences already
        else:
            low, high = min(low, least), max(high, most)
    # More than all the time that translation takes cannot be saved, whatever clients' measurements differed by.
    high = min(max(high, likely_ns), whole)
    likely_ns = min(likely_ns, high)
    return Saving(Range(min(low, likely_ns), likely_ns, high), extrapolated, may_lose, min(own_ns, whole))


def _as_measured(likely_ns: float, profile: AccessProfile, error: ModelError) -> tuple[float, float, float]:
    """Least, likely and most ns that an operation saves if its gain is as far from the likely one as the model errs."""
    cost_ns = profile.operation_ns.likely
    gain = cost_ns / (cost_ns - min(likely_ns, cost_ns * (1.0 - 1.0 / NESTED_BOUND)))
    scale = proportion(gain)

    def ns(points: float) -> float:
        return cost_ns * (1.0 - 1.0 / max(1.0 / NESTED_BOUND, gain + scale * (error.moved + points)))

    low, high = error.gained
    return ns(low), ns(0.0) if error.moved else likely_ns, ns(high)


def proportion(likely: float) -> float:
    """Factor by which differences from a likely gain (x) grow beside one that is larger than any that was compared."""
    return max(1.0, (likely - 1.0) / LARGEST_COMPARED_GAIN)


def l1_miss_ns(measured: float | None) -> float:
    """Cost of a first-level miss that hits the second level: measured, else assumed."""
    return measured if measured is not None else ASSUMED_L1_MISS_NS.likely
