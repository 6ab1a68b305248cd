"""How often translation misses per operation: TLB misses, page walks, and walks whose entry is not in a cache.

Counted at every page size, with all the TLB's entries and with a part of them, and for several caches at once: Che's
approximation is solved for all of them together. What each of them costs is in ``translation_saving``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from hugeplan.planner.gain.access_units import AccessUnits
from hugeplan.planner.gain.pressure_fit import FOREIGN_LINES
from hugeplan.planner.gain.translation import CACHE_LINE_BYTES, Floats, characteristic_times, lru_misses, sum_of_classes
from hugeplan.planner.gain.walk_cost import Reach

BASE_BYTES_OF_WARM_PAGES: Final = 4096

ALL_ENTRIES, HALF_THE_ENTRIES = 0, 1
ENTRY_SHARES: Final = (1.0, 0.5)
"""All TLB entries, and half of them: a busy sibling thread takes the rest, or nested paging fills them.
Source: sheet section 2 (SMT). Whether a sibling is busy cannot be seen from a guest."""


class Cache(NamedTuple):
    """A cache in which page-table lines may be, and the lines that neighbours put there during one operation."""

    bytes: float
    foreign_lines: float = 0.0


@dataclass(frozen=True, slots=True)
class TranslationSetup:
    """How a node translates accesses to memory on one page size.

    ``table_line_bytes``: memory covered by one line of leaf entries. ``nested_line_bytes``: by one line of the host's
    entries for the guest's page tables; ``upper_line_bytes``: by one line of the entries one level above the leaf; 0:
    those cost nothing. ``caches``: where entries may be, with all the TLB's entries and with half of them.
    ``processes``: those that run operations; ``tables``: their copies of the page tables, fewer where the kernel
    shares them.
    """

    reach: Reach
    table_line_bytes: int
    nested_line_bytes: int
    upper_line_bytes: int
    caches: tuple[tuple[Cache, ...], tuple[Cache, ...]]
    processes: float
    tables: float


@dataclass(frozen=True, slots=True)
class TranslationMisses:
    """Per operation: first-level misses, walks, and by cache the walks' references that are not in that cache.

    ``fetches``: walks to an item's first page; near accesses find their entry in the line just read. ``warm_m2``: miss
    rate of the pages every operation uses. ``own_lines_uncached``: by cache, the share of lines that one process alone
    reads in each of its operations and that are no longer there when its turn comes again.
    """

    l1_misses: float
    walks: float
    fetches: float
    uncached: Mapping[Cache, float]
    own_lines_uncached: Mapping[Cache, float]
    warm_m2: float


Problem = tuple[AccessUnits, TranslationSetup]
"""What one operation accesses, and how a node translates it."""


def translation_misses(problems: Sequence[Problem]) -> list[tuple[TranslationMisses, ...]]:
    """The misses of every problem, one for each of ``ENTRY_SHARES``; all of them are solved together."""
    places: dict[Problem, int] = {}
    order = [places.setdefault(problem, len(places)) for problem in problems]
    unique = tuple(places)
    misses = _tlb_misses(unique)
    uncached, own_lines = _uncached(unique, misses)
    found: list[tuple[TranslationMisses, ...]] = []
    for missed, uncached_sums, own in zip(misses, uncached, own_lines, strict=True):
        sums = (missed.l1_misses.tolist(), missed.walks.tolist(), missed.fetches.tolist(), uncached_sums, own)
        found.append(tuple(TranslationMisses(*each) for each in zip(*sums, missed.warm_m2.tolist(), strict=True)))
    return [found[place] for place in order]


@dataclass(frozen=True, slots=True, eq=False)
class _TlbMisses:
    """TLB misses of one setup, for each of ``ENTRY_SHARES``.

    ``l1_misses``, ``walks``, ``fetches``: per operation, shape (shares,). ``warm_m2``: shape (shares,). ``m2``: walks
    per page accessed of each region, shape (shares, regions).
    """

    l1_misses: Floats
    walks: Floats
    fetches: Floats
    warm_m2: Floats
    m2: Floats


def _tlb_misses(problems: Sequence[Problem]) -> list[_TlbMisses]:
    """Che over all the pages of an operation: its items', the warm ones, and private ones outside shared memory."""
    in_pages_of = [accesses.in_units_of(setup.reach.granule_bytes) for accesses, setup in problems]
    references = [
        (*in_pages.unit_accesses.tolist(), accesses.profile.warm_pages, accesses.profile.private_pages)
        for in_pages, (accesses, _) in zip(in_pages_of, problems, strict=True)
    ]
    items = [
        (*in_pages.items.tolist(), _warm_items(accesses, setup), accesses.profile.private_pages)
        for in_pages, (accesses, setup) in zip(in_pages_of, problems, strict=True)
    ]
    counts, touched = _rows(items), _rows(references)
    rates = _ratio(touched, counts)
    levels = [(setup.reach.l1_entries, setup.reach.entries) for _, setup in problems]
    capacities = np.array([[entries * share for entries in level for share in ENTRY_SHARES] for level in levels])
    rate = lru_misses(rates, characteristic_times(rates, counts, capacities))
    found = []
    for in_pages, by_cache, missed in zip(in_pages_of, rate, rate * touched[:, np.newaxis], strict=True):
        last = len(in_pages.items) + 1  # the private pages keep their size: what they miss is the same at every size
        l1_misses, walks = missed[:, :last].sum(axis=1).reshape(2, -1)
        second = missed[len(ENTRY_SHARES) :, : last - 1]
        pages, walks_per_page = (
            np.add.reduceat(of, in_pages.starts, axis=-1) for of in (in_pages.unit_accesses, second)
        )
        m2 = _ratio(walks_per_page, pages)
        fetches = m2[:, in_pages.region] @ in_pages.accesses
        found.append(_TlbMisses(l1_misses, walks, fetches, by_cache[len(ENTRY_SHARES) :, last - 1], m2))
    return found


def _warm_items(accesses: AccessUnits, setup: TranslationSetup) -> float:
    """Pages that the items every operation uses occupy at this size."""
    granule, warm = setup.reach.granule_bytes, accesses.profile.warm_pages
    items = max(1.0, warm * BASE_BYTES_OF_WARM_PAGES / granule)
    # Larger pages do not hold all of them in one: they are spread over a few separate structures.
    return max(items, min(warm, 4.0)) if granule > BASE_BYTES_OF_WARM_PAGES else items


_ByCache = list[tuple[dict[Cache, float], ...]]
"""Of each problem and each of ``ENTRY_SHARES``: a figure for every cache."""


def _uncached(problems: Sequence[Problem], misses: Sequence[_TlbMisses]) -> tuple[_ByCache, _ByCache]:
    """References of walks that are not in a cache, and the missing share of a process's own lines, by cache.

    Che over lines of tables, of data and of neighbours. Private tables and each process's own lines are counted once
    per process.
    """
    found, own_lines = (
        [tuple(dict.fromkeys(of_share, 0.0) for of_share in setup.caches) for _, setup in problems] for _ in range(2)
    )
    rates, counts, weights, asked = [], [], [], []
    for (accesses, setup), missed, sums, own_shares in zip(problems, misses, found, own_lines, strict=True):
        data = accesses.in_units_of(CACHE_LINE_BYTES)
        for walks_per_page, uncached_sums, own in zip(missed.m2, sums, own_shares, strict=True):
            if not uncached_sums or not walks_per_page.any():
                continue
            lines, table_rates, fetched = _table_lines(accesses, setup, walks_per_page)
            read = [*table_rates, *data.line_rates]
            held = [*lines, *data.item_list, setup.processes * accesses.profile.private_lines, FOREIGN_LINES]
            for cache in uncached_sums:
                # The last two: lines of a process's own memory, and what neighbours bring.
                rates.append([*read, 1.0 / setup.processes, cache.foreign_lines / FOREIGN_LINES])
                counts.append(held)
                weights.append(fetched)
                asked.append((uncached_sums, own, cache, 1.0 / setup.processes))
    if not asked:
        return found, own_lines
    systems, tables = _rows(rates), _rows(weights)
    capacities = np.array([[cache.bytes / CACHE_LINE_BYTES] for _, _, cache, _ in asked])
    times = characteristic_times(systems, _rows(counts), capacities)
    missed_lines = lru_misses(systems[:, : tables.shape[1]], times)[:, 0]
    totals = sum_of_classes(np.ascontiguousarray((missed_lines * tables).T)).tolist()
    for (uncached_sums, own, cache, rate), total, time in zip(asked, totals, times[:, 0].tolist(), strict=True):
        uncached_sums[cache] = total
        own[cache] = math.exp(-rate * time)
    return found, own_lines


def _table_lines(
    accesses: AccessUnits, setup: TranslationSetup, walks_per_page: Floats
) -> tuple[list[float], list[float], list[float]]:
    """Lines of page tables by class, how often an operation reads one of them, and its reads of the whole class.

    Leaf entries first, then the host's entries for the guest's tables and the level above the leaf where those count.
    ``walks_per_page``: page walks per page accessed, of each region.
    """
    lines: list[float] = []
    rates: list[float] = []
    fetched: list[float] = []
    for line_bytes in (setup.table_line_bytes, setup.nested_line_bytes, setup.upper_line_bytes):
        if line_bytes:
            table = accesses.in_units_of(line_bytes)
            share = walks_per_page[table.region]
            lines += (table.items * setup.tables).tolist()
            rates += (share * table.unit_rates / setup.tables).tolist()
            fetched += (share * table.accesses).tolist()
    return lines, rates, fetched


def _rows(rows: Sequence[Sequence[float]]) -> Floats:
    """One array with a row each, short ones filled with classes of nothing."""
    width = max(len(row) for row in rows)
    return np.array([[*row, *(0.0,) * (width - len(row))] for row in rows])


def _ratio(references: Floats, items: Floats) -> Floats:
    """References per item; 0 where there are no items."""
    return references / np.where(items > 0.0, items, math.inf)
