"""What fails for one report fails alone, whatever shares its batch; what the database refuses may be sent again."""

from __future__ import annotations

import asyncio
import io
import json
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import text
from support.reports import MACHINE_ID, report, run
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.api.json_body import JsonLimits
from hugeplan.documents.report import Report
from hugeplan.errors import UnavailableError
from hugeplan.fleet.ingest import reader_process
from hugeplan.fleet.ingest import writer as writer_module
from hugeplan.fleet.ingest.batch import Batch
from hugeplan.fleet.ingest.in_force import SavedPlans
from hugeplan.fleet.ingest.incoming import Incoming, read_report
from hugeplan.fleet.ingest.node_update import machine_type
from hugeplan.fleet.ingest.reader_process import LENGTH
from hugeplan.fleet.ingest.writer import ENOUGH, ReportWriter
from hugeplan.settings import Settings

#: Report id -> SQLSTATE with which a trigger of the test refuses its row.
REFUSED = {
    UUID(int=1): "40P01",  # a deadlock
    UUID(int=2): "22003",  # a number out of range
    UUID(int=3): "57P01",  # the server is shut down
}
DEADLOCK, DAMAGED, SHUT_DOWN = REFUSED


@pytest_asyncio.fixture
async def refusing(service: Service) -> AsyncIterator[None]:
    """PostgreSQL refuses the rows of some reports."""
    cases = " ".join(f"WHEN '{report_id}' THEN '{code}'" for report_id, code in REFUSED.items())
    async with service.database.write() as session:
        await session.execute(
            text(
                "CREATE FUNCTION refuse_report() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE code text; BEGIN"
                f" code := CASE NEW.report_id::text {cases} END;"
                " IF code IS NOT NULL THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = code; END IF;"
                " RETURN NEW; END $$"
            )
        )
        made = "CREATE TRIGGER refuse_report BEFORE INSERT ON reports FOR EACH ROW EXECUTE FUNCTION refuse_report()"
        await session.execute(text(made))
    yield
    async with service.database.write() as session:
        await session.execute(text("DROP FUNCTION refuse_report CASCADE"))


async def token_of_agent(service: Service) -> UUID:
    await service.token(Role.AGENT, machine_id=MACHINE_ID)
    async with service.database.read() as session:
        found: UUID = (await session.execute(text("SELECT id FROM tokens WHERE role = 'agent' LIMIT 1"))).scalar_one()
    return found


def arrived(token_id: UUID, report_id: UUID | None = None, **changes: Any) -> Incoming:
    document = report(report_id=str(report_id or uuid.uuid4()), **changes)
    return read_report(json.dumps(document).encode(), document, token_id=token_id, now=datetime.now(UTC))


def writer_of(service: Service) -> ReportWriter:
    writer: ReportWriter = service.app.state.report_writer
    return writer


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def blocked(one: psycopg.AsyncConnection[Any], other: psycopg.AsyncConnection[Any]) -> None:
    """Wait until one connection waits for a lock, as another one sees it."""
    waits = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {one.info.backend_pid} AND wait_event_type = 'Lock'"
    async with asyncio.timeout(60):
        while (await (await other.execute(waits)).fetchone()) != (1,):
            await asyncio.sleep(0.01)


async def stored(service: Service) -> set[UUID]:
    async with service.database.read() as session:
        return set((await session.execute(text("SELECT report_id FROM reports"))).scalars())


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize(("refused", "error"), [(DEADLOCK, UnavailableError), (DAMAGED, psycopg.DataError)])
async def test_one_that_is_refused_is_refused_alone(service: Service, refused: UUID, error: type[Exception]) -> None:
    token_id, writer = await token_of_agent(service), writer_of(service)
    assert (await writer.store(arrived(token_id))).created
    good = [arrived(token_id) for _ in range(8)]
    batch = [*good[:4], arrived(token_id, refused), *good[4:]]
    answers = await asyncio.gather(*map(writer.store, batch), return_exceptions=True)
    assert [isinstance(answer, error) for answer in answers] == [False] * 4 + [True] + [False] * 4
    assert {one.report_id for one in good} < await stored(service)
    assert refused not in await stored(service)
    with pytest.raises(error):
        await writer.store(batch[4])


@pytest.mark.usefixtures("refusing")
async def test_a_server_that_is_shut_down_stores_nothing_and_everything_may_come_again(service: Service) -> None:
    token_id, writer = await token_of_agent(service), writer_of(service)
    refused = arrived(token_id, SHUT_DOWN)
    with pytest.raises(UnavailableError, match="Nothing was stored") as raised:
        await writer.store(refused)
    assert raised.value.headers["Retry-After"]
    async with service.database.write() as session:
        await session.execute(text("DROP TRIGGER refuse_report ON reports"))
    assert (await writer.store(refused)).created


async def test_one_whose_client_went_away_is_stored_and_the_others_are_answered(
    service: Service, settings: Settings
) -> None:
    token_id, writer = await token_of_agent(service), writer_of(service)
    assert (await writer.store(arrived(token_id))).created
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("SELECT id FROM nodes FOR UPDATE")
        batch = [arrived(token_id) for _ in range(6)]
        waiting = [asyncio.create_task(writer.store(one)) for one in batch]
        await until(lambda: writer._under_way >= 3)
        for task in waiting[:2]:
            task.cancel()
        await connection.rollback()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True] * 2 + [False] * 4
    assert all(answer.created for answer in answers[2:])  # type: ignore[union-attr]
    assert {one.report_id for one in batch} < await stored(service)


async def test_a_batch_that_met_its_node_made_by_another_begins_again(service: Service, settings: Settings) -> None:
    token_id = await token_of_agent(service)
    connect = psycopg.AsyncConnection.connect
    async with await connect(settings.psycopg_url()) as other, await connect(settings.psycopg_url()) as own:
        await other.execute("SELECT 1")  # begins a transaction
        first = Batch(other, [arrived(token_id)], SavedPlans(), prepared=None)
        assert await first.write()
        await own.set_autocommit(True)
        late = Batch(own, [arrived(token_id), arrived(token_id, run=run())], SavedPlans(), prepared=None)
        begun = asyncio.create_task(late.commit(lambda: None))
        await blocked(own, other)
        await other.commit()
        assert not await begun
        assert await late.commit(lambda: None)
    assert first.answers[0].node_id == late.answers[0].node_id == late.answers[1].node_id  # type: ignore[union-attr]
    assert len(await stored(service)) == 3


async def test_a_batch_that_waited_for_another_goes_on_from_what_that_wrote(
    service: Service, settings: Settings
) -> None:
    """Else both tell the same, and the bound of a node's events is that of the later one alone."""
    token_id = await token_of_agent(service)
    await writer_of(service).store(arrived(token_id))
    short = {"sample": {"memory": {"mem_total_bytes": 1 << 30, "mem_available_bytes": 1 << 20}}}
    connect = psycopg.AsyncConnection.connect
    async with await connect(settings.psycopg_url()) as other, await connect(settings.psycopg_url()) as own:
        await other.execute("SELECT 1")  # begins a transaction
        assert await Batch(other, [arrived(token_id, **short)], SavedPlans(), prepared=None).write()
        await own.set_autocommit(True)
        late = Batch(own, [arrived(token_id, **short)], SavedPlans(), prepared=None)
        begun = asyncio.create_task(late.commit(lambda: None))
        await blocked(own, other)
        await other.commit()
        assert await begun
    async with service.database.read() as session:
        told = (await session.scalars(text("SELECT kind FROM events WHERE code = 'memory_low'"))).all()
    assert told == ["finding_opened"]


async def test_few_reports_wait_for_the_batch_that_is_under_way_and_many_do_not(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(connection: Any, incoming: Sequence[Incoming], *given: Any, **more: Any) -> Batch:
        sizes.append(len(incoming))
        return Batch(connection, incoming, *given, **more)

    monkeypatch.setattr(writer_module, "Batch", counted)
    monkeypatch.setattr(writer_module, "PATIENCE_SECONDS", 60.0)
    token_id, own = await token_of_agent(service), writer_of(service)
    await own.store(arrived(token_id))
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as other:
        await other.execute("LOCK TABLE reports IN SHARE MODE")
        sent = [asyncio.create_task(own.store(arrived(token_id)))]
        await until(lambda: sizes == [1, 1])
        sent += [asyncio.create_task(own.store(arrived(token_id))) for _ in range(ENOUGH - 1)]
        await until(lambda: len(own._waiting) == ENOUGH - 1)
        sent.append(asyncio.create_task(own.store(arrived(token_id))))
        await until(lambda: len(sizes) == 3)
    assert [receipt.created for receipt in await asyncio.gather(*sent)] == [True] * (1 + ENOUGH)
    assert sizes == [1, 1, ENOUGH]


async def test_a_batch_of_refused_reports_writes_nothing(service: Service, settings: Settings) -> None:
    await token_of_agent(service)
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("SELECT 1")
        batch = Batch(connection, [arrived(uuid.uuid4())], SavedPlans(), prepared=None)
        assert await batch.write()
        await connection.commit()
    assert "unknown, expired or revoked" in str(batch.answers[0])
    assert await stored(service) == set()


async def test_a_report_of_nothing_is_named(agent: httpx.AsyncClient) -> None:
    answer = await agent.post("/api/v1/reports", content=b"", headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}, answer.text


def test_the_reading_process_answers_in_order_and_leaves_the_rest_to_the_service(settings: Settings) -> None:
    """Here in this process: what it does with each kind of document, until its input ends."""
    measured = json.dumps(report(run=run())).encode()
    documents = [
        measured,
        json.dumps(report()).encode(),  # no run
        json.dumps(report(run=run()) | {"schema_version": 2}).encode(),  # of a newer schema
        json.dumps(report(run=run()) | {"machine_id": "no id"}).encode(),
        b"{",
        b"[" * 100_000,
        measured,
    ]
    sent = io.BytesIO(b"".join(LENGTH.pack(len(raw)) + raw for raw in documents))
    answers = io.BytesIO()
    reader_process.serve(sent, answers, JsonLimits.of(settings))
    answers.seek(0)
    lengths = []
    while head := answers.read(LENGTH.size):
        (length,) = LENGTH.unpack(head)
        lengths.append(length)
        answers.read(length)
    assert [length > 0 for length in lengths] == [True, False, False, False, False, False, True]


def test_a_fault_of_reading_is_the_services_to_find(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(reader_process, "read_with_run", broken)
    assert reader_process.answer(json.dumps(report(run=run())).encode(), JsonLimits.of(settings)) == b""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cpu": None, "virtualised": None}, "x86_64"),
        ({"virtualised": False}, "AMD EPYC, bare metal"),
        ({"virtualised": True, "hypervisor": None}, "AMD EPYC, guest"),
        ({"virtualised": True, "hypervisor": "KVM"}, "AMD EPYC, KVM"),
        ({"virtualised": None}, "AMD EPYC"),
    ],
)
def test_a_machine_type_says_what_is_known(changes: dict[str, Any], named: str) -> None:
    document = report()
    document["inventory"] |= {"architecture": "x86_64", "cpu": {"brand": "AMD EPYC", "family": 25, "model": 17}}
    document["inventory"] |= changes
    assert machine_type(Report.model_validate(document).inventory) == named
