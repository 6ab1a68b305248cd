"""What is odd about one node, plan, trial or row breaks nothing of another owner's: each is tried alone."""

from __future__ import annotations

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import httpx
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError
from support.reports import report, run
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.db.alone import AWAY, INTERNAL, alone
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.errors import UnavailableError
from hugeplan.fleet import read_back, sealing
from hugeplan.fleet import reparse as reparsing
from hugeplan.fleet import repository as fleet_rows_of_runs
from hugeplan.fleet.reparse import reparse
from hugeplan.fleet.selector import STALE_AFTER
from hugeplan.fleet.service import measure_again
from hugeplan.fleet.watch import mark_stale
from hugeplan.planner import other_node
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.page_tables import leaf_entry_bytes, table_levels
from hugeplan.planner.model import GIB, NodeFacts, NodeSample, NumaNode, Plan, PlanRequest
from hugeplan.plans import fleet_rows
from hugeplan.plans import repository as plan_rows
from hugeplan.plans import service as plans
from hugeplan.plans.watch import check_plans
from hugeplan.scenarios import plan_answers, repository, saved_plans, work
from hugeplan.settings import Settings

API = "/api/v1"
DATABASE = {"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}
TOO_LARGE = {"name": "n", "memory": "8GiB"}
ENGINES = ("postgresql", "mysql", "mariadb", "oracle", "db2", "jvm", "redis")


async def nodes(service: Service, *changes: dict[str, Any]) -> list[str]:
    """Ids of nodes n1, n2 and so on, each with its changes of a report."""
    ids = []
    for number, change in enumerate(changes, start=1):
        agent = await service.client_as(Role.AGENT)
        document = report(machine_id=f"{number:032x}", node_name=f"n{number}", **change)
        sent = await agent.post(f"{API}/reports", json=document)
        assert sent.status_code == 201, sent.text
        ids.append(str(sent.json()["node_id"]))
    return ids


async def change(service: Service, statement: str, **values: Any) -> None:
    async with service.database.write() as session:
        await session.execute(text(statement), values)


async def fleet_plan(planner: httpx.AsyncClient, body: dict[str, Any]) -> str:
    """The address of a fleet plan that is done."""
    begun = await planner.post(f"{API}/fleet/plan", json=body)
    url = f"{API}/fleet/plans/{begun.json()['id']}"
    async with planner.stream("GET", f"{url}/progress") as stream:
        await stream.aread()
    return url


def databases_of(count: int) -> list[dict[str, Any]]:
    """A server of each engine, with as many clients."""
    return [
        {"key": engine, "engine": engine, "main_pid": pid, "client_count": count, "settings": {}}
        for pid, engine in enumerate(ENGINES, start=1)
    ]


@pytest.mark.parametrize("base_page_bytes", [1 << 26, 1 << 30, 1 << 44])
def test_a_base_page_that_no_table_covers_is_named(base_page_bytes: int) -> None:
    assert table_levels(1 << 30, 1 << 26, 1 << 25), "the largest that is taken"
    with pytest.raises(PlannerError, match=f"base_page_bytes: {base_page_bytes} .* at most 32 MiB"):
        leaf_entry_bytes(2 * base_page_bytes, base_page_bytes)


async def test_what_two_odd_nodes_say_breaks_no_plan(service: Service, planner: httpx.AsyncClient) -> None:
    """A base page of 1 GiB, and more clients than a scenario took, on the nodes with the most memory."""
    odd = report()
    inventory = {"base_page_bytes": 1 << 30, "huge_page_sizes_bytes": [1 << 31], "default_huge_page_bytes": 1 << 31}
    much = odd["sample"]["memory"] | {"mem_total_bytes": 1 << 45, "mem_available_bytes": 1 << 44}
    many = odd["sample"] | {"databases": databases_of(2**31 - 1)}
    changes = (
        {"inventory": odd["inventory"] | inventory, "sample": odd["sample"] | {"memory": much}},
        {"sample": many},
    )
    ids = await nodes(service, *changes, {})
    scenarios = [await planner.get(f"{API}/nodes/{node_id}/scenario") for node_id in ids]
    assert [answer.status_code for answer in scenarios] == [200] * 3
    assert (await planner.post(f"{API}/plans/preview", json={"node_id": ids[1], "scenario": {}})).status_code == 200
    own = {"scenario": {"node": TOO_LARGE, "databases": [DATABASE | {"settings": {"shared_buffers": "12GB"}}]}}
    answer = await planner.post(f"{API}/plans/preview", json=own)
    assert answer.status_code == 200, answer.text
    done = await planner.post(f"{await fleet_plan(planner, {})}/decisions", json={"to": "propose"})
    assert done.status_code == 200, done.text


def test_an_odd_other_node_hides_no_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = other_node.plan

    def odd(request: PlanRequest) -> Plan:
        if request.node.name == "odd":
            raise LookupError
        return planned(request)

    monkeypatch.setattr(other_node, "plan", odd)
    scenario = {"node": TOO_LARGE, "databases": [DATABASE | {"settings": {"shared_buffers": "12GB"}}]}
    unfinished = work.compute(pickle.dumps((work.Question(scenario), work.Files())))
    others = [
        (NodeFacts(name=name, numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB), NodeSample())
        for name in ("odd", "large")
    ]
    assert b"a fits on large: " in work.finish(pickle.dumps((unfinished, others)))


async def test_an_odd_row_of_a_fleet_plan_is_named_and_the_others_are_decided(
    service: Service, planner: httpx.AsyncClient, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", 60.0)
    ids = await nodes(service, {}, {}, {})
    url = await fleet_plan(planner, {"scenario": {"databases": [DATABASE]}})
    await change(service, "UPDATE node_states SET measured = '{\"parts\": 3}' WHERE node_id = :id", id=ids[0])
    done = (await planner.post(f"{url}/decisions", json={"to": "propose"})).json()
    assert (done["done"], [(row["node_name"], row["reason"]) for row in done["skipped"]]) == (2, [("n1", INTERNAL)])
    own = {"scenario": {"node": TOO_LARGE, "databases": [DATABASE | {"settings": {"shared_buffers": "12GB"}}]}}
    assert (await planner.post(f"{API}/plans/preview", json=own)).status_code == 200
    await admin.post(f"{url}/decisions", json={"to": "approve"})
    verify, asked = plan_answers.verify_plan, []

    async def odd(*given: Any) -> Any:
        asked.append(given)
        if len(asked) == 1:
            raise LookupError
        return await verify(*given)

    monkeypatch.setattr(plan_answers, "verify_plan", odd)
    done = (await planner.post(f"{url}/decisions", json={"to": "in_force"})).json()
    assert (done["done"], [row["reason"] for row in done["skipped"]].count(INTERNAL)) == (1, 1)
    states = [plan["state"] for plan in (await planner.get(f"{API}/plans")).json()["items"]]
    assert sorted(states) == ["approved", "in_force"], "of the odd one nothing is half done"


async def test_a_row_that_met_a_lock_says_what_its_own_request_would(
    service: Service, planner: httpx.AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said "Internal error", as if somebody had to look into it; nothing but another attempt is needed."""
    await nodes(service, {})
    url = await fleet_plan(planner, {"scenario": {"databases": [DATABASE]}})
    (row,) = (await planner.get(f"{url}/nodes")).json()["items"]

    add = repository.add_plans

    async def soon(session: Any, rows: Any) -> None:
        await session.execute(text("SET LOCAL lock_timeout = '20ms'"))
        await add(session, rows)

    monkeypatch.setattr(repository, "add_plans", soon)
    monkeypatch.setattr(saved_plans, "add", soon)
    other = Database(create_engine(settings))
    async with other.write() as session:
        await session.execute(text("LOCK TABLE plans IN SHARE MODE"))
        done = (await planner.post(f"{url}/decisions", json={"to": "propose"})).json()
        opened = await planner.post(f"{url}/nodes/{row['node_id']}/plan")
    await other.dispose()
    assert (done["done"], [row["reason"] for row in done["skipped"]]) == (0, [AWAY])
    assert assert_problem(opened, 503, "unavailable")["detail"] == AWAY
    assert "try again" in AWAY


async def test_a_plan_that_cannot_be_looked_at_keeps_no_other_from_being_marked(
    service: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await nodes(service, {}, {})
    for node_id in ids:
        body = {"node_id": node_id, "scenario": {"databases": [DATABASE]}}
        plan = (await admin.post(f"{API}/plans", json=body)).json()
        await admin.post(f"{API}/plans/{plan['id']}/propose", headers={"If-Match": "*"})
    look = plans.look

    async def odd(session: Any, beside: Any, row: Any) -> Any:
        if str(row.node_id) == ids[0]:
            raise LookupError
        return await look(session, beside, row)

    monkeypatch.setattr(plans, "look", odd)
    later = "UPDATE nodes SET sampled_at = sampled_at + interval '1 second'"
    await change(service, later)
    assert await check_plans(service.database, service.app.state.sandbox) == 2
    async with service.database.read() as session:
        checked = await session.scalar(text("SELECT count(*) FROM plans WHERE checked_sample_at IS NOT NULL"))
    assert checked == 2


async def test_who_proposes_many_plans_keeps_no_others_from_being_looked_at(
    service: Service, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    ids = await nodes(service, {})
    plans_of = []
    for author in (planner, planner, planner, admin):
        body = {"node_id": ids[0], "scenario": {"databases": [DATABASE]}}
        plans_of.append((await author.post(f"{API}/plans", json=body)).json()["id"])
        await author.post(f"{API}/plans/{plans_of[-1]}/propose", headers={"If-Match": "*"})
    await change(service, "UPDATE nodes SET sampled_at = sampled_at + interval '1 second'")
    async with service.database.read() as session:
        for limit, found in ((2, 2), (9, 3)):
            ids = [str(one) for one in await plan_rows.unchecked(session, limit, 2)]
            assert (len(ids), plans_of[3] in ids[:2]) == (found, True)


async def test_an_odd_node_keeps_no_other_from_being_called_silent(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await nodes(service, {}, {})
    await change(service, "UPDATE nodes SET findings_attention = 9223372036854775807 WHERE id = :id", id=min(ids))
    monkeypatch.setattr("hugeplan.fleet.watch._BATCH", 1)
    later = datetime.now(UTC) + STALE_AFTER + timedelta(minutes=1)
    assert [await mark_stale(service.database, later) for _ in range(2)] == [1, 0]


async def test_an_odd_document_keeps_no_other_node_from_being_sealed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nodes(service, {}, {})
    seal, asked = sealing.seal_sized, []

    def odd(*given: Any) -> Any:
        asked.append(given)
        if len(asked) == 1:
            raise TypeError
        return seal(*given)

    monkeypatch.setattr(sealing, "seal_sized", odd)
    documents, _ = await sealing.seal_round(service.database, 3600.0, datetime.now(UTC) + timedelta(days=1))
    assert documents == 1


async def test_an_odd_run_keeps_no_other_node_from_being_parsed_again(service: Service) -> None:
    ids = await nodes(service, {"run": run()}, {"run": run()})
    await change(service, "UPDATE runs SET document = '\\x1f8b00' WHERE node_id = :id", id=min(ids))
    done = await reparse(service.database)
    assert (done.unreadable, done.nodes) == (1, 1)


async def test_runs_that_cannot_be_read_are_looked_at_twenty_times(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was looked for anew among all runs of the node, while it was locked."""
    (node_id,) = await nodes(service, {"run": run()})
    newer = "'id', gen_random_uuid(), 'document', '\\x31', 'ordered_at', r.ordered_at + interval '1 second'"
    copied = f"jsonb_populate_record(r, jsonb_build_object({newer}))"
    await change(service, f"INSERT INTO runs SELECT ({copied}).* FROM runs r, generate_series(1, 40)")
    read, asked = fleet_rows_of_runs.run_documents, []

    async def counted(*given: Any) -> Any:
        asked.append(given)
        return await read(*given)

    monkeypatch.setattr(fleet_rows_of_runs, "run_documents", counted)
    async with service.database.write() as session:
        await measure_again(session, UUID(node_id))
    assert 1 < len(asked) <= 20
    monkeypatch.setattr(fleet_rows_of_runs, "_NEWEST_RUNS", 3)
    async with service.database.write() as session:
        asked.clear()
        await measure_again(session, UUID(node_id))
    assert len(asked) <= 4


async def test_no_node_is_locked_while_what_is_stored_is_parsed_again(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node's reports wait for its lock, and PostgreSQL ends a transaction that waits for a thread."""
    await nodes(service, {"run": run()}, {"run": run()})
    assert (await sealing.seal_round(service.database, 3600.0, datetime.now(UTC) + timedelta(days=1)))[0] == 2
    read, read_of = read_back.read_numbers, []

    def while_reports_come(blocks: Any, since: datetime) -> Any:
        with psycopg.connect(settings.database_url.get_secret_value()) as other:
            other.execute("SELECT FROM nodes FOR UPDATE NOWAIT")
            waits = "datname = current_database() AND state LIKE 'idle in%' AND query LIKE '%FROM sealed_samples%'"
            read_of.append(other.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {waits}").fetchone())
        return read(blocks, since)

    monkeypatch.setattr(read_back, "read_numbers", while_reports_come)
    assert (await reparse(service.database)).nodes == 2
    assert read_of == [(0,), (0,)]


async def test_a_node_with_many_unread_reports_lets_others_have_their_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = sorted(await nodes(service, {}, {}))
    again = "INSERT INTO {0} SELECT (jsonb_populate_record(r, jsonb_build_object('report_id', {1}))).* FROM {0} r, {2}"
    made = "lpad(to_hex(n), 32, '0')::uuid"
    for table in ("report_documents", "reports"):
        await change(service, again.format(table, made, "generate_series(1, 5) n") + " WHERE node_id = :id", id=ids[0])
    await change(service, "UPDATE reports SET state = 'newer_schema', schema_version = 1")
    turns = []

    async def refused(_: object, node_id: UUID, *__: object) -> bool:
        turns.append(ids.index(str(node_id)))
        return False

    monkeypatch.setattr("hugeplan.fleet.reparse._unread_report", refused)
    monkeypatch.setattr("hugeplan.fleet.reparse.KEYS", 2)
    done = await reparse(service.database)
    assert turns == [0, 0, 1, 0, 0, 0, 0]
    assert (done.nodes, done.unreadable) == (2, 7)


async def test_a_node_that_is_deleted_while_its_unread_reports_are_read_keeps_no_other_waiting(
    service: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = sorted(await nodes(service, {}, {}))
    await change(service, "UPDATE reports SET state = 'newer_schema', schema_version = 1")
    read = reparsing._unread_report

    async def deleted_before(session: Any, node_id: UUID, *given: Any) -> bool | None:
        if str(node_id) != ids[0]:
            return False
        assert (await admin.delete(f"{API}/nodes/{node_id}")).status_code == 204
        return await read(session, node_id, *given)

    monkeypatch.setattr(reparsing, "_unread_report", deleted_before)
    done = await reparse(service.database)
    assert (done.nodes, done.reports, done.unreadable) == (1, 0, 1)


async def test_runs_that_are_deleted_while_others_are_read_again_are_passed_over(
    service: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done of their node stays done, and who deletes them waits for the one that is read alone."""
    agent, deleted = await service.client_as(Role.AGENT), []
    for seed in range(4):
        assert (await agent.post(f"{API}/reports", json=report(run=run(seed=seed)))).status_code == 201
    async with service.database.read() as session:
        left = [*(await session.scalars(text("SELECT id FROM runs ORDER BY id"))).all()]
    write, decode, first = reparsing._write, reparsing.decode, left.pop(0)

    async def after_deletions(database: Database, step: Any, *given: Any) -> Any:
        if step is reparsing._run and given[1] == left[1]:
            for run_id in (first, left[1]):
                deleted.append((await admin.delete(f"{API}/runs/{run_id}")).status_code)
        return await write(database, step, *given)

    def deadlocked_once(*_: object) -> Any:
        monkeypatch.setattr(reparsing, "decode", decode)
        raise OperationalError("", {}, psycopg.errors.DeadlockDetected("two wait for each other"))

    monkeypatch.setattr(reparsing, "_write", after_deletions)
    monkeypatch.setattr(reparsing, "decode", deadlocked_once)
    monkeypatch.setattr(reparsing, "KEYS", 2)
    async with asyncio.timeout(30):
        done = await reparse(service.database)
    assert (done.nodes, done.runs, done.unreadable) == (1, 3, 0)
    assert deleted == [204, 204]
    monkeypatch.setattr(
        reparsing, "decode", Mock(side_effect=OperationalError("", {}, psycopg.errors.DeadlockDetected()))
    )
    done = await reparse(service.database)
    assert (done.nodes, done.runs, done.unreadable) == (0, 0, 1)


async def test_a_transaction_that_waited_too_long_is_one_nodes(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ended at the same node each time that it was run."""
    first = min(await nodes(service, {"run": run()}, {"run": run()}))
    measure = reparsing.service.measure_again

    async def late(session: Any, node_id: UUID) -> None:
        if str(node_id) == first:
            pid = await session.scalar(text("SELECT pg_backend_pid()"))
            await session.execute(text("SET idle_in_transaction_session_timeout = 1"))
            with psycopg.connect(settings.database_url.get_secret_value(), autocommit=True) as other:
                while other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
                    await asyncio.sleep(0.001)
        await measure(session, node_id)

    monkeypatch.setattr(reparsing.service, "measure_again", late)
    own = Database(create_engine(settings))
    done = await reparse(own)
    await own.dispose()
    assert (done.nodes, done.unreadable) == (1, 1)


async def test_a_node_that_could_not_wait_is_not_passed_over(service: Service, settings: Settings) -> None:
    """What a lock or a time ended is no fault of the node's: the command fails, and is run again."""
    await nodes(service, {"run": run()})
    own = Database(create_engine(settings.model_copy(update={"statement_timeout_seconds": 0.2})))
    async with service.database.write() as session:
        await session.execute(text("SELECT 1 FROM node_states FOR UPDATE"))
        with pytest.raises(OperationalError, match="statement timeout"):
            await reparse(own)
    await own.dispose()


async def test_drift_says_of_which_node_the_pools_are_unknown(service: Service, planner: httpx.AsyncClient) -> None:
    ids = await nodes(service, {}, {})
    for node_id in ids:
        pools = [{"numa_node": None, "page_bytes": 2**21, "pages": 7}]
        await planner.put(f"{API}/nodes/{node_id}/plan-in-force", json={"pools": pools})
    await change(service, "UPDATE report_documents SET document = '\\x00' WHERE node_id = :id", id=ids[0])
    first, second = (await planner.get(f"{API}/fleet/drift")).json()["items"]
    assert first["pools"] == []
    assert "cannot be read back" in first["pools_unknown_because"]
    assert second["pools"] != []
    assert second["pools_unknown_because"] is None


async def test_what_concerns_all_goes_through_and_the_rest_is_logged_once(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with alone("this one") as tried:
            raise LookupError("odd")
    assert tried.why == INTERNAL
    assert [record.__dict__["item"] for record in caplog.records if record.name == "hugeplan.db.alone"] == ["this one"]
    with pytest.raises(UnavailableError), alone("no room"):
        raise UnavailableError("Too many.")
    with pytest.raises(LookupError), alone("who asks has gone", LookupError):
        raise LookupError
    away = Database(create_engine(Settings(database_url="postgresql+psycopg://x@127.0.0.1:1/x")))
    with pytest.raises(DBAPIError), alone("no database"):
        async with away.read() as session:
            await session.execute(text("SELECT 1"))
    with alone("a row that is gone") as tried:
        async with service.database.read() as session:
            (await session.execute(text("SELECT 1 WHERE false"))).one()
    assert tried.why == INTERNAL
    with alone("a number") as tried:
        async with service.database.write() as session, session.begin_nested():
            await session.execute(text("SELECT 2147483647 + 1"))
    assert tried.why == INTERNAL
