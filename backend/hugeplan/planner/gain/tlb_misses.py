"""How often translation misses per operation: TLB misses, page walks, and walks whose entry is not in a cache.

Counted at every page size, with all the TLB's entries and with a part of them, and for several caches at once: Che's
approximation is solved for all of them together. What each of them costs is in ``translation_saving``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from hugeplan.planner.gain.access_units import AccessUnits, UnitCounts
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
    missed = _tlb_misses(unique)
    uncached, own_lines = _uncached(unique, missed)
    sums = zip(*(of.tolist() for of in (missed.l1_misses, missed.walks, missed.fetches, missed.warm_m2)), strict=True)
    found = [
        tuple(TranslationMisses(*each) for each in zip(l1, walks, fetches, of_lines, own, warm, strict=True))
        for (l1, walks, fetches, warm), of_lines, own in zip(sums, uncached, own_lines, strict=True)
    ]
    return [found[place] for place in order]


@dataclass(frozen=True, slots=True, eq=False)
class _TlbMisses:
    """TLB misses of all problems, for each of ``ENTRY_SHARES``.

    ``l1_misses``, ``walks``, ``fetches`` per operation and ``warm_m2``: shape (problems, shares). ``m2``: walks per
    page accessed of each region, shape (shares, regions of all problems); ``first_region``: where a problem's begin.
    """

    l1_misses: Floats
    walks: Floats
    fetches: Floats
    warm_m2: Floats
    m2: Floats
    first_region: list[int]


def _tlb_misses(problems: Sequence[Problem]) -> _TlbMisses:
    """Che over all the pages of an operation: its items', the warm ones, and private ones outside shared memory."""
    shares = len(ENTRY_SHARES)
    in_pages_of = [accesses.in_units_of(setup.reach.granule_bytes) for accesses, setup in problems]
    references, items, first_region, starts = [], [], [0], []
    for in_pages, (accesses, setup) in zip(in_pages_of, problems, strict=True):
        profile = accesses.profile
        references.append((*in_pages.unit_accesses.tolist(), profile.warm_pages, profile.private_pages))
        items.append((*in_pages.items.tolist(), _warm_items(accesses, setup), profile.private_pages))
        first_region.append(first_region[-1] + len(in_pages.starts) + 1)  # the last one: what is in no region
    counts, touched = _rows(items), _rows(references)
    rates = _ratio(touched, counts)
    levels = [(setup.reach.l1_entries, setup.reach.entries) for _, setup in problems]
    capacities = np.array([[entries * share for entries in level for share in ENTRY_SHARES] for level in levels])
    rate = lru_misses(rates, characteristic_times(rates, counts, capacities))
    each, warm = np.arange(len(problems)), np.array([len(of.items) for of in in_pages_of])
    width = touched.shape[1]
    for place, in_pages in enumerate(in_pages_of):
        starts += [in_pages.starts + place * width, warm[place : place + 1] + place * width]
    missed = rate * touched[:, np.newaxis]
    missed[each, :, warm + 1] = 0.0  # the private pages keep their size: what they miss is the same at every size
    sums = sum_of_classes(np.ascontiguousarray(missed.transpose(2, 0, 1)))
    by_share = np.ascontiguousarray(missed[:, shares:].transpose(1, 0, 2)).reshape(shares, -1)
    at = np.concatenate(starts)
    m2 = _ratio(np.add.reduceat(by_share, at, axis=-1), np.add.reduceat(touched.ravel(), at))
    region = np.concatenate([of.region + first for of, first in zip(in_pages_of, first_region, strict=False)])
    fetched = m2[:, region] * np.concatenate([of.accesses for of in in_pages_of])
    fetches = np.add.reduceat(fetched, np.cumsum(warm) - warm, axis=-1).T
    return _TlbMisses(sums[:, :shares], sums[:, shares:], fetches, rate[each, shares:, warm], m2, first_region)


def _warm_items(accesses: AccessUnits, setup: TranslationSetup) -> float:
    """Pages that the items every operation uses occupy at this size."""
    granule, warm = setup.reach.granule_bytes, accesses.profile.warm_pages
    items = max(1.0, warm * BASE_BYTES_OF_WARM_PAGES / granule)
    # Larger pages do not hold all of them in one: they are spread over a few separate structures.
    return max(items, min(warm, 4.0)) if granule > BASE_BYTES_OF_WARM_PAGES else items


_ByCache = list[tuple[dict[Cache, float], ...]]
"""Of each problem and each of ``ENTRY_SHARES``: a figure for every cache."""


def _uncached(problems: Sequence[Problem], missed: _TlbMisses) -> tuple[_ByCache, _ByCache]:
    """References of walks that are not in a cache, and the missing share of a process's own lines, by cache.

    Che over lines of tables, of data and of neighbours. Private tables and each process's own lines are counted once
    per process.
    """
    found, own_lines = (
        [tuple(dict.fromkeys(of_share, 0.0) for of_share in setup.caches) for _, setup in problems] for _ in range(2)
    )
    tables = _table_lines(problems, missed)
    reads = np.add.reduceat(tables.fetched, tables.first[:-1], axis=-1).T.tolist()
    data_of = [accesses.in_units_of(CACHE_LINE_BYTES) for accesses, _ in problems]
    asked = [
        (place, share, cache)
        for place, of_shares in enumerate(found)
        for share, of_caches in enumerate(of_shares)
        if reads[place][share] > 0.0
        for cache in of_caches
    ]
    if not asked:
        return found, own_lines
    widest = max(b - a for a, b in pairwise(tables.first))
    width = widest + max(len(data.items) for data in data_of) + 2
    rates, counts, weights = (np.zeros((len(asked), columns)) for columns in (width, width, widest))
    row = 0
    for (place, share), group in groupby(asked, key=itemgetter(0, 1)):
        caches = [cache for _, _, cache in group]
        accesses, setup = problems[place]
        data, start, end = data_of[place], tables.first[place], tables.first[place + 1]
        rows, of_tables = slice(row, row + len(caches)), slice(0, end - start)
        of_data, rest = slice(end - start, end - start + len(data.items)), end - start + len(data.items)
        weights[rows, of_tables] = tables.fetched[share, start:end]
        rates[rows, of_tables], counts[rows, of_tables] = tables.rates[share, start:end], tables.lines[start:end]
        rates[rows, of_data], counts[rows, of_data] = data.lines / data.items, data.items
        # The last two: lines of a process's own memory, and what neighbours bring.
        rates[rows, rest], counts[rows, rest] = 1.0 / setup.processes, setup.processes * accesses.profile.private_lines
        rates[rows, rest + 1] = [cache.foreign_lines / FOREIGN_LINES for cache in caches]
        counts[rows, rest + 1] = FOREIGN_LINES
        row += len(caches)
    capacities = np.array([[cache.bytes / CACHE_LINE_BYTES] for _, _, cache in asked])
    times = characteristic_times(rates, counts, capacities)
    missed_lines = lru_misses(rates[:, :widest], times)[:, 0]
    totals = sum_of_classes(np.ascontiguousarray((missed_lines * weights).T)).tolist()
    for (place, share, cache), total, time in zip(asked, totals, times[:, 0].tolist(), strict=True):
        found[place][share][cache] = total
        own_lines[place][share][cache] = math.exp(-time / problems[place][1].processes)
    return found, own_lines


class _TableLines(NamedTuple):
    """Lines of page tables of all problems by class.

    ``first``: where a problem's begin, and the end of all. ``lines``: shape (classes,). ``rates``: how often an
    operation reads one of them, and ``fetched``: its reads of the whole class, both of shape (shares, classes).
    """

    first: list[int]
    lines: Floats
    rates: Floats
    fetched: Floats


def _table_lines(problems: Sequence[Problem], missed: _TlbMisses) -> _TableLines:
    """Leaf entries first; then, where they count, the host's for the guest's tables and the level above the leaf."""
    first, regions, copies = [0], [], []
    tables: list[UnitCounts] = []
    for (accesses, setup), first_region in zip(problems, missed.first_region, strict=False):
        classes = 0
        for line_bytes in (setup.table_line_bytes, setup.nested_line_bytes, setup.upper_line_bytes):
            if line_bytes:
                table = accesses.in_units_of(line_bytes)
                tables.append(table)
                regions.append(table.region + first_region)
                classes += len(table.items)
        first.append(first[-1] + classes)
        copies += [setup.tables] * classes
    items = np.concatenate([table.items for table in tables])
    share, of_tables = missed.m2[:, np.concatenate(regions)], np.array(copies)
    rates = share * np.concatenate([table.unit_accesses for table in tables]) / (items * of_tables)
    fetched = share * np.concatenate([table.accesses for table in tables])
    return _TableLines(first, items * of_tables, rates, fetched)


def _rows(rows: Sequence[Sequence[float]]) -> Floats:
    """One array with a row each, short ones filled with classes of nothing."""
    width = max(len(row) for row in rows)
    return np.array([[*row, *(0.0,) * (width - len(row))] for row in rows])


def _ratio(references: Floats, items: Floats) -> Floats:
    """References per item; 0 where there are no items."""
    return references / np.where(items > 0.0, items, math.inf)
