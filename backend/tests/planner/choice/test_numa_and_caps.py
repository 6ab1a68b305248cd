"""NUMA nodes and provider caps: the order of databases and tenants changes nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.seeds import SEEDS

from hugeplan.fleet.facts import numa_nodes
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    Reservations,
    State,
    Tenant,
    Workload,
)
from hugeplan.planner.plan import plan


def node(*gib: float, far: tuple[int, ...] = ()) -> NodeFacts:
    numa = tuple(
        NumaNode(id=i, mem_total_bytes=int(size * GIB), cpulist="" if i in far else f"{8 * i}-{8 * i + 7}")
        for i, size in enumerate(gib)
    )
    return NodeFacts(name="n", numa=numa, kernel_used_bytes=256 * MIB, cpus=16)


def postgresql(name: str, buffers: str, **fields: object) -> DatabaseInstance:
    settings = {"shared_buffers": buffers, "max_connections": str(fields.pop("max_connections", 100))}
    return DatabaseInstance(name=name, engine="postgresql", version="16", settings=settings, **fields)  # type: ignore[arg-type]


# --- NUMA -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_socket_without_memory_is_left_out(empty: int) -> None:
    sizes = [64.0, 64.0, 64.0]
    sizes[empty] = 0.0
    facts = node(*sizes)
    database = postgresql("db", "20GB")
    found = plan(PlanRequest(node=facts, databases=(database,)))
    without = replace(facts, numa=tuple(numa for numa in facts.numa if numa.mem_total_bytes))
    assert found == plan(PlanRequest(node=without, databases=(database,)))
    assert all(pool.numa_node != empty for pool in found.pools)


def test_a_report_says_which_memory_has_no_processors() -> None:
    from hugeplan.documents.report import Inventory, InventoryNuma, Sample  # noqa: PLC0415

    inventory = Inventory(
        architecture="x86_64",
        base_page_bytes=4096,
        numa_nodes=[
            InventoryNuma(id=0, mem_total_bytes=GIB, cpus="0-7"),
            InventoryNuma(id=1, mem_total_bytes=GIB, cpus=""),
            InventoryNuma(id=2, mem_total_bytes=GIB),
        ],
    )
    sample = Sample.model_validate({"taken_at": "2026-01-01T00:00:00Z", "memory": {"mem_total_bytes": 3 * GIB}})
    assert [numa.is_far for numa in numa_nodes(inventory, sample)] == [False, True, False]


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_without_processors_gets_pages_only_when_asked(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        facts = node(rng.randrange(8, 64), rng.randrange(8, 256), rng.randrange(8, 64), far=(1,))
        databases = [
            postgresql(f"d{i}", f"{rng.randrange(1, 30)}GB", numa_node=rng.choice((None, None, 0, 2)))
            for i in range(rng.randrange(1, 4))
        ]
        found = plan(PlanRequest(node=facts, databases=tuple(databases)))
        assert all(pool.numa_node != 1 for pool in found.pools), seed
        bound = postgresql("cxl", "4GB", numa_node=1, page_bytes=2 * MIB)
        asked = plan(PlanRequest(node=facts, databases=(bound,)))
        assert {pool.numa_node for pool in asked.pools if pool.pages} == {1}


def test_a_bound_server_is_not_safe_from_one_that_is_not() -> None:
    databases = (
        postgresql("bound", "20GB", numa_node=0, page_bytes=2 * MIB),
        postgresql("free", "20GB", page_bytes=2 * MIB),
    )
    found = plan(PlanRequest(node=node(64, 64), databases=databases))
    states = [f.state for f in found.findings if f.code == "start_order"]
    assert states == [State.ATTENTION]
    both = tuple(replace(d, numa_node=i) for i, d in enumerate(databases))
    states = [f.state for f in plan(PlanRequest(node=node(64, 64), databases=both)).findings if f.code == "start_order"]
    assert states == [State.OK]


# --- caps -------------------------------------------------------------------------


def scenario(rng: random.Random) -> PlanRequest:
    """Two or three servers on one or two NUMA nodes, often with too little memory or a provider's cap."""
    nodes = rng.choice((1, 1, 2))
    facts = node(*(rng.randrange(6, 40) + rng.random() for _ in range(nodes)))
    databases = []
    for i in range(rng.choice((2, 2, 3))):
        fields = {
            "numa_node": rng.choice((None, None, *range(nodes))),
            "weight": rng.choice((0.2, 1.0, 5.0)),
            "workload": Workload(operation_class=rng.choice(("key_lookup", "oltp")), active_connections=8),
        }
        gib = rng.choice((1, 3, 7, 12, 20))
        if rng.random() < 0.25:
            settings = {"innodb_buffer_pool_size": f"{gib}G"}
            databases.append(DatabaseInstance(name=f"d{i}", engine="mysql", settings=settings, **fields))  # type: ignore[arg-type]
        else:
            databases.append(postgresql(f"d{i}", f"{gib}GB", max_connections=rng.choice((20, 100)), **fields))
    return PlanRequest(
        node=facts,
        tenants=(Tenant(name="app", request_bytes=rng.randrange(0, 6 * GIB)),),
        databases=tuple(databases),
        policy=Policy(free_margin_bytes=0, slack_min_pages=rng.choice((0, 2)), slack_fraction=rng.choice((0.0, 0.02))),
        reservations=Reservations(kubernetes=True, provider=rng.choice(("gke", "gke", None))),
    )


def test_base_pages_are_chosen_where_a_cap_excludes_the_pool() -> None:
    request = PlanRequest(
        node=node(16),
        databases=(postgresql("db", "11GB", max_connections=20),),
        reservations=Reservations(kubernetes=True, provider="gke", kube_reserved_bytes=0),
    )
    found = plan(request)
    assert found.feasible
    assert found.instances[0].page_bytes is None


# --- order ----------------------------------------------------------------------------------------


def by_name(found: Plan) -> dict[str, object]:
    return {i.name: (i.page_bytes, i.demand, i.chosen, i.numa_nodes, i.page_tables_huge_bytes) for i in found.instances}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_databases_and_tenants_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(40):
        request = scenario(rng)
        tenants = (*request.tenants, Tenant(name="b", request_bytes=GIB), Tenant(name="c", request_bytes=2 * GIB))
        request = replace(
            request,
            tenants=tenants,
            databases=tuple(
                replace(d, pool_min_bytes=GIB, pool_max_bytes=9 * GIB) if rng.random() < 0.3 else d
                for d in request.databases
            ),
        )
        found = plan(request)
        databases, others = list(request.databases), list(tenants)
        rng.shuffle(databases)
        rng.shuffle(others)
        other = plan(replace(request, databases=tuple(databases), tenants=tuple(others)))
        assert found.pools == other.pools, (seed, number)
        assert by_name(found) == by_name(other), (seed, number)
        parts = [sorted((p.kind, p.name, p.numa_node, p.bytes) for p in item.ledger.parts) for item in (found, other)]
        assert parts[0] == parts[1], (seed, number)
        assert (found.headline, found.feasible) == (other.headline, other.feasible)
