"""Address translation as arithmetic: pages touched, misses of TLBs, and page-table lines in the data caches.

Every function is one rule of the translation model, named after it. All references are taken to be independent
(the independent reference model) unless a docstring says otherwise. Sizes are bytes, times are nanoseconds,
probabilities are per page touch. "Sheet" is the project's sheet of translation-cost formulas with worked numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.remembered import remembered

CACHE_LINE_BYTES = 64
PTE_BYTES = 8
_PAGES_MAX = 2.0**52
_LONGEST_TIME = 1e300  # references; nothing that is referenced at all is missed after so many

Floats = NDArray[np.float64]


# --- pages touched --------------------------------------------------------------------------------


def expected_pages_touched(row_bytes: int, page_bytes: int, alignment_bytes: int = 1) -> float:
    """Mean pages a row touches when its start is uniform over multiples of ``alignment_bytes``: ``1 + (w - a) / P``.

    The alignment must divide the row and the page (sheet section 1).
    """
    if row_bytes < 1:
        raise PlannerError("row_bytes", row_bytes, "1 or more")
    if alignment_bytes < 1 or row_bytes % alignment_bytes or page_bytes % alignment_bytes:
        raise PlannerError("alignment_bytes", alignment_bytes, f"a divisor of {row_bytes} and of {page_bytes}")
    return 1.0 + (row_bytes - alignment_bytes) / page_bytes


# --- TLB hit rates --------------------------------------------------------------------------------


def uniform_miss(entries: float, pages: float) -> float:
    """Miss probability of uniform references over ``pages`` through an LRU TLB: ``max(0, 1 - E / N)``.

    Source: sheet section 2. Set associativity does not change this for independent references.
    """
    return max(0.0, 1.0 - entries / pages) if pages > 0 else 0.0


def characteristic_times(rates: Floats, counts: Floats, capacities: Floats) -> Floats:
    """Characteristic times of several LRU caches: the root t of ``sum_i c_i (1 - exp(-r_i t)) = C`` for each C.

    Each step solves the one exponential that has the sum's value, slope and curvature (third order); far from the
    root it is at least Newton's step, which cannot overshoot, since the sum is concave and rising.

    A time is the same to the bit whatever other systems are solved beside it: it moves until its own step is small, and
    sums add class after class, so that classes of nothing at the end change nothing.

    Args:
        rates: references to one item of each class, shape (systems, classes); 0: the class takes no room.
        counts: items of each class, shape (systems, classes).
        capacities: entries of each cache, shape (systems, caches). All items fit: t is infinite. None: t is 0.

    Returns:
        Times in references, shape (systems, caches).
    """
    decay = -np.ascontiguousarray(rates.T)[..., np.newaxis]
    held = np.where(rates > 0.0, counts, 0.0).T[..., np.newaxis]
    first = held * -decay
    second = first * -decay
    totals = sum_of_classes(held)
    inside = np.where((capacities > 0.0) & (capacities < totals), capacities, 0.5 * totals)
    moving: Floats = np.ones(inside.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # a system without references has no root: t is infinite
        times = inside / sum_of_classes(first)  # the slope at 0 gives a lower bound of the root
        for _ in range(200):
            decayed = np.expm1(decay * times)
            missing = inside + sum_of_classes(decayed * held)
            decayed += 1.0
            slope, bend = sum_of_classes(decayed * first), sum_of_classes(decayed * second)
            part = missing * bend / (slope * slope)
            step = np.maximum(part, -np.log1p(-np.minimum(part, 0.9))) * slope / bend * moving
            times += step
            moving = np.asarray((np.abs(step) > 1e-5 * times) * 1.0)  # a next step would be about the cube of this one
            if not moving.any():
                break
    return np.asarray(np.where(capacities >= totals, math.inf, np.where(capacities > 0.0, times, 0.0)))


def sum_of_classes(terms: Floats) -> Floats:
    """Sums over the first axis, one class after the other: the order does not depend on how many there are.

    NumPy adds whole rows in order, but pairwise where there is one number per row; a running sum then keeps the order.
    """
    return np.asarray(np.add.reduce(terms, axis=0) if terms[0].size > 1 else np.cumsum(terms, axis=0)[-1])


def lru_misses(rates: Floats, times: Floats) -> Floats:
    """Miss rate ``exp(-r t)`` of each class in each cache, shape (systems, caches, classes); 0 without references.

    Args:
        rates: shape (systems, classes); times: characteristic times, shape (systems, caches).
    """
    finite = np.minimum(times, _LONGEST_TIME)[..., np.newaxis]
    references = rates[:, np.newaxis, :]
    return np.asarray(np.exp(-references * finite) * (references > 0.0))


def _characteristic_time(popularity: Floats, counts: Floats, entries: float) -> float:
    """The root for one cache; ``popularity`` and ``counts`` of shape (classes,)."""
    return float(characteristic_times(popularity[np.newaxis], counts[np.newaxis], np.array([[entries]]))[0, 0])


@remembered(1)
def _zipf_edges() -> Floats:
    """First ranks of the classes for any number of pages: 1 to 513, then each 2 % above the one before."""
    edges = [float(k) for k in range(1, 514)]
    while edges[-1] < _PAGES_MAX:
        edges.append(float(math.ceil(edges[-1] * 1.02)))
    return np.array(edges)


@remembered(64)
def zipf_classes(pages: int, s: float) -> tuple[Floats, Floats]:
    """Zipf ranks grouped into classes: (popularity of one page, pages) per class; ranks below 512 stay single."""
    edges = _zipf_edges()
    bounds = np.append(edges[: np.searchsorted(edges, pages + 1.0)], pages + 1.0)
    counts = np.diff(bounds)
    middle = (bounds[:-1] + bounds[1:] - 1.0) / 2.0
    weights = middle**-s
    return np.asarray(weights / np.dot(weights, counts)), np.asarray(counts)


@dataclass(frozen=True, slots=True)
class ScatteredRows:
    """Popularity of pages when Zipf-popular rows lie in random places: hot pages with one hot row each, and the rest.

    Attributes:
        hot: classes of rows (the first ones of :func:`zipf_classes`) that are hotter than their page's own mean.
        pages: all pages.
        hot_pages, hot_share: pages with a hot row, and those rows' share of the references.
        rest: popularity of a page from its other rows, the same for every page.
    """

    hot: int
    pages: int
    hot_pages: float
    hot_share: float
    rest: float


@remembered(64)
def zipf_sums(rows: int, s: float) -> tuple[Floats, Floats, Floats]:
    """Of the classes of ``zipf_classes``: minus the popularity (rising), rows and references up to each class.

    Both sums start with 0 for no class, so that a difference of two is the sum between two classes.
    """
    popularity, counts = zipf_classes(rows, s)
    ranks = np.concatenate(([0.0], np.cumsum(counts)))
    shares = np.concatenate(([0.0], np.cumsum(popularity * counts)))
    return -popularity, ranks, shares


def scattered_rows(rows: int, s: float, rows_per_page: int) -> ScatteredRows:
    """How rows fold into pages: ranks hotter than a page's mean, one to a page, until half of the pages has one."""
    pages = max(1, math.ceil(rows / rows_per_page))
    minus_popularity, ranks, shares = zipf_sums(rows, s)
    hotter = int(minus_popularity.searchsorted(-1.0 / pages))
    hot = min(hotter, int(ranks.searchsorted(pages / 2, side="right")) - 1)
    hot_pages, hot_share = float(ranks[hot]), float(shares[hot])
    return ScatteredRows(hot, pages, hot_pages, hot_share, (1.0 - hot_share) / pages)


# --- page-table lines in the data caches ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TwoClassHits:
    """Characteristic time (references) and hit rates of page-table lines and of data lines in one cache."""

    characteristic_time: float
    page_table_hit: float
    data_hit: float


@remembered(4096)
def page_table_cache(
    footprint_bytes: float, cache_lines: float, processes: float = 1, page_bytes: int = 4096
) -> TwoClassHits:
    """Leaf page-table lines and data lines of uniform random reads that share a cache of ``cache_lines`` lines.

    ``Nd = F / 64`` data lines, ``Np = processes * F / (8 P)`` page-table lines (one 64-byte line holds 8 entries);
    solve ``Nd (1 - exp(-t / Nd)) + Np (1 - exp(-t / Np)) = C`` (sheet section 4, oracle 4).
    """
    data_lines = footprint_bytes / CACHE_LINE_BYTES
    table_lines = processes * footprint_bytes / (CACHE_LINE_BYTES // PTE_BYTES * page_bytes)
    if cache_lines >= data_lines + table_lines:
        return TwoClassHits(math.inf, 1.0, 1.0)
    # Half of the references go to each class, which Che's form writes as two references per step.
    time = _characteristic_time(
        np.array([1.0 / data_lines, 1.0 / table_lines]), np.array([data_lines, table_lines]), cache_lines
    )
    return TwoClassHits(time, -math.expm1(-time / table_lines), -math.expm1(-time / data_lines))
