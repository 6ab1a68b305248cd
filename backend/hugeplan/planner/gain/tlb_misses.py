"""How often translation fails an operation: TLB misses, page walks, and walks whose entry is not in a cache.

Counted at every page size, with all the TLB's entries and with a part of them, and for several caches at once: Che's
approximation is solved for all of them together. What each of them costs is in ``translation_saving``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hugeplan.planner.gain.access_units import Places
from hugeplan.planner.gain.pressure_fit import FOREIGN_LINES
from hugeplan.planner.gain.translation import CACHE_LINE_BYTES, Floats, characteristic_times, lru_misses
from hugeplan.planner.gain.walk_cost import Reach

BASE_BYTES_OF_WARM_PAGES: Final = 4096

ALL_ENTRIES, HALF_THE_ENTRIES = 0, 1
ENTRY_SHARES: Final = (1.0, 0.5)
"""All TLB entries, and half of them: a busy sibling thread takes the rest, or nested paging fills them.
Source: sheet section 2 (SMT). Whether a sibling is busy cannot be seen from a guest."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache in which page-table lines may be, and the lines that neighbours put there during one operation."""

    bytes: float
    foreign_lines: float = 0.0


@dataclass(frozen=True, slots=True)
class Sight:
    """One page size of a node as an operation meets it.

    ``table_line_bytes``: memory covered by one line of leaf entries. ``nested_line_bytes``: by one line of the host's
    entries for the guest's page tables; 0: those cost nothing. ``caches``: where entries may be, with all the TLB's
    entries and with half of them. ``processes``: private page tables that compete; ``processes_per_core``: address
    spaces that take turns.
    """

    reach: Reach
    table_line_bytes: int
    nested_line_bytes: int
    caches: tuple[tuple[Cache, ...], tuple[Cache, ...]]
    processes: float
    processes_per_core: float


@dataclass(frozen=True, slots=True)
class Walks:
    """Per operation: first-level misses, walks, and by cache the walks' references that are not in that cache.

    ``fetches``: walks to a place's first page; near touches find their entry in the line just read. ``warm_m2``: miss
    rate of the pages every operation uses.
    """

    l1_misses: float
    walks: float
    fetches: float
    uncached: Mapping[Cache, float]
    warm_m2: float


def walks_of(places: Places, sights: Sequence[Sight]) -> dict[Sight, tuple[Walks, ...]]:
    """The walks of every sight, one for each of ``ENTRY_SHARES``."""
    unique = tuple(dict.fromkeys(sights))
    misses = _tlb_misses(places, unique)
    uncached = _uncached(places, unique, misses)
    found: dict[Sight, tuple[Walks, ...]] = {}
    for sight, missed, beyond in zip(unique, misses, uncached, strict=True):
        sums = (missed.l1_misses.tolist(), missed.walks.tolist(), missed.fetches.tolist(), beyond)
        found[sight] = tuple(Walks(*each) for each in zip(*sums, missed.warm_m2.tolist(), strict=True))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _TlbMisses:
    """TLB misses of one sight, for each of ``ENTRY_SHARES``.

    ``l1_misses``, ``walks``, ``fetches``: per operation, shape (shares,). ``warm_m2``: shape (shares,). ``m2``: walks
    per page touched of each region, shape (shares, regions).
    """

    l1_misses: Floats
    walks: Floats
    fetches: Floats
    warm_m2: Floats
    m2: Floats


def _tlb_misses(places: Places, sights: Sequence[Sight]) -> list[_TlbMisses]:
    """Che over all the pages of an operation: its places', the warm ones, and private ones outside shared memory."""
    profile = places.profile
    views = [places.in_units_of(sight.reach.granule_bytes) for sight in sights]
    references = [np.append(view.units, (profile.warm_pages, profile.private_pages)) for view in views]
    items = [
        np.append(view.items, (_warm_items(places, sight) * per_core, profile.private_pages * per_core))
        for view, sight in zip(views, sights, strict=True)
        for per_core in (sight.processes_per_core,)
    ]
    counts, touched = _rows(items), _rows(references)
    rates = _ratio(touched, counts)
    levels = [(sight.reach.l1_entries, sight.reach.entries) for sight in sights]
    capacities = np.array([[entries * share for entries in level for share in ENTRY_SHARES] for level in levels])
    rate = lru_misses(rates, characteristic_times(rates, counts, capacities))
    found = []
    for view, by_cache, missed in zip(views, rate, rate * touched[:, np.newaxis], strict=True):
        last = len(view.items) + 1  # the private pages keep their size: what they miss is the same at every size
        l1_misses, walks = missed[:, :last].sum(axis=1).reshape(2, -1)
        second = missed[len(ENTRY_SHARES) :, : last - 1]
        pages, walked = (np.add.reduceat(of, view.starts, axis=-1) for of in (view.units, second))
        m2 = _ratio(walked, pages)
        fetches = m2[:, view.region] @ view.places
        found.append(_TlbMisses(l1_misses, walks, fetches, by_cache[len(ENTRY_SHARES) :, last - 1], m2))
    return found


def _warm_items(places: Places, sight: Sight) -> float:
    """Pages that the places every operation uses occupy at this size."""
    granule, warm = sight.reach.granule_bytes, places.profile.warm_pages
    items = max(1.0, warm * BASE_BYTES_OF_WARM_PAGES / granule)
    # Larger pages do not hold all of them in one: they are spread over a few separate structures.
    return max(items, min(warm, 4.0)) if granule > BASE_BYTES_OF_WARM_PAGES else items


def _uncached(
    places: Places, sights: Sequence[Sight], misses: Sequence[_TlbMisses]
) -> list[tuple[dict[Cache, float], ...]]:
    """References of walks that are not in a cache, by cache: Che over lines of tables, of data and of neighbours.

    Private tables are counted once a process.
    """
    found = [tuple(dict.fromkeys(of_share, 0.0) for of_share in sight.caches) for sight in sights]
    data = places.in_units_of(CACHE_LINE_BYTES)
    data_rates = _ratio(data.lines, data.items)
    rates, counts, weights, asked = [], [], [], []
    for sight, missed, sums in zip(sights, misses, found, strict=True):
        for walked, beyond in zip(missed.m2, sums, strict=True):
            if not beyond or not walked.any():
                continue
            lines, table_rates, fetched = _table_lines(places, sight, walked)
            for cache in beyond:
                rates.append(np.concatenate((table_rates, data_rates, [cache.foreign_lines / FOREIGN_LINES])))
                counts.append(np.concatenate((lines, data.items, [FOREIGN_LINES])))
                weights.append(fetched)
                asked.append((beyond, cache))
    if not asked:
        return found
    systems, tables = _rows(rates), _rows(weights)
    capacities = np.array([[cache.bytes / CACHE_LINE_BYTES] for _, cache in asked])
    times = characteristic_times(systems, _rows(counts), capacities)
    missed_lines = lru_misses(systems[:, : tables.shape[1]], times)[:, 0]
    for (beyond, cache), total in zip(asked, (missed_lines * tables).sum(axis=1).tolist(), strict=True):
        beyond[cache] = total
    return found


def _table_lines(places: Places, sight: Sight, walked: Floats) -> tuple[Floats, Floats, Floats]:
    """Lines of page tables by class, how often an operation reads one of them, and its reads of the whole class.

    Leaf entries first, then the host's entries for the guest's tables where those count. ``walked``: walks per page
    touched of each region.
    """
    lines, rates, fetched = [], [], []
    for line_bytes in (sight.table_line_bytes, sight.nested_line_bytes):
        if line_bytes:
            table = places.in_units_of(line_bytes)
            share = walked[table.region]
            lines.append(table.items * sight.processes)
            rates.append(share * _ratio(table.units, lines[-1]))
            fetched.append(share * table.places)
    return np.concatenate(lines), np.concatenate(rates), np.concatenate(fetched)


def _rows(arrays: Sequence[Floats]) -> Floats:
    """One array with a row each, short ones filled with classes of nothing."""
    filled = np.zeros((len(arrays), max(len(array) for array in arrays)))
    for row, array in zip(filled, arrays, strict=True):
        row[: len(array)] = array
    return filled


def _ratio(references: Floats, items: Floats) -> Floats:
    """References per item; 0 where there are no items."""
    return references / np.where(items > 0.0, items, math.inf)
