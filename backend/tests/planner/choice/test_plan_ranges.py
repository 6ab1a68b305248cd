"""Pools that the planner sizes: within memory and risk, and worth as much as the best of a grid planned by force."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from hugeplan.planner.choice.pool_sizes import with_pool
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import (
    GIB,
    MIB,
    BenefitPoint,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Policy,
    State,
    Tenant,
    Workload,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.pool_benefit.benefit_of_size import pool_benefit

PAGES = (0, 2 * MIB, GIB)


def workload(rng: random.Random) -> Workload:
    """A table that rises to a knee, or a working set, or nothing known."""
    operation = rng.choice(["key_lookup", "oltp"])
    knee = rng.choice([2, 4, 8, 12])
    if rng.random() < 0.6:
        points = tuple(
            BenefitPoint(pool_bytes=size * GIB, throughput=1000.0 * min(size, knee)) for size in (1, 2, 4, 8, 16)
        )
        return Workload(operation_class=operation, benefit_points=points)
    return Workload(operation_class=operation, working_set_bytes=rng.choice([None, 8 * GIB, 20 * GIB]), zipf_s=0.8)


def request_of(seed: int) -> PlanRequest:
    """Two ranged instances of any engine, bound or not, often with a cache beside them that takes no huge page."""
    rng = random.Random(seed)
    nodes = rng.choice([1, 1, 2])
    databases = [
        DatabaseInstance(
            name=f"d{i}",
            engine=rng.choice(["postgresql", "mysql", "mariadb", "generic", "oracle"]),
            connections=rng.choice([20, 200]),
            numa_node=rng.choice([None, *range(nodes)]),
            weight=rng.choice([0.3, 1.0, 2.0]),
            pool_min_bytes=rng.choice([1, 2]) * GIB,
            pool_max_bytes=rng.choice([4, 6, 9, 16]) * GIB,
            workload=workload(rng),
        )
        for i in range(2)
    ]
    if rng.random() < 0.5:
        databases.append(DatabaseInstance(name="cache", engine="redis", settings={"maxmemory": "4gb"}))
    numa = tuple(NumaNode(id=i, mem_total_bytes=rng.randrange(10 * GIB, 26 * GIB)) for i in range(nodes))
    return PlanRequest(
        node=NodeFacts(name="n", numa=numa, kernel_used_bytes=512 * MIB, hvo_enabled=True),
        tenants=(Tenant(name="app", request_bytes=rng.randrange(GIB, 5 * GIB)),),
        databases=tuple(databases),
        policy=Policy(free_margin_bytes=0),
    )


def holds(found: Plan, request: PlanRequest) -> bool:
    """In memory on every NUMA node, within the risk, on page sizes that are available."""
    fits = all(free_bytes(found.ledger, numa.id) >= 0 for numa in request.node.numa)
    had = all(f.state is not State.WRONG for f in found.findings if f.code == "page_size_not_available")
    return fits and had and found.risk.meets_policy is not False


def worth(request: PlanRequest, pools: list[int | None]) -> float:
    """Weighted benefit of the pools above their minimum, in points."""
    total = 0.0
    for database, pool in zip(request.databases, pools, strict=True):
        if pool is not None:
            assert database.pool_min_bytes is not None
            low, value = pool_benefit(database.workload, (database.pool_min_bytes, pool))[0]
            total += database.weight * (value - low)
    return total


def choices(database: DatabaseInstance) -> list[tuple[DatabaseInstance, int | None]]:
    """The instance at five pool sizes and every page size, and its pool; as it is where it has no range."""
    low, high = database.pool_min_bytes, database.pool_max_bytes
    if low is None or high is None:
        return [(database, None)]
    fixed = dataclasses.replace(database, pool_min_bytes=None, pool_max_bytes=None)
    sizes = [low + (high - low) * k // 4 // MIB * MIB for k in range(5)]
    return [(dataclasses.replace(with_pool(fixed, size), page_bytes=page), size) for size in sizes for page in PAGES]


@pytest.mark.parametrize("seed", range(16))
def test_as_good_as_a_grid_by_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    request = request_of(seed)
    chosen = plan(request)
    # What a plan lacks is not looked at here, and takes ten times as long as the plan.
    monkeypatch.setattr("hugeplan.planner.plan.shortfall_of", lambda *_: None)
    # The best first: the first that holds is the best that holds, and none of the others needs a plan.
    grid = sorted(
        itertools.product(*(choices(database) for database in request.databases)),
        key=lambda combination: worth(request, [size for _, size in combination]),
        reverse=True,
    )
    best: float | None = None
    for combination in grid:
        forced = dataclasses.replace(request, databases=tuple(database for database, _ in combination))
        if holds(plan(forced), request):
            best = worth(request, [size for _, size in combination])
            break
    if best is None:
        assert not holds(chosen, request)
        return
    assert holds(chosen, request)
    pools = [
        None if database.pool_min_bytes is None else found.demand.pool_bytes
        for database, found in zip(request.databases, chosen.instances, strict=True)
    ]
    for database, pool in zip(request.databases, pools, strict=True):
        if pool is not None:
            assert database.pool_min_bytes is not None
            assert database.pool_max_bytes is not None
            assert database.pool_min_bytes <= pool <= database.pool_max_bytes
    # Page size and pool are chosen in turns, a page of each instance is held back: within three points of the best.
    assert worth(request, pools) >= best - 3.0


def test_memory_that_takes_no_huge_page_is_left_out_of_what_is_sized() -> None:
    sized = DatabaseInstance(name="pg", engine="postgresql", pool_min_bytes=GIB, pool_max_bytes=30 * GIB)
    cache = DatabaseInstance(name="cache", engine="redis", settings={"maxmemory": "12gb"})
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=32 * GIB),))
    found = plan(PlanRequest(node=node, databases=(sized, cache)))
    assert free_bytes(found.ledger) >= 0
    assert 10 * GIB < (found.instances[0].demand.pool_bytes or 0) < 19 * GIB


@pytest.mark.parametrize("memory_gib", range(17, 31))
def test_chunks_of_mysql_are_counted_whole(memory_gib: int) -> None:
    """Eight instances of 128 MiB chunks make steps of 1 GiB; the pool ends on the last step that fits."""
    sized = DatabaseInstance(name="my", engine="mysql", version="8.0", pool_min_bytes=GIB, pool_max_bytes=20 * GIB)
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=memory_gib * GIB),))
    tenant = Tenant(name="app", request_bytes=4 * GIB, limit_bytes=6 * GIB)
    found = plan(PlanRequest(node=node, tenants=(tenant,), databases=(sized,)))
    assert found.instances[0].page_bytes == 2 * MIB
    assert free_bytes(found.ledger) >= 0
    assert found.risk.meets_policy
    pool = found.instances[0].demand.pool_bytes or 0
    larger = dataclasses.replace(with_pool(sized, pool + GIB), pool_min_bytes=None, pool_max_bytes=None)
    next_stair = plan(PlanRequest(node=node, tenants=(tenant,), databases=(larger,)))
    margin = node.mem_total_bytes // 100
    if pool < 20 * GIB:
        assert not next_stair.risk.meets_policy or free_bytes(next_stair.ledger) < 2 * GIB + margin


def test_no_pool_is_chosen_over_a_risk_above_the_policy() -> None:
    """Huge pages with slack would fit the memory but not the tenants' risk; base pages fit both."""
    tenant = Tenant(name="app", request_bytes=2 * GIB, limit_bytes=4 * GIB)
    database = DatabaseInstance(
        name="my", engine="mysql", version="8.0", settings={"innodb_buffer_pool_size": "8G"}, weight=5.0
    )
    policy = Policy(free_margin_bytes=0, slack_fraction=0.05)
    tight: list[tuple[bool | None, int | None]] = []
    for memory_mib in range(13_000, 13_800, 50):
        node = NodeFacts(
            name="n", numa=(NumaNode(id=0, mem_total_bytes=memory_mib * MIB),), kernel_used_bytes=512 * MIB
        )
        found = plan(PlanRequest(node=node, tenants=(tenant,), databases=(database,), policy=policy))
        tight.append((found.risk.meets_policy, found.instances[0].page_bytes))
    assert (True, None) in tight  # base pages, because they are safe
    assert tight[-1] == (True, 2 * MIB)  # huge pages, once they are
    met = [meets for meets, _ in tight]
    assert met == sorted(met)  # more memory is never less safe


class TestNumaNodes:
    def test_a_node_that_is_bound_full_is_a_risk_by_itself(self) -> None:
        """20 GiB of room in all, but what is bound to node 0 has a GiB there."""
        numa = (NumaNode(id=0, mem_total_bytes=16 * GIB), NumaNode(id=1, mem_total_bytes=24 * GIB))
        node = NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB)
        database = DatabaseInstance(
            name="pg", engine="postgresql", settings={"shared_buffers": "10GB"}, numa_node=0, page_bytes=2 * MIB
        )
        tenant = Tenant(name="app", request_bytes=2 * GIB, limit_bytes=6 * GIB, numa_node=0)
        found = plan(PlanRequest(node=node, tenants=(tenant,), databases=(database,)))
        (own,) = found.risk.numa_nodes
        assert own.numa_node == 0
        assert own.probability.likely == pytest.approx((6 * GIB - own.room_bytes) / (4 * GIB), abs=0.01)
        assert found.risk.meets_policy is False
        finding = next(f for f in found.findings if f.code == "risk_above_policy")
        assert finding.state is State.WRONG
        assert "NUMA node 0 alone" in finding.reason
        free = dataclasses.replace(tenant, numa_node=None)
        unbound = plan(PlanRequest(node=node, tenants=(free,), databases=(database,)))
        assert unbound.risk.meets_policy is True
        assert unbound.risk.numa_nodes == ()

    def test_pools_that_are_sized_leave_it_room(self) -> None:
        numa = tuple(NumaNode(id=i, mem_total_bytes=24 * GIB) for i in range(2))
        database = DatabaseInstance(
            name="pg", engine="postgresql", pool_min_bytes=GIB, pool_max_bytes=22 * GIB, numa_node=1
        )
        tenant = Tenant(name="app", request_bytes=2 * GIB, limit_bytes=10 * GIB, numa_node=1)
        found = plan(PlanRequest(node=NodeFacts(name="n", numa=numa), tenants=(tenant,), databases=(database,)))
        assert found.risk.meets_policy is True
        assert (found.instances[0].demand.pool_bytes or 0) < 13 * GIB

    def test_a_node_that_cannot_hold_what_is_fixed_is_no_zero_risk(self) -> None:
        numa = (NumaNode(id=0, mem_total_bytes=8 * GIB), NumaNode(id=1, mem_total_bytes=64 * GIB))
        database = DatabaseInstance(
            name="pg", engine="postgresql", settings={"shared_buffers": "10GB"}, numa_node=0, page_bytes=2 * MIB
        )
        found = plan(PlanRequest(node=NodeFacts(name="n", numa=numa), databases=(database,)))
        assert found.risk.probability is not None
        assert found.risk.probability.likely == 1.0
