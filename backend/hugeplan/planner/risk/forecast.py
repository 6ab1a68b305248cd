"""Forecast: how fast workloads grow, and when the headroom under the plan is gone.

The slope is Theil and Sen's median of pairwise slopes over medians of equal time buckets: one spike or one restart
does not move it. Its interval is Sen's, from the variance of Kendall's S, widened for the residuals' lag-1
autocorrelation (Hamed and Rao 1998, first term). Nothing is forecast from fewer than MIN_BUCKETS buckets or a
shorter span than MIN_SPAN_DAYS, and nothing further ahead than REACH times the span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.model import Forecast, MemoryHistory, Range, Tenant
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_bytes

SECONDS_PER_DAY = 86_400.0
MIN_BUCKETS = 10
MIN_SPAN_DAYS = 3.0
MAX_BUCKETS = 120
REACH = 10.0
#: Days ahead at which growing workloads are judged: about the time between two reviews of a node.
HORIZON_DAYS = 30.0
_Z95 = 1.959964

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trend:
    """Growth of one copy in bytes per day with its 95 % interval, the level at the end, and the history's span."""

    growth_bytes_per_day: Range
    level_bytes: float
    residuals_bytes: tuple[float, ...]
    span_days: float
    points: int

    @property
    def is_growing(self) -> bool:
        """Growth that the interval sets apart from zero."""
        return self.growth_bytes_per_day.low > 0


@remembered(256)
def why_no_trend(history: MemoryHistory) -> str | None:
    """What the history lacks for a trend; None when it has enough."""
    count = len(history.times_seconds)
    if count < MIN_BUCKETS:
        return f"{count} points, the method needs {MIN_BUCKETS}"
    span = (history.times_seconds[-1] - history.times_seconds[0]) / SECONDS_PER_DAY
    if span < MIN_SPAN_DAYS:
        return f"{span:.1f} days of history, the method needs {MIN_SPAN_DAYS:g}"
    filled = len(_buckets(history)[0])
    return None if filled >= MIN_BUCKETS else f"points in {filled} separate times, the method needs {MIN_BUCKETS}"


@remembered(256)
def trend(history: MemoryHistory) -> Trend | None:
    """Trend of a history; None when it has too little (:func:`why_no_trend` says what)."""
    if why_no_trend(history) is not None:
        return None
    days, used = _buckets(history)
    i, j = _pairs(len(days))
    slopes = (used[j] - used[i]) / (days[j] - days[i])
    slope = float(np.median(slopes))
    level = float(np.median(used - slope * (days - days[-1])))
    residuals = used - level - slope * (days - days[-1])
    low, high = _interval(slopes, len(days), residuals)
    everything = np.asarray(history.used_bytes, dtype=np.float64)
    all_days = (np.asarray(history.times_seconds) - history.times_seconds[0]) / SECONDS_PER_DAY
    return Trend(
        growth_bytes_per_day=Range(min(low, slope), slope, max(high, slope)),
        level_bytes=level,
        residuals_bytes=tuple((everything - level - slope * (all_days - all_days[-1])).tolist()),
        span_days=float(all_days[-1]),
        points=len(everything),
    )


@remembered(8)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first and the second of each pair of so many points."""
    first, second = np.triu_indices(count, k=1)
    return first, second


@remembered(64)
def _buckets(history: MemoryHistory) -> tuple[Floats, Floats]:
    """Days since the first point and median bytes of each filled bucket, times strictly rising."""
    days = (np.asarray(history.times_seconds, dtype=np.float64) - history.times_seconds[0]) / SECONDS_PER_DAY
    used = np.asarray(history.used_bytes, dtype=np.float64)
    count = min(MAX_BUCKETS, len(days))
    span = max(float(days[-1]), 1e-9)
    index = np.minimum((days / span * count).astype(np.int64), count - 1)
    filled = np.unique(index)
    starts = np.searchsorted(index, filled)
    sizes = np.diff(np.append(starts, len(index)))
    # Sorted by bucket and then by size: the median is the middle of each bucket, or the mean of its two middle ones.
    ordered = used[np.lexsort((used, index))]
    medians = (ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2]) / 2.0
    return np.add.reduceat(days, starts) / sizes, medians


def _interval(slopes: Floats, count: int, residuals: Floats) -> tuple[float, float]:
    """Sen's 95 % interval from the pairwise slopes, widened for autocorrelated residuals."""
    variance = count * (count - 1) * (2 * count + 5) / 18.0
    spread = float(np.dot(residuals, residuals))
    rho = float(np.dot(residuals[1:], residuals[:-1])) / spread if spread > 0 else 0.0
    rho = min(max(rho, 0.0), 0.95)
    half = _Z95 * math.sqrt(variance * (1 + rho) / (1 - rho))
    middle = len(slopes) / 2
    low = max(0, math.floor(middle - half / 2))
    high = min(len(slopes) - 1, math.ceil(middle + half / 2))
    placed = np.partition(slopes, (low, high))
    return float(placed[low]), float(placed[high])


def forecast(tenant: Tenant, headroom_bytes: int) -> Forecast:
    """Growth of all replicas of a workload, and days until ``headroom_bytes`` is gone if the others do not grow."""
    history = tenant.history
    reason = "no history" if history is None else why_no_trend(history)
    if history is None or reason is not None:
        return _nothing(tenant, headroom_bytes, reason or "no history")
    found = trend(history)
    assert found is not None
    growth = found.growth_bytes_per_day
    copies = tenant.count
    total = Range(growth.low * copies, growth.likely * copies, growth.high * copies)
    days, remark = _days_until(headroom_bytes, total, REACH * found.span_days)
    if found.is_growing:
        aside = format_bytes(growth_bytes(tenant))
        remark += f"; the ledger sets {aside} aside for {HORIZON_DAYS:g} days of it"
        if days is not None and days.likely < HORIZON_DAYS:
            remark += ", which is more than there is room for"
    return Forecast(
        subject=tenant.name,
        headroom_bytes=headroom_bytes,
        points=found.points,
        growth_bytes_per_day=total,
        days_until_full=days,
        basis=f"median slope of {found.points} points over {found.span_days:.1f} days, 95 % interval; {remark}",
    )


def growth_bytes(tenant: Tenant) -> int:
    """What all replicas of a workload are expected to grow by in ``HORIZON_DAYS``; 0 without a clear trend."""
    history = tenant.history
    found = None if history is None or len(set(history.used_bytes)) < 2 else trend(history)
    if found is None or not found.is_growing:
        return 0
    return round(tenant.count * found.growth_bytes_per_day.likely * HORIZON_DAYS)


def _nothing(tenant: Tenant, headroom_bytes: int, reason: str) -> Forecast:
    return Forecast(
        subject=tenant.name,
        headroom_bytes=headroom_bytes,
        points=0 if tenant.history is None else len(tenant.history.times_seconds),
        growth_bytes_per_day=None,
        days_until_full=None,
        basis=f"no forecast: {reason}",
    )


def _days_until(headroom_bytes: int, growth: Range, reach_days: float) -> tuple[Range | None, str]:
    if headroom_bytes <= 0:
        return Range(0.0, 0.0, 0.0), "there is no headroom now"
    if growth.high <= 0 or growth.likely <= 0:
        return None, "no growth found"
    likely = headroom_bytes / growth.likely
    if likely > reach_days:
        return None, f"{format_bytes(headroom_bytes)} last longer than the {reach_days:.0f} days this history can carry"
    high = headroom_bytes / growth.low if growth.low > 0 else math.inf
    remark = f"shown up to {reach_days:.0f} days" if high > reach_days else "growth goes on as it was"
    return Range(headroom_bytes / growth.high, likely, min(high, reach_days)), remark


def forecasts(tenants: Sequence[Tenant], room_bytes: int) -> tuple[Forecast, ...]:
    """A forecast for each workload with a history. Headroom is ``room_bytes`` less what all workloads use today."""
    headroom = room_bytes - sum(tenant.count * _level_bytes(tenant) for tenant in tenants)
    return tuple(forecast(tenant, headroom) for tenant in tenants if tenant.history is not None)


def _level_bytes(tenant: Tenant) -> int:
    """What one copy uses today: the trend's end, else the history's last value, else its request or limit."""
    history = tenant.history
    if history is None or not history.used_bytes:
        planned = tenant.limit_bytes if tenant.request_bytes is None else tenant.request_bytes
        return planned or 0
    found = trend(history)
    return history.used_bytes[-1] if found is None else max(0, round(found.level_bytes))
