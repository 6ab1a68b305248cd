"""Responses about published results, the backtest, processors and engines."""

from __future__ import annotations

from hugeplan.api.schemas import ResponseModel
from hugeplan.planner.demand import SettingKind


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


class PredictedRange(ResponseModel):
    """A predicted gain in percent, with its range."""

    low: float
    likely: float
    high: float


class BacktestRow(ResponseModel):
    """The model beside one published result. ``status``: inside, outside, unexplained or no_inputs;
    ``reason`` says why the model cannot explain it or which inputs are missing.
    """

    id: str
    source: str
    system: str | None
    workload: str | None
    page_size_a: str | None
    page_size_b: str | None
    published: str
    published_percent: float | None
    predicted_percent: PredictedRange | None
    error_percentage_points: float | None
    status: str
    reason: str | None


class Backtest(ResponseModel):
    """Predicted beside published for every result; counts by status. No parameter is fitted to these rows."""

    items: list[BacktestRow]
    counts: dict[str, int]


class CatalogueTlbLevel(ResponseModel):
    """One TLB structure of a processor: its entries hold any of ``page_bytes``, which compete when ``shared``.

    ``ways`` is a number, "full" or null (unknown); ``ways_max`` is set where CPUID gives a range.
    """

    level: int
    kind: str
    access: str | None
    page_bytes: list[int]
    entries: int | None
    ways: int | str | None
    ways_max: int | None
    shared: bool | None
    note: str | None


class CatalogueSource(ResponseModel):
    """Where a fact of the catalogue comes from, and what it says."""

    source: str
    says: str | None


class CatalogueProcessor(ResponseModel):
    """A processor of the catalogue. ``confidence`` is of the whole entry."""

    id: str
    vendor: str
    uarch: str
    products: list[str]
    levels: list[CatalogueTlbLevel]
    confidence: str
    confidence_note: str | None
    sources: list[CatalogueSource]


class TlbCatalogue(ResponseModel):
    """Processor facts by core, with sources and confidence."""

    about: str
    items: list[CatalogueProcessor]


class EngineSetting(ResponseModel):
    """One setting of an engine that the sizing rule reads, spelled as the engine spells it.

    ``minimum`` and ``maximum`` are bytes for ``kind`` bytes and counts for integer; ``default`` is null where
    the engine computes it; an empty ``versions`` means all.
    """

    name: str
    kind: SettingKind
    summary: str
    default: str | None
    minimum: int | None
    maximum: int | None
    unit_bytes: int
    choices: list[str]
    versions: list[str]
    matters: bool


class EngineInfo(ResponseModel):
    """A database engine the planner can size. ``wants_pool`` false: the right answer is no huge page pool.

    ``pool_setting`` names the setting that sizes the buffer pool.
    """

    name: str
    title: str
    summary: str
    versions: list[str]
    aliases: list[str]
    wants_pool: bool
    pool_setting: str | None
    process_per_connection: bool
    settings: list[EngineSetting]


class Engines(ResponseModel):
    """All engines, sorted by title."""

    items: list[EngineInfo]
