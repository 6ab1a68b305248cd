"""The prediction, written down before the measurement, and the verdict after it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hugeplan.measuring.batches import Pair
from hugeplan.measuring.postgresql_clients import Case
from hugeplan.measuring.postgresql_server import Shape
from hugeplan.planner.gain.page_size_gain import gains
from hugeplan.planner.model import (
    DatabaseInstance,
    Demand,
    Gain,
    HardwareFacts,
    NodeFacts,
    NumaNode,
    Range,
    Workload,
)
from validate.pairs import Pairs


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was said before measuring. ``expected`` is ``gain.speedup`` widened by ``noise``.

    ``noise`` is how far the same comparison of a page size with itself is off here, as a share: a perfect prediction
    would still miss the measured figure by that much.
    """

    case: Case
    gain: Gain
    base_cpu_ns: float
    noise: float
    expected: Range


@dataclass(frozen=True, slots=True)
class Verdict:
    """Measured speed-up of each round beside the prediction."""

    prediction: Prediction
    by_round: tuple[float, ...]
    measured: float
    standard_error: float
    throughput_ratio: float

    @property
    def saved_ns(self) -> float:
        """The measured saving per operation that ``measured`` stands for."""
        return self.prediction.base_cpu_ns * (1.0 - 1.0 / self.measured)

    @property
    def inside_model(self) -> bool:
        """The measured speed-up lies in the model's own range."""
        speedup = self.prediction.gain.speedup
        return speedup is not None and speedup.low <= self.measured <= speedup.high

    @property
    def inside_expected(self) -> bool:
        """The measured speed-up lies in the model's range widened by this machine's noise."""
        return self.prediction.expected.low <= self.measured <= self.prediction.expected.high


def noise_of(calibration: Sequence[Pair]) -> float:
    """How far base pages differ from base pages: the median's distance from 1, or twice its error if larger."""
    return max(abs(median_speedup(calibration) - 1.0), 2.0 * standard_error(calibration))


def predict(
    *,
    case: Case,
    shape: Shape,
    data_bytes: int,
    page_bytes: int,
    hardware: HardwareFacts,
    calibration: Sequence[Pair],
) -> Prediction:
    """The planner's gain for one case, from this node's curves and the operation's cost at base pages."""
    cost_ns = statistics.median(batch.cpu_ns for pair in calibration for batch in (pair.first, pair.second))
    connections = max(1, case.clients)
    node = NodeFacts(
        name="this",
        numa=(NumaNode(id=0, mem_total_bytes=2 * shape.pool_bytes),),
        cpus=len(case.cpus),
        hardware=hardware,
    )
    instance = DatabaseInstance(
        name=case.name,
        engine="postgresql",
        connections=connections,
        workload=Workload(
            row_bytes=shape.row_bytes,
            working_set_bytes=min(data_bytes, shape.pool_bytes),
            active_connections=connections,
            operations_per_second_per_busy_core=1e9 / cost_ns,
            operation_class=case.operation_class,
        ),
    )
    gain = gains(node, instance, {page_bytes: _demand(shape, page_bytes, connections)})[0]
    speedup = gain.speedup or Range(1.0, 1.0, 1.0)
    noise = noise_of(calibration)
    below = math.hypot(speedup.likely - speedup.low, noise)
    above = math.hypot(speedup.high - speedup.likely, noise)
    return Prediction(case, gain, cost_ns, noise, Range(speedup.likely - below, speedup.likely, speedup.likely + above))


def _demand(shape: Shape, page_bytes: int, connections: int) -> Demand:
    """The demand of the measured server, as far as the gain reads it; the page count comes from the server itself."""
    segment = int(shape.pool_bytes * 1.04)
    return Demand(
        engine="postgresql",
        version=None,
        page_bytes=page_bytes,
        wants_pool=True,
        segments=(),
        segment_bytes=segment,
        pages=-(-segment // page_bytes),
        error_pages=0,
        waste_bytes=0,
        pool_bytes=shape.pool_bytes,
        private_bytes_per_connection=None,
        connections=connections,
        process_per_connection=True,
        page_cache_bytes=None,
    )


def judge(predictions: Sequence[Prediction], rounds: Sequence[Pairs]) -> tuple[Verdict, ...]:
    """The median over all pairs of all rounds, and of each round, beside what was predicted."""
    verdicts = []
    for prediction in predictions:
        by_round = [done[prediction.case.name] for done in rounds]
        pairs = [pair for done in by_round for pair in done]
        verdicts.append(
            Verdict(
                prediction,
                tuple(median_speedup(done) for done in by_round),
                median_speedup(pairs),
                standard_error(pairs),
                statistics.median(pair.throughput_ratio for pair in pairs),
            )
        )
    return tuple(verdicts)


def median_speedup(pairs: Sequence[Pair]) -> float:
    """Median over pairs of CPU time per operation, first over second."""
    return statistics.median(pair.speedup for pair in pairs)


def standard_error(pairs: Sequence[Pair]) -> float:
    """Standard error of the median, from the spread of the middle half of the pairs (1.25 x sigma / sqrt(n))."""
    if len(pairs) < 4:
        return abs(pairs[0].speedup - pairs[-1].speedup)
    low, _, high = statistics.quantiles((pair.speedup for pair in pairs), n=4)
    return float(1.25 * (high - low) / 1.349 / len(pairs) ** 0.5)
