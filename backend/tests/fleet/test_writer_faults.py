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
from hugeplan.db.connection import Connection
from hugeplan.documents.report import Report
from hugeplan.errors import UnavailableError
from hugeplan.fleet.ingest import reader_process
from hugeplan.fleet.ingest import writer as writer_module
from hugeplan.fleet.ingest.batch import Batch, NodeLockedError
from hugeplan.fleet.ingest.in_force import SavedPlans
from hugeplan.fleet.ingest.incoming import Incoming, read_report
from hugeplan.fleet.ingest.node_update import machine_type
from hugeplan.fleet.ingest.reader_process import LENGTH
from hugeplan.fleet.ingest.writer import ENOUGH, ReportWriter
from hugeplan.fleet.schemas import ReportReceipt
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


async def agents(service: Service, count: int) -> list[tuple[UUID, str]]:
    """Agents with tokens and machines of their own."""
    machines = [f"{number:032x}" for number in range(1, count + 1)]
    for machine_id in machines:
        await service.token(Role.AGENT, machine_id=machine_id)
    async with service.database.read() as session:
        found = await session.execute(
            text("SELECT id, machine_id FROM tokens WHERE machine_id = ANY(:machines) ORDER BY 2"),
            {"machines": machines},
        )
    return [(row[0], row[1]) for row in found]


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
        await connection.execute("LOCK TABLE reports IN SHARE MODE")
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


async def test_reports_of_a_node_that_another_makes_are_left_and_tried_again(
    service: Service, settings: Settings
) -> None:
    (token_id, machine_id), (other_token, other_machine), (third_token, third) = await agents(service, 3)
    writer, made = writer_of(service), uuid.uuid4()
    await writer.store(arrived(third_token, machine_id=third))
    connect = Connection.connect
    async with await connect(settings.psycopg_url()) as other, await connect(settings.psycopg_url()) as own:
        for table, columns in (("nodes", {"id": made, "machine_id": machine_id}), ("node_states", {"node_id": made})):
            copied = f"INSERT INTO {table} SELECT (jsonb_populate_record(t, %s)).* FROM {table} t"
            await other.execute(copied, [json.dumps(columns, default=str)])
        await own.set_autocommit(True)
        of_it = [arrived(token_id, machine_id=machine_id), arrived(token_id, machine_id=machine_id, run=run())]
        late = Batch(own, of_it, SavedPlans(), prepared=None)
        assert not await late.commit(lambda: None)
        assert not await late.commit(lambda: None)
        assert await late.commit(lambda: None)
        assert [type(late.answers[index]) for index in range(2)] == [NodeLockedError] * 2
        of_another = arrived(other_token, machine_id=other_machine)
        waiting = [asyncio.create_task(writer.store(one)) for one in [*of_it, of_another]]
        assert (await waiting[2]).created
        await until(lambda: len(writer._lines.get(machine_id, ())) == 2)
        await other.commit()
        answers = await asyncio.gather(*waiting)
    assert all(answer.created for answer in answers)
    assert answers[0].node_id == answers[1].node_id == made
    assert len(await stored(service)) == 4


async def test_what_another_wrote_meanwhile_is_known_to_the_next_attempt(service: Service, settings: Settings) -> None:
    """Else both tell the same, and the bound of a node's events is that of the later one alone."""
    token_id, writer = await token_of_agent(service), writer_of(service)
    await writer.store(arrived(token_id))
    short = {"sample": {"memory": {"mem_total_bytes": 1 << 30, "mem_available_bytes": 1 << 20}}}
    async with await Connection.connect(settings.psycopg_url()) as other:
        await other.execute("SELECT 1")  # begins a transaction
        assert await Batch(other, [arrived(token_id, **short)], SavedPlans(), prepared=None).write()
        late = asyncio.create_task(writer.store(arrived(token_id, **short)))
        await until(lambda: bool(writer._lines.get(MACHINE_ID)))
        await other.commit()
        assert (await late).created
    async with service.database.read() as session:
        told = (await session.scalars(text("SELECT kind FROM events WHERE code = 'memory_low'"))).all()
    assert told == ["finding_opened"]


async def test_a_locked_node_holds_up_its_own_reports_alone_and_in_order(service: Service, settings: Settings) -> None:
    """Nobody else waits for a decision, a reparse or an operator who went to lunch."""
    sent_by, writer = await agents(service, 21), writer_of(service)
    await asyncio.gather(*(writer.store(arrived(token_id, machine_id=machine)) for token_id, machine in sent_by))
    (token_id, machine), *others = sent_by
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("SELECT id FROM nodes WHERE machine_id = %s FOR UPDATE", [machine])
        large = arrived(token_id, machine_id=machine, run=run(), unknown=["x" * 1000] * 1100)
        of_it = [large, *(arrived(token_id, machine_id=machine) for _ in range(3))]
        held = [asyncio.create_task(writer.store(one)) for one in of_it]
        for _ in range(3):
            new = [arrived(token_id, machine_id=machine) for token_id, machine in others]
            async with asyncio.timeout(60):
                answers = await asyncio.gather(*map(writer.store, new))
            assert all(answer.created for answer in answers)
        await until(lambda: len(writer._lines.get(machine, ())) == 4)
        assert not any(task.done() for task in held)
        assert not {one.report_id for one in of_it} & await stored(service)
        await connection.rollback()
    assert all(answer.created for answer in await asyncio.gather(*held))
    async with service.database.read() as session:
        order = "SELECT report_id FROM report_documents WHERE report_id = ANY(:ids) ORDER BY received_at"
        ids = [one.report_id for one in of_it]
        assert (await session.scalars(text(order), {"ids": ids})).all() == ids
    assert not writer._lines


async def test_a_node_that_stays_locked_is_not_waited_for_without_end(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def counted(connection: Any, incoming: Sequence[Incoming], *given: Any, **more: Any) -> Batch:
        tries.append(len(incoming))
        return Batch(connection, incoming, *given, **more)

    token_id, writer = await token_of_agent(service), writer_of(service)
    await writer.store(arrived(token_id))
    monkeypatch.setattr(writer_module, "Batch", counted)
    monkeypatch.setattr(writer_module, "LOCKED_SECONDS", 1.0)
    refused = [arrived(token_id) for _ in range(2)]
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("SELECT id FROM nodes FOR UPDATE")
        answers = await asyncio.gather(*map(writer.store, refused), return_exceptions=True)
        for answer in answers:
            assert isinstance(answer, UnavailableError)
            assert answer.headers["Retry-After"]
            assert "Nothing was stored" in str(answer)
        assert 2 <= len(tries) <= 25, "it is tried again, and not without a pause"
        monkeypatch.setattr(writer_module, "MOST_HELD", 0)
        with pytest.raises(UnavailableError, match="busy"):
            await writer.store(refused[0])
    assert not writer._lines
    assert len(await stored(service)) == 1
    assert [answer.created for answer in [await writer.store(one) for one in refused + refused]] == [True] * 2 + [
        False
    ] * 2


async def test_a_report_has_its_turn_among_many_who_wait_for_its_node(service: Service, settings: Settings) -> None:
    """As a planner's changes of labels on many connections: the node is never free."""
    token_id, writer = await token_of_agent(service), writer_of(service)
    await writer.store(arrived(token_id))
    turns, ended = 0, asyncio.Event()

    async def others() -> None:
        nonlocal turns
        async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
            while not ended.is_set():
                await connection.execute("SELECT FROM nodes WHERE machine_id = %s FOR UPDATE", [MACHINE_ID])
                await connection.execute("SELECT pg_sleep(0.03)")
                await connection.commit()
                turns += 1

    async with asyncio.TaskGroup() as all_of_them:
        for _ in range(4):
            all_of_them.create_task(others())
        await until(lambda: turns > 8)
        before = turns
        try:
            assert (await writer.store(arrived(token_id))).created
        finally:
            ended.set()
        assert turns - before < 40, "in a second or so"


async def test_what_is_stored_is_known_while_its_node_is_locked(service: Service, settings: Settings) -> None:
    token_id, writer = await token_of_agent(service), writer_of(service)
    known = arrived(token_id)
    await writer.store(known)
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("SELECT id FROM nodes FOR UPDATE")
        async with asyncio.timeout(60):
            assert not (await writer.store(known)).created


async def test_a_locked_token_holds_up_no_report(service: Service, settings: Settings) -> None:
    """When a token was last used is written once a minute, and after whoever has its row."""
    token_id, writer = await token_of_agent(service), writer_of(service)
    await writer.store(arrived(token_id))
    used = "SELECT last_used_at FROM tokens WHERE id = %s"
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("UPDATE tokens SET last_used_at = NULL WHERE id = %s", [token_id])
        await connection.commit()
        await connection.execute(f"{used} FOR UPDATE", [token_id])
        async with asyncio.timeout(20):
            assert (await writer.store(arrived(token_id))).created
        assert await (await connection.execute(used, [token_id])).fetchone() == (None,)
        await connection.commit()
        assert (await writer.store(arrived(token_id))).created
        assert await (await connection.execute(used, [token_id])).fetchone() != (None,)


async def test_few_reports_wait_for_the_batch_that_is_under_way_and_many_do_not(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def counted(connection: Any, incoming: Sequence[Incoming], *given: Any, **more: Any) -> Batch:
        sizes.append(len(incoming))
        return Batch(connection, incoming, *given, **more)

    monkeypatch.setattr(writer_module, "Batch", counted)
    monkeypatch.setattr(writer_module, "PATIENCE_SECONDS", 60.0)
    sent_by, own = await agents(service, ENOUGH + 2), writer_of(service)

    def send() -> asyncio.Task[ReportReceipt]:
        token_id, machine_id = sent_by.pop()
        return asyncio.create_task(own.store(arrived(token_id, machine_id=machine_id)))

    await send()
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as other:
        await other.execute("LOCK TABLE reports IN SHARE MODE")
        sent = [send()]
        await until(lambda: sizes == [1, 1])
        sent += [send() for _ in range(ENOUGH - 1)]
        await until(lambda: len(own._waiting) == ENOUGH - 1)
        sent.append(send())
        await until(lambda: len(sizes) == 3)
    assert [receipt.created for receipt in await asyncio.gather(*sent)] == [True] * (1 + ENOUGH)
    assert sizes == [1, 1, ENOUGH]


async def test_a_batch_of_refused_reports_writes_nothing(service: Service, settings: Settings) -> None:
    await token_of_agent(service)
    async with await Connection.connect(settings.psycopg_url()) as connection:
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
