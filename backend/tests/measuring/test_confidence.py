"""The interval of a trial holds, however often it is looked at: shown by simulation with known truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hugeplan.measuring.confidence import Interval, as_gain, blocks_for, half_width, interval_of

Draw = Callable[[np.random.Generator, int], np.ndarray]
TRIALS, BLOCKS = 400, 50


def _t3(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.asarray(rng.standard_t(3, count))


def _bursts(rng: np.random.Generator, count: int) -> np.ndarray:
    """A neighbour disturbs one block in twenty by eight times the spread, either side."""
    return np.asarray(rng.normal(0, 1, count) + (rng.random(count) < 0.05) * rng.normal(0, 8, count))


def _growing(rng: np.random.Generator, count: int) -> np.ndarray:
    """The machine becomes ten times as noisy while the trial runs."""
    return np.asarray(rng.normal(0, 1, count) * np.linspace(0.3, 3.0, count))


def _two_places(rng: np.random.Generator, count: int) -> np.ndarray:
    """One of the two servers is always the better one; roles swap from block to block."""
    return np.asarray(rng.normal(0, 1, count) + np.where(np.arange(count) % 2, 2.0, -2.0))


@pytest.mark.parametrize(
    "draw", [lambda rng, n: rng.normal(0, 1, n), _t3, _bursts, _growing, _two_places], ids=lambda d: d.__name__
)
def test_zero_stays_inside_at_every_look(draw: Draw) -> None:
    """Equal against equal: in at least 93 of 100 trials no look at all of 50 leaves zero out."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(TRIALS):
        values = draw(rng, BLOCKS)
        looks = (interval_of(list(values[:count])) for count in range(2, BLOCKS + 1))
        held += all(look.low <= 0.0 <= look.high for look in looks)
    assert held >= 0.93 * TRIALS


def test_an_ordinary_interval_would_not_hold() -> None:
    """The simulation can fail: two standard errors, looked at after each block, leave zero out far more often."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(TRIALS):
        values = rng.normal(0, 1, BLOCKS)
        held += all(abs(values[:n].mean()) <= 2.1 * values[:n].std(ddof=1) / math.sqrt(n) for n in range(6, BLOCKS + 1))
    assert held < 0.85 * TRIALS


def test_the_interval_narrows_and_is_infinite_at_first() -> None:
    widths = [half_width(count, 1.0) for count in range(1, 100)]
    assert math.isinf(widths[0])
    finite = [width for width in widths if math.isfinite(width)]
    assert finite == sorted(finite, reverse=True)
    assert half_width(20, 1.0) == pytest.approx(0.786, abs=0.001)
    assert half_width(20, 0.0) == 0.0
    assert math.isinf(interval_of([]).width)
    assert math.isinf(interval_of([0.1]).width)


def test_half_width_is_where_the_martingale_reaches_its_bound() -> None:
    """The closed form beside the definition: M_n at the interval's end is 1/alpha."""
    values = np.random.default_rng(3).normal(0.05, 0.02, 25)
    found = interval_of(list(values))
    for end in (found.low, found.high):
        shifted = values - end
        v, s, n = float((shifted**2).sum()), float(shifted.sum()), len(values)
        martingale = math.sqrt(1.0 / (n + 1.0)) * (v / (v - s * s / (n + 1.0))) ** (n / 2)
        assert martingale == pytest.approx(20.0, rel=1e-6)


def test_blocks_that_are_needed() -> None:
    needed = blocks_for(0.01, 0.02)
    assert needed is not None
    assert half_width(needed, 0.02) <= 0.01 < half_width(needed - 1, 0.02)
    assert blocks_for(1e-9, 1.0) is None


def test_gains_are_per_cent() -> None:
    found = as_gain(Interval(math.log(0.99), math.log(1.05), math.log(1.1)))
    assert (round(found.low, 6), round(found.likely, 6), round(found.high, 6)) == (-1.0, 5.0, 10.0)
    assert as_gain(Interval(-math.inf, 0.0, math.inf)) == Interval(-100.0, 0.0, math.inf)
