"""Formulas of the sheet as the tests work them out, beside what the planner works out from the same parts.

"Sheet" is the project's sheet of translation-cost formulas with worked numbers. Sizes are bytes, times are nanoseconds,
probabilities are per page touch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hugeplan.planner.gain.translation import (
    Floats,
    characteristic_times,
    lru_misses,
    scattered_rows,
    zipf_classes,
)

L2_NS, L3_NS, MEMORY_NS = 5.0, 25.0, 100.0  # latencies of the sheet's worked numbers, its section 4


def zipf_popularity(pages: int, s: float) -> Floats:
    """Probability of each of ``pages`` pages, weights ``1 / k^s`` for k = 1..N, normalised: no ranks grouped."""
    weights = np.arange(1, pages + 1, dtype=np.float64) ** -s
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class CheResult:
    """Overall hit rate, characteristic time in references, and the hit rate of each class."""

    hit: float
    characteristic_time: float
    class_hits: tuple[float, ...]


def che(popularity: Floats, entries: float, counts: Floats | None = None) -> CheResult:
    """Che's approximation of an LRU cache of ``entries`` under independent references.

    Solves ``sum_i c_i (1 - exp(-p_i t)) = E`` for the characteristic time t by a guarded Newton iteration over the
    whole vector; then ``hit_i = 1 - exp(-p_i t)`` and ``hit = sum_i c_i p_i hit_i``.

    Args:
        popularity: probability of one item of each class, shape (n,), ``sum(counts * popularity)`` = 1.
        entries: capacity in items. At least the number of items: everything hits, t is infinite.
        counts: items in each class, shape (n,); None means one each.

    Source: Che, Tung, Wang 2002; why it works: Fricker, Robert, Roberts 2012 (arXiv:1202.3974).
    """
    weights = np.ones_like(popularity) if counts is None else counts
    live = popularity > 0
    if entries <= 0:
        return CheResult(0.0, 0.0, (0.0,) * len(popularity))
    if entries >= float(weights[live].sum()):
        return CheResult(1.0, math.inf, tuple(1.0 if used else 0.0 for used in live))
    time = float(characteristic_times(popularity[live][None], weights[live][None], np.array([[entries]]))[0, 0])
    hits = -np.expm1(-popularity * time)
    return CheResult(float(np.dot(weights * popularity, hits)), time, tuple(float(h) for h in hits))


def page_popularity_of_scattered_rows(rows: int, s: float, rows_per_page: int) -> tuple[Floats, Floats]:
    """Popularity of pages when Zipf-popular rows lie in random places: (popularity, pages) of every class, ungrouped.

    A page's popularity is the sum of its rows'. The hottest rows give their page one hot row each; the rest
    average out (sheet section 2).
    """
    row_popularity, row_counts = zipf_classes(rows, s)
    found = scattered_rows(rows, s, rows_per_page)
    popularity = np.append(row_popularity[: found.hot] + found.rest, found.rest)
    counts = np.append(row_counts[: found.hot], found.pages - found.hot_pages)
    return np.asarray(popularity / np.dot(popularity, counts)), np.asarray(counts)


def class_hits(items: Sequence[float], references: Sequence[float], capacity: float) -> list[float]:
    """LRU hit rate of each class when classes of equally popular items share a cache of ``capacity`` items.

    ``references``: those that each class receives per operation.
    """
    rates = np.array([[r / n for n, r in zip(items, references, strict=True)]])
    times = characteristic_times(rates, np.array([items], dtype=np.float64), np.array([[capacity]], dtype=np.float64))
    return [float(hit) for hit in 1.0 - lru_misses(rates, times)[0, 0]]


def entry_fetch_ns(l3_hit: float) -> float:
    """Mean time to read a line that the second-level cache does not hold: ``h3 L3 + (1 - h3) DRAM`` (section 4)."""
    return l3_hit * L3_NS + (1.0 - l3_hit) * MEMORY_NS
