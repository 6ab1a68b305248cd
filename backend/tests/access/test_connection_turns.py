"""Connections in turns: nobody has most of them, and nobody waits for all that another asks."""

from __future__ import annotations

import asyncio
from uuid import UUID

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.pool import QueuePool
from support.service import Service, somebody_waits

from hugeplan.access.schemas import Role
from hugeplan.db.models import PlanRow
from hugeplan.db.session import ReadSession
from hugeplan.scenarios import plan_answers

SCENARIO = {"node": {"name": "n", "memory": "64GiB"}, "databases": [{"name": "a", "engine": "postgresql"}]}


async def test_who_reads_much_has_few_connections_and_keeps_nobody_waiting_for_all_of_it(
    service: Service, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    """Two viewers with eight lists each had all connections for 4 s; with four, others were answered 503."""
    pool = service.database.engine.pool
    assert isinstance(pool, QueuePool)
    readers = [await service.client_as(Role.VIEWER) for _ in range(4)]
    for known in (planner, admin, *readers):  # whom the gate does not know yet it looks up
        assert (await known.get("/api/v1/session")).status_code == 200
    body = {"name": "kept", "scenario": SCENARIO}
    assert (await planner.post("/api/v1/scenarios", json=body)).status_code == 201
    done: list[str] = []

    async def ask(client: httpx.AsyncClient, whose: str) -> int:
        answer = await client.get("/api/v1/runs")
        done.append(whose)
        return answer.status_code

    async with service.database.write() as session:
        before = pool.checkedout()
        await session.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
        asked = [asyncio.create_task(ask(reader, f"reader {n}")) for n, reader in enumerate(readers) for _ in range(8)]
        await somebody_waits(session)
        # Others are not kept from writing, and the service is ready.
        written = await asyncio.create_task(planner.post("/api/v1/scenarios", json=body))
        assert written.status_code == 201, written.text
        assert (await asyncio.create_task(service.client().get("/readyz"))).status_code == 200
        async with asyncio.timeout(10):
            while pool.checkedout() - before > 1 + 2:  # background work has one for a moment
                await asyncio.sleep(0.01)
        asked.append(asyncio.create_task(ask(admin, "another")))
        while service.app.state.intake.connections._of_all.turn("reads").asked < 5:
            await asyncio.sleep(0.01)
    assert await asyncio.gather(*asked) == [200] * 33
    assert done.index("another") < 8


async def test_nobody_waits_for_a_plan_of_one_whose_other_requests_wait(
    planner: httpx.AsyncClient, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place of all who read kept plans was held behind one credential's seven lists: others waited 13 s."""
    made = await planner.post("/api/v1/plans", json={"scenario": SCENARIO})
    url, goes_on, reading = f"/api/v1/plans/{made.json()['id']}", asyncio.Event(), list[str]()
    stored_plan = plan_answers.stored_plan

    async def behind_its_own(session: ReadSession, plan_id: UUID) -> PlanRow:
        reading.append("")
        if len(reading) == 1:
            await goes_on.wait()
        return await stored_plan(session, plan_id)

    monkeypatch.setattr(plan_answers, "stored_plan", behind_its_own)
    first = asyncio.create_task(planner.get(url))
    async with asyncio.timeout(30):
        while not reading:
            await asyncio.sleep(0.01)
        answer = await viewer.get(url)
    goes_on.set()
    assert [answer.status_code, (await first).status_code] == [200, 200]


async def test_a_turn_ends_with_its_request_however_that_ends(service: Service, viewer: httpx.AsyncClient) -> None:
    for _ in range(5):
        async with service.database.write() as session:
            await session.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
            asked = [asyncio.create_task(viewer.get("/api/v1/runs")) for _ in range(3)]
            await somebody_waits(session)
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
    assert (await viewer.get("/api/v1/runs")).status_code == 200
    turns = service.app.state.intake.connections
    assert not turns._of_one._rooms
    assert not turns._of_all._rooms
