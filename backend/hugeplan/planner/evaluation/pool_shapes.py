"""The shape of throughput over buffer pool size that others published, without the units of any one of them.

Each series becomes a share of its best throughput over the pool's share of what holds its working set. The pool that
reaches ``HOLDS_ALL`` of the best is assumed to hold the working set. All series together are a band.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from hugeplan.planner.model import GIB, Range

POINTS_MIN: Final = 4
HOLDS_ALL: Final = 0.99
KNEE: Final = 0.95
_STEPS: Final = 40
_LAST_SHARE: Final = 1.25


@dataclass(frozen=True, slots=True)
class PoolSeries:
    """Throughput by buffer pool size, ascending: one workload on one device at one block size of the database."""

    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class BandPoint:
    """Shares of the best throughput that the series reached at one share of the working set."""

    share: float
    reached: Range


@dataclass(frozen=True, slots=True)
class PoolShape:
    """All series without their units. ``knee``: the shares of the working set at which they reach ``KNEE``."""

    series: int
    band: tuple[BandPoint, ...]
    knee: Range
    _shapes: tuple[tuple[tuple[float, float], ...], ...]

    def at(self, share: float) -> Range | None:
        """The band at one share of the working set; None below the smallest pool that every series has."""
        return _band_at(self._shapes, share)

    def one_more_gib(self, pool_bytes: int, working_set_bytes: int) -> Range | None:
        """What one GiB more brings, as a share of the best throughput; None where the band says nothing."""
        gains = []
        for shape in self._shapes:
            here, more = (_reached(shape, size / working_set_bytes) for size in (pool_bytes, pool_bytes + GIB))
            if here is None or more is None:
                return None
            gains.append(max(0.0, more - here))
        return Range(min(gains), median(gains), max(gains))


def pool_shape(series: Sequence[PoolSeries]) -> PoolShape | None:
    """The shape of the series with at least ``POINTS_MIN`` sizes; None without any."""
    shapes = tuple(_without_units(one) for one in series if len(one.points) >= POINTS_MIN)
    if not shapes:
        return None
    shares = [step / _STEPS * _LAST_SHARE for step in range(_STEPS + 1)]
    bands = [(share, _band_at(shapes, share)) for share in shares]
    knees = [_knee(shape) for shape in shapes]
    return PoolShape(
        series=len(shapes),
        band=tuple(BandPoint(share, reached) for share, reached in bands if reached is not None),
        knee=Range(min(knees), median(knees), max(knees)),
        _shapes=shapes,
    )


def _without_units(series: PoolSeries) -> tuple[tuple[float, float], ...]:
    best = max(throughput for _, throughput in series.points)
    whole = next(size for size, throughput in series.points if throughput >= HOLDS_ALL * best)
    return tuple((size / whole, throughput / best) for size, throughput in series.points)


def _reached(shape: Sequence[tuple[float, float]], share: float) -> float | None:
    """Straight between the points; None below the smallest published pool, the last value above the largest."""
    after = bisect_left(shape, (share, 0.0))
    if after == len(shape):
        return shape[-1][1]
    x, y = shape[after]
    if x == share:
        return y
    if after == 0:
        return None
    left_x, left_y = shape[after - 1]
    return left_y + (share - left_x) / (x - left_x) * (y - left_y)


def _band_at(shapes: Sequence[Sequence[tuple[float, float]]], share: float) -> Range | None:
    values = [_reached(shape, share) for shape in shapes]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return Range(min(known), median(known), max(known))


def _knee(shape: Sequence[tuple[float, float]]) -> float:
    """The first share of the working set at which the line between the points reaches ``KNEE`` of the best."""
    left_x, left_y = shape[0]
    for x, y in shape:
        if y >= KNEE:
            return x if y == left_y else left_x + (KNEE - left_y) / (y - left_y) * (x - left_x)
        left_x, left_y = x, y
    return shape[-1][0]
