"""What buffer pool is worth: benefit in points (per cent of the instance's best) over pool sizes.

Measured throughput comes first: the curve fitted to the reader's table where it describes it well, else straight
lines between the measured points; no more is predicted past the best one. Without a table, the share of accesses
that a pool of that size can serve, from working set and skew. Else a stated guess of falling returns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, BenefitPoint, PoolBenefit, Workload
from hugeplan.planner.pool_benefit.throughput_curve import MIN_POINTS, BenefitCurve, fit_benefit
from hugeplan.planner.units import format_bytes

#: Working sets are counted in blocks of this size; only their number matters, and only for the skew.
BLOCK_BYTES = 8192
_SUMMED_RANKS = 64
#: A fitted curve is used when its root mean square residual is at most this share of the best throughput.
GOOD_FIT = 0.02
#: A fitted curve still rises at the best measured size: by this share of the best throughput for twice the pool.
LEAST_WORTH = 0.001
#: Steps in which a fitted curve is drawn.
_DRAWN_STEPS = 48

Floats = NDArray[np.float64]


def pool_benefit(workload: Workload, buffer_pool_bytes: Sequence[int]) -> tuple[tuple[float, ...], str]:
    """Benefit in points at each pool size (rising order), and a sentence on where it comes from."""
    sizes = np.asarray(buffer_pool_bytes, dtype=np.float64)
    if len(workload.benefit_points) >= 2:
        values, how = _from_table(workload.benefit_points, sizes)
        last = format_bytes(max(point.pool_bytes for point in workload.benefit_points))
        basis = f"benefit from {len(workload.benefit_points)} measured throughputs ({how}), no more past {last}"
    elif workload.working_set_bytes:
        values = 100.0 * hit_ratio(sizes, workload.working_set_bytes, workload.zipf_s or 0.0)
        skew = "uniform access" if not workload.zipf_s else f"Zipf s = {workload.zipf_s:g}"
        basis = f"benefit taken as the hit ratio: {format_bytes(workload.working_set_bytes)} working set, {skew}"
    else:
        values = 10.0 * np.log2(sizes / max(1.0, float(sizes[0])))
        basis = "benefit of buffer pool not given: every doubling is taken to be worth ten points"
    return tuple(values.tolist()), basis


def table_says(points: tuple[BenefitPoint, ...], buffer_pool_bytes: int | None) -> PoolBenefit | None:
    """The fitted curve at the planned pool, with its knees; None where no curve can be fitted."""
    if buffer_pool_bytes is None or len(points) < MIN_POINTS:
        return None
    try:
        curve = fit_benefit(points)
    except PlannerError:
        return None
    found = curve.estimate(buffer_pool_bytes)
    (slope,) = worth_of_a_gib(curve, [buffer_pool_bytes])
    if follows(curve):
        throughput = found.throughput
        knees = tuple(curve.knee(share) for share in (0.95, 0.99))
        at_95, at_99 = (knee.fitted_bytes or knee.measured_bytes for knee in knees)
        error = f"The curve is off by {100 * curve.nrmse:.1f} % of the best"
    else:
        rising = _rising(points)
        throughput = float(_on_lines(rising, np.asarray([buffer_pool_bytes]))[0])
        at_95, at_99 = (_reaches(rising, share * curve.best) for share in (0.95, 0.99))
        error = "Read from lines between the measured points: the fitted curve misses some of their rise"
    return PoolBenefit(
        points=len(points),
        measured=curve.points,
        pool_bytes=buffer_pool_bytes,
        limit=curve.limit,
        slope=curve.slope,
        end_bytes=round(curve.end_bytes),
        error_fraction=curve.nrmse,
        knee_95_bytes=at_95,
        knee_99_bytes=at_99,
        throughput=throughput,
        marginal_per_gib=slope,
        extrapolated=found.extrapolated,
        fitted=_drawn(curve),
        statement=(
            f"{format_bytes(buffer_pool_bytes)} reach {_plain(throughput)} of {_plain(curve.best)} measured at best;"
            f" one GiB more is worth {_plain(slope)}. 95 % are reached at {format_bytes(at_95)}, 99 % at"
            f" {format_bytes(at_99)}. {error}"
            + (f"; {found.note}, so this is extrapolated." if found.extrapolated else f": {found.note}.")
        ),
    )


def worth_of_a_gib(curve: BenefitCurve, sizes: Sequence[int]) -> list[float]:
    """Throughput that one GiB more brings: from the curve where it follows its points, else from lines between them.

    Past the largest measured pool no gain is predicted.
    """
    if follows(curve):
        found = [curve.marginal_per_gib(float(size)) for size in sizes]
    else:
        rising, at = _rising(curve.points), np.asarray(sizes, dtype=np.float64)
        found = np.maximum(0.0, _on_lines(rising, at + GIB) - _on_lines(rising, at)).tolist()
    return [0.0 if size > curve.last_bytes else worth for size, worth in zip(sizes, found, strict=True)]


def _drawn(curve: BenefitCurve) -> tuple[BenefitPoint, ...]:
    """The curve at every measured size and at even steps between the smallest and the largest."""
    step = (curve.last_bytes - curve.first_bytes) / _DRAWN_STEPS
    sizes = {point.pool_bytes for point in curve.points}
    sizes |= {curve.first_bytes + round(step * index) for index in range(1, _DRAWN_STEPS)}
    return tuple(BenefitPoint(pool_bytes=size, throughput=curve.throughput(size)) for size in sorted(sizes))


def follows(curve: BenefitCurve) -> bool:
    """Whether a fitted curve follows its points: off by little, and at no rise between two of them by the rise itself.

    A curve that is flat where the table rises would call more pool worth nothing.
    """
    off = [abs(curve.throughput(float(point.pool_bytes)) - point.throughput) for point in curve.points]
    steps = zip(curve.points, curve.points[1:], off, off[1:], strict=False)
    best = max(curve.points, key=lambda point: point.throughput)
    worth = curve.marginal_per_gib(float(best.pool_bytes)) * best.pool_bytes / GIB
    return (
        curve.nrmse <= GOOD_FIT
        and worth > LEAST_WORTH * curve.best
        and all(
            max(before, after) < late.throughput - early.throughput
            for early, late, before, after in steps
            if late.throughput > early.throughput
        )
    )


def _plain(value: float) -> str:
    """Three significant digits, written out: 134037 -> "134,000"."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100.0 else f"{rounded:g}"


def _from_table(points: tuple[BenefitPoint, ...], sizes: Floats) -> tuple[Floats, str]:
    """Per cent of the best measured throughput at each size, and how it was read off the table."""
    if len(points) >= MIN_POINTS:
        try:
            curve = fit_benefit(points)
        except PlannerError:
            return measured_points(points, sizes), "straight lines"
        if follows(curve):
            capped = np.minimum(sizes, float(curve.last_bytes))
            values = np.asarray([curve.throughput(float(size)) for size in capped])
            return values * (100.0 / curve.best), "fitted curve"
    return measured_points(points, sizes), "straight lines"


def measured_points(points: Sequence[BenefitPoint], sizes: Floats) -> Floats:
    """Per cent of the best measured throughput at each size, on straight lines between the measured points.

    Below the first size the line to the origin is used; past the best size the value stays.
    """
    x, y = (np.asarray(values) for values in zip(*_rising(points), strict=True))
    found: Floats = np.interp(sizes, x, y) * (100.0 / y[-1])
    return found


def _rising(points: Sequence[BenefitPoint]) -> list[tuple[float, float]]:
    """From the origin the points that are better than all smaller ones: of a larger pool a part can be left unused."""
    rising: list[tuple[float, float]] = [(0.0, 0.0)]
    for point in sorted(points, key=lambda p: (p.pool_bytes, -p.throughput)):
        if point.throughput > rising[-1][1]:
            rising.append((float(point.pool_bytes), point.throughput))
    return rising


def _on_lines(rising: Sequence[tuple[float, float]], sizes: Floats) -> Floats:
    x, y = zip(*rising, strict=True)
    found: Floats = np.interp(sizes, x, y)
    return found


def _reaches(rising: Sequence[tuple[float, float]], throughput: float) -> int:
    """The smallest size at which the lines reach a throughput."""
    x, y = zip(*rising, strict=True)
    return math.ceil(float(np.interp(throughput, y, x)))


def hit_ratio(sizes: Floats, working_set_bytes: int, zipf_s: float) -> Floats:
    """Share of accesses to the hottest blocks that fit: (H_k / H_n) for Zipf, k / n for uniform access.

    Popularity is by rank, the pool holds the most popular blocks.
    """
    blocks = max(1.0, working_set_bytes / BLOCK_BYTES)
    held = np.clip(sizes / BLOCK_BYTES, 0.0, blocks)
    ratio: Floats = _harmonic(held, zipf_s) / _harmonic(np.asarray([blocks]), zipf_s)[0]
    return ratio


def _harmonic(count: Floats, s: float) -> Floats:
    """Generalised harmonic numbers: the first terms summed, the rest as the integral between half steps (1e-4)."""
    ranks = np.arange(1, _SUMMED_RANKS + 1, dtype=np.float64)
    head = np.concatenate(([0.0], np.cumsum(ranks**-s)))
    start = _SUMMED_RANKS + 0.5
    end = np.maximum(count + 0.5, start)
    summed: Floats = np.interp(np.minimum(count, _SUMMED_RANKS), np.arange(_SUMMED_RANKS + 1), head)
    return summed + _power_integral(start, end, s)


def _power_integral(start: float, end: Floats, s: float) -> Floats:
    """The integral of x^-s from start to end."""
    if math.isclose(s, 1.0):
        return np.log(end / start)
    area: Floats = (np.power(end, 1.0 - s) - start ** (1.0 - s)) / (1.0 - s)
    return area
