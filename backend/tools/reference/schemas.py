"""The published JSON Schemas of what people write and what commands write."""

from __future__ import annotations

import json

from pydantic import BaseModel

from hugeplan.documents.trial import TrialDocument
from hugeplan.scenario_file import ScenarioDocument


def scenario() -> str:
    """docs/scenario.schema.json: a scenario as people write it."""
    return _text(ScenarioDocument, sort_keys=True)


def trial() -> str:
    """docs/trial.schema.json: what ``hugeplan trial`` writes."""
    return _text(TrialDocument, sort_keys=False)


def _text(model: type[BaseModel], *, sort_keys: bool) -> str:
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
    return json.dumps(document, indent=2, sort_keys=sort_keys) + "\n"
