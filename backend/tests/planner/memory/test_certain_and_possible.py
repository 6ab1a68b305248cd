"""What is certain and what is possible stand apart: connections, growth, and what the databases need."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
import yaml
from support.seeds import SEEDS

from hugeplan.artifacts import render
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    LedgerKind,
    MemoryHistory,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Reservations,
    Source,
    State,
    Tenant,
    Workload,
)
from hugeplan.planner.model.words import IDLE_CONNECTION_BYTES, IDLE_THREAD_BYTES
from hugeplan.planner.plan import plan
from hugeplan.planner.units import parse_kubernetes_bytes


def node(gib: int) -> NodeFacts:
    return NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=gib * GIB),), kernel_used_bytes=GIB)


def postgresql(connections: int, work_mem: str, active: int | None, buffers: str = "8GB") -> DatabaseInstance:
    settings = {"shared_buffers": buffers, "max_connections": str(connections), "work_mem": work_mem}
    return DatabaseInstance(
        name="db",
        engine="postgresql",
        version="16",
        settings=settings,
        page_bytes=2 * MIB,
        workload=Workload(active_connections=active),
    )


def part(found: Plan, name: str) -> int:
    return sum(p.bytes for p in found.ledger.parts if p.name == name)


def test_an_upper_bound_of_work_mem_is_not_a_need() -> None:
    database = postgresql(2000, "64MB", 50)
    found = plan(PlanRequest(node=node(64), databases=(database,)))
    assert found.feasible
    fit = [f for f in found.findings if f.code == "memory_fit"]
    assert [f.state for f in fit] == [State.ATTENTION]
    assert "all connections of db" in fit[0].reason
    assert not plan(PlanRequest(node=node(64), databases=(postgresql(2000, "64MB", None),))).feasible


@pytest.mark.parametrize("seed", SEEDS)
def test_connections_are_one_number(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        connections, work_mem = rng.choice((20, 200, 1000)), rng.choice((1, 4, 64))
        active = rng.choice((None, 0, 5, 100, 5000))
        request = PlanRequest(
            node=node(256),
            databases=(postgresql(connections, f"{work_mem}MB", active),),
            reservations=Reservations(kubernetes=True),
        )
        found = plan(request)
        busy = connections if active is None else min(connections, active)
        each = found.instances[0].demand.private_bytes_per_connection
        assert each is not None
        wanted = busy * each + (connections - busy) * IDLE_CONNECTION_BYTES
        assert part(found, "db: connections") == wanted
        (pod,) = [item for item in render(found, request) if item.kind == "pod"]
        request_of_pod = yaml.safe_load(pod.content)["resources"]["requests"]["memory"]
        least = wanted + found.instances[0].page_tables_huge_bytes + 256 * MIB
        assert 0 <= parse_kubernetes_bytes(request_of_pod, "memory") - least < MIB


def growing(days: int, per_day: int, level: int) -> Tenant:
    times = tuple(86400.0 * k / 4 for k in range(days * 4))
    used = tuple(level + int(per_day * t / 86400.0) for t in times)
    return Tenant(name="app", kind="service", history=MemoryHistory(times_seconds=times, used_bytes=used))


@pytest.mark.parametrize("per_day", [0, 10 * MIB, 200 * MIB, 2 * GIB])
def test_growth_is_a_forecast_and_the_forecast_names_what_the_ledger_sets_aside(per_day: int) -> None:
    tenant = growing(20, per_day, 4 * GIB)
    found = plan(PlanRequest(node=node(64), tenants=(tenant,), databases=(postgresql(50, "4MB", None),)))
    assert tenant.history is not None
    now = max(tenant.history.used_bytes)
    parts = [p for p in found.ledger.parts if p.kind is LedgerKind.TENANTS]
    measured = sum(p.bytes for p in parts if p.source is Source.MEASURED)
    ahead = sum(p.bytes for p in parts if p.source is Source.COMPUTED)
    assert measured <= now * 1.001 + MIB
    assert ahead == pytest.approx(30 * per_day, rel=0.01, abs=MIB)
    (forecast,) = found.forecasts
    assert ("the ledger sets" in forecast.basis) == (per_day > 0)
    if forecast.days_until_full is not None and forecast.days_until_full.likely < 30:
        assert "more than there is room for" in forecast.basis


def test_the_databases_need_is_only_of_databases() -> None:
    tenants = (Tenant(name="cache", kind="page_cache", request_bytes=30 * GIB), Tenant(name="t", request_bytes=9 * GIB))
    found = plan(PlanRequest(node=node(64), tenants=tenants, databases=(postgresql(50, "4MB", None, "40GB"),)))
    assert found.shortfall is not None
    said = re.search(r"The databases need ([\d.]+) GiB and everything else ([\d.]+) GiB", found.shortfall.reason)
    assert said is not None
    instance = found.instances[0]
    own = instance.demand.segment_bytes + instance.page_tables_huge_bytes + part(found, "db: connections")
    assert float(said[1]) == pytest.approx(own / GIB, rel=0.03)
    assert float(said[2]) == pytest.approx(40, rel=0.01)


def server(engine: str, version: str, pool: str, connections: int, active: int | None) -> DatabaseInstance:
    settings = {"innodb_buffer_pool_size": pool, "large_pages": "ON", "max_connections": str(connections)}
    workload = Workload(active_connections=active)
    return DatabaseInstance(name="db", engine=engine, version=version, settings=settings, workload=workload)


@pytest.mark.parametrize(("engine", "version"), [("mysql", "8.4"), ("mysql", "5.7"), ("mariadb", "10.11.8")])
def test_idle_threads_are_not_working_ones(engine: str, version: str) -> None:
    asked = PlanRequest(node=node(64), databases=(server(engine, version, "40G", 20_000, 20),))
    found = plan(asked)
    assert found.feasible
    each = found.instances[0].demand.private_bytes_per_connection
    assert each is not None
    assert part(found, "db: connections") == 20 * each + 19_980 * IDLE_THREAD_BYTES
    tight = plan(PlanRequest(node=node(64), databases=(server(engine, version, "54G", 20_000, 20),)))
    assert tight.feasible
    assert [f.state for f in tight.findings if f.code == "memory_fit"] == [State.ATTENTION]


def oracle(**settings: str) -> DatabaseInstance:
    return DatabaseInstance(
        name="ora", engine="oracle", version="19", settings={"sga_target": "40G", "processes": "300", **settings}
    )


def test_a_limit_is_as_old_as_its_release() -> None:
    settings = {"sga_target": "40G", "pga_aggregate_target": "20G"}
    reasons = {}
    for version in ("11.2", "12.1", "12.2", "23ai"):
        database = DatabaseInstance(name="ora", engine="oracle", version=version, settings=settings)
        found = plan(PlanRequest(node=node(84), databases=(database,)))
        reasons[version] = next(f.reason for f in found.findings if f.code == "memory_fit")
    assert "pga_aggregate_limit" not in reasons["11.2"]
    assert "15.6 GiB more" in reasons["12.1"]  # 90 % of memory less the SGA is below twice the target
    assert "20 GiB more" in reasons["12.2"]
    assert "20 GiB more" in reasons["23ai"]


@pytest.mark.parametrize(
    ("settings", "gib", "state", "beyond"),
    [
        ({"pga_aggregate_target": "10G", "pga_aggregate_limit": "40G"}, 64, State.ATTENTION, "30 GiB"),
        ({"pga_aggregate_target": "10G", "pga_aggregate_limit": "40G"}, 128, State.OK, "30 GiB"),
        ({"pga_aggregate_limit": "40G"}, 64, State.ATTENTION, "40 GiB"),
        ({"pga_aggregate_target": "10G", "pga_aggregate_limit": "10G"}, 64, State.OK, None),
        # Without a limit Oracle has one by default: twice the target, 2 GiB, or 3 MiB per process.
        (
            {"pga_aggregate_target": "7G"},
            64,
            State.OK,
            "7 GiB more, up to its pga_aggregate_limit, 14 GiB by default",
        ),
        ({"pga_aggregate_target": "12G"}, 64, State.ATTENTION, "12 GiB more"),
        ({"pga_aggregate_target": "100M"}, 64, State.OK, "1.90 GiB more"),
        ({"pga_aggregate_target": "100M", "processes": "2000"}, 64, State.OK, "5.76 GiB more"),
        ({}, 128, State.OK, "16 GiB more"),  # the target is a fifth of the SGA
        ({"pga_aggregate_target": "0"}, 128, State.OK, "75.2 GiB more"),  # 90 % of memory less the SGA
        ({"pga_aggregate_limit": "0", "pga_aggregate_target": "10G"}, 64, State.OK, None),
    ],
)
def test_what_a_limit_allows_beyond_the_target_is_said(
    settings: dict[str, str], gib: int, state: State, beyond: str | None
) -> None:
    found = plan(PlanRequest(node=node(gib), databases=(oracle(**settings),)))
    assert found.feasible
    (fit,) = [f for f in found.findings if f.code == "memory_fit"]
    assert fit.state is state
    assert ("pga_aggregate_limit" in fit.reason) == (beyond is not None)
    if beyond is not None:
        assert beyond in fit.reason


@pytest.mark.parametrize(
    ("database", "named"),
    [
        (postgresql(1000, "64MB", None, "16GB"), {"active_connections", "max_connections", "work_mem"}),
        (postgresql(2000, "64MB", 900, "8GB"), {"active_connections", "work_mem"}),
        (server("mysql", "8.4", "40G", 20_000, None), {"active_connections", "max_connections"}),
        (server("mariadb", "10.11.8", "40G", 60_000, None), {"active_connections", "max_connections"}),
        (server("mysql", "8.4", "50G", 60_000, 20), {"max_connections"}),
    ],
)
def test_a_plan_that_is_short_by_what_is_possible_names_what_to_change(
    database: DatabaseInstance, named: set[str]
) -> None:
    request = PlanRequest(node=node(64), databases=(database,))
    found = plan(request)
    assert found.shortfall is not None
    options = [option for option in found.shortfall.options if option.kind == "connections"]
    assert {option.setting for option in options} == named
    for option in options:
        assert option.setting is not None
        assert option.value is not None
        assert option.value in option.text.replace(",", "")
        changed = replace(database, settings={**database.settings, option.setting: option.value})
        if option.setting == "active_connections":
            changed = replace(database, workload=replace(database.workload, active_connections=int(option.value)))
        assert plan(replace(request, databases=(changed,))).feasible, option.text


def test_connections_are_not_named_where_they_are_not_what_is_missing() -> None:
    found = plan(PlanRequest(node=node(64), databases=(postgresql(20, "4MB", None, "90GB"),)))
    assert found.shortfall is not None
    assert not [option for option in found.shortfall.options if option.kind == "connections"]
