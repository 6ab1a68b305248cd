"""What buffer pool is worth: benefit in points (per cent of the instance's best) over pool sizes.

Measured throughput comes first: straight lines over the upper hull of the reader's table, and nothing more past its
last size. Else the share of accesses that a pool of that size can serve, from working set and skew. Else a stated
guess of falling returns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.model import BenefitPoint, Workload
from hugeplan.planner.units import format_bytes

#: Working sets are counted in blocks of this size; only their number matters, and only for the skew.
BLOCK_BYTES = 8192

Floats = NDArray[np.float64]


def pool_benefit(workload: Workload, pool_bytes: Sequence[int]) -> tuple[tuple[float, ...], str]:
    """Benefit in points at each pool size (rising order), and a sentence on where it comes from."""
    sizes = np.asarray(pool_bytes, dtype=np.float64)
    if len(workload.benefit_points) >= 2:
        values = measured_points(workload.benefit_points, sizes)
        last = format_bytes(workload.benefit_points[-1].pool_bytes)
        basis = f"benefit from {len(workload.benefit_points)} measured throughputs; nothing is promised past {last}"
    elif workload.working_set_bytes:
        values = 100.0 * hit_ratio(sizes, workload.working_set_bytes, workload.zipf_s or 0.0)
        skew = "uniform access" if not workload.zipf_s else f"Zipf s = {workload.zipf_s:g}"
        basis = f"benefit taken as the hit ratio: {format_bytes(workload.working_set_bytes)} working set, {skew}"
    else:
        values = 10.0 * np.log2(sizes / max(1.0, float(sizes[0])))
        basis = "benefit of buffer pool not given: every doubling is taken to be worth ten points"
    return tuple(values.tolist()), basis


def measured_points(points: Sequence[BenefitPoint], sizes: Floats) -> Floats:
    """Per cent of the best measured throughput at each size, on the upper concave hull of the points.

    Below the first size the line to the origin is used; past the last size the value stays.
    """
    hull: list[tuple[float, float]] = [(0.0, 0.0)]
    for point in sorted(points, key=lambda p: p.pool_bytes):
        here = (float(point.pool_bytes), point.throughput)
        while len(hull) > 1 and _slope(hull[-2], here) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(here)
    best = max(throughput for _, throughput in hull)
    while len(hull) > 1 and hull[-1][1] < hull[-2][1]:
        hull.pop()  # a larger pool is never worth less than a smaller one: it can be left unused
    x = np.asarray([size for size, _ in hull])
    y = np.asarray([throughput for _, throughput in hull])
    values: Floats = np.interp(sizes, x, y) * (100.0 / best)
    return values


def _slope(a: tuple[float, float], b: tuple[float, float]) -> float:
    return (b[1] - a[1]) / max(1.0, b[0] - a[0])


def hit_ratio(sizes: Floats, working_set_bytes: int, zipf_s: float) -> Floats:
    """Share of accesses to the hottest blocks that fit: (H_k / H_n) for Zipf, k / n for uniform access.

    The generalised harmonic number is taken as its integral, good to a per cent for the thousands of blocks here.
    """
    blocks = max(1.0, working_set_bytes / BLOCK_BYTES)
    held = np.clip(sizes / BLOCK_BYTES, 0.0, blocks)
    ratio: Floats = _harmonic(held, zipf_s) / _harmonic(np.asarray([blocks]), zipf_s)[0]
    return ratio


def _harmonic(count: Floats, s: float) -> Floats:
    if math.isclose(s, 1.0):
        return np.log1p(count)
    return (np.power(1.0 + count, 1.0 - s) - 1.0) / (1.0 - s)
