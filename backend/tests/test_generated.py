"""What is generated and committed is what the code generates now."""

from __future__ import annotations

import json
import re

import pytest
from conftest import REPOSITORY

from hugeplan.api import openapi
from tools.reference.__main__ import GENERATED
from tools.reference.findings import findings, rules
from tools.reference.lists import document as _document


def test_openapi_document_is_current() -> None:
    committed = (REPOSITORY / "backend" / "openapi.json").read_text(encoding="utf-8")
    assert committed == openapi.dump(_document), "run: hugeplan openapi --output backend/openapi.json"


@pytest.mark.parametrize("name", GENERATED)
def test_the_reference_is_current(name: str) -> None:
    assert (REPOSITORY / name).read_text(encoding="utf-8") == GENERATED[name](), "run: make schemas"


def test_every_finding_and_rule_is_explained() -> None:
    """What is asked, in words, and an answer; of each code that some check of the source names."""
    explained = {one.name: one for one in [*findings(), *rules()]}
    assert [name for name, one in explained.items() if not any(one.asks) or not one.says] == []
    package = REPOSITORY / "backend" / "hugeplan"
    named = re.compile(r'^(?:CODE|[A-Z]+)(?:: Final)? = "(verify_\w+|\w+)"$', re.MULTILINE)
    folders = ("planner/findings", "proof/checks", "fleet/findings")
    files = [file for folder in folders for file in (package / folder).glob("*.py")]
    codes = {code for file in files for code in named.findall(file.read_text())}
    assert len(codes) > 40
    assert codes - set(explained) == set()


def test_what_is_wrong_says_what_to_do() -> None:
    """Of a finding: where one of its answers to a state has a fix. A rule of the linter is one answer."""
    for one in [*findings(), *rules()]:
        for state in {"wrong", "attention"} & {state for state, _, _ in one.says}:
            assert any(fix.strip("….") for found, _, fix in one.says if found == state), (one.name, state)


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
