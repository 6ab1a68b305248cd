"""A trial of a node, as far as a gain takes it in place of a prediction."""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.model.words import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTrial:
    """What one page size gained over base pages on the node. Only trials whose interval is an answer are here.

    ``backing_kind`` is ``hugetlb`` or ``thp``. ``speedup`` (x) is the trial's value with its 95 % interval. ``text`` is
    its sentence: "measured here on 23 Nov 2026: +7.5 % (+6.6 to +8.4)". Shape fields are None where the trial has none.
    """

    trial_id: str
    engine: str
    version: str | None
    backing_kind: str
    page_bytes: int
    operation_class: str | None
    row_bytes: int | None
    data_bytes: int | None
    clients: int | None
    speedup: Range
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHere:
    """The trial that a gain stands on, and what was predicted before it (x; None: nothing could be)."""

    trial_id: str
    text: str
    predicted: Range | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDifference:
    """What a trial measured with one page size on a node of some machine type, less what had been predicted there.

    ``error_class``: the class of the model's error that the prediction was of. ``fractured``: whether one TLB entry
    covered less than the page there. ``difference`` and ``noise_sd`` (of the trial's own noise) are in throughput (0.01
    is one point), beside a likely gain of at most ten per cent: beside a larger one they are brought to it in
    proportion. ``speaks_for_any``: its node's newest of all classes, which alone counts where the class is unknown.
    ``is_own``: False where it is known that another than its node's agent sent it.
    """

    engine: str
    error_class: str
    page_bytes: int
    fractured: bool
    difference: float
    noise_sd: float
    speaks_for_any: bool = True
    is_own: bool = True
