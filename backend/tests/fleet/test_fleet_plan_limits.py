"""What a fleet plan may take: memory of each of its processes, processor time in all, and turns of a credential."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import string
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import select, update
from support.reports import GIB, report
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.db.models import FleetPlanGroupRow, FleetPlanRow
from hugeplan.documents.bounds import adapter
from hugeplan.fleet.stored import StoredNode
from hugeplan.fleet_plans import lines
from hugeplan.fleet_plans.lines import LinePlanner
from hugeplan.fleet_plans.runner import FleetPlanRunner
from hugeplan.planner.model import Plan
from hugeplan.sandbox.orders import Limits
from hugeplan.settings import Settings
from hugeplan.signals import TimeOverError
from tools.attack import processes
from tools.seed.writer import SeedOptions, seed_fleet

MIB = 1024**2
NODES = 120
SEEDS = itertools.count(70_000)
ONE: dict[str, Any] = {"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}
CHEAP = {"databases": [ONE]}
RANGE = {"min": "128MiB", "max": "64GiB"}
DEAR = {
    "databases": [
        ONE | {"name": f"d{at}", "settings": {"shared_buffers": f"{(at + 1) * 64}MB"}, "pool_range": RANGE}
        for at in range(60)
    ]
}
Limit = Callable[..., FleetPlanRunner]


@pytest.fixture(autouse=True)
def checked_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario is checked before its job begins; a slow machine needs more for it than a request may take."""
    monkeypatch.setattr("hugeplan.sandbox.sandbox.Limits", partial(Limits, cpu_seconds=5.0, seconds=30.0))


@pytest_asyncio.fixture
async def limits(service: Service) -> AsyncIterator[Limit]:
    """The limits of jobs, as the settings say them: their processes read the environment as every process does."""
    runner: FleetPlanRunner = service.app.state.fleet_plan_runner
    with pytest.MonkeyPatch.context() as patch:

        def limit(**most: float) -> FleetPlanRunner:
            for name, value in most.items():
                patch.setenv(f"HUGEPLAN_FLEET_PLAN_{name.upper()}", f"{value}")
            return runner

        yield limit
        await runner.close()


@pytest_asyncio.fixture
async def fleet(service: Service, settings: Settings) -> None:
    """Synthetic nodes, few of which ask the same question."""
    del service
    await asyncio.to_thread(
        seed_fleet, settings.psycopg_url(), SeedOptions(nodes=NODES, seed=next(SEEDS), history_days=1)
    )


def observed(number: int) -> dict[str, Any]:
    """A server as an agent reports it."""
    return {
        "key": f"postgresql@u{number}.service", "engine": "postgresql", "main_pid": number + 1, "version": "17",
        "client_count": 100, "settings": {"shared_buffers": {"value": f"{number + 1}GB", "source": "file"}},
        "settings_complete": True,
    }  # fmt: skip


async def rows_of(planner: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of a job that is done, by name."""
    assert job["status"] == "done", job["error"]
    rows = (await planner.get(f"/api/v1/fleet/plans/{job['id']}/nodes")).json()["items"]
    return {row["name"]: row for row in rows}


async def ended(planner: httpx.AsyncClient, scenario: dict[str, Any] | None, name: str = "n") -> dict[str, Any]:
    """A job, when it has ended."""
    made = await planner.post("/api/v1/fleet/plan", json={"name": name, "scenario": scenario})
    assert made.status_code == 202, made.text
    async with planner.stream("GET", f"/api/v1/fleet/plans/{made.json()['id']}/progress") as stream:
        await stream.aread()
    found: dict[str, Any] = (await planner.get(f"/api/v1/fleet/plans/{made.json()['id']}")).json()
    return found


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("mebibytes", [16, 36])
async def test_a_job_that_needs_too_much_memory_ends_and_the_next_one_is_done(
    limits: Limit, planner: httpx.AsyncClient, mebibytes: int
) -> None:
    """What C code cannot allocate ends a process, what Python cannot is said by itself."""
    limits(memory_bytes=mebibytes * MIB)
    job = await ended(planner, DEAR)
    assert job["status"] == "failed"
    assert f"more than {mebibytes} MiB of memory (HUGEPLAN_FLEET_PLAN_MEMORY_BYTES)" in job["error"]
    limits(memory_bytes=512 * MIB)
    assert (await ended(planner, CHEAP))["status"] == "done"


@pytest.mark.usefixtures("fleet")
async def test_a_job_that_takes_too_long_ends_and_the_next_one_is_done(
    limits: Limit, planner: httpx.AsyncClient
) -> None:
    limits(cpu_seconds=2)
    job = await ended(planner, DEAR)
    assert job["status"] == "failed"
    assert "more than 2 s of processor time (HUGEPLAN_FLEET_PLAN_CPU_SECONDS)" in job["error"]
    limits(cpu_seconds=300)
    assert (await ended(planner, CHEAP))["status"] == "done"


@pytest.mark.usefixtures("fleet")
async def test_a_cancelled_job_leaves_no_process_that_plans_on(limits: Limit, planner: httpx.AsyncClient) -> None:
    runner = limits()
    await runner.prepare()
    process = runner._ready
    assert process is not None
    made = (await planner.post("/api/v1/fleet/plan", json={"scenario": DEAR})).json()
    path = f"/api/v1/fleet/plans/{made['id']}"
    while not processes.family(process.pid)[1:]:
        await asyncio.sleep(0.02)
    planning = processes.family(process.pid)[1:]
    await planner.post(f"{path}/cancel")
    assert await process.wait() == 0
    assert (await planner.get(path)).json()["status"] == "cancelled"
    assert not set(planning) & set(map(int, filter(str.isdecimal, os.listdir("/proc"))))  # noqa: PTH208


async def test_credentials_take_turns(
    service: Service, limits: Limit, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """Whoever asks for many waits for each other; another one's only job is the next but one."""
    await agent.post("/api/v1/reports", json=report())
    other = await service.client_as(Role.PLANNER)
    runner = limits()
    async with runner._turn:  # something runs meanwhile
        for name in ("first", "second", "third"):
            await planner.post("/api/v1/fleet/plan", json={"name": name, "scenario": CHEAP})
        await other.post("/api/v1/fleet/plan", json={"name": "other", "scenario": CHEAP})
    await asyncio.gather(*runner._tasks)
    async with service.database.read() as session:
        order = (await session.scalars(select(FleetPlanRow.name).order_by(FleetPlanRow.started_at))).all()
    assert order == ["first", "other", "second", "third"]


async def test_what_is_cancelled_before_its_turn_starts_no_process(
    limits: Limit, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """Each would take a second of processor time, and the next job would wait for it."""
    await agent.post("/api/v1/reports", json=report())
    runner = limits()
    await runner.prepare()
    process = runner._ready
    async with runner._turn:
        for _ in range(3):
            job = (await planner.post("/api/v1/fleet/plan", json={"scenario": CHEAP})).json()
            cancelled = await planner.post(f"/api/v1/fleet/plans/{job['id']}/cancel")
            assert cancelled.json()["status"] == "cancelled"
    await asyncio.gather(*runner._tasks)
    assert runner._ready is process
    assert (await ended(planner, CHEAP))["status"] == "done"


@pytest.mark.parametrize(
    ("numa_nodes", "servers", "sizes", "why"),
    [
        (512, 64, 1, f"{512 * 64} is not valid; expected NUMA nodes times workloads and databases of at most 2000"),
        (1, 68, 16, f"{69 * 16} is not valid; expected page sizes times NUMA nodes and databases of at most 1080"),
        (68, 2, 16, f"{70 * 16} is not valid; expected page sizes times NUMA nodes and databases of at most 1080"),
    ],
)
async def test_a_node_beyond_the_bound_of_a_preview_is_a_row_that_says_so_and_ends_nobody_elses_plan(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, *, numa_nodes: int, servers: int,
    sizes: int, why: str,
) -> None:  # fmt: skip
    """One agent's report ended every fleet plan, or left a plan of tens of megabytes for others to read. Each of a
    hundred took 0.2 s and more, and left what was large for the end.
    """
    await agent.post("/api/v1/reports", json=report())
    other = await service.client_as(Role.AGENT, machine_id="b" * 32)
    numa = [{"id": one, "mem_total_bytes": 8192 * GIB // numa_nodes} for one in range(numa_nodes)]
    databases = [observed(number) for number in range(servers)]
    wide = report(
        machine_id="b" * 32,
        node_name="wide",
        inventory={"numa_nodes": numa, "huge_page_sizes_bytes": [2 * MIB << at for at in range(sizes)]},
        sample={"numa": numa, "databases": databases},
    )
    wide["sample"]["memory"] |= {"mem_total_bytes": 8192 * GIB}
    assert (await other.post("/api/v1/reports", json=wide)).status_code == 201
    rows = await rows_of(planner, await ended(planner, None))
    (said,) = rows["wide"]["exceptions"]
    assert said.startswith("wide: scenario: ")
    assert why in said
    assert (rows["wide"]["severity"], rows["wide"]["group_number"]) == ("wrong", None)
    assert rows["db-7"]["locked_bytes"] is not None


@pytest.mark.parametrize(
    ("letters", "most"), [("d", "6 MiB"), (string.ascii_letters + string.digits, "384 KiB when compressed")]
)
async def test_a_plan_of_more_bytes_than_a_preview_is_a_row_that_says_so(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, letters: str, most: str
) -> None:
    """A job keeps the plan of each group until its end, and every node may be a group of its own."""
    numa = [{"id": one, "mem_total_bytes": 16 * GIB} for one in range(4)]
    sizes = [2 * MIB, GIB] if len(letters) == 1 else [2 * MIB]
    inventory = {"numa_nodes": numa, "huge_page_sizes_bytes": sizes}
    await agent.post("/api/v1/reports", json=report(inventory=inventory, sample={"numa": numa}))
    words = ("".join(random.Random(at).choices(letters, k=190)) for at in itertools.count())
    of_each = 249 if len(letters) == 1 else 195
    databases = [ONE | {"name": f"{at}{next(words)}", "settings": {"shared_buffers": "64MB"}} for at in range(of_each)]
    tenants = [{"name": f"{at}{next(words)}", "request": "1Mi"} for at in range(of_each)]
    rows = await rows_of(planner, await ended(planner, {"databases": databases, "tenants": tenants}))
    (why,) = rows["db-7"]["exceptions"]
    assert f"expected a plan of at most {most}: fewer NUMA nodes" in why
    assert rows["db-7"]["group_number"] is None


async def test_256_databases_on_an_arm64_node_with_four_page_sizes_are_planned(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    sizes = [64 * 1024, 2 * MIB, 32 * MIB, GIB]
    inventory = {"architecture": "aarch64", "huge_page_sizes_bytes": sizes}
    sample = {"databases": [observed(number % 50) | {"key": f"postgresql@u{number}.service", "main_pid": number + 1}
                            for number in range(256)]}  # fmt: skip
    await agent.post("/api/v1/reports", json=report(inventory=inventory, sample=sample))
    rows = await rows_of(planner, await ended(planner, None))
    assert rows["db-7"]["group_number"] is not None, rows["db-7"]["exceptions"]
    assert rows["db-7"]["locked_bytes"] is not None


def test_a_node_that_takes_long_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def add(_self: LinePlanner, node: StoredNode, _plans: object) -> dict[str, Any]:
        while node.name == "slow":
            pass
        return {"name": node.name}

    monkeypatch.setattr(LinePlanner, "_add", add)
    monkeypatch.setattr(lines, "_row", lambda node: {"name": node.name})
    monkeypatch.setattr(lines, "MOST_NODE_SECONDS", 0.4)
    nodes = [cast(StoredNode, SimpleNamespace(name=name)) for name in ("slow", "db-7")]
    slow, other = LinePlanner(None).lines(nodes).rows
    assert slow["exceptions"] == ["slow: takes more than 0.4 s of processor time to plan; plan it by itself."]
    assert other == {"name": "db-7"}


def many_databases() -> dict[str, Any]:
    """A report of 256 databases that fit nowhere, with four page sizes."""
    settings = {"large_pages": {"value": "on", "source": "file"}}
    databases = [
        observed(number) | {"key": f"mariadb@u{number}.service", "engine": "mariadb", "version": None,
                            "settings": settings | {"innodb_buffer_pool_size": {"value": f"{100 + number}G",
                                                                                 "source": "file"}}}
        for number in range(256)
    ]  # fmt: skip
    inventory = {"architecture": "aarch64", "huge_page_sizes_bytes": [64 * 1024, 2 * MIB, 32 * MIB, GIB]}
    return {"inventory": inventory, "sample": {"databases": databases}}


async def test_a_node_of_many_databases_that_fit_nowhere_is_planned(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """One agent may have 256 machines: a plan that fits nowhere took 12 s each, and has 3 s."""
    await agent.post("/api/v1/reports", json=report())
    other = await service.client_as(Role.AGENT, machine_id="b" * 32)
    slow = report(machine_id="b" * 32, node_name="slow", **many_databases())
    assert (await other.post("/api/v1/reports", json=slow)).status_code == 201
    rows = await rows_of(planner, await ended(planner, None))
    assert rows["slow"]["exceptions"][0].startswith("Does not fit slow: 57 TiB short.")
    assert rows["db-7"]["locked_bytes"] is not None


async def test_machines_of_many_databases_end_nobody_elses_plan(
    service: Service, limits: Limit, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """Whoever has an enrolment token has thousands of machines; 800 of them ended every fleet plan at its limit."""
    limits(cpu_seconds=5)
    await agent.post("/api/v1/reports", json=report())
    for number in range(10, 40):
        other = await service.client_as(Role.AGENT, machine_id=f"{number}" * 16)
        slow = report(machine_id=f"{number}" * 16, node_name=f"a{number}", **many_databases())
        assert (await other.post("/api/v1/reports", json=slow)).status_code == 201
    rows = await rows_of(planner, await ended(planner, None))
    assert rows["db-7"]["locked_bytes"] is not None
    cut = [row for row in rows.values() if "of processor time to plan; plan it by itself." in str(row["exceptions"])]
    assert cut


@pytest.mark.parametrize("each", [3.0, 1.1, 0.5, 0.1])
def test_nodes_that_take_long_leave_the_others_their_time(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    """Whoever has an enrolment token has thousands of machines: their names come first, and they take what they may."""
    clock, given = [0.0], 0.0
    planner = LinePlanner(None, saved_seconds=37.5, seconds_per_node=0.015)
    monkeypatch.setattr(lines.time, "process_time", lambda: clock[0])
    monkeypatch.setattr(lines, "_row", lambda node: {"name": node.name})

    @contextmanager
    def ended_at(until: float) -> Iterator[None]:
        nonlocal given
        given = until - clock[0]
        yield

    def add(_self: LinePlanner, node: StoredNode, _plans: object) -> dict[str, Any]:
        takes = 0.005 if node.name == "usual" else each
        clock[0] += min(takes, given)
        if takes > given:
            raise TimeOverError
        return {}

    monkeypatch.setattr(lines, "ended_at", ended_at)
    monkeypatch.setattr(LinePlanner, "_add", add)
    dear, usual = ([cast(StoredNode, SimpleNamespace(name=name))] * 5_000 for name in ("dear", "usual"))
    assert 0 < planner.lines(dear).cut_nodes < 5_000
    assert clock[0] < 37.5 + 5_000 * 0.015
    assert planner.lines(usual).cut_nodes == 0


async def test_a_groups_plan_is_answered_as_it_is_kept(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    """To read a plan of megabytes held everybody up; that it has no field of a plan shows that nobody reads it."""
    await agent.post("/api/v1/reports", json=report())
    job = await ended(planner, CHEAP)
    path = f"/api/v1/fleet/plans/{job['id']}/groups/0"
    whole = (await viewer.get(path)).json()
    assert whole["plan"] == adapter(Plan).dump_python(adapter(Plan).validate_python(whole["plan"]), mode="json")
    async with service.database.write() as session:
        await session.execute(update(FleetPlanGroupRow).values(plan={"text": "\u20ac"}))
    assert (await viewer.get(path)).json() == whole | {"plan": {"text": "\u20ac"}}
    async with service.database.write() as session:
        await session.execute(update(FleetPlanGroupRow).values(plan={"text": "x" * 9 * MIB}))
    refused = await viewer.get(path)
    assert "Run the fleet plan again" in assert_problem(refused, 409, "conflict")["detail"]
