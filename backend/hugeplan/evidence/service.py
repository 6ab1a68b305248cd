"""Facts that ship with the service, read once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from hugeplan.evidence.backtest_inputs import run_backtest
from hugeplan.evidence.published import published_results
from hugeplan.evidence.schemas import (
    Backtest,
    BacktestRow,
    CatalogueProcessor,
    EngineInfo,
    Engines,
    EngineSetting,
    Evidence,
    PublishedResult,
    TlbCatalogue,
)
from hugeplan.planner.demand import ENGINES, Engine, PageChoice
from hugeplan.planner.evaluation.backtest import counts


def _document(package: str, name: str) -> Any:
    return json.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


@cache
def evidence() -> Evidence:
    """The published results, in the order of the file."""
    document = published_results()
    fields = PublishedResult.model_fields.keys()
    items = [PublishedResult.model_validate({name: row[name] for name in fields}) for row in document["items"]]
    return Evidence(about=document["about"], items=items, not_found=document["not_found"])


async def backtest() -> Backtest:
    """The model against the published results. The first call takes a moment; the answer never changes."""
    rows = await asyncio.to_thread(run_backtest)
    return Backtest(items=[BacktestRow.model_validate(asdict(row)) for row in rows], counts=counts(rows))


@cache
def tlb_catalogue() -> TlbCatalogue:
    """The processors of the catalogue, in its order."""
    document = _document("hugeplan.hardware", "tlb_catalogue.json")
    fields = CatalogueProcessor.model_fields.keys()
    items = []
    for entry in document["entries"]:
        levels = [{"ways_max": None} | level for level in entry["levels"]]
        chosen = {name: entry[name] for name in fields} | {"levels": levels}
        items.append(CatalogueProcessor.model_validate(chosen))
    return TlbCatalogue(about=document["about"], items=items)


def _engine(engine: Engine) -> EngineInfo:
    return EngineInfo(
        name=engine.name,
        title=engine.title,
        summary=engine.summary,
        versions=list(engine.versions),
        aliases=list(engine.aliases),
        wants_pool=engine.page_choice is not PageChoice.NONE,
        pool_setting=engine.pool_setting,
        process_per_connection=engine.process_per_connection,
        settings=[
            EngineSetting(
                name=setting.name,
                kind=setting.kind,
                summary=setting.summary,
                default=setting.default,
                minimum=setting.minimum,
                maximum=setting.maximum,
                unit_bytes=setting.unit_bytes,
                choices=list(setting.choices),
                versions=list(setting.versions),
                matters=setting.matters,
            )
            for setting in engine.settings
        ],
    )


@cache
def engines() -> Engines:
    """The registry, sorted by title."""
    items = sorted((_engine(engine) for engine in ENGINES.values()), key=lambda engine: engine.title.lower())
    return Engines(items=items)
