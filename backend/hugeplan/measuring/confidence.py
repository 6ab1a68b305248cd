"""An interval for the gain that may be looked at after every block, however often, and still holds 95 times of 100.

The unit is the block: fresh starts of both sides, roles swapped from block to block, a number of pairs, and their
median. Pairs of one block share what those starts drew (where their memory lies, which caches they meet), so a hundred
pairs of one start say less than they seem to. Blocks are independent of each other.

An ordinary 95 % interval that is checked after every block excludes the truth far more often than 5 times in 100,
because the measurement stops when it happens to look good. Used instead is the confidence sequence of the
scale-invariant t-test martingale with a Gaussian mixture over the standardised effect: the likelihood ratio of the
maximal invariant with the right Haar prior on the scale.

    M_n(mu) = sqrt(c^2 / (n + c^2)) * (V / (V - S^2 / (n + c^2)))^(n/2),   S = sum(x - mu),  V = sum((x - mu)^2)

M_n is a martingale with mean 1 when the blocks are Gaussian with mean mu and any unknown spread, so by Ville's
inequality it ever reaches 1/alpha with probability at most alpha. The interval after n blocks is every mu with
M_n(mu) < 1/alpha.

Sources: T. L. Lai, On confidence sequences, Annals of Statistics 4 (1976); H. Wang and A. Ramdas, Anytime-valid t-tests
and confidence sequences for Gaussian means with unknown variance, Sequential Analysis (2025), arXiv:2310.03722.
Medians of pairs are nearly Gaussian; ``tests/measuring/test_confidence.py`` shows the coverage where they are not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ALPHA: Final = 0.05
_MIXTURE: Final = 1.0
"""c squared: the weight of the mixture, in blocks. At 1 the interval is near its narrowest between 10 and 60 blocks."""
_MOST_LOGARITHM: Final = 30.0
"""A larger gain, 1e15 per cent, has more digits than are printed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A likely value with the ends of its interval; the ends are infinite while there are too few blocks."""

    low: float
    likely: float
    high: float

    @property
    def width(self) -> float:
        """High less low."""
        return self.high - self.low


def interval_of(values: Sequence[float], alpha: float = ALPHA) -> Interval:
    """The mean of the blocks' values and its time-uniform interval, in the unit of the values."""
    count = len(values)
    if count == 0:
        return Interval(-math.inf, math.nan, math.inf)
    mean = statistics.fmean(values)
    half = half_width(count, math.sqrt(statistics.fmean((value - mean) ** 2 for value in values)), alpha)
    return Interval(mean - half, mean, mean + half)


def half_width(count: int, spread: float, alpha: float = ALPHA) -> float:
    """Half the interval's width after ``count`` blocks of standard deviation ``spread`` (divided by n, not n - 1)."""
    if count < 2:
        return math.inf
    power = (math.sqrt((count + _MIXTURE) / _MIXTURE) / alpha) ** (2.0 / count)
    room = count * power / (count + _MIXTURE) - (power - 1.0)
    return math.inf if room <= 0.0 else spread * math.sqrt((power - 1.0) / room)


def blocks_for(half: float, spread: float, alpha: float = ALPHA, limit: int = 10_000) -> int | None:
    """Blocks after which the interval is no wider than ``half`` to each side; None beyond ``limit``."""
    low, high = 2, limit
    if half_width(high, spread, alpha) > half:
        return None
    while low < high:
        middle = (low + high) // 2
        if half_width(middle, spread, alpha) <= half:
            high = middle
        else:
            low = middle + 1
    return low


def as_gain(logarithms: Interval) -> Interval:
    """An interval of logarithms of ratios as gains in per cent: log 1.05 is +5."""

    def gain(value: float) -> float:
        return 100.0 * math.expm1(value) if value < _MOST_LOGARITHM else math.inf

    return Interval(gain(logarithms.low), gain(logarithms.likely), gain(logarithms.high))
