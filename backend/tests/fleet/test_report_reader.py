"""Reports with runs are read by a process of its own where many come, with the same result, and never lost with it."""

from __future__ import annotations

import asyncio
import json
import signal
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import func, select
from support.reports import report, run
from support.service import Service

from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.db.models import RunRow
from hugeplan.fleet.ingest import reader as reader_module
from hugeplan.fleet.ingest.incoming import Incoming, read_report, taken_over
from hugeplan.fleet.ingest.reader import AT_ONCE, LARGE_BYTES, MANY, ReportReader
from hugeplan.settings import Settings

RECORDED = Path(__file__).parents[3] / "frontend" / "e2e" / "recorded" / "guest.json"
NOW = datetime.now(UTC)
TOKEN = UUID(int=7)


def with_recorded_run(**changes: Any) -> dict[str, Any]:
    recorded = json.loads(RECORDED.read_text())
    return report(run=recorded.get("run") or run(), **changes)


def raw_of(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def has_started(reader: ReportReader) -> None:
    """As after many reports."""
    for _ in range(MANY):
        await reader.read(b" " * LARGE_BYTES)
    await until(lambda: reader._process is not None)


@pytest_asyncio.fixture
async def reader(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> AsyncIterator[ReportReader]:
    monkeypatch.setattr(reader_module, "cores", lambda: 2)
    made = ReportReader(settings)
    yield made
    await made.close()


def process_of(reader: ReportReader) -> asyncio.subprocess.Process:
    assert reader._process is not None
    return reader._process


def told(incoming: Incoming) -> dict[str, Any]:
    """What is stored of a report, without the id that its run gets at random."""
    assert incoming.run is not None
    assert incoming.parsed is not None
    record, wins = incoming.run.rows(UUID(int=1), incoming.received_at)
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "record": record,
            "wins": wins,
            "measured": incoming.run.measured,
            "sample": incoming.parsed.sample,
            "inventory": incoming.parsed.inventory,
            "labels": incoming.parsed.labels,
            "document": incoming.document,
            "run_document": incoming.run.document,
            "sha256": incoming.content_sha256,
            "taken_at": incoming.taken_at,
            "ids": [incoming.report_id, incoming.machine_id, incoming.token_id],
        }
    )
    return json.loads(json.dumps(found).replace(str(incoming.run_id), "the run"))


async def test_it_reads_what_the_service_reads(reader: ReportReader, settings: Settings) -> None:
    raw = raw_of(with_recorded_run(labels={"team": "données"}))
    await has_started(reader)
    read = await reader.read(raw)
    assert read is not None
    here = read_report(raw, parse_json(raw, JsonLimits.of(settings)), token_id=TOKEN, now=NOW)
    assert told(taken_over(read, token_id=TOKEN, now=NOW)) == told(here)


@pytest.mark.parametrize(
    "changes",
    [
        {"machine_id": "no machine id"},
        {"schema_version": 2},
        {"run": {"schema_version": "x" * LARGE_BYTES}},
        {"labels": {"a": "\0"}},
    ],
    ids=["a wrong field", "a newer schema", "a wrong run", "a NUL character"],
)
async def test_what_it_does_not_take_is_left_to_the_service(reader: ReportReader, changes: dict[str, Any]) -> None:
    await has_started(reader)
    assert await reader.read(raw_of(with_recorded_run() | changes)) is None
    assert await reader.read(raw_of(with_recorded_run())) is not None


async def test_a_sample_of_the_far_future_is_taken_as_of_now(reader: ReportReader) -> None:
    """The server's clock may be the one that is behind: a refused report would be put aside by its agent for good."""
    await has_started(reader)
    document = with_recorded_run()
    document["sample"]["taken_at"] = "2199-01-01T00:00:00Z"
    read = await reader.read(raw_of(document))
    assert read is not None
    taken = taken_over(read, token_id=TOKEN, now=NOW)
    assert taken.taken_at == NOW
    assert taken.clock_ahead_seconds is not None
    assert taken.clock_ahead_seconds > 86400


async def test_few_reports_start_no_process(reader: ReportReader) -> None:
    for _ in range(MANY - 1):
        assert await reader.read(b" " * LARGE_BYTES) is None
    assert await reader.read(b" " * (LARGE_BYTES - 1)) is None
    assert reader._task is None
    assert await reader.read(b" " * LARGE_BYTES) is None
    assert reader._task is not None


@pytest.mark.parametrize("why", ["one core", "turned off"])
async def test_it_is_not_used(why: str, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(reader_module, "cores", lambda: 1 if why == "one core" else 2)
    unused = ReportReader(settings.model_copy(update={"report_reader_process": why == "one core"}))
    for _ in range(2 * MANY):
        assert await unused.read(b" " * LARGE_BYTES) is None
    assert unused._task is None


async def test_both_have_work_when_more_come_than_it_reads(reader: ReportReader) -> None:
    raw = raw_of(with_recorded_run())
    await has_started(reader)
    answers = await asyncio.gather(*(reader.read(raw) for _ in range(3 * AT_ONCE)))
    assert [answer is not None for answer in answers] == [True] * AT_ONCE + [False] * 2 * AT_ONCE


async def test_a_report_whose_client_goes_away_does_not_shift_the_answers(reader: ReportReader) -> None:
    await has_started(reader)
    process_of(reader).send_signal(signal.SIGSTOP)
    gone = asyncio.create_task(reader.read(raw_of(with_recorded_run())))
    await until(lambda: bool(reader._waiting))
    gone.cancel()
    other = with_recorded_run()
    process_of(reader).send_signal(signal.SIGCONT)
    read = await reader.read(raw_of(other))
    assert read is not None
    assert taken_over(read, token_id=TOKEN, now=NOW).report_id == UUID(other["report_id"])


async def test_what_it_had_is_read_by_the_service_when_it_dies(
    reader: ReportReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    await has_started(reader)
    process = process_of(reader)
    process.send_signal(signal.SIGSTOP)
    waiting = [asyncio.create_task(reader.read(raw_of(with_recorded_run()))) for _ in range(AT_ONCE)]
    await until(lambda: len(reader._waiting) == AT_ONCE)
    process.kill()
    assert await asyncio.gather(*waiting) == [None] * AT_ONCE
    await until(lambda: reader._task is None)
    for _ in range(2 * MANY):
        await reader.read(b" " * LARGE_BYTES)
    assert reader._task is None  # one that cannot start is not tried with each report
    monkeypatch.setattr(reader, "_not_before", 0.0)
    await has_started(reader)
    assert await reader.read(raw_of(with_recorded_run())) is not None


async def test_it_ends_when_nothing_comes(reader: ReportReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "IDLE_SECONDS", 0.05)
    await has_started(reader)
    process = process_of(reader)
    await until(lambda: reader._task is None)
    assert process.returncode is not None


async def test_reports_are_stored_once_while_it_is_killed(
    reader: ReportReader, service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(service.app.state._state, "report_reader", reader)
    await has_started(reader)
    process = process_of(reader)
    machine = uuid.uuid4().hex

    async def post(number: int) -> int:
        if number == MANY // 2:
            process.kill()
        return (await agent.post("/api/v1/reports", json=with_recorded_run(machine_id=machine))).status_code

    statuses = await asyncio.gather(*(post(number) for number in range(MANY)))
    assert statuses == [201] * MANY
    async with service.database.read() as session:
        assert (await session.execute(select(func.count()).select_from(RunRow))).scalar_one() == MANY
