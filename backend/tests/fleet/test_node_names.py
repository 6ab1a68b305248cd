"""A node's name is one machine's: files that root applies are put where a name says."""

from __future__ import annotations

import asyncio
import json
import runpy
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from conftest import REPOSITORY
from psycopg import AsyncConnection
from sqlalchemy import text
from support.reports import report
from support.service import Service, somebody_waits

from hugeplan.access.schemas import Role
from hugeplan.artifacts.outside import is_host_name
from hugeplan.db.connection import Connection
from hugeplan.db.exchange import Exchange
from hugeplan.db.locks import AdvisoryLock
from hugeplan.fleet.ingest import incoming
from hugeplan.fleet.ingest.names import Claim, settle
from hugeplan.fleet.reparse import reparse
from hugeplan.planner.host_names import is_one_host

FIRST, OTHER = "11" * 16, "22" * 16


async def agent(service: Service, machine_id: str) -> httpx.AsyncClient:
    return service.client(await service.token(Role.AGENT, machine_id=machine_id))


async def send(service: Service, machine_id: str, name: str) -> None:
    async with await agent(service, machine_id) as client:
        answer = await client.post("/api/v1/reports", json=report(machine_id=machine_id, node_name=name))
    assert answer.status_code == 201, answer.text


async def names(service: Service) -> dict[str, str]:
    async with service.database.read() as session:
        return {row[0]: row[1] for row in await session.execute(text("SELECT machine_id, name FROM nodes"))}


async def heard_before(service: Service, machine_id: str, hours: float) -> None:
    await service.listens()
    async with service.database.write() as session:
        for table, heard_at in (("nodes", "last_report_at"), ("tokens", "last_used_at")):
            statement = f"UPDATE {table} SET {heard_at} = {heard_at} - make_interval(hours => :hours)"
            await session.execute(text(f"{statement} WHERE machine_id = :m"), {"hours": hours, "m": machine_id})


async def test_a_name_that_a_page_shows_as_anothers_is_written_out(service: Service) -> None:
    await send(service, FIRST, "db-2")
    for odd, shown in ((" db-2", "\\u0020db-2"), ("db-2 ", "db-2\\u0020"), ("db\u20112", "db\\u20112")):
        for _ in range(2):
            await send(service, OTHER, odd)
            assert await names(service) == {FIRST: "db-2", OTHER: shown}


@pytest.mark.parametrize("older", [FIRST, OTHER])
async def test_a_name_is_the_machines_that_said_it_first(service: Service, older: str) -> None:
    """However long the other is known under another name."""
    await send(service, older, "web-7")
    await send(service, FIRST, "prod-db")
    for _ in range(2):
        await send(service, OTHER, "prod-db")
        assert await names(service) == {FIRST: "prod-db", OTHER: f"prod-db (machine {OTHER[:8]})"}
    await send(service, FIRST, "prod-db")
    assert (await names(service))[FIRST] == "prod-db"
    await send(service, OTHER, "web-7")
    assert (await names(service))[OTHER] == "web-7"


@pytest.mark.parametrize(
    ("has", "says", "is_free"),
    [
        ("prod-db", "PROD-DB", False),
        ("prod-db", "prod-db.evil.example", False),
        ("Prod-DB.example.com", "prod-db", False),
        ("prod-db.eu.example.com", "prod-db.us.example.com", True),
        ("10.0.0.5", "10.0.0.6", True),
        ("10", "10.0.0.6", True),
        ("prod-db", "prod-db-2", True),
    ],
)
async def test_names_of_one_host_are_one_name(service: Service, has: str, says: str, is_free: bool) -> None:
    """As ``hugeplan apply`` takes them for one."""
    await send(service, FIRST, has)
    await send(service, OTHER, says)
    assert await names(service) == {FIRST: has, OTHER: says if is_free else f"{says} (machine {OTHER[:8]})"}
    assert (has == "10") or is_one_host(has, says) is not is_free


async def test_a_report_that_changes_nothing_takes_no_name(service: Service) -> None:
    async with await agent(service, OTHER) as client:
        first = report(machine_id=OTHER, node_name="prod-db")
        for document in (first, report(machine_id=OTHER, node_name="web-7")):
            assert (await client.post("/api/v1/reports", json=document)).status_code == 201
        await send(service, FIRST, "prod-db")
        await heard_before(service, FIRST, 30)  # its name is free for who reports it now
        old = report(machine_id=OTHER, node_name="prod-db")
        old["created_at"] = old["sample"]["taken_at"] = "2026-11-20T12:00:00Z"
        for document in (first, old):
            assert (await client.post("/api/v1/reports", json=document)).status_code in {200, 201}
    assert await names(service) == {FIRST: "prod-db", OTHER: "web-7"}


async def test_reports_at_once_give_a_name_to_one(service: Service) -> None:
    machines = [f"{number:032x}" for number in range(1, 9)]
    for machine_id in machines:  # so that all have their tokens before the first report
        await service.token(Role.AGENT, machine_id=machine_id)
    await asyncio.gather(*(send(service, machine_id, "prod-db") for machine_id in machines))
    assert sorted((await names(service)).values()).count("prod-db") == 1
    for machine_id in machines:
        await send(service, machine_id, "prod-db")
    assert sorted((await names(service)).values()).count("prod-db") == 1


async def test_only_who_may_get_a_name_waits_while_one_is_settled(service: Service) -> None:
    """A machine that says another's name does so with every report."""
    await send(service, FIRST, "prod-db")
    async with service.database.write() as other:
        await other.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(AdvisoryLock.NAMES)})
        await asyncio.wait_for(send(service, OTHER, "prod-db"), 10)
        free = asyncio.create_task(send(service, OTHER, "web-7"))
        await somebody_waits(other)
    await free
    assert await names(service) == {FIRST: "prod-db", OTHER: "web-7"}


BY_ADDRESS = "'cn-y.10.0.' || i / 256 || '.' || i % 256"


@pytest.mark.parametrize("is_alive", [True, False])
@pytest.mark.parametrize(
    ("has", "says"),
    [
        (f"{BY_ADDRESS} || ' (machine 1)'", "cn-y"),
        (BY_ADDRESS, "cn-y.10.0.3.7"),
        (BY_ADDRESS, "cn-y.10.9.9.9"),
        (BY_ADDRESS, "cn-y"),
        ("'10.0.' || i / 256 || '.' || i % 256", "10"),
        ("'cn-y' || i || '.example'", "cn-y7"),
        ("'cn-y' || i", "CN-Y7.other.example"),
    ],
)
async def test_names_that_only_begin_alike_are_not_read(
    service: Service, worker_database: str, *, is_alive: bool, has: str, says: str
) -> None:
    """All names of a cloud's nodes may; where each is the same host's, one that reports is enough."""
    async with await AsyncConnection.connect(worker_database) as connection:
        await connection.execute("TRUNCATE nodes CASCADE")  # no dead rows of other tests
    await send(service, FIRST, "n")
    await heard_before(service, FIRST, 48)
    copies = (
        "INSERT INTO nodes SELECT (jsonb_populate_record(n, jsonb_build_object('id', gen_random_uuid(), 'machine_id',"
        f" md5(CAST(i AS text)), 'name', {has}))).* FROM nodes n, generate_series(1, 5000) i"
    )
    read = "SELECT pg_stat_get_xact_blocks_fetched(CAST('nodes' AS regclass))"
    async with await Connection.connect(worker_database, autocommit=True) as connection:
        for statement in (copies, "VACUUM ANALYZE nodes", "BEGIN"):
            await connection.execute(statement)
        await connection.execute("UPDATE listening SET since = now() - make_interval(days => %s)", [2 * (not is_alive)])
        (before,) = await (await connection.execute(read)).fetchone() or (0,)
        shown = await settle(Exchange(connection, None), [Claim(datetime.now(UTC), OTHER, says)])
        (after,) = await (await connection.execute(read)).fetchone() or (0,)
    is_held = says not in {"cn-y.10.9.9.9", "10"} and "(machine" not in has
    is_refused = is_held and (is_alive or says == "cn-y")  # as many as that give nothing up
    assert shown == {(OTHER, says): f"{says} (machine {OTHER[:8]})" if is_refused else says}
    assert after - before < 20 or is_held > is_refused, "who had the name is told apart then, once"


async def test_a_machine_that_is_set_up_anew_gets_the_name_of_one_that_is_gone(service: Service) -> None:
    await send(service, FIRST, "prod-db")
    await heard_before(service, FIRST, 23)
    await send(service, OTHER, "prod-db")
    assert (await names(service))[OTHER] != "prod-db"
    await heard_before(service, FIRST, 2)
    await send(service, OTHER, "prod-db")
    for _ in range(2):
        assert await names(service) == {FIRST: f"prod-db (machine {FIRST[:8]})", OTHER: "prod-db"}
        await send(service, FIRST, "prod-db")


@pytest.mark.parametrize(
    "cause",
    [
        "UPDATE listening SET since = now() - interval '23 hours'",  # away for a day
        "UPDATE listening SET until = now() - interval '1 minute'",  # PostgreSQL is back, or its clock has moved
        "UPDATE tokens SET last_used_at = now()",  # the clock of the service that takes its reports is behind
    ],
)
async def test_a_machine_that_could_not_be_heard_keeps_its_name_as_long(service: Service, cause: str) -> None:
    await send(service, FIRST, "prod-db")
    await send(service, OTHER, "web-7")
    await heard_before(service, FIRST, 30)
    async with service.database.write() as session:
        await session.execute(text(cause))
    await send(service, OTHER, "prod-db")
    assert await names(service) == {FIRST: "prod-db", OTHER: f"prod-db (machine {OTHER[:8]})"}
    await heard_before(service, FIRST, 2 * 24)
    await send(service, OTHER, "prod-db")
    assert (await names(service))[OTHER] == "prod-db"


async def test_silent_machines_give_a_name_up_once(service: Service) -> None:
    machines = [f"{number:032x}" for number in range(1, 16)]
    for number, machine_id in enumerate(machines):
        await send(service, machine_id, f"db.eu{number}.example")
        await heard_before(service, machine_id, 25)
    await send(service, FIRST, "db")
    apart = {one: f"db.eu{number}.example (machine 00000000)" for number, one in enumerate(machines)}
    assert await names(service) == apart | {FIRST: "db"}
    await send(service, FIRST, "web-7")
    async with service.database.write() as held:
        await held.execute(text("SELECT FROM nodes WHERE machine_id <> :m FOR UPDATE"), {"m": FIRST})
        await asyncio.wait_for(send(service, FIRST, "db"), 10)
    assert await names(service) == apart | {FIRST: "db"}, "none was asked for"


async def enrolled(service: Service, pattern: str, name: str) -> httpx.AsyncClient:
    """OTHER's agent, with a token that was enrolled for names of a pattern."""
    async with await service.client_as(Role.ADMIN) as admin:
        body: dict[str, Any] = {"name": pattern, "role": "enrolment", "limits": {"name_pattern": pattern}}
        token = (await admin.post("/api/v1/tokens", json=body)).json()["token"]
    async with service.client(token) as newcomer:
        body = {"machine_id": OTHER, "node_name": name}
        return service.client((await newcomer.post("/api/v1/enrolments", json=body)).json()["token"])


async def test_a_machine_has_only_names_that_its_enrolment_allows(service: Service) -> None:
    async with await enrolled(service, "web-*", "web-7") as agent_of_it:
        for name, shown in (("prod-db", f"prod-db (machine {OTHER[:8]})"), ("web-8", "web-8")):
            answer = await agent_of_it.post("/api/v1/reports", json=report(machine_id=OTHER, node_name=name))
            assert answer.status_code == 201, answer.text
            assert await names(service) == {OTHER: shown}
    await send(service, FIRST, "prod-db")
    assert (await names(service))[FIRST] == "prod-db"


async def unread(sender: httpx.AsyncClient, name: str) -> None:
    """A report that this service cannot read yet: it reads no schema at all."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(incoming, "SCHEMA_VERSION", 0)
        answer = await sender.post("/api/v1/reports", json=report(machine_id=OTHER, node_name=name))
    assert (answer.status_code, answer.json()["state"]) == (201, "newer_schema")


@pytest.mark.parametrize("is_revoked", [False, True])
@pytest.mark.parametrize("pattern", ["web-*", "*"])
async def test_a_report_that_is_read_later_gives_its_node_no_other_name(
    service: Service, pattern: str, *, is_revoked: bool
) -> None:
    """Neither one that its enrolment does not allow, nor one of a silent machine; its next report may."""
    await send(service, FIRST, "prod-db")
    await heard_before(service, FIRST, 30)
    async with await enrolled(service, pattern, "web-7") as sender:
        await sender.post("/api/v1/reports", json=report(machine_id=OTHER, node_name="web-7"))
        await unread(sender, "prod-db")
        if is_revoked:
            async with service.database.write() as session:
                await session.execute(text("UPDATE tokens SET revoked_at = now() WHERE machine_id = :m"), {"m": OTHER})
    assert (await reparse(service.database)).reports == 1
    assert await names(service) == {FIRST: "prod-db", OTHER: "web-7"}
    async with service.database.read() as session:
        codes = list(await session.scalars(text("SELECT code FROM node_findings")))
    assert "name_of_another" not in codes, "whose the name is was not asked"


@pytest.mark.parametrize(("says", "shown"), [("web-7", "web-7"), ("prod-db", f"prod-db (machine {OTHER[:8]})")])
async def test_a_node_that_is_first_known_by_an_unread_report_has_the_name_that_its_enrolment_allows(
    service: Service, says: str, shown: str
) -> None:
    document = report(machine_id=OTHER, node_name=says)
    document["sample"]["taken_at"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()  # as new as its arrival
    async with await enrolled(service, "web-*", "web-7") as sender:
        answer = await sender.post("/api/v1/reports", json=document | {"schema_version": 2})
    assert (answer.status_code, answer.json()["state"]) == (201, "newer_schema")
    assert await names(service) == {OTHER: shown}
    async with service.database.write() as session:  # the upgrade: what was newer is of a schema that is read
        await session.execute(text("UPDATE reports SET schema_version = 1"))
        kept = {"document": json.dumps(document).encode()}
        await session.execute(text("UPDATE report_documents SET document = :document"), kept)
    assert (await reparse(service.database)).reports == 1
    assert await names(service) == {OTHER: shown}
    async with service.database.read() as session:
        found = await session.scalar(text("SELECT count(*) FROM node_findings WHERE code = 'name_of_another'"))
    assert found == (says != shown)


@pytest.mark.parametrize("is_old", [False, True])
async def test_a_report_that_says_no_name_keeps_none_that_its_enrolment_does_not_allow(
    service: Service, *, is_old: bool
) -> None:
    """It would be kept from its machine for as long as such reports come, and files would name this host."""
    async with await enrolled(service, "*", "prod-db") as sender:
        await sender.post("/api/v1/reports", json=report(machine_id=OTHER, node_name="prod-db"))
        async with service.database.write() as session:  # as where it enrolled anew by another token
            await session.execute(text("UPDATE tokens SET name_pattern = 'web-*' WHERE machine_id = :m"), {"m": OTHER})
        for _ in range(2):
            if is_old:
                document = report(machine_id=OTHER, node_name="web-7")
                document["created_at"] = document["sample"]["taken_at"] = "2026-11-20T12:00:00Z"
                assert (await sender.post("/api/v1/reports", json=document)).status_code == 201
            else:
                await unread(sender, "prod-db")
            assert await names(service) == {OTHER: f"prod-db (machine {OTHER[:8]})"}
    await send(service, FIRST, "prod-db")
    assert (await names(service))[FIRST] == "prod-db"


async def test_an_upgrade_leaves_each_name_to_one_of_those_that_had_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = [f"{number}" * 32 for number in range(4)]
    for number, machine_id in enumerate(machines):
        await send(service, machine_id, f"n{number}")
    await heard_before(service, machines[0], 30)
    said: list[str] = []
    path = next((REPOSITORY / "migrations" / "versions").glob("*_names.py"))
    with monkeypatch.context() as patched:
        patched.setattr("alembic.op.execute", said.append)
        runpy.run_path(str(path))["upgrade"]()
    async with service.database.write() as session:
        await session.execute(text("UPDATE nodes SET name = 'db-1' WHERE name <> 'n3'"))
        await session.execute(
            text("UPDATE nodes SET name = 'DB-1.example.com' WHERE machine_id = :m"), {"m": machines[2]}
        )
        for statement in said:
            if "UPDATE" in statement:
                await session.execute(text(statement))
    found = await names(service)
    assert found == {
        machines[0]: "db-1 (machine 00000000)",
        machines[1]: "db-1",
        machines[2]: "DB-1.example.com (machine 22222222)",
        machines[3]: "n3",
    }


async def test_no_file_is_made_for_a_machine_that_says_anothers_name(service: Service) -> None:
    await send(service, FIRST, "prod-db")
    await send(service, OTHER, "prod-db")
    async with await service.client_as(Role.VIEWER) as viewer:
        nodes: list[dict[str, Any]] = (await viewer.get("/api/v1/nodes")).json()["items"]
    assert [is_host_name(node["name"]) for node in sorted(nodes, key=lambda node: node["name"])] == [True, False]
