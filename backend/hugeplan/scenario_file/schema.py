"""The published JSON Schema of the scenario document (docs/scenario.schema.json).

``python -m hugeplan.scenario_file`` prints it; a test fails when the committed file is stale.
"""

from __future__ import annotations

import json
from typing import Any

from hugeplan.scenario_file.documents import ScenarioDocument


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document as people write it."""
    schema = ScenarioDocument.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text() -> str:
    """The committed file's text."""
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
