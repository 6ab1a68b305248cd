"""A trial in place of a prediction: when one matches, and what it makes of a gain.

The rule of a match (docs/trial.md has it in words). Same node; same engine; same major version where both are known;
same page size and backing; key lookups of any key alike on both sides; rows and active connections within a factor of
two of what the plan counts with, data within a factor of four. The newest that matches counts. A user's own script
matches nothing by itself: what it does is not known.

What was measured moves the likely gains of the page sizes that nobody tried alike (docs/adr/0049): the reason why this
node is not as predicted is mostly one for all, and a size must not win because another one was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hugeplan.planner.demand.accesses import data_set
from hugeplan.planner.model import (
    Confidence,
    DatabaseInstance,
    Demand,
    Gain,
    MeasuredHere,
    MeasuredTrial,
    Range,
    Source,
    Term,
)
from hugeplan.planner.units import format_change

ROWS_AND_CLIENTS_FACTOR = 2.0
DATA_FACTOR = 4.0
"""Data matters by its logarithm alone: from 64 MiB up, pages of 4K miss the TLB at nearly every cold access."""

LOOKUP = "key_lookup"


@dataclass(frozen=True, slots=True)
class Shape:
    """What the plan counts with for an instance: given, else what it assumes. ``clients``: None where not counted."""

    engine: str
    version: str | None
    operation_class: str
    zipf_s: float
    row_bytes: int
    data_bytes: int
    clients: int | None


def shape_of(instance: DatabaseInstance, demand: Demand, clients: int | None) -> Shape:
    """The shape that a gain of the instance was computed for."""
    data = data_set(instance, demand)
    return Shape(
        engine=demand.engine,
        version=demand.version,
        operation_class=instance.workload.operation_class or LOOKUP,
        zipf_s=data.zipf_s,
        row_bytes=data.row_bytes,
        data_bytes=data.working_set_bytes,
        clients=clients,
    )


def measured_in_place(gain: Gain, trials: Sequence[MeasuredTrial], shape: Shape, cost_ns: float) -> Gain:
    """The gain as the newest matching trial measured it; as it is where none matches. ``cost_ns``: one operation."""
    trial = next((trial for trial in trials if matches(trial, gain, shape)), None)
    if trial is None:
        return gain
    measured = trial.speedup
    predicted = gain.speedup
    before = "" if predicted is None else f" Predicted were {_percent(predicted.likely)} %"
    before += "" if predicted is None else f" ({_percent(predicted.low)} to {_percent(predicted.high)})."
    return replace(
        gain,
        saving_ns_per_operation=_saving(measured, cost_ns),
        speedup=measured,
        one_measurement=None,
        measured_here=MeasuredHere(trial_id=trial.trial_id, text=trial.text, predicted=predicted),
        confidence=Confidence.HIGH,
        inputs=(*gain.inputs, Term("trial on this node", trial.text, Source.MEASURED, trial.trial_id)),
        statement=f"{gain.backing} pages, {trial.text}.{before}",
    )


def moved_alike(gains: Sequence[Gain], cost_ns: float) -> Iterator[Gain]:
    """The gains, where the smallest measured pool moves those that were not tried: its share over what was predicted.

    Their ranges reach over what was predicted and what it became. A gain that was predicted as none stays none.
    """
    tried = next((gain for gain in gains if gain.measured_here and gain.backing_kind == "hugetlb"), None)
    if tried is None or tried.measured_here is None or tried.measured_here.predicted is None or tried.speedup is None:
        yield from gains
        return
    here, measured, predicted = tried.measured_here, tried.speedup.likely, tried.measured_here.predicted.likely
    factor = measured / predicted
    why = (
        f" On this node {tried.backing} pages gained {_percent(measured)} % where {_percent(predicted)} % were"
        " predicted, which moves the likely gain of pages that were not tried alike."
    )
    for gain in gains:
        now = gain.speedup
        if gain.measured_here or now is None or now.likely == 1.0:
            yield gain
            continue
        speedup = Range(min(now.low, factor * now.low), factor * now.likely, max(now.high, factor * now.high))
        yield replace(
            gain,
            saving_ns_per_operation=_saving(speedup, cost_ns),
            speedup=speedup,
            one_measurement=None,
            inputs=(*gain.inputs, Term("trial on this node", here.text, Source.MEASURED, here.trial_id)),
            statement=gain.statement + why,
        )


def _saving(speedup: Range, cost_ns: float) -> Range:
    """Nanoseconds of an operation that the ratio of throughput says."""
    return Range(*(cost_ns * (1.0 - 1.0 / x) for x in (speedup.low, speedup.likely, speedup.high)))


def matches(trial: MeasuredTrial, gain: Gain, shape: Shape) -> bool:
    """Whether the trial measured what this gain says of a database of this shape."""
    return (
        trial.engine == shape.engine
        and _same_major(trial.engine, trial.version, shape.version)
        and (trial.backing_kind, trial.page_bytes) == (gain.backing_kind, gain.page_bytes)
        and trial.operation_class == shape.operation_class == LOOKUP
        and shape.zipf_s == 0.0
        and _near(trial.row_bytes, shape.row_bytes, ROWS_AND_CLIENTS_FACTOR)
        and (shape.clients is None or _near(trial.clients, shape.clients, ROWS_AND_CLIENTS_FACTOR))
        and _near(trial.data_bytes, shape.data_bytes, DATA_FACTOR)
    )


def _same_major(engine: str, one: str | None, other: str | None) -> bool:
    """PostgreSQL's major version is its first number, that of the MySQL family its first two."""
    if one is None or other is None:
        return True
    count = 1 if engine == "postgresql" else 2
    return one.split(".")[:count] == other.split(".")[:count]


def _near(measured: int | None, planned: int, factor: float) -> bool:
    """Whether two sizes lie within a factor of each other; what the trial does not say is not near."""
    return measured is not None and measured <= factor * planned and planned <= factor * measured


def _percent(ratio: float) -> str:
    return format_change(ratio - 1.0, "")
