"""What is generated and committed is what the code generates now."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from conftest import REPOSITORY

from hugeplan import settings_reference
from hugeplan.api import openapi, problems_reference
from hugeplan.main import create_app
from hugeplan.settings import Settings


@cache
def _document() -> dict[str, Any]:
    """The service's document, made once: it takes a second or two. Nobody may change it."""
    return create_app(Settings()).openapi()


def test_openapi_document_is_current() -> None:
    committed = (REPOSITORY / "backend" / "openapi.json").read_text(encoding="utf-8")
    assert committed == openapi.dump(_document), "run: hugeplan openapi --output backend/openapi.json"


def test_settings_reference_is_current() -> None:
    committed = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    assert committed == settings_reference.render(), "run: python -m hugeplan.settings_reference > docs/settings.md"


def test_problems_reference_is_current() -> None:
    committed = (REPOSITORY / "docs" / "problems.md").read_text(encoding="utf-8")
    assert committed == problems_reference.render(), "run: python -m hugeplan.api.problems_reference > docs/problems.md"


def test_operation_ids_are_unique_nouns_with_verbs() -> None:
    document = _document()
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(ids)) == len(ids)
    assert all(name.replace("_", "").isalpha() and "_" in name for name in ids)


def test_every_operation_answers_problems() -> None:
    document = _document()
    for path in document["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            assert content == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
            assert "422" not in operation["responses"]


def test_every_reference_of_the_document_resolves() -> None:
    text = json.dumps(_document())
    document = json.loads(text)
    names = set(document["components"]["schemas"])
    used = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used <= names


def test_answers_hold_every_field() -> None:
    """Clients are generated from this: a field that may be absent would need a check in every place that reads it."""
    schemas = _document()["components"]["schemas"]
    for name in ("NodeDetail", "RunDetail", "Plan", "PlanPreview", "NodeFacts", "HardwareFacts", "Gain", "Session"):
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"]), name
