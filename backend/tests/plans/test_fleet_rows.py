"""The rows of a fleet plan: each opens its own plan, and a decision about the fleet plan is one about its rows."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import select
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.api.beside import RequestSandbox
from hugeplan.db.models import EventRow
from hugeplan.plans import fleet_rows
from hugeplan.plans import service as plans_service

API = "/api/v1"
WHILE = 60.0
SCENARIO = {
    "databases": [{"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}]
}


@pytest_asyncio.fixture
async def job(service: Service, planner: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    """A finished fleet plan of two nodes."""
    agents = [await service.client_as(Role.AGENT) for _ in range(2)]
    for number, agent in enumerate(agents, start=1):
        sent = await agent.post(f"{API}/reports", json=report(machine_id=f"{number:032x}"))
        assert sent.status_code == 201, sent.text
    begun = (await planner.post(f"{API}/fleet/plan", json={"scenario": SCENARIO})).json()
    async with planner.stream("GET", f"{API}/fleet/plans/{begun['id']}/progress") as stream:
        await stream.aread()
    found = (await planner.get(f"{API}/fleet/plans/{begun['id']}")).json()
    assert found["status"] == "done", found
    yield found
    await service.app.state.fleet_plan_runner.close()


async def rows(client: httpx.AsyncClient, job: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a fleet plan."""
    found: list[dict[str, Any]] = (await client.get(f"{API}/fleet/plans/{job['id']}/nodes")).json()["items"]
    return found


async def test_a_row_opens_exactly_its_plan(planner: httpx.AsyncClient, job: dict[str, Any]) -> None:
    for row in await rows(planner, job):
        url = f"{API}/fleet/plans/{job['id']}/nodes/{row['node_id']}/plan"
        made, again = await planner.post(url), await planner.post(url)
        assert (made.status_code, again.status_code) == (201, 200), made.text
        plan = made.json()
        assert again.json()["id"] == plan["id"]
        assert (plan["node_id"], plan["fleet_plan_id"]) == (row["node_id"], job["id"])
        group = (await planner.get(f"{API}/fleet/plans/{job['id']}/groups/{row['group_number']}")).json()
        pools = [{name: pool[name] for name in ("numa_node", "page_bytes", "pages")} for pool in plan["plan"]["pools"]]
        assert [pool for pool in pools if pool["pages"]] == group["pools"]
        assert plan["plan"]["net_memory"]["locked_bytes"] == row["locked_bytes"]


async def test_a_row_that_several_open_at_once_has_one_plan(
    planner: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, all_have = fleet_rows._computed, asyncio.Barrier(3)

    async def at_once(*given: Any) -> Any:
        made = await computed(*given)
        await all_have.wait()
        return made

    monkeypatch.setattr(fleet_rows, "_computed", at_once)
    (row, *_) = await rows(planner, job)
    url = f"{API}/fleet/plans/{job['id']}/nodes/{row['node_id']}/plan"
    opened = await asyncio.gather(*(planner.post(url) for _ in range(3)))
    assert sorted(one.status_code for one in opened) == [200, 200, 201]
    assert len({one.json()["id"] for one in opened}) == 1
    assert len((await planner.get(f"{API}/plans", params={"fleet_plan_id": job["id"]})).json()["items"]) == 1


async def test_deciding_about_the_fleet_plan_decides_about_its_rows(
    admin: httpx.AsyncClient, planner: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", WHILE)
    url = f"{API}/fleet/plans/{job['id']}/decisions"
    assert_problem(await planner.post(url, json={"to": "approve"}), 403, "forbidden")
    early = (await admin.post(url, json={"to": "approve"})).json()
    assert early["done"] == 0
    assert all("not proposed" in row["reason"] for row in early["skipped"])
    for to in ("propose", "approve", "in_force"):
        client = admin if to == "approve" else planner
        if to == "approve":
            early = (await planner.post(url, json={"to": "in_force"})).json()
            assert (early["done"], len(early["skipped"])) == (0, 2)
            assert all("is proposed; only one that is approved" in row["reason"] for row in early["skipped"])
        done = (await client.post(url, json={"to": to})).json()
        assert (done["done"], done["skipped"], done["next"]) == (2, [], None), (to, done)
    again = (await planner.post(url, json={"to": "propose"})).json()
    assert (again["done"], again["already"]) == (0, 2)
    states = (await planner.get(f"{API}/plans", params={"fleet_plan_id": job["id"]})).json()["items"]
    assert [plan["state"] for plan in states] == ["in_force", "in_force"]
    assert {plan["approved_by"] for plan in states} == {"test admin"}


async def test_time_in_which_others_had_the_processor_ends_no_call(
    planner: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look at the clock finds ten seconds gone, as where a hundred others compute."""
    clock = SimpleNamespace(monotonic=itertools.count(0.0, 10.0).__next__, process_time=time.process_time)
    monkeypatch.setattr(fleet_rows, "time", clock)
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", 2.0)
    done = (await planner.post(f"{API}/fleet/plans/{job['id']}/decisions", json={"to": "propose"})).json()
    assert (done["done"], done["next"]) == (2, None)


@pytest.mark.parametrize(("most", "done_rows"), [(0.5 * WHILE, 1), (1.5 * WHILE, 2)])
async def test_work_in_the_sandbox_counts_as_the_calls_own(
    planner: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch, most: float, done_rows: int
) -> None:
    """And what was computed is written."""
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", most)
    spend = lambda own, _: setattr(own, "used_seconds", own.used_seconds + WHILE)  # noqa: E731
    monkeypatch.setattr(RequestSandbox, "_spend", spend)
    clock = SimpleNamespace(monotonic=itertools.count(0.0, WHILE).__next__, process_time=time.process_time)
    monkeypatch.setattr(fleet_rows, "time", clock)
    done = (await planner.post(f"{API}/fleet/plans/{job['id']}/decisions", json={"to": "propose"})).json()
    assert done["done"] == done_rows
    assert (done["next"] is None) == (done_rows == 2)


STEPS = {"propose": "propose_new", "approve": "approve", "in_force": "put_in_force"}


@pytest.mark.parametrize("step", STEPS)
async def test_writing_rows_counts_as_the_calls_own(
    admin: httpx.AsyncClient, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Meanwhile the nodes of all rows are locked. What was computed before has its own time."""
    url = f"{API}/fleet/plans/{job['id']}/decisions"
    for to in itertools.takewhile(step.__ne__, STEPS):
        after, is_first = None, True
        while is_first or after is not None:
            after, is_first = (await admin.post(url, json={"to": to, "after": after})).json()["next"], False
    now = [0.0]
    monkeypatch.setattr(fleet_rows, "time", SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: now[0]))
    written = getattr(plans_service, STEPS[step])

    def long(*given: Any, **named: Any) -> Any:
        now[0] += WHILE
        return written(*given, **named)

    monkeypatch.setattr(plans_service, STEPS[step], long)
    first = (await admin.post(url, json={"to": step})).json()
    assert (first["done"], first["already"], first["skipped"]) == (1, 0, [])
    second = (await admin.post(url, json={"to": step, "after": first["next"]})).json()
    assert (second["done"], second["next"]) == (1, None)


@pytest.mark.parametrize(("seconds", "expected"), [(WHILE, [3, 3, 1]), (-1.0, [1] * 7)])
async def test_parts_of_a_decision_leave_no_row_out_and_take_none_twice(
    service: Service, planner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, seconds: float, expected: list[int]
) -> None:
    """However many rows a call takes, in whatever time, and however many of them are read at a time."""
    monkeypatch.setattr(fleet_rows, "SECONDS_PER_CALL", seconds)
    monkeypatch.setattr(fleet_rows, "ROWS_PER_CALL", 3)
    monkeypatch.setattr(fleet_rows, "ROWS_READ", 2)
    agent_of = [await service.client_as(Role.AGENT) for _ in range(7)]
    for number, agent in enumerate(agent_of, start=1):
        sent = await agent.post(f"{API}/reports", json=report(machine_id=f"{number:032x}"))
        assert sent.status_code == 201, sent.text
    begun = (await planner.post(f"{API}/fleet/plan", json={"scenario": SCENARIO})).json()
    async with planner.stream("GET", f"{API}/fleet/plans/{begun['id']}/progress") as stream:
        await stream.aread()
    opened = (await rows(planner, begun))[3]["node_id"]
    assert (await planner.post(f"{API}/fleet/plans/{begun['id']}/nodes/{opened}/plan")).status_code == 201
    url, after, parts = f"{API}/fleet/plans/{begun['id']}/decisions", None, []
    while not parts or after is not None:
        part = (await planner.post(url, json={"to": "propose", "after": after})).json()
        assert part["skipped"] == []
        parts.append(part["done"])
        after = part["next"]
    assert parts == expected
    plans = (await planner.get(f"{API}/plans", params={"fleet_plan_id": begun["id"]})).json()["items"]
    assert len({plan["node_id"] for plan in plans}) == len(plans) == 7
    assert {(plan["state"], plan["version"], plan["proposed_by"]) for plan in plans} == {
        ("proposed", 2, "test planner")
    }
    async with service.app.state.database.read() as session:
        said = (await session.scalars(select(EventRow.subject).where(EventRow.kind == "plan_proposed"))).all()
    assert sorted(said) == sorted(plan["id"] for plan in plans)
    await service.app.state.fleet_plan_runner.close()
