"""The published results as data: ``published_results.json`` beside this file, read once."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


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
