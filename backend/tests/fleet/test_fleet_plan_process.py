"""The process that is kept ready for the next fleet plan."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import event, text
from sqlalchemy.pool import QueuePool
from support.reports import report
from support.service import Service

from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet.selector import NodeSelector
from hugeplan.fleet.stored import StoredNode
from hugeplan.fleet_plans import worker
from hugeplan.fleet_plans.lines import LinePlanner, Lines
from hugeplan.fleet_plans.runner import FleetPlanRunner
from hugeplan.fleet_plans.service import Looks
from hugeplan.settings import Settings
from tools.seed.writer import SeedOptions, seed_fleet

DATABASE = {"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}
SCENARIO = {"databases": [DATABASE]}


@pytest_asyncio.fixture
async def runner(service: Service) -> AsyncIterator[FleetPlanRunner]:
    made: FleetPlanRunner = service.app.state.fleet_plan_runner
    yield made
    await made.close()


def ready(runner: FleetPlanRunner) -> asyncio.subprocess.Process:
    assert runner._ready is not None
    return runner._ready


async def planned(planner: httpx.AsyncClient, process: asyncio.subprocess.Process | None = None) -> dict[str, Any]:
    """A job, when it has ended; ``process`` is what runs it, where that is known."""
    job = (await planner.post("/api/v1/fleet/plan", json={"scenario": SCENARIO})).json()
    if process is not None:
        await process.wait()
    async with planner.stream("GET", f"/api/v1/fleet/plans/{job['id']}/progress") as stream:
        await stream.aread()
    found: dict[str, Any] = (await planner.get(f"/api/v1/fleet/plans/{job['id']}")).json()
    return found


async def test_the_job_is_done_by_the_process_that_is_ready(
    runner: FleetPlanRunner, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    await agent.post("/api/v1/reports", json=report())
    await runner.prepare()
    process = ready(runner)
    await runner.prepare()
    assert ready(runner) is process
    job = await planned(planner, process)
    assert (job["status"], job["nodes_done"]) == ("done", 1)
    assert process.returncode == 0
    assert runner._ready is None


async def test_a_process_that_died_while_it_waited_is_not_needed(
    runner: FleetPlanRunner, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    await agent.post("/api/v1/reports", json=report())
    await runner.prepare()
    process = ready(runner)
    process.kill()
    await process.wait()
    assert (await planned(planner))["status"] == "done"
    await runner.prepare()
    assert ready(runner) is not process


async def test_what_is_read_ahead_is_bounded_in_bytes_and_no_node_is_left_out(
    service: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred nodes whose reports have megabytes are more than the memory of a job."""
    await asyncio.to_thread(seed_fleet, settings.psycopg_url(), SeedOptions(nodes=45, seed=80_001, history_days=1))
    job = worker.Job(service.database, settings, uuid.uuid4())
    for most_bytes, parts in ((worker.MOST_BYTES, [45]), (1, [20, 20, 5])):
        monkeypatch.setattr(worker, "MOST_BYTES", most_bytes)
        found = [nodes async for nodes in job._nodes(NodeSelector(synthetic=True))]
        assert [len(nodes) for nodes in found] == parts
        names = [node.name for nodes in found for node in nodes]
        assert names == sorted(set(names))


async def test_no_connection_is_held_while_nodes_are_planned(
    runner: FleetPlanRunner,
    agent: httpx.AsyncClient,
    planner: httpx.AsyncClient,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither when a chunk is handed over nor when its lines come back. That it tells how far it is, is left out.

    A job has its processor time for itself: what this process took before, in the tests that ran, does not count. A
    fleet of twice the nodes that the limit is for has twice the limit.
    """
    most_seconds = 1.0
    assert time.process_time() > most_seconds
    settings = settings.model_copy(update={"fleet_plan_cpu_seconds": most_seconds})
    await agent.post("/api/v1/reports", json=report())
    monkeypatch.setattr(runner, "start", AsyncMock())
    monkeypatch.setattr(worker, "PROGRESS_SECONDS", 60)
    monkeypatch.setattr(worker, "NODES_OF_THE_LIMIT", 0.5)
    job = (await planner.post("/api/v1/fleet/plan", json={"scenario": SCENARIO})).json()
    database = Database(create_engine(settings))
    held: list[int] = []
    told: list[float] = []

    def start(_: object, nodes: list[StoredNode]) -> asyncio.Future[Lines]:
        held.append(pool.checkedout())
        lines = asyncio.get_running_loop().run_in_executor(None, LinePlanner(None).lines, nodes)
        lines.add_done_callback(lambda _: held.append(pool.checkedout()))
        return lines

    monkeypatch.setattr(worker._Planners, "start", start)
    try:
        pool = database.engine.sync_engine.pool
        assert isinstance(pool, QueuePool)
        await worker.Job(database, settings, uuid.UUID(job["id"])).run(told.append)
    finally:
        await database.dispose()
    assert (await planner.get(f"/api/v1/fleet/plans/{job['id']}")).json()["status"] == "done"
    assert held == [0, 0]
    assert told == [2 * most_seconds]


async def test_it_ends_when_nobody_can_give_it_a_job(runner: FleetPlanRunner) -> None:
    await runner.prepare()
    process = ready(runner)
    assert process.stdin is not None
    process.stdin.close()  # what a killed service leaves behind
    assert await process.wait() == 0


async def test_it_ends_with_the_service(runner: FleetPlanRunner) -> None:
    await runner.prepare()
    process = ready(runner)
    await runner.close()
    assert process.returncode is not None


async def test_a_job_that_waits_for_its_turn_is_never_called_dead(
    service: Service, runner: FleetPlanRunner, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """Another job holds the turn for longer than a dead one is silent."""
    await agent.post("/api/v1/reports", json=report())
    async with runner._turn:
        job = (await planner.post("/api/v1/fleet/plan", json={"scenario": SCENARIO})).json()
        async with service.database.write() as session:
            await session.execute(text("UPDATE fleet_plans SET heartbeat_at = now() - interval '1 hour'"))
        await runner.look_after()
        found = (await planner.get(f"/api/v1/fleet/plans/{job['id']}")).json()
        assert found["status"] == "queued"
    async with planner.stream("GET", f"/api/v1/fleet/plans/{job['id']}/progress") as stream:
        await stream.aread()
    assert (await planner.get(f"/api/v1/fleet/plans/{job['id']}")).json()["status"] == "done"


async def test_of_several_workers_one_keeps_a_process_ready(service: Service, settings: Settings) -> None:
    name = uuid.uuid4().hex
    workers = [FleetPlanRunner(service.database, settings) for _ in range(3)]
    try:
        for worker in workers:
            worker.share_ready_process(name)
            await worker.prepare()
        assert [worker._ready is not None for worker in workers] == [True, False, False]
        # When that one ends, another one takes its place.
        await workers[0].close()
        await workers[2].prepare()
        await workers[1].prepare()
        assert [worker._ready is not None for worker in workers[1:]] == [False, True]
    finally:
        for worker in workers:
            await worker.close()


async def test_a_scenario_that_takes_long_is_planned_within_the_limits_of_the_sandbox(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    await agent.post("/api/v1/reports", json=report())
    benefit = [{"pool": f"{n}GiB", "throughput": n + n % 7} for n in range(1, 20)]
    movable = {"pool_range": {"min": "128MiB", "max": "4TiB"}, "workload": {"working_set": "1TiB", "benefit": benefit}}
    databases = [DATABASE | movable | {"name": f"d{n}", "numa_node": n} for n in range(250)]
    answer = await planner.post("/api/v1/fleet/plan", json={"scenario": {"databases": databases}})
    assert answer.status_code == 422, answer.text
    assert "takes more than 0.22 s of processor time" in answer.json()["detail"]


async def test_all_who_follow_a_job_look_at_it_together(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """128 streams read its row each for itself, four times per second: another viewer waited 2 s."""
    await agent.post("/api/v1/reports", json=report())
    job = await planned(planner)
    read: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        read.append(statement)

    looks = Looks(service.database)
    event.listen(service.database.engine.sync_engine, "before_cursor_execute", note)
    found = await asyncio.gather(*(looks.look(uuid.UUID(job["id"])) for _ in range(20)))
    event.remove(service.database.engine.sync_engine, "before_cursor_execute", note)
    assert {one.status for one in found} == {"done"}
    assert sum("FROM fleet_plans" in one for one in read) == 1
