"""What a walk costs on a node, fitted to accesses measured under cache pressure.

A plain chase reads nothing but its own lines, one after the other, and so keeps its page-table lines in a near cache.
A database reads other lines in between, and time passes: on a shared host, neighbours replace the last-level cache's
lines meanwhile. One formula holds for all measured points:

    saving = walks x (cached + uncached x references not in the last-level cache)

A walk's references are the leaf entry and, in a guest whose host maps small pages, the host's entry for the guest's
page table. What is in the cache follows from Che's approximation: data lines, page-table lines, the lines read in
between, and neighbours' lines in proportion to time. The two costs are a least-squares fit; the cache's size and the
neighbours' rate are searched. Source: sheet sections 2, 4 and 10; the place of time and neighbours: measured
(docs/model-results.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hugeplan.planner.gain.translation import CACHE_LINE_BYTES, Floats, characteristic_times, lru_misses
from hugeplan.planner.model import MIB, PressurePoint

FOREIGN_LINES = 1e15
"""Items of the class that stands for lines never read again: so many that none of them is ever found."""

POINTS_MIN = 6
CANDIDATE_CACHE_BYTES = tuple(int(2.0**k * MIB) for k in np.arange(1.0, 8.01, 0.5))
CANDIDATE_FOREIGN_LINES_PER_NS = (0.0, *(0.001 * 500.0 ** (k / 13.0) for k in range(15)))
_PLACEMENT_NS = 3.0
"""Error of a point that its own scatter does not show: where the kernel happened to place pages."""
_SHAPE_SHARE = 0.1
"""Error of the formula itself, as a share of a point's saving."""


@dataclass(frozen=True, slots=True)
class PressureFit:
    """Costs in ns, the cache that held page-table lines, and neighbours' lines per ns.

    ``covariance``: variance of the first cost, covariance, variance of the second, in ns squared. ``residual``: root
    mean square of the residuals over the points' errors. ``max_uncached``: most references of a walk that were out of
    the cache at any point.
    """

    cached_ns: float
    uncached_ns: float
    covariance: tuple[float, float, float]
    cache_bytes: float
    foreign_lines_per_ns: float
    residual: float
    max_uncached: float
    points: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class Walker:
    """A page size as its walks are counted: TLB entries, bytes an entry covers, and memory covered by table lines.

    ``nested_line_bytes``: memory covered by one line of the host's entries for the guest's tables; 0: no such reads.
    """

    entries: float
    granule_bytes: int
    table_line_bytes: int
    nested_line_bytes: int


def nested_line_bytes(table_line_bytes: int) -> int:
    """Memory whose leaf entries fill 4 KiB of page table: the host maps each such piece by an entry of its own.

    Tables are allocated between the data they map, so two pieces seldom share a line of the host's entries.
    """
    return table_line_bytes * (4096 // CACHE_LINE_BYTES)


def fit_pressure(
    points: Sequence[PressurePoint], base: Walker, large: Walker, large_walk_ns: float, *, fractured: bool
) -> PressureFit | None:
    """The best fit over cache sizes and neighbours' rates; None with too few points past the TLB's reach.

    Args:
        points: measured savings; large page against base page.
        base, large: how both sizes walk.
        large_walk_ns: a large page's walk with its entry cached (0 where fractured: both sizes miss alike).
        fractured: whether the host maps the guest with smaller pages.
    """
    usable = [p for p in points if p.footprint_bytes >= 2 * base.entries * base.granule_bytes]
    if len(usable) < POINTS_MIN:
        return None
    walks = _walks(usable, base)
    large_walks = np.zeros(len(usable)) if fractured else _walks(usable, large)
    savings = np.array([p.saving_ns for p in usable]) + large_walks * large_walk_ns
    errors = np.array([math.hypot(_PLACEMENT_NS, p.half_width_ns, _SHAPE_SHARE * p.saving_ns) for p in usable])
    candidates = [(c, f) for c in CANDIDATE_CACHE_BYTES for f in CANDIDATE_FOREIGN_LINES_PER_NS]
    references = _uncached(usable, base, walks, candidates)
    unsaved = 0.0 if fractured else large_walks * _uncached(usable, large, large_walks, candidates)
    best: PressureFit | None = None
    for (cache, foreign), uncached in zip(candidates, references * walks - unsaved, strict=True):
        a, b, residual, covariance = _two_costs(walks, uncached, savings, errors)
        if best is None or residual < best.residual * 0.999:
            out = float((uncached / walks).max())
            best = PressureFit(
                a, b, covariance, cache, foreign, residual, out, len(usable), max(p.footprint_bytes for p in usable)
            )
    return best


def _walks(points: Sequence[PressurePoint], size: Walker) -> Floats:
    """TLB misses per access: Che over the footprint's pages and those read in between."""
    pages = np.array([max(1.0, p.footprint_bytes / size.granule_bytes) for p in points])
    between = np.array([p.pages_between for p in points])
    rates = np.column_stack((1.0 / pages, between / FOREIGN_LINES))
    counts = np.column_stack((pages, np.full(len(points), FOREIGN_LINES)))
    times = characteristic_times(rates, counts, np.full((len(points), 1), size.entries))
    return np.asarray(lru_misses(rates, times)[:, 0, 0])


def _uncached(
    points: Sequence[PressurePoint], size: Walker, walks: Floats, candidates: Sequence[tuple[float, float]]
) -> Floats:
    """References of a walk that are not in the cache, for every candidate (cache bytes, lines per ns) and point.

    Shape (candidates, points).
    """
    footprints = np.array([float(p.footprint_bytes) for p in points])
    data = footprints / CACHE_LINE_BYTES
    leaf = np.maximum(1.0, footprints / size.table_line_bytes)
    nested = np.maximum(1.0, footprints / size.nested_line_bytes) if size.nested_line_bytes else np.ones(len(points))
    nested_rate = walks / nested if size.nested_line_bytes else np.zeros(len(points))
    counts = np.column_stack((leaf, nested, data, np.full(len(points), FOREIGN_LINES)))
    lines = np.array([float(p.lines_between) for p in points])
    periods = np.array([p.period_ns for p in points])
    systems = [
        np.column_stack((walks / leaf, nested_rate, 1.0 / data, (lines + foreign * periods) / FOREIGN_LINES))
        for _, foreign in candidates
    ]
    rates = np.concatenate(systems)
    capacities = np.repeat([cache / CACHE_LINE_BYTES for cache, _ in candidates], len(points))[:, np.newaxis]
    times = characteristic_times(rates, np.tile(counts, (len(candidates), 1)), capacities)
    missed = lru_misses(rates[:, :2], times)[:, 0, :].sum(axis=1)
    return np.asarray(missed.reshape(len(candidates), len(points)))


def _two_costs(
    walks: Floats, uncached: Floats, savings: Floats, errors: Floats
) -> tuple[float, float, float, tuple[float, float, float]]:
    """Weighted non-negative ``saving = a walks + b uncached``: (a, b, residual, covariance of a and b)."""
    design = np.column_stack((walks, uncached)) / errors[:, np.newaxis]
    target = savings / errors
    normal = design.T @ design + np.diag((1e-9, 1e-9))
    a, b = (float(v) for v in np.linalg.solve(normal, design.T @ target))
    if a < 0.0 or b < 0.0:
        alone = [max(0.0, float(column @ target) / float(column @ column + 1e-9)) for column in design.T]
        options = ((alone[0], 0.0), (0.0, alone[1]))
        a, b = min(options, key=lambda ab: float(np.square(target - design @ np.array(ab)).sum()))
    residual = float(np.sqrt(np.mean(np.square(target - design @ np.array((a, b))))))
    inverse = np.linalg.inv(normal) * max(1.0, residual) ** 2
    return a, b, residual, (float(inverse[0, 0]), float(inverse[0, 1]), float(inverse[1, 1]))
