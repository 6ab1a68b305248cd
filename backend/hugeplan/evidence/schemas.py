"""Responses about published results and the backtest."""

from __future__ import annotations

from typing import Literal

from hugeplan.api.schemas import ResponseModel
from hugeplan.planner.evaluation.backtest import BacktestRow
from hugeplan.planner.model import Range


class PublishedResult(ResponseModel):
    """One published page-size result, as its source states it. Words in a number's place are kept as words."""

    id: str
    source: str
    year: str | int | None
    system: str | None
    ram: str | None
    workload: str | None
    engine: str | None
    page_size_a: str | None
    page_size_b: str | None
    metric: str | None
    value_a: str | float | None
    value_b: str | float | None
    gain_percent: str | float | None
    concurrency: str | int | None
    buffer_pool: str | None
    kind: str | None
    verified: bool | None
    notes: str | None


class Evidence(ResponseModel):
    """All published results the project knows, and what was looked for and not found."""

    about: str
    items: list[PublishedResult]
    not_found: list[str]


class PoolShapePoint(ResponseModel):
    """Shares of the best throughput that published series reached at one share of the working set."""

    share: float
    reached: Range


class PublishedPoolShape(ResponseModel):
    """Throughput by buffer pool size, as published series have it, without their units: shares of the best throughput
    over shares of the working set. ``knee``: the shares at which the series reach 95 % of their best.

    ``here`` and ``one_more_gib`` are shares of the best throughput for the pool that was asked for. They are null
    without a pool and its working set, and where no series has so small a pool.
    """

    series: int
    band: list[PoolShapePoint]
    knee: Range
    here: Range | None
    one_more_gib: Range | None


class Backtest(ResponseModel):
    """Predicted beside published for every result; counts by status, in all and by group. No parameter is fitted to
    these rows. ``group`` of a row: database_huge_pages, memory_access, buffer_pool_size (no huge page occurs in these)
    or no_inputs.
    """

    items: list[BacktestRow]
    counts: dict[str, int]
    counts_by_group: dict[str, dict[str, int]]


class Ends(ResponseModel):
    """Ends of a range, in per cent, or in points of throughput around the likely gain."""

    low: float
    high: float


class ValidationRun(ResponseModel):
    """One case that the project measured on a real database after it had written its prediction down.

    ``measured_percent`` is the gain in operations per CPU second over all pairs, null where a run ended before it was
    printed; ``measured_throughput_percent`` the gain in operations per second, null where it was not kept;
    ``measured_rounds_percent`` has one gain per round of interleaved pairs, where rounds are known. ``verdict``
    compares the gain per CPU second (the mean of the rounds where there is no other figure) with the prediction:
    inside its range; within_noise, outside it but within ``noise_range_percent``, the prediction widened by the
    machine's noise; or outside.
    """

    date: str
    machine: str
    configuration: str
    case: str
    predicted_percent: Range
    noise_range_percent: Ends | None
    measured_percent: float | None
    measured_throughput_percent: float | None
    measured_rounds_percent: list[float]
    verdict: Literal["inside", "within_noise", "outside"]
    note: str | None


class LeftOutMachine(ResponseModel):
    """A machine's cells inside the range that all other machines' cells give; null where those are too few."""

    machine: str
    cells: int
    inside: int | None
    why: str | None = None


class ModelErrorClass(ResponseModel):
    """One class of operations: how far the likely gain was off, with the measuring noise taken out.

    ``gained_points``: where nine of ten true gains lie; ``one_measurement_points``: where one measurement of them does.
    ``inside``: of the fitted cells. ``coverage``: whether a machine that was left out has nine tenths inside.
    """

    name: str
    about: str
    cells: int
    machines: int
    differences_sd_points: float
    bias_points: float
    model_sd_points: float
    gained_points: Ends
    one_measurement_points: Ends
    inside: int
    leave_one_machine_out: list[LeftOutMachine]
    coverage: Literal["shown", "not shown"]


class ModelErrors(ResponseModel):
    """The classes of the model's error, as fitted to the project's own cells."""

    about: str
    bound: str
    command: str
    one_measurement_noise_sd_points: float
    classes: list[ModelErrorClass]


class Validation(ResponseModel):
    """The project's own validation runs, those that miss too."""

    about: str
    command: str
    items: list[ValidationRun]
