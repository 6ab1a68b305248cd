"""The published results as data: ``published_results.json`` beside this file, read once."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hugeplan.hardware import catalogue
from hugeplan.planner.evaluation.backtest import BacktestRow, backtest
from hugeplan.planner.model import EffectiveGranule, HardwareFacts


@lru_cache(maxsize=1)
def published_results() -> dict[str, Any]:
    """``about``, ``not_found`` and ``items``; every item has ``id``, its source's figures and either ``model`` (inputs
    of the backtest) or ``unusable`` (why there are none).
    """
    text = files("hugeplan.evidence").joinpath("published_results.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@lru_cache(maxsize=1)
def validation_runs() -> dict[str, Any]:
    """The project's own runs of ``make validate`` and its matrix, in the order of docs/model-results.md."""
    text = files("hugeplan.evidence").joinpath("validation_runs.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def hardware_of(
    catalogue_id: str | None, virtualised: bool | None, granule_bytes: int | None, page_bytes: int
) -> HardwareFacts:
    """Facts of a published system: its processor from the catalogue, its granule where the source measured it."""
    entry = catalogue.by_id(catalogue_id) if catalogue_id else None
    facts = (
        catalogue.hardware_facts(entry, virtualised=virtualised)
        if entry is not None
        else HardwareFacts(virtualised=virtualised)
    )
    if granule_bytes is None:
        return facts
    granule = EffectiveGranule(backing="large", page_bytes=page_bytes, granule_bytes=granule_bytes, status="fractured")
    return replace(facts, granules=(granule,))


@lru_cache(maxsize=1)
def run_backtest() -> tuple[BacktestRow, ...]:
    """The backtest over every published result. It depends on nothing but the code, so it is made once."""
    return backtest(published_results()["items"], hardware_of)
