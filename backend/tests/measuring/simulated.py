"""A subject whose truth is known: batches from a random generator, time from a counter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from hugeplan.measuring.batches import Batch, Side
from hugeplan.measuring.trial import ArmError


@dataclass
class SimulatedSubject:
    """``gains`` in per cent by arm; noise per pair, per start and between the two places, as shares."""

    gains: Mapping[str, float]
    seed: int
    pair_noise: float = 0.05
    start_noise: float = 0.01
    place_bias: float = 0.0
    absent: Mapping[str, str] = field(default_factory=dict)
    pairs_per_block: int = 12
    by_cpu: bool = True
    seconds_per_batch: float = 0.2
    seconds_per_start: float = 4.0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    @contextmanager
    def sides(self, arm: str, *, swapped: bool) -> Iterator[tuple[Side, Side]]:
        if arm in self.absent:
            raise ArmError(self.absent[arm])
        self.now += self.seconds_per_start
        bias = self.place_bias if swapped else -self.place_bias
        start = 1.0 + self.start_noise * self.rng.normal()
        faster = (1.0 + self.gains.get(arm, 0.0) / 100.0) * (1.0 + bias) * start
        yield _Batches(self, 1.0), _Batches(self, faster)


@dataclass
class _Batches:
    subject: SimulatedSubject
    faster: float

    def batch(self) -> Batch:
        subject = self.subject
        subject.now += subject.seconds_per_batch
        # Two neighbours' bursts in a hundred batches make one half as fast again.
        noise = np.exp(subject.pair_noise * subject.rng.normal()) * (1.5 if subject.rng.random() < 0.02 else 1.0)
        cost = 20_000.0 / self.faster * float(noise)
        return Batch(1e9 / cost, cost)
