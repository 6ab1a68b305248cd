"""Responses about processors and engines."""

from __future__ import annotations

from pydantic import Field

from hugeplan.api.schemas import RequestModel, ResponseModel
from hugeplan.planner.demand import SettingKind
from hugeplan.recognition.pasted import MOST_CHARACTERS


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


class Retention(ResponseModel):
    """How long something is kept. ``days`` null: for ever. ``setting`` is the variable that changes it."""

    description: str
    days: int | None
    setting: str


class About(ResponseModel):
    """Which service this is, and how long it keeps what."""

    version: str
    api_docs_url: str
    retention: list[Retention]


class PastedText(RequestModel):
    """A server's own list of its settings, as a client printed it."""

    text: str = Field(min_length=1, max_length=MOST_CHARACTERS)


class RefusedSetting(ResponseModel):
    """A setting that is not taken, with the reason."""

    name: str
    value: str
    why: str


class PastedSettings(ResponseModel):
    """What the text says of one server.

    ``settings`` change the plan and differ from the default, each with its unit; ``at_default`` and ``without_effect``
    count those that do not. ``unknown`` names what is no setting of the engine.
    """

    source: str
    engine: str
    version: str | None
    settings: dict[str, str]
    at_default: int
    without_effect: int
    unknown: list[str]
    refused: list[RefusedSetting]
