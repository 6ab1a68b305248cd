"""One machine's events: bounded, counted, and no hindrance to another machine's."""

from __future__ import annotations

import asyncio
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from support.reports import MACHINE_ID, report
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.db.maintenance import maintain
from hugeplan.events import repository
from hugeplan.events.delivery import _DUE, Courier
from hugeplan.events.sending import Outcome
from hugeplan.fleet.findings.base import attention, wrong
from hugeplan.fleet.hardware_state import MeasuredState
from hugeplan.fleet.ingest.in_force import LABEL
from hugeplan.fleet.ingest.node_update import Node

START = datetime(2026, 11, 27, 8, tzinfo=UTC)
FINDING = attention("code", "subject", "title", "reason", "fix")


def databases(number: int, unit: str = "systemd:{}.service") -> list[dict[str, Any]]:
    """Databases each of which is a finding, in units of their own."""
    segment = {"bytes": 1 << 32, "kind": "anonymous_shared", "backing": "base"}
    one = {"engine": "postgresql", "huge_pages_status": "partial", "segments": [segment]}
    return [one | {"key": f"{unit}{n:03d}", "main_pid": n + 1, "unit": unit.format(n)} for n in range(number)]


async def send(agent: httpx.AsyncClient, number: int = 0, **changes: Any) -> str:
    document = report(**changes)
    document["sample"]["databases"] = databases(number)
    answer = await agent.post("/api/v1/reports", json=document)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["node_id"])


async def test_one_nodes_events_are_bounded_and_its_findings_are_not(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    for number in (256, 0, 256, 0, 256):
        node_id = await send(agent, number)
    async with service.database.read() as session:
        count = "SELECT count(*) FILTER (WHERE kind <> 'events_left_out'), count(*) FROM events"
        kept, all_kept = (await session.execute(text(count))).one()
    assert kept == 64
    assert all_kept == 65
    (said,) = (await viewer.get("/api/v1/events/history?kind=events_left_out")).json()["items"]
    found = (await viewer.get(f"/api/v1/nodes/{node_id}")).json()["findings"]
    assert len(found) >= 256
    # Of the first report, with node_added.
    assert said["text"].startswith(f"{1 + len(found) - 64} events were left out.")


FLOODS = {
    "a service": ("systemd:a.service", None),
    "sessions": ("systemd:session-{}.scope", None),
    "services of people": ("systemd:user@{}.service", None),
    "containers of one user": ("container:{}", "systemd:user@1.service"),
    "pods of one namespace": ("container:{}", "pod:{}"),
    "cgroups given to one": ("cgroup:/a/{}", None),
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("comes_and_goes", [False, True])
async def test_nobody_silences_what_is_anothers(
    agent: httpx.AsyncClient, viewer: httpx.AsyncClient, flood: str, comes_and_goes: bool
) -> None:
    """However many units and databases somebody makes without root, another's database and the node are heard of."""
    key, parent = FLOODS[flood]
    document = report()
    sample, memory = document["sample"], {"source": "pss"}
    for turn in range(6):
        theirs = databases(256 if turn % 2 == 0 or not comes_and_goes else 0, f"{key.replace('{}', str(turn) + '{}')}")
        units = [
            unit
            for one in theirs
            for name, above in ((one["unit"], parent and parent.format(one["main_pid"])), (parent, None))
            if name is not None
            for unit in [
                {"key": name.format(one["main_pid"]), "kind": "container", "name": "n", "parent": above}
                | {"memory": memory, "pod": {"namespace": "theirs"} if name.startswith("pod") else None}
            ]
        ]
        sample["units"] = [*{unit["key"]: unit for unit in units}.values()]
        sample["databases"] = theirs
        document["report_id"] = str(uuid.uuid4())
        assert (await agent.post("/api/v1/reports", json=document)).status_code == 201
    sample["databases"] = [*theirs[:255], *databases(1, "systemd:postgresql.service")]
    sample["memory"] = {"mem_total_bytes": 1 << 30, "mem_available_bytes": 1 << 20}
    document["report_id"] = str(uuid.uuid4())
    assert (await agent.post("/api/v1/reports", json=document)).status_code == 201
    told = (await viewer.get("/api/v1/events/history?kind=finding_opened&limit=200")).json()["items"]
    assert len(told) < 64
    assert {one["subject"] for one in told} > {"systemd:postgresql.service000"}
    assert "memory_low" in {one["code"] for one in told}


async def test_the_bytes_of_events_count_as_the_tokens(service: Service, agent: httpx.AsyncClient) -> None:
    await send(agent)
    limiter = service.app.state.rate_limiter

    def left() -> float:
        ((level, _),) = limiter._buckets["bytes"].values()
        return float(level)

    before = left()
    await send(agent, 60)
    async with service.database.read() as session:
        kept = await session.scalar(
            text("SELECT sum(length(text) + length(subject)) FROM events WHERE code IS NOT NULL")
        )
    assert before - left() > 3072 + kept


def a_node() -> Node:
    return Node(id=uuid.UUID(int=1), name="n", is_new=False, sampled_at=None, labels_set={}, measured=MeasuredState(),
                findings=[], planned=None)  # fmt: skip


def told(node: Node, minutes: int, *found: Any) -> list[tuple[str, str | None]]:
    """What a report after so many minutes tells."""
    node.events.clear()
    node._keep(list(found), START + timedelta(minutes=minutes))
    assert [one.code for one in node.findings] == [one.code for one in found]
    return [(event.kind, event.state) for event in node.events]


def test_a_finding_that_comes_and_goes_is_told_until_it_is_calm() -> None:
    node, opened = a_node(), [("finding_opened", "attention")]
    assert told(node, 0, FINDING) == opened
    assert told(node, 1) == [("finding_closed", None)]
    assert told(node, 2, FINDING) == opened
    for minute in range(3, 60, 2):
        assert told(node, minute) == []
        assert told(node, minute + 1, FINDING) == []
    assert told(node, 61) == []
    assert told(node, 90) == []
    # Its readers know it as open until it has been away for half an hour.
    assert told(node, 91) == [("finding_closed", None)]
    assert told(node, 92, FINDING) == opened


def test_a_finding_that_comes_again_as_another_is_told() -> None:
    node = a_node()
    worse = wrong("code", "subject", "title", "reason", "fix")
    for minute, found in enumerate(([FINDING], [], [FINDING], [])):
        told(node, minute, *found)
    assert told(node, 5, worse) == [("finding_changed", "wrong")]
    # One that then stays is known as it is.
    assert told(node, 90, worse) == []
    assert told(node, 91) == [("finding_closed", None)]


async def test_no_plan_comes_in_force_without_a_word(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """A label is followed by the first report that can say so."""
    node_id = await send(agent, 256)
    body = {"scenario": {"databases": [{"name": "db", "engine": "postgresql", "settings": {"shared_buffers": "1GB"}}]}}
    kept = await planner.post("/api/v1/plans?force=true", json=body | {"node_id": node_id})
    assert kept.status_code == 201, kept.text
    label = {LABEL: kept.json()["id"]}
    for room, in_force in ((False, None), (True, kept.json()["id"])):
        if room:
            async with service.database.engine.begin() as connection:
                await connection.execute(text("UPDATE node_states SET told = NULL"))
        await send(agent, 256, labels=label)
        found = (await planner.get(f"/api/v1/nodes/{node_id}")).json()["plan_in_force"]
        assert (None if found is None else found["plan_id"]) == in_force
    events = (await planner.get("/api/v1/events/history?kind=plan_in_force_set")).json()["items"]
    assert [event["text"].endswith("nobody approved it.") for event in events] == [True]


async def test_late_reports_do_not_say_again_what_was_left_out(service: Service, agent: httpx.AsyncClient) -> None:
    await send(agent, 256)
    now = datetime.now(UTC)
    for late in range(1, 6):
        document = report()
        document["sample"]["taken_at"] = (now - timedelta(hours=2, seconds=late)).isoformat()
        async with service.database.engine.begin() as connection:
            changed = "UPDATE node_states SET told = jsonb_set(told, '{said_at}', 'null') || '{\"left_out\": 3}'"
            await connection.execute(text(changed))
        assert (await agent.post("/api/v1/reports", json=document)).status_code == 201
    async with service.database.read() as session:
        count = "SELECT count(*) FROM events WHERE kind = 'events_left_out'"
        assert (await session.execute(text(count))).scalar_one() == 1


def test_a_clock_that_was_ahead_does_not_silence_a_node() -> None:
    node = a_node()
    told(node, 60 * 24 * 40, *(attention("code", str(n), "t", "r", "f") for n in range(64)))
    assert told(node, 0, FINDING) == []
    assert told(node, 61, FINDING, wrong("other", "n", "t", "r", "f")) == [("finding_opened", "wrong")]


async def test_many_events_of_newcomers_hold_back_no_machine_that_is_known(
    service: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are all of them read, once per second: thousands of machines leave millions. Clones are never known."""
    monkeypatch.setattr(repository, "COUNTED", 1000)
    flood, other = await service.client_as(Role.AGENT), await service.client_as(Role.AGENT)
    inventory = report()["inventory"]
    for clone in range(4):
        hints = inventory | {"clone_hints": {"dmi_sha256": f"{clone:064x}"}}
        await send(flood, inventory=hints)
    await send(other, machine_id="f" * 32, node_name="other")
    rows = (
        "INSERT INTO events (at, kind, node_id, node_name, text) SELECT now(), 'finding_opened', id, name, 'x'"
        " FROM nodes, generate_series(1, :number) WHERE split_part(machine_id, '~', 1) = :machine"
    )
    sent: list[bytes] = []

    async def receive(_: str, body: bytes, __: object) -> Outcome:
        sent.append(body)
        return Outcome(503, "busy") if len(sent) % 6 == 0 else Outcome(200, None)

    # The service's own courier has a receiver that is away.
    hook = {"name": "a", "url": "http://127.0.0.1:1/", "kinds": ["finding_opened"]}
    assert (await admin.post("/api/v1/webhooks", json=hook)).status_code == 201
    async with service.database.write() as session:
        old = "SET first_report_at = now() - interval '2 days' WHERE name = 'other' OR machine_id LIKE '%~%'"
        await session.execute(text(f"UPDATE nodes {old}"))
        for machine, number in ((MACHINE_ID, 300), ("f" * 32, 2), (MACHINE_ID, 300)):
            await session.execute(text(rows), {"machine": machine, "number": number})
    async with asyncio.timeout(20):
        while sum(b'"other"' in body for body in sent) < 2:
            async with service.database.write() as session:
                await session.execute(text("UPDATE webhook_deliveries SET next_attempt_at = now()"))
            courier = Courier(service.database, receive)
            await courier.round()
            await courier.settle()
    assert len(sent) <= 12
    (listed,) = (await admin.get("/api/v1/webhooks")).json()["items"]
    assert (listed["pending"], bool(listed["last_error"])) == (1000, True)
    async with service.database.engine.connect() as connection:
        read = (await connection.execute(text(f"EXPLAIN (ANALYZE, FORMAT JSON) {_DUE}"))).scalar_one()
    assert max(map(int, re.findall(r"'Actual Rows': (\d+)", str(read)))) == 1
    async with service.database.write() as session:
        await session.execute(text("DELETE FROM events WHERE id < (SELECT max(id) FROM events)"))
    async with asyncio.timeout(20):
        while listed["failed"] < 999:  # the service's own round may be at it
            assert await maintain(service.database, service.app.state.settings, datetime.now(UTC)) is None
            (listed,) = (await admin.get("/api/v1/webhooks")).json()["items"]


async def test_a_page_of_past_events_looks_through_a_bounded_number(
    service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "SCANNED", 5)
    add = (
        "INSERT INTO events (at, kind, code, text)"
        " VALUES (now() - :age * interval '1 day', 'finding_opened', :code, 'x')"
    )
    async with service.database.write() as session:
        for age in range(20, 0, -1):
            await session.execute(text(add), {"age": age, "code": "rare" if age in {20, 12, 11} else "usual"})

    async def pages(**query: Any) -> list[int]:
        sizes, cursor = [], None
        while True:
            asked = query | ({} if cursor is None else {"cursor": cursor})
            page = (await viewer.get("/api/v1/events/history", params=asked)).json()
            sizes.append(len(page["items"]))
            cursor = page["next_cursor"]
            if cursor is None:
                return sizes

    assert await pages(code="rare") == [0, 0, 2, 1]
    assert sum(await pages(code="rare", limit=1)) == 3
    assert await pages(code="none", since=(datetime.now(UTC) - timedelta(days=7)).isoformat()) == [0, 0]
    assert sum(await pages()) == 20
