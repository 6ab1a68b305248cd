"""The published shape of throughput over buffer pool size: units taken away, one band, one pool placed on it."""

from __future__ import annotations

import pytest

from hugeplan.planner.evaluation.pool_shapes import PoolSeries, pool_shape
from hugeplan.planner.model import GIB

#: One series rises evenly up to 40 GiB, the other up to 80 GiB.
EARLY = PoolSeries(tuple((gib * GIB, float(min(gib, 40))) for gib in (10, 20, 40, 80)))
LATE = PoolSeries(tuple((gib * GIB, float(gib)) for gib in (10, 20, 40, 80)))


def test_sizes_count_in_shares_of_the_pool_that_holds_everything() -> None:
    shape = pool_shape([EARLY, LATE])
    assert shape is not None
    assert shape.series == 2
    middle = shape.at(0.5)
    assert middle is not None
    assert (middle.low, middle.likely, middle.high) == pytest.approx((0.5, 0.5, 0.5))
    assert (shape.knee.low, shape.knee.high) == pytest.approx((0.95, 0.95))


def test_nothing_is_said_below_the_smallest_pool_that_all_have() -> None:
    shape = pool_shape([EARLY, LATE])
    assert shape is not None
    assert shape.at(0.2) is None
    assert shape.one_more_gib(2 * GIB, 40 * GIB) is None
    assert shape.band[0].share >= 0.25
    assert shape.band[-1].reached.low == pytest.approx(1.0)


def test_a_pool_is_placed_by_its_working_set() -> None:
    shape = pool_shape([EARLY, LATE])
    assert shape is not None
    here, more = shape.at(20 / 40), shape.one_more_gib(20 * GIB, 40 * GIB)
    assert here is not None
    assert more is not None
    assert here.likely == pytest.approx(0.5)
    assert (more.low, more.high) == pytest.approx((1 / 40, 1 / 40))
    beyond = shape.one_more_gib(100 * GIB, 40 * GIB)
    assert beyond is not None
    assert beyond.high == 0.0


def test_series_of_three_sizes_make_no_shape() -> None:
    assert pool_shape([PoolSeries(EARLY.points[:3])]) is None
    assert pool_shape([]) is None
