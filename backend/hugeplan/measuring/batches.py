"""A batch of work, a pair of batches of two page sizes, and two page sizes in turns."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

MOST_PAIRS: Final = 100
"""A start is then known to a tenth of what one pair scatters, and the document of a trial of hours stays small."""
_MOST: Final = 1e14
"""A tenth of what a document of a trial takes, which rounds. The inverse is as far away, for a time as a rate."""


class BatchError(Exception):
    """Whoever is measured gave numbers for a batch that are none; the message has them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: operations per second and ns of CPU time per operation. BatchError where they are no such numbers."""

    rate: float
    cpu_ns: float

    def __post_init__(self) -> None:
        if not all(1.0 / _MOST < number < _MOST for number in (self.rate, self.cpu_ns)):
            said = f"{self.rate:g} operations per second, {self.cpu_ns:g} ns of CPU time each"
            raise BatchError(f"what a batch is said to have done cannot be compared: {said}")


def clients_per_cpu(clients: int, cpus: Sequence[int]) -> dict[int, int]:
    """How many clients each CPU gets: as equal as can be, none where there are fewer clients than CPUs."""
    whole, rest = divmod(clients, len(cpus))
    shares = {cpu: whole + (1 if index < rest else 0) for index, cpu in enumerate(cpus)}
    return {cpu: count for cpu, count in shares.items() if count}


class Side(Protocol):
    """One of two page sizes, ready to work."""

    def batch(self) -> Batch:
        """Run one batch and measure it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One batch of the first side and one of the second, which ran within seconds of each other."""

    first: Batch
    second: Batch

    @property
    def speedup(self) -> float:
        """CPU time per operation, first over second."""
        return self.first.cpu_ns / self.second.cpu_ns

    @property
    def throughput_ratio(self) -> float:
        """Plain throughput, second over first."""
        return self.second.rate / self.first.rate


def alternate(
    first: Side,
    second: Side,
    pairs: int,
    *,
    second_begins: bool = False,
    is_enough: Callable[[], bool] = lambda: True,
) -> list[Pair]:
    """Batches of two sides in turns, ``pairs`` of them and more until it is enough; who goes first changes each time.

    More than ``MOST_PAIRS`` are never made of themselves.
    """
    found: list[Pair] = []
    while len(found) < pairs or (len(found) < MOST_PAIRS and not is_enough()):
        if (len(found) % 2 == 1) != second_begins:
            two = second.batch()
            found.append(Pair(first.batch(), two))
        else:
            one = first.batch()
            found.append(Pair(one, second.batch()))
    return found


def median_log(ratios: Sequence[float]) -> float:
    """Median of the logarithms of ratios: the value of a block. One disturbed pair hardly moves it."""
    return statistics.median(math.log(ratio) for ratio in ratios)
