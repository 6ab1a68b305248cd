"""A batch that is written a second time stores what the first time would have stored."""

from __future__ import annotations

import asyncio
import json
import random
import tracemalloc
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import text
from support.reports import MACHINE_ID, MIB, report
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.db.connection import Connection
from hugeplan.documents.plans import SCHEMA_VERSION, dump_plan
from hugeplan.documents.report import Report
from hugeplan.fleet import read_back
from hugeplan.fleet.ingest import batch as batch_module
from hugeplan.fleet.ingest import in_force
from hugeplan.fleet.ingest.batch import Batch, _new_node
from hugeplan.fleet.ingest.in_force import SavedPlans, Unreadable, verified
from hugeplan.fleet.ingest.incoming import Incoming, read_report
from hugeplan.fleet.ingest.node_update import Node
from hugeplan.fleet.ingest.statements import NODES
from hugeplan.fleet.sealing import seal_round
from hugeplan.planner.model import Plan
from hugeplan.planner.plan import plan
from hugeplan.scenario_file.convert import to_request
from hugeplan.scenario_file.documents import ScenarioDocument
from hugeplan.settings import Settings

URL = "/api/v1/reports"
PROCESSES = [{"pid": 7, "name": "postgres", "rss_bytes": 2**30}]


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_retry_stores_the_processes_too(
    service: Service, settings: Settings, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, is_known: bool
) -> None:
    """What PostgreSQL undid, by a deadlock or by its restart, is judged and written again."""
    if is_known:
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    await service.token(Role.AGENT, machine_id=MACHINE_ID)
    async with service.database.read() as session:
        token_id = (await session.execute(text("SELECT id FROM tokens WHERE role = 'agent' LIMIT 1"))).scalar_one()
    document = report(report_id=str(uuid.uuid4()), sample={"processes": PROCESSES})
    raw = json.dumps(document).encode()
    incoming = read_report(raw, document, token_id=token_id, now=datetime.now(UTC))
    async with await Connection.connect(settings.psycopg_url()) as connection:
        batch = Batch(connection, [incoming], SavedPlans(), prepared=None)
        for is_kept in (False, True):
            await connection.execute("SELECT 1")  # begins a transaction
            assert await batch.write()
            await (connection.commit() if is_kept else connection.rollback())
    node_id = batch.answers[0].node_id  # type: ignore[union-attr]
    found = (await viewer.get(f"/api/v1/nodes/{node_id}/processes")).json()
    assert [process["name"] for process in found["processes"]] == ["postgres"]


def test_what_came_cannot_be_changed() -> None:
    document = report()
    incoming = read_report(json.dumps(document).encode(), document, token_id=uuid.uuid4(), now=datetime.now(UTC))
    assert incoming.parsed is not None
    with pytest.raises(AttributeError):
        incoming.parsed.sample.processes = []
    with pytest.raises(AttributeError):
        incoming.parsed.machine_id = "another"


async def saved(service: Service, count: int, plan: str = "{}", version: int = 999) -> list[uuid.UUID]:
    """So many copies of a plan, of no node; this version reads none of the form 999."""
    async with service.database.write() as session:
        scenario = "INSERT INTO scenarios (id, name, version, document, created_at, updated_at)"
        await session.execute(text(f"{scenario} VALUES (:id, 'a', 1, '{{}}', now(), now())"), {"id": uuid.uuid4()})
        rows = await session.execute(
            text(
                "INSERT INTO plans (id, scenario_id, scenario_version, created_at, headline, plan, artifacts,"
                " schema_version) SELECT gen_random_uuid(), s.id, 1, now(), 'a', :plan, '[]', :version"
                " FROM scenarios s, generate_series(1, :count) RETURNING id"
            ),
            {"count": count, "plan": plan, "version": version},
        )
        return [row[0] for row in rows]


async def test_more_plans_than_are_remembered_are_all_looked_at(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_force, "REMEMBERED_BYTES", 20 * 1024)
    plans = await saved(service, 40)
    known = SavedPlans()
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        everything: dict[uuid.UUID, Any] = dict(await known.read(connection, plans, labelled=()))
        assert everything.keys() == set(plans)
        # One that is remembered and one that is not, while what is remembered is full.
        again = await known.read(connection, [plans[0], plans[-1]], labelled=())
        assert again.keys() == {plans[0], plans[-1]}
    assert "cannot read" in everything[plans[0]].plan.why


async def test_plans_are_remembered_by_size(service: Service, settings: Settings) -> None:
    """Of a plan of two megabytes its verification looks at a tenth, and answers the same by that."""
    databases = [{"name": f"d{n}", "engine": "postgresql", "settings": {"shared_buffers": "1GB"}} for n in range(20)]
    node = {"name": "n", "cpus": 64, "numa_nodes": [{"id": n, "memory": "8GiB"} for n in range(64)]}
    whole = plan(to_request(ScenarioDocument.model_validate({"node": node, "databases": databases})))
    kept = json.dumps(dump_plan(whole))
    plans = await saved(service, 20, kept, SCHEMA_VERSION)
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        found = await SavedPlans().read(connection, plans[:1], labelled=())
        known = SavedPlans()
        tracemalloc.start()
        await known.read(connection, plans, labelled=())
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert len(kept) * len(plans) > 30 * MIB
    assert grown < 16 * MIB, f"{grown / MIB:.0f} MiB"
    one = found[plans[0]].plan
    assert not isinstance(one, Unreadable)
    observed = {"inventory": report()["inventory"], "sample": report()["sample"]}
    assert verified(one, observed) == verified(whole, observed)


async def test_a_label_reads_no_plan_of_another_node_and_parses_none_again(
    service: Service, settings: Settings, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = uuid.UUID((await agent.post("/api/v1/reports", json=report())).json()["node_id"])
    own, other = await saved(service, 2)
    async with service.database.write() as session:
        await session.execute(text("UPDATE plans SET node_id = :node WHERE id = :id"), {"node": node_id, "id": own})
    parsed: list[int] = []

    def parse(_: object, version: int) -> Plan:
        parsed.append(version)
        raise ValueError("of another form")

    monkeypatch.setattr(in_force, "read_plan", parse)
    known = SavedPlans()
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        for _ in range(2):
            found = await known.read(connection, (), labelled={(own, node_id), (other, node_id)})
            assert found.keys() == {own}
            assert len(parsed) == 1
        # A plan in force is read, whoever else has a label with it.
        assert (await known.read(connection, [other], labelled={(other, node_id)})).keys() == {other}
        async with service.database.write() as session:
            await session.execute(text("UPDATE plans SET approved_at = now() WHERE id = :id"), {"id": own})
        await connection.rollback()
        assert (await known.read(connection, (), labelled={(own, node_id)}))[own].approval == "."
        async with service.database.write() as session:
            await session.execute(text("DELETE FROM plans WHERE id = :id"), {"id": own})
        await connection.rollback()
        assert not await known.read(connection, (), labelled={(own, node_id)})
    assert len(parsed) == 2


async def sealed_again(service: Service, agent: httpx.AsyncClient) -> dict[str, Any]:
    """A report that is sealed, and known by its block alone."""
    document = report(report_id=str(uuid.uuid4()))
    assert (await agent.post(URL, json=document)).status_code == 201
    later = datetime.now(UTC) + timedelta(hours=9)
    assert await seal_round(service.database, 3600, later) == (1, 1)
    return document


@pytest.mark.parametrize("is_sealed", [True, False])
async def test_who_sends_a_report_again_holds_nobody_up_and_pays_for_what_is_read(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, is_sealed: bool
) -> None:
    """What is stored is read one at a time, outside of the turn in which everybody's reports are judged."""
    document = await sealed_again(service, agent) if is_sealed else report(report_id=str(uuid.uuid4()))
    assert (await agent.post(URL, json=document)).status_code == (200 if is_sealed else 201)
    other, third = [await service.client_as(Role.AGENT) for _ in range(2)]
    reading, go_on, at_a_time = asyncio.Event(), asyncio.Event(), Counter[str]()
    get_document = read_back.get_document

    async def held(*given: Any, **more: Any) -> bytes | None:
        at_a_time.update(("now", "all"))
        assert at_a_time["now"] == 1
        reading.set()
        await go_on.wait()
        at_a_time.subtract(("now",))
        return await get_document(*given, **more)

    monkeypatch.setattr(read_back, "get_document", held)
    owed: list[int] = []
    monkeypatch.setattr(service.app.state.rate_limiter, "owe_bytes", lambda _, size, __: owed.append(size))
    changed = document | {"node_name": "another"}
    first = asyncio.create_task(agent.post(URL, json=changed))
    await asyncio.wait_for(reading.wait(), 30)
    assert_problem(await agent.post(URL, json=changed), 429, "rate-limited")
    made = report(machine_id=f"{7:032x}", report_id=str(uuid.uuid4()))
    assert (await asyncio.wait_for(other.post(URL, json=made), 30)).status_code == 201
    second = asyncio.create_task(other.post(URL, json=dict(reversed(made.items()))))
    assert_problem(await third.post(URL, json=document), 403, "forbidden")
    owed.clear()
    go_on.set()
    assert_problem(await first, 409, "conflict")
    assert (await second).status_code == 200
    assert at_a_time["all"] == 2
    assert sum(owed) > 500
    assert not service.app.state.reports_again._of_one
    # Who lost the answer and sends the same bytes is told so.
    monkeypatch.undo()
    assert (await agent.post(URL, json=document)).json()["created"] is False


async def test_of_a_node_with_very_many_blocks_the_newest_thousand_are_looked_at(
    service: Service, agent: httpx.AsyncClient
) -> None:
    """An agent says which times its blocks have, and all reports wait while they are looked through."""
    document = await sealed_again(service, agent)
    async with service.database.write() as session:
        await session.execute(
            text(
                "INSERT INTO sealed_documents (node_id, start_at, first_report_id, end_at, report_ids, sizes_bytes,"
                " documents, taken_from, taken_to) SELECT node_id, now() + make_interval(secs => g),"
                " gen_random_uuid(), now(), '{}', '{}', '', '2190-01-01', '2190-01-01'"
                " FROM sealed_documents, generate_series(1, :count) g"
            ),
            {"count": 999},
        )
    assert (await agent.post(URL, json=document)).status_code == 200
    async with service.database.write() as session:
        await session.execute(
            text("UPDATE sealed_documents SET start_at = start_at - interval '1 day' WHERE cardinality(report_ids) = 1")
        )
        await session.execute(
            text(
                "INSERT INTO sealed_documents SELECT (jsonb_populate_record(s, jsonb_build_object("
                "'first_report_id', gen_random_uuid()))).* FROM sealed_documents s"
                " WHERE cardinality(report_ids) = 0 LIMIT 1"
            )
        )
    assert (await agent.post(URL, json=document)).status_code == 201


async def test_the_newest_reference_is_found_by_its_index(service: Service) -> None:
    statement = "EXPLAIN " + NODES.sql.decode().replace("$1", "ARRAY['a']")
    async with service.database.read() as session:
        await session.execute(text("SET LOCAL enable_seqscan = off"))
        plan = "\n".join((await session.scalars(text(statement.replace("::", "\\:\\:")))).all())
    assert "using ix_report_references_newest" in plan, plan


def wild(node: Node) -> Incoming:
    """A report of 40 kB that costs ten milliseconds to compare with another one."""
    document = report(report_id=str(uuid.uuid4())) | {"x": "".join(random.Random(7).choices("0123456789", k=40_000))}
    return read_report(json.dumps(document).encode(), document, token_id=node.id, now=datetime.now(UTC))


def test_of_very_many_reports_of_a_node_in_one_batch_most_are_kept_whole() -> None:
    node = _new_node(Report.model_validate(report()))
    assert [node.keep(wild(node))[0][:1] == b"\x01" for _ in range(5)] == [True, True, False, False, False]


@pytest.mark.usefixtures("service")
async def test_others_have_a_turn_while_a_batch_is_judged(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "PAUSE_SECONDS", 0)
    node = _new_node(Report.model_validate(report()))
    turns, at = 0, []

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def take(*_: Any) -> Exception:
        at.append(turns)
        return ValueError()

    monkeypatch.setattr(Batch, "_take", take)
    beside = asyncio.create_task(others())
    async with await Connection.connect(settings.psycopg_url()) as connection:
        await Batch(connection, [wild(node)] * 4, SavedPlans(), prepared=None).write()
    beside.cancel()
    assert len(set(at)) == 4
