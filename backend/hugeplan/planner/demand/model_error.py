"""How far likely gains of a client's operation were off: ``model_error.json``, which ``validate.model_error`` writes.

The file holds the fit with the measuring noise taken out, its cells and its checks (docs/adr, docs/model-results.md).
Points are points of throughput: 0.01 is one.

Trials on nodes of a machine type say more about a node of that type on which nothing was tried
(docs/adr/0049). A measured gain differs from the likely one by ``bias + type + cell + noise``, all normal: ``type`` is
common to all cells of a machine type. How large type and cell are is not known exactly: each pair of them has a weight
by the compared cells, and trials change it by their own likelihood. The untried node is predicted by the mixture over
the pairs. So trials that agree narrow the range, and trials that are noise change nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from hugeplan.planner.model import Source, Term, TrialDifference
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_change


@dataclass(frozen=True, slots=True)
class ModelError:
    """One class of operations.

    ``gained``: how far below and above the likely gain the true one lies in nine of ten cells, as (low, high), signed.
    ``one_measurement``: the same for what one measurement on a quiet machine shows. ``is_covered``: a machine that was
    left out of the fit had nine tenths of its cells inside.

    ``bias`` and ``bias_sd`` are the mean difference and its error. ``variances``: standard deviations of the part that
    cells of one machine type share and of the part of each cell, with how well the cells speak for both; they sum to 1.
    ``moved``: how far trials on the machine type move the likely gain, 0 without any; ``said`` says what they changed.
    """

    name: str
    about: str
    cells: int
    machines: int
    gained: tuple[float, float]
    one_measurement: tuple[float, float]
    is_covered: bool
    bias: float
    bias_sd: float
    variances: tuple[tuple[float, float, float], ...] = field(hash=False)  # hashed for every case of every plan
    moved: float = 0.0
    said: str = ""

    def term(self) -> Term:
        """The class and its cells as an input of a gain."""
        unproven = "" if self.is_covered else "; nine in ten on a machine left out of the fit is not shown"
        low, high = (100.0 * points for points in self.gained)
        machines = "1 machine" if self.machines == 1 else f"{self.machines} machines"
        value = f"likely {low:+.1f} to {high:+.1f} points, from {self.cells} quiet cells of {machines}{unproven}"
        return Term("error of the model", value, Source.MEASURED, self.about)


@remembered(1)
def document() -> Mapping[str, Any]:
    """The whole file: classes, cells left out, checks."""
    text = files("hugeplan.planner.demand").joinpath("model_error.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


def class_of(row: Mapping[str, Any]) -> ModelError:
    """A class as the file has it."""
    gained, shown = row["gained_points"], row["one_measurement_points"]
    return ModelError(
        name=row["name"],
        about=row["about"],
        cells=row["cells"],
        machines=row["machines"],
        gained=(gained["low"] / 100.0, gained["high"] / 100.0),
        one_measurement=(shown["low"] / 100.0, shown["high"] / 100.0),
        is_covered=row["coverage"] == "shown",
        bias=row["bias_points"] / 100.0,
        bias_sd=row["bias_sd_points"] / 100.0,
        variances=tuple((of_type / 100.0, of_cell / 100.0, weight) for of_type, of_cell, weight in row["variances"]),
    )


@remembered(1)
def _classes() -> Mapping[str, ModelError]:
    return MappingProxyType({row["name"]: class_of(row) for row in document()["classes"]})


ANY_ROWS: Final = "clients"
"""The class of every client's operation whose own class is not known or was not compared."""


def error_of_clients() -> ModelError:
    """The class :data:`ANY_ROWS`."""
    return _classes()[ANY_ROWS]


def error_of_rows(*, inline: bool, clients: int | None) -> ModelError:
    """The class of PostgreSQL's lookups by where their rows lie and by how many clients look up side by side."""
    return _classes()["rows_out_of_line" if not inline else "one_client" if clients == 1 else "rows_inline"]


_OUTSIDE: Final = 0.05
"""Share of cells below a range, and above it: nine in ten are inside."""

_FARTHEST_SDS: Final = 3.0
"""A difference farther than this from the bias counts as so far: one odd node does not move all others of its type."""


def calibrated(error: ModelError, trials: Sequence[TrialDifference], *, engine: str) -> ModelError:
    """The model's error on a node of the machine type that the trials are of; as it is where none counts.

    Trials of any page size count for each: the part of the error that a machine type shares is one, and a page size
    that nobody tried must not look better because another one disappointed.
    """
    found = tuple(
        (trial.difference, trial.noise_sd, trial.is_own)
        for trial in trials
        if trial.engine == engine
        and (trial.speaks_for_any if error.name == ANY_ROWS else error.name == trial.error_class)
    )
    return _calibrated(error, found) if found else error


@dataclass(frozen=True, slots=True)
class _Belief:
    """At one pair of variances: its weight, the mean and variance of an untried node's difference, and the share of the
    trials' mean difference that is taken for the type's."""

    weight: float
    mean: float
    variance: float
    taken: float


@remembered(256)
def _calibrated(error: ModelError, found: tuple[tuple[float, float, bool], ...]) -> ModelError:
    before, after = _beliefs(error, ()), _beliefs(error, [each[:2] for each in found])
    # Without a trial the range is the published one, which also knows how few cells it stands on.
    reach = (error.gained[1] - error.gained[0]) / (_quantile(before, 1.0 - _OUTSIDE) - _quantile(before, _OUTSIDE))
    moved = sum(each.weight * (each.mean - (1.0 - each.taken) * error.bias) for each in after)
    middle = sum(each.weight * each.mean for each in after)
    low, high = (middle + reach * (_quantile(after, q) - middle) - moved for q in (_OUTSIDE, 1.0 - _OUTSIDE))
    gained = (min(low, 0.0), max(high, 0.0))
    noise = [shown - alone for shown, alone in zip(error.one_measurement, error.gained, strict=True)]
    return replace(
        error,
        gained=gained,
        one_measurement=(gained[0] + noise[0], gained[1] + noise[1]),
        moved=moved,
        said=_said([own for *_, own in found], moved, error.gained, gained),
    )


def _beliefs(error: ModelError, found: Sequence[tuple[float, float]]) -> list[_Belief]:
    widest = math.sqrt(sum(weight * (t * t + c * c) for t, c, weight in error.variances))
    made, logs = [], []
    for of_type, of_cell, weight in error.variances:
        prior = of_type**2 + error.bias_sd**2
        log, precision, pulled = math.log(weight), 0.0, 0.0
        for difference, noise_sd in found:
            variance = of_cell**2 + noise_sd**2
            farthest = _FARTHEST_SDS * math.hypot(widest, noise_sd)
            off = max(-farthest, min(farthest, difference - error.bias))
            log -= 0.5 * (math.log(variance) + off * off / variance)
            precision += 1.0 / variance
            pulled += off / variance
        left = prior / (1.0 + prior * precision)
        log += 0.5 * (left * pulled * pulled - math.log1p(prior * precision))
        logs.append(log)
        made.append((error.bias + left * pulled, left + of_cell**2, left * precision))
    best = max(logs)
    weights = [math.exp(log - best) for log in logs]
    return [_Belief(weight / sum(weights), *each) for weight, each in zip(weights, made, strict=True)]


def _quantile(beliefs: Sequence[_Belief], share: float) -> float:
    """The difference below which an untried node lies with a probability, by halving."""
    spread = [(each.weight, each.mean, math.sqrt(2.0 * each.variance)) for each in beliefs]
    low = min(mean - 5.0 * width for _, mean, width in spread)
    high = max(mean + 5.0 * width for _, mean, width in spread)
    for _ in range(40):
        middle = 0.5 * (low + high)
        below = sum(weight * 0.5 * math.erfc((mean - middle) / width) for weight, mean, width in spread)
        low, high = (middle, high) if below < share else (low, middle)
    return 0.5 * (low + high)


def _said(are_own: list[bool], moved: float, before: tuple[float, float], after: tuple[float, float]) -> str:
    """What the trials changed, in one sentence. ``are_own``: of each whether its node's agent may have sent it."""
    trials, of_others = len(are_own), are_own.count(False)
    who = "1 trial on a node of this machine type" if trials == 1 else f"{trials} trials on nodes of this machine type"
    who += f" ({of_others} not sent by their nodes' agents)" if of_others else ""
    width = (after[1] - after[0]) / (before[1] - before[0])
    how = "widened" if width > 1.005 else "narrowed" if width < 0.995 else "did not narrow"
    was, now = (
        f"{100.0 * (high - low):.1f} points ({format_change(low, '')} to {format_change(high, '')})"
        for low, high in (before, after)
    )
    return (
        f"{who} moved the likely gain by {format_change(moved, '')} points and {how} the model's error around it, from"
        f" {was} to {now}."
    )
