"""Fleet plans that are kept are bounded: in number and bytes, of one credential and in all; the oldest go first."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import select, update
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.db.models import FleetPlanGroupRow, FleetPlanNodeRow, FleetPlanRow
from hugeplan.fleet_plans import repository, room
from hugeplan.fleet_plans.service import FINISHED
from hugeplan.settings import Settings

NOW = datetime.now(UTC)
MINE, THEIRS = uuid.uuid4(), uuid.uuid4()


def job(at: int, author: uuid.UUID | None = MINE, *, status: str = "done", size: int = 0) -> FleetPlanRow:
    """The larger ``at``, the later it ended."""
    ended = NOW + timedelta(seconds=at) if status in FINISHED else None
    return FleetPlanRow(
        id=uuid.uuid4(), name=f"{at}", created_at=NOW, created_by="p", status=status, selector={}, model_version="1",
        nodes_total=1, nodes_done=1, plans_computed=1, finished_at=ended, heartbeat_at=NOW, author_id=author,
        stored_bytes=size,
    )  # fmt: skip


async def kept(service: Service, author: uuid.UUID, jobs: list[FleetPlanRow], **bounds: int) -> set[str]:
    """The names of the jobs that are there when room has been made."""
    settings = Settings().model_copy(update=bounds)
    async with service.database.write() as session:
        session.add_all(jobs)
    await room.make_room(service.database, settings, author)
    async with service.database.read() as session:
        return set((await session.scalars(select(FleetPlanRow.name))).all())


async def test_the_oldest_of_ones_own_go_and_nobody_elses(service: Service) -> None:
    jobs = [job(at) for at in (3, 1, 2)] + [job(0, THEIRS), job(-1, None)]
    assert await kept(service, MINE, jobs, max_fleet_plans=8) == {"2", "3", "0", "-1"}


async def test_the_oldest_of_all_go(service: Service) -> None:
    jobs = [job(at, author) for at, author in ((1, MINE), (2, THEIRS), (3, None), (4, None), (5, THEIRS))]
    assert await kept(service, uuid.uuid4(), jobs, max_fleet_plans=3) == {"3", "4", "5"}


async def test_bytes_count_and_the_newest_stays_however_large(service: Service) -> None:
    jobs = [job(at, size=1_000_000) for at in range(4)] + [job(9, THEIRS, size=9_000_000)]
    assert await kept(service, MINE, jobs, max_fleet_plans_bytes=8_000_000) == {"9"}
    jobs = [job(at, size=1_000_000) for at in range(20, 24)]
    assert await kept(service, MINE, jobs, max_fleet_plans_bytes=12_000_000) == {"21", "22", "23", "9"}


async def test_no_request_waits_until_they_are_gone(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten went in one of a planner's requests: each has a line per node, and a plan per group."""
    await agent.post("/api/v1/reports", json=report())
    state = service.app.state
    monkeypatch.setitem(state._state, "settings", state.settings.model_copy(update={"max_fleet_plans": 4}))
    async with service.database.write() as session:
        session.add_all([job(at) for at in range(6)])
    assert (await planner.post("/api/v1/fleet/plan", json={})).status_code == 202
    assert len((await planner.get("/api/v1/fleet/plans")).json()["items"]) == 7
    await state.fleet_plan_runner.close()


async def test_one_that_has_not_ended_never_goes(service: Service) -> None:
    jobs = [job(1, status="running"), job(2, status="queued"), job(3), job(4)]
    assert await kept(service, MINE, jobs, max_fleet_plans=4) == {"1", "2", "4"}


async def test_as_many_wait_as_may_and_another_is_refused(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    await agent.post("/api/v1/reports", json=report())
    other = await service.client_as(Role.PLANNER)
    sent = [await planner.post("/api/v1/fleet/plan", json={}) for _ in range(room.WAITING_OF_ONE)]
    assert {one.status_code for one in sent} == {202}
    # However many of them have ended meanwhile: they wait again.
    async with service.database.write() as session:
        await session.execute(update(FleetPlanRow).values(status="queued", finished_at=None))
    refused = await planner.post("/api/v1/fleet/plan", json={})
    assert "20 fleet plans" in assert_problem(refused, 409, "conflict")["detail"]
    assert (await other.post("/api/v1/fleet/plan", json={})).status_code == 202
    await service.app.state.fleet_plan_runner.close()


async def test_some_credentials_leave_room_for_others(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.post("/api/v1/reports", json=report())
    await service.app.state.fleet_plan_runner.close()
    monkeypatch.setattr(room, "WAITING", 8)
    counts = []
    for _ in range(5):
        client = await service.client_as(Role.PLANNER)
        answers = [await client.post("/api/v1/fleet/plan", json={}) for _ in range(5)]
        counts.append(sum(answer.status_code == 202 for answer in answers))
    assert counts == [4, 2, 1, 1, 0]
    assert assert_problem(answers[-1], 409, "conflict")["detail"].startswith(
        "8 fleet plans have not ended, too many for"
    )


async def test_a_job_is_as_large_as_what_is_stored_of_it(service: Service) -> None:
    small, large = job(1), job(2)
    large.scenario = {"t": [str(uuid.uuid4()) for _ in range(1000)]}
    rows = [
        FleetPlanGroupRow(fleet_plan_id=large.id, number=0, nodes=1, headline="h", pools=[], plan=large.scenario),
        FleetPlanNodeRow(
            fleet_plan_id=large.id, position=0, node_id=uuid.uuid4(), name="n", severity=0, exceptions=["x"],
            mem_total_bytes=1,
        ),
    ]  # fmt: skip
    async with service.database.write() as session:
        session.add_all([small, large])
        await session.flush()
        session.add_all(rows)
    async with service.database.write() as session:
        for each in (small, large):
            await repository.measure_job(session, each.id)
    async with service.database.read() as session:
        found = {row[0]: row[1] for row in await session.execute(select(FleetPlanRow.name, FleetPlanRow.stored_bytes))}
    assert 0 < found["1"] < 1000
    # Random text does not compress, and is there twice.
    assert found["2"] > 60_000
