"""The processors of the catalogue and the engines of the planner, read once."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from hugeplan import __version__
from hugeplan.planner.demand import ENGINES, Engine, PageChoice
from hugeplan.reference.schemas import (
    About,
    CatalogueProcessor,
    EngineInfo,
    Engines,
    EngineSetting,
    Retention,
    TlbCatalogue,
)
from hugeplan.settings import Settings


@cache
def tlb_catalogue() -> TlbCatalogue:
    """The processors of the catalogue, in its order."""
    document = json.loads(files("hugeplan.hardware").joinpath("tlb_catalogue.json").read_text(encoding="utf-8"))
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
        settings=[EngineSetting.model_validate(setting) for setting in engine.settings],
    )


@cache
def engines() -> Engines:
    """The registry, sorted by title."""
    items = sorted((_engine(engine) for engine in ENGINES.values()), key=lambda engine: engine.title.lower())
    return Engines(items=items)


_FOR_EVER = "silent_node_retention_days"
"""The one setting whose zero means never."""


def about(settings: Settings) -> About:
    """The version, and every ``*_retention_days`` with its description from the settings themselves."""
    kept = [
        Retention(
            description=field.description or name,
            days=None if name == _FOR_EVER and getattr(settings, name) == 0 else getattr(settings, name),
            setting=f"HUGEPLAN_{name.upper()}",
        )
        for name, field in Settings.model_fields.items()
        if name.endswith("_retention_days")
    ]
    return About(version=__version__, api_docs_url="/api/docs", retention=kept)
