"""What a trial's server was predicted to gain, by this model, from the curves of the node that it ran on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.gain.cases import savings_of
from hugeplan.planner.gain.page_size_gain import gains
from hugeplan.planner.gain.translation_saving import proportion
from hugeplan.planner.model import DatabaseInstance, NodeFacts, Range, TrialDifference

MODEL: Final = 1
"""Counted up with every change of the model that moves likely gains: differences from an earlier one calibrate nothing.
``tests/planner/gain/test_trial_prediction.py`` holds likely gains and fails where one moves."""

_SDS_OF_AN_INTERVAL: Final = 2 * 1.96
"""A 95 % interval is so many standard deviations wide; one that holds whenever it is looked at is wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPrediction:
    """The gain (x) of one page size and its class of the model's error, predicted by :data:`MODEL` of then.

    ``off_by``: how far the measured gain was from it; None where the trial gave no answer.
    """

    model: int
    gain: Range
    error_class: str
    off_by: TrialDifference | None


def predicted(
    node: NodeFacts, server: DatabaseInstance, page_bytes: int, measured: Range | None
) -> TrialPrediction | None:
    """What was predicted for a server on whose node a trial measured a gain (x, with its 95 % interval).

    None where nothing was measured of the node's walks, or of what an entry covers there. PlannerError where no server
    is like this.
    """
    demands = {page_bytes: demand_of(server, page_bytes, DemandContext.of_node(node))}
    case, _ = savings_of(node, [(server, demands)])[0].get(page_bytes, (None, None))
    if case is None or len(case.scenarios) > 1 or not case.scenarios[0].walk_cost.measured:
        return None
    gain, error = gains(node, server, demands)[0].speedup, case.profile.model_error
    if gain is None or error is None:
        return None
    scale, off_by = proportion(gain.likely), None
    if measured is not None:
        off_by = TrialDifference(
            engine=case.demand.engine,
            error_class=error.name,
            page_bytes=page_bytes,
            fractured=case.scenarios[0].granule_bytes < page_bytes,
            difference=(measured.likely - gain.likely) / scale,
            noise_sd=(measured.high - measured.low) / _SDS_OF_AN_INTERVAL / scale,
        )
    return TrialPrediction(model=MODEL, gain=gain, error_class=error.name, off_by=off_by)
