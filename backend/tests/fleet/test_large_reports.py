"""A report of very many values is read beside the service, with the same result and the same refusals."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest
from artifacts.samples import request_of
from conftest import REPOSITORY
from support.reports import report, run
from support.service import assert_problem

from hugeplan.api import json_body
from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.documents.decoding import struct_of
from hugeplan.documents.kept import pack
from hugeplan.documents.report import Report
from hugeplan.errors import InvalidInputError
from hugeplan.fleet.ingest import direct
from hugeplan.fleet.ingest.incoming import (
    MOST_COMPARED,
    Incoming,
    ReadLarge,
    is_same_content,
    large_taken_over,
    lenient,
    read_large,
    read_report,
)
from hugeplan.fleet.ingest.large import MANY_VALUES, is_large
from hugeplan.planner.plan import plan
from hugeplan.proof import Observation, verify
from hugeplan.settings import Settings

EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))
URL = "/api/v1/reports"
MANY: dict[str, Any] = {"unknown": [[number] for number in range(MANY_VALUES)]}


def both(document: dict[str, Any]) -> tuple[Incoming, Incoming]:
    """A report read here, and as it comes back from the process beside."""
    raw, now, token = json.dumps(document).encode(), datetime.now(UTC), UUID(int=7)
    parsed = parse_json(raw, JsonLimits.of(Settings(database_url="postgresql:///unused")))
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(read_large(raw, parsed, now)), type=ReadLarge)
    return read_report(raw, parsed, token_id=token, now=now), large_taken_over(sent, token_id=token, now=now)


def known(incoming: Incoming) -> Any:
    """What the models know of a report, without its run."""
    found = incoming.parsed
    return None if found is None else msgspec.to_builtins(found) | {"run": None}


@pytest.mark.parametrize("document", [EXAMPLE, report(run=run()), report() | MANY], ids=["example", "run", "many"])
def test_both_ways_read_the_same(document: dict[str, Any]) -> None:
    here, beside = both(document)
    assert known(beside) == known(here)
    for name in ("report_id", "machine_id", "schema_version", "document", "content_sha256", "taken_at"):
        assert getattr(beside, name) == getattr(here, name), name
    assert (beside.run is None) == (here.run is None)


def test_a_plan_in_force_is_verified_the_same() -> None:
    found = plan(request_of("postgresql", nodes=1))
    verdicts = [verify(found, Observation(one.content["inventory"], one.content["sample"])) for one in both(EXAMPLE)]
    assert verdicts[0] == verdicts[1]


def test_a_report_of_a_newer_schema_is_kept_and_its_node_is_known() -> None:
    here, beside = both(report() | MANY | {"schema_version": 2})
    assert (beside.parsed, beside.schema_version) == (None, 2)
    assert beside.document == here.document
    found, expected = lenient(beside.content), lenient(here.content)
    assert msgspec.to_builtins(found) == msgspec.to_builtins(expected)
    assert isinstance(found, struct_of(Report))


def test_the_example_is_not_large_and_many_values_are() -> None:
    assert not is_large(json.dumps(EXAMPLE).encode())
    assert is_large(json.dumps(report() | MANY).encode())
    assert not is_large(json.dumps(report() | {"text": "x" * 500_000}).encode())
    assert not is_large(json.dumps(report() | {"text": [0.0004123456789012345] * 5_000}).encode())
    for before in range(100):
        assert is_large(b" " * (MANY_VALUES + before) + b"9" * 1024)
        assert not is_large(b"9" * 1023 + b" " * before + b"9" * 1023 + b" " * MANY_VALUES) or before == 0


def test_a_large_body_is_read_twice_only_where_a_text_in_it_may_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every body of more than a megabyte was: a plan of 3 MiB cost the service 0.2 s before it was refused."""
    limits = JsonLimits.of(Settings(database_url="postgresql:///unused"))
    most = limits.string_characters
    for text in ("x" * (most + 1), "\n" * (most + 1), 'x"' * most):
        with pytest.raises(InvalidInputError, match=f"at most {most} characters"):
            parse_json(json.dumps({"a": text}).encode(), limits)
    monkeypatch.setattr(json_body, "_explain", None)
    for large in ({f"k{number}": "v" * 20 for number in range(60_000)}, ["x" * most] * 3):
        assert parse_json(json.dumps(large).encode(), limits) == large


async def test_a_large_report_is_stored_once_as_it_came(
    agent: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.post(URL, json=report())  # the credential is known from now on

    def refuse(*_: object) -> None:
        raise AssertionError("it was parsed in the service")

    monkeypatch.setattr(direct, "parse_json", refuse)
    document = report() | MANY
    made, again = await agent.post(URL, json=document), await agent.post(URL, json=document)
    assert (made.status_code, again.status_code) == (201, 200), made.text
    node_id, report_id = made.json()["node_id"], made.json()["report_id"]
    kept = (await viewer.get(f"/api/v1/nodes/{node_id}/report", params={"report_id": report_id})).json()
    assert kept == document
    other = await agent.post(URL, json=document | {"agent_version": "other"})
    assert_problem(other, 409, "conflict")
    # Not compared value by value: 24 of them in a batch held everybody for two seconds.
    spelled = json.dumps(document, indent=0).encode()
    other = await agent.post(URL, content=spelled, headers={"Content-Type": "application/json"})
    assert_problem(other, 409, "conflict")


def test_what_two_documents_of_many_values_say_is_not_compared() -> None:
    """Sealed or not, the same bytes are the same, and others cost no decoding."""
    large = report() | {"x": {f"\u00e9{number}": 0 for number in range(MOST_COMPARED)}}
    sent = read_report(json.dumps(large).encode(), large, token_id=UUID(int=7), now=datetime.now(UTC))
    assert is_same_content(sent, None, sent.document)
    began = time.process_time()
    for _ in range(24):
        assert not is_same_content(sent, b"other", pack(json.dumps(large | {"y": 1}).encode()))
    assert time.process_time() - began < 0.5


async def test_a_large_report_is_refused_in_the_words_of_a_small_one(agent: httpx.AsyncClient) -> None:
    small = report(report_id=str(uuid.uuid4())) | {"sample": {"memory": 5}}
    answers = [await agent.post(URL, json=document) for document in (small, small | MANY)]
    details = [assert_problem(answer, 422, "invalid-input")["detail"] for answer in answers]
    assert details[0] == details[1]
    assert "sample" in details[0]
