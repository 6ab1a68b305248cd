"""The prediction, written down before the measurement, and the verdict after it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hugeplan.planner.gain import gains
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
from validate.server import Shape
from validate.workloads import Case, Measurement


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was said before measuring. ``expected`` is ``gain.speedup`` widened by ``noise``.

    ``noise`` is how far two measurements of the same page size differ here, as a share: a perfect prediction would
    still miss the measured figure by that much.
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
    by_throughput: tuple[float, ...]

    @property
    def measured(self) -> float:
        """Median over the rounds of throughput per busy core (CPU time per operation, base over huge)."""
        return statistics.median(self.by_round)

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


def noise_of(first: Measurement, second: Measurement) -> float:
    """Share by which two starts of the same page size differ, or twice their slices' standard error if larger."""
    difference = abs(first.cpu_ns_per_operation / second.cpu_ns_per_operation - 1.0)
    errors = [
        statistics.stdev(m.cpu_ns) / m.cpu_ns_per_operation / math.sqrt(len(m.cpu_ns))
        for m in (first, second)
        if len(m.cpu_ns) > 1
    ]
    return max(difference, 2.0 * math.hypot(*errors) if errors else 0.0)


def predict(
    *,
    case: Case,
    shape: Shape,
    data_bytes: int,
    page_bytes: int,
    hardware: HardwareFacts,
    calibration: tuple[Measurement, Measurement],
    rounds: int,
) -> Prediction:
    """The planner's gain for one case, from this node's curves and the operation's cost at base pages."""
    cost_ns = min(m.cpu_ns_per_operation for m in calibration)
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
    # The median of several rounds scatters less than one pair; the calibration is one pair.
    noise = noise_of(*calibration) * math.sqrt(2.0 / (1.0 + rounds))
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


def judge(
    predictions: Sequence[Prediction], off: Mapping[str, Sequence[Measurement]], on: Mapping[str, Sequence[Measurement]]
) -> tuple[Verdict, ...]:
    """Pair the rounds: huge pages over base pages, by CPU time per operation and by plain throughput."""
    verdicts = []
    for prediction in predictions:
        pairs = list(zip(off[prediction.case.name], on[prediction.case.name], strict=True))
        verdicts.append(
            Verdict(
                prediction,
                tuple(base.cpu_ns_per_operation / large.cpu_ns_per_operation for base, large in pairs),
                tuple(large.rate / base.rate for base, large in pairs),
            )
        )
    return tuple(verdicts)
