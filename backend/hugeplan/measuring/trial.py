"""The loop of a trial: blocks of pairs in turns over the page sizes, until every interval is narrow or the time is up.

Equal pages against equal pages take their turn like any page size: what they differ by is the noise floor, and where
their interval leaves out zero, nothing else is to be believed. Which of the two places gets the larger pages is drawn
for the first block of two and swapped for the second, so that a difference between the places favours no page size.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from hugeplan.measuring.batches import Pair, Side, alternate, median_log
from hugeplan.measuring.busy import CpuTimes
from hugeplan.measuring.confidence import Interval, as_gain, blocks_for, interval_of

EQUAL: Final = "equal"
"""The arm that compares base pages with base pages."""
LEAST_BLOCKS: Final = 6
NARROW_POINTS: Final = 1.0
"""An interval so wide ends the measurement of a page size: the gain is known to a point of throughput."""
USABLE_POINTS: Final = 2.0
"""An interval wider than this is reported as too noisy."""
_MOST_RATIO: Final = 1e4
"""Of a block, which the document of a trial takes."""
_FAILURES_IN_A_ROW: Final = 3


class ArmError(Exception):
    """One page size cannot be measured here; the others can. The message says why."""


class TrialError(Exception):
    """The trial cannot be run, or not any further; the message says why, with numbers where memory is short."""


class Subject(Protocol):
    """What is measured: a server with its clients, or a program."""

    @property
    def pairs_per_block(self) -> int:
        """The fewest pairs of batches between two starts."""

    @property
    def by_cpu(self) -> bool:
        """Whether CPU time per operation is compared, else the rate (operations per second of time passed)."""

    def sides(self, arm: str, *, swapped: bool) -> AbstractContextManager[tuple[Side, Side]]:
        """Base pages and the arm's pages, started and warm, for the time of the block. ArmError, TrialError."""


@dataclass(frozen=True, slots=True)
class Block:
    """The pairs of one start of both sides; ``others_share`` is the share of the CPUs that other work took before."""

    pairs: tuple[Pair, ...]
    swapped: bool
    seconds: float
    others_share: float | None = None

    def value(self, *, by_cpu: bool) -> float:
        """Median logarithm of its pairs' ratios: above zero where the second side is better."""
        return median_log([pair.speedup if by_cpu else pair.throughput_ratio for pair in self.pairs])


@dataclass(slots=True)
class Arm:
    """One page size (or equal against equal) with its blocks; ``skipped`` says why there are none."""

    name: str
    blocks: list[Block] = field(default_factory=list)
    skipped: str | None = None
    failures: int = 0

    def values(self, *, by_cpu: bool) -> list[float]:
        """The values of its blocks, in order."""
        return [block.value(by_cpu=by_cpu) for block in self.blocks]

    def gain(self, *, by_cpu: bool) -> Interval:
        """The gain in per cent with its interval."""
        return as_gain(interval_of(self.values(by_cpu=by_cpu)))


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: seconds for all page sizes together, and the width in points that is narrow enough."""

    seconds: float
    narrow_points: float = NARROW_POINTS


@dataclass(frozen=True, slots=True)
class Measured:
    """All arms and why the measurement stopped: ``narrow``, ``time`` or ``interrupted``, by a signal or a failure."""

    arms: tuple[Arm, ...]
    stopped: str
    seconds: float
    by_cpu: bool
    failure: str | None = None

    @property
    def equal(self) -> Arm:
        """Equal against equal: the noise floor."""
        return next(arm for arm in self.arms if arm.name == EQUAL)

    def why_none(self, arm: Arm) -> str:
        """Why an arm has no blocks."""
        ended = "the trial was interrupted before" if self.stopped == "interrupted" else "there was no time for it"
        return arm.skipped or ended

    @property
    def others_share(self) -> float | None:
        """Mean share of the CPUs that other work took between the blocks; None where it is not known."""
        shares = [b.others_share for arm in self.arms for b in arm.blocks if b.others_share is not None]
        return statistics.fmean(shares) if shares else None

    def noise_refutes(self) -> bool:
        """Whether equal pages differ from equal pages: then no difference here is one of page sizes."""
        floor = self.equal.gain(by_cpu=self.by_cpu)
        return not floor.low <= 0.0 <= floor.high

    def is_usable(self, arm: Arm) -> bool:
        """Whether the arm's interval is narrow enough to be an answer."""
        return bool(arm.blocks) and arm.gain(by_cpu=self.by_cpu).width <= USABLE_POINTS and not self.noise_refutes()

    def seconds_for_usable(self, arm: Arm) -> float | None:
        """Time after which the arm's interval would be usable at the noise seen; None where that is not known."""
        if len(arm.blocks) < LEAST_BLOCKS:
            return None
        needed = blocks_for(math.log1p(USABLE_POINTS / 200.0), statistics.pstdev(arm.values(by_cpu=self.by_cpu)))
        each = statistics.fmean(block.seconds for block in arm.blocks)
        return None if needed is None else needed * each * len([a for a in self.arms if a.blocks])


def run(
    subject: Subject,
    arm_names: Sequence[str],
    limits: Limits,
    *,
    seed: int,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Measured:
    """Measure every arm beside base pages, and base pages beside base pages. Ctrl-C ends it with what there is, and
    after the first block any failure, too.

    A block that an exception ends is not counted. TrialError where not one page size can be measured.
    """
    arms = [Arm(EQUAL), *(Arm(name) for name in arm_names)]
    draw = random.Random(seed)  # noqa: S311 - a fair coin, no secret
    begin, stopped, failure = clock(), "narrow", None
    by_cpu = subject.by_cpu
    try:
        while wanted := _unfinished(arms, limits, by_cpu=by_cpu):
            arm = min(wanted, key=_turns)
            longest = max((block.seconds for block in arm.blocks), default=0.0)
            if clock() - begin + longest > limits.seconds:
                stopped = "time"
                break
            _measure_block(subject, arm, draw, clock, say)
    except KeyboardInterrupt:
        stopped = "interrupted"
    except Exception as problem:
        if not any(arm.blocks for arm in arms):
            raise
        is_known = isinstance(problem, (TrialError, OSError))
        stopped, failure = "interrupted", str(problem) if is_known else f"{type(problem).__name__}: {problem}"
    compared = [arm for arm in arms if arm.name != EQUAL]
    if compared and all(arm.skipped and not arm.blocks for arm in compared):
        raise TrialError("; ".join(f"{arm.name}: {arm.skipped}" for arm in compared))
    return Measured(tuple(arms), stopped, clock() - begin, by_cpu, failure)


def _unfinished(arms: Sequence[Arm], limits: Limits, *, by_cpu: bool) -> list[Arm]:
    """Arms that need more blocks. The noise floor goes on beside any other, and alone until it has the least number."""
    equal, *compared = arms
    going = [a for a in compared if a.skipped is None and not _is_narrow(a, limits, by_cpu=by_cpu)]
    if going or not compared:
        return [*going, *([] if equal.skipped or _is_narrow(equal, limits, by_cpu=by_cpu) else [equal])]
    is_known = len(equal.blocks) >= LEAST_BLOCKS or not any(arm.blocks for arm in compared)
    return [] if is_known or equal.skipped else [equal]


def _turns(arm: Arm) -> int:
    """Turns that an arm has had; the noise floor gets every other one that a page size gets."""
    return (len(arm.blocks) + arm.failures) * (2 if arm.name == EQUAL else 1)


def _is_narrow(arm: Arm, limits: Limits, *, by_cpu: bool) -> bool:
    return len(arm.blocks) >= LEAST_BLOCKS and arm.gain(by_cpu=by_cpu).width <= limits.narrow_points


def _measure_block(
    subject: Subject, arm: Arm, draw: random.Random, clock: Callable[[], float], say: Callable[[str], None]
) -> None:
    """One block more, or the reason why the arm has none.

    It measures for at least as long as its starts took. With starts of W seconds and deviation b, and pairs of p
    seconds and deviation d, the mean of all blocks is known best with n = d / b x sqrt(W / p) pairs per block; W / p is
    within a factor of two of that wherever pairs scatter more than starts, and needs neither deviation beforehand.
    """
    swapped = not arm.blocks[-1].swapped if len(arm.blocks) % 2 else draw.random() < 0.5
    begin, others = clock(), CpuTimes.others_share()
    try:
        with subject.sides(arm.name, swapped=swapped) as (base, other):
            until = 2.0 * clock() - begin
            pairs = alternate(
                base,
                other,
                subject.pairs_per_block,
                second_begins=draw.random() < 0.5,
                is_enough=lambda: clock() >= until,
            )
    except ArmError as problem:
        arm.failures += 1
        if arm.failures >= _FAILURES_IN_A_ROW:
            arm.skipped = str(problem)
        say(": ".join((arm.name, str(problem), *getattr(problem, "__notes__", ()))))
        return
    block = Block(tuple(pairs), swapped, clock() - begin, others)
    if any(abs(block.value(by_cpu=by_cpu)) > math.log(_MOST_RATIO) for by_cpu in (True, False)):
        raise TrialError(
            f"one side did {_MOST_RATIO:,.0f} times the other's work or more: that is no page size's doing"
        )
    arm.failures = 0
    arm.blocks.append(block)
    now = arm.gain(by_cpu=subject.by_cpu)
    if math.isfinite(now.width):
        say(f"{arm.name}: {len(arm.blocks)} blocks, {now.likely:+z.1f} % ({now.low:+z.1f} to {now.high:+z.1f})")
    else:
        say(f"{arm.name}: {len(arm.blocks)} blocks, {now.likely:+z.1f} %")
