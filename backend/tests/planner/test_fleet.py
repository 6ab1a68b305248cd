"""A fleet's plans are the plans of its nodes, computed a few times instead of thousands."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.fleet import plan_fleet
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Meminfo,
    MemoryHistory,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedUnit,
    ObservedWorkloads,
    PlanRequest,
    Policy,
    Pool,
    Reservations,
    Tenant,
)
from hugeplan.planner.plan import plan

PG = DatabaseInstance(
    name="main", engine="postgresql", version="17",
    settings={"shared_buffers": "4GB", "max_connections": "100", "effective_cache_size": "8GB"},
)  # fmt: skip
MY = DatabaseInstance(
    name="shop", engine="mysql", version="8.0", settings={"innodb_buffer_pool_size": "2G"}, numa_node=0
)
TENANTS = (
    Tenant(name="app", count=2, request_bytes=GIB),
    Tenant(name="cache", kind="page_cache", request_bytes=GIB),
)
RANGED = dataclasses.replace(PG, pool_min_bytes=GIB, pool_max_bytes=6 * GIB)


def observed(number: int, *, anon_gib: int = 20, unit_bytes: int = 3 * GIB) -> PlanRequest:
    """A node that reports, with objects of its own; numbers differ in name and time of the sample only."""
    memory = Meminfo(
        mem_total_bytes=64 * GIB, mem_free_bytes=20 * GIB, mem_available_bytes=38 * GIB, buffers_bytes=GIB,
        cached_bytes=18 * GIB, s_reclaimable_bytes=GIB, s_unreclaim_bytes=GIB, kernel_stack_bytes=64 * MIB,
        page_tables_bytes=128 * MIB, percpu_bytes=0, anon_pages_bytes=anon_gib * GIB, shmem_bytes=0,
    )  # fmt: skip
    times = tuple(float(600 * k) for k in range(400))
    sample = NodeSample(
        taken_at_seconds=1000.0 + number,
        memory=memory,
        units=(ObservedUnit(key="app", kind="service", name="app", source="cgroup_v2", ordinary_bytes=unit_bytes),),
        ordinary_history=MemoryHistory(times_seconds=times, used_bytes=tuple(19 * GIB + k for k in range(400))),
    )
    node = NodeFacts(name=f"o{number}", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), cpus=16)
    return PlanRequest(node=node, databases=(PG,), sample=sample)


@st.composite
def fleets(draw: st.DrawFn) -> list[PlanRequest]:
    templates = [
        PlanRequest(
            node=NodeFacts(name="", numa=()),
            databases=databases,
            reservations=reservations,
            tenants=TENANTS,
        )
        for databases in ((PG,), (PG, MY), (RANGED,))
        for reservations in (Reservations(), Reservations(kubernetes=True, provider="gke", system_reserved_bytes=GIB))
    ]
    requests = []
    for i in range(draw(st.integers(1, 12))):
        template = draw(st.sampled_from(templates))
        sizes = draw(st.lists(st.integers(3 * GIB, 24 * GIB), min_size=1, max_size=2))
        used = Pool(page_bytes=GIB, nr_hugepages=2, free_hugepages=draw(st.integers(0, 2)))
        pools = draw(st.sampled_from([None, (Pool(page_bytes=2 * MIB, nr_hugepages=100),), (used,)]))
        numa = tuple(NumaNode(id=k, mem_total_bytes=size, pools=pools) for k, size in enumerate(sizes))
        kernel = draw(st.one_of(st.none(), st.integers(100 * MIB, GIB)))
        node = NodeFacts(
            name=f"n{i}", numa=numa, kernel_used_bytes=kernel, hvo_enabled=draw(st.sampled_from([None, True]))
        )
        requests.append(dataclasses.replace(template, node=node))
    return requests


class TestFleet:
    @given(fleets())
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_equals_the_plans_of_the_nodes(self, requests: list[PlanRequest]) -> None:
        fleet = plan_fleet(requests)
        for request, line in zip(requests, fleet.nodes, strict=True):
            own = plan(request)
            shared = fleet.groups[line.group].plan
            assert [(p.numa_node, p.page_bytes, p.pages) for p in own.pools if p.pages] == [
                (p.numa_node, p.page_bytes, p.pages) for p in shared.pools if p.pages
            ]
            assert line.free_bytes == free_bytes(own.ledger)
            assert line.fits == all(free_bytes(own.ledger, n.id) >= 0 for n in request.node.numa)

    def test_nodes_between_that_give_pages_up_for_the_risk_are_found(self) -> None:
        """Little memory: 2M pages, no choice is safe. More: base pages, because they are. Most: 2M pages again."""
        database = DatabaseInstance(
            name="my", engine="mysql", version="8.0", settings={"innodb_buffer_pool_size": "8G"}, weight=5.0
        )
        tenant = Tenant(name="app", request_bytes=2 * GIB, limit_bytes=4 * GIB)
        policy = Policy(free_margin_bytes=0, slack_fraction=0.05)
        requests = [
            PlanRequest(
                node=NodeFacts(
                    name=f"n{size}", numa=(NumaNode(id=0, mem_total_bytes=size * MIB),), kernel_used_bytes=512 * MIB
                ),
                tenants=(tenant,), databases=(database,), policy=policy,
            )
            for size in range(12_800, 14_000, 50)
        ]  # fmt: skip
        fleet = plan_fleet(requests)
        shared = [fleet.groups[line.group].plan.instances[0].page_bytes for line in fleet.nodes]
        own = [plan(request).instances[0].page_bytes for request in requests]
        assert shared == own
        assert own[0] == own[-1] == 2 * MIB
        assert None in own

    def test_like_nodes_share_one_plan(self) -> None:
        rng = random.Random(1)
        requests = [
            PlanRequest(
                node=NodeFacts(
                    name=f"n{i}", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB - rng.randrange(200 * MIB)),)
                ),
                databases=(PG,),
            )
            for i in range(200)
        ]
        fleet = plan_fleet(requests)
        assert len(fleet.groups) == 1
        assert fleet.plans_computed <= 3
        assert len({line.free_bytes for line in fleet.nodes}) > 100

    def test_observed_nodes_share_a_plan_where_all_that_it_reads_is_equal(self) -> None:
        """Three kinds of observed nodes, each many times with samples of their own, and each kind a byte apart."""
        requests = [observed(i, anon_gib=20 + i % 3, unit_bytes=3 * GIB + i % 2) for i in range(60)]
        fleet = plan_fleet(requests)
        assert fleet.plans_computed == len(fleet.groups) == 6
        for request, line in zip(requests, fleet.nodes, strict=True):
            own = plan(request)
            assert line.free_bytes == free_bytes(own.ledger)
            assert own.pools == fleet.groups[line.group].plan.pools
            assert own.ledger == fleet.groups[line.group].plan.ledger
            assert line.fits is own.feasible

    @pytest.mark.parametrize(
        "change",
        [
            {"observed": ObservedWorkloads(exclude=("app",))},
            {"policy": Policy(risk=0.02)},
            {"tenants": (Tenant(name="app", request_bytes=GIB),)},
        ],
    )
    def test_what_the_user_asks_for_keeps_observed_nodes_apart(self, change: dict[str, Any]) -> None:
        same, other = observed(0), dataclasses.replace(observed(1), **change)
        fleet = plan_fleet([same, other, observed(2)])
        assert [line.group for line in fleet.nodes].count(fleet.nodes[0].group) == 2
        assert fleet.nodes[1].free_bytes == free_bytes(plan(other).ledger)

    def test_drift_is_counted(self) -> None:
        pools = (
            Pool(page_bytes=2 * MIB, nr_hugepages=100, free_hugepages=100),
            Pool(page_bytes=GIB, nr_hugepages=2, free_hugepages=2),
        )
        node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, pools=pools),))
        fleet = plan_fleet([PlanRequest(node=node, databases=(PG,))])
        planned = sum(p.pages for p in fleet.groups[0].plan.pools)
        assert (fleet.nodes[0].missing_pages, fleet.nodes[0].idle_pages) == (planned - 100, 2)

    def test_unknown_pools_are_not_zero(self) -> None:
        node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),))
        assert plan_fleet([PlanRequest(node=node, databases=(PG,))]).nodes[0].missing_pages is None

    def test_an_error_names_the_node(self) -> None:
        good = PlanRequest(node=NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=GIB),)))
        bad = dataclasses.replace(good, policy=Policy(risk=2.0))
        with pytest.raises(PlannerError) as caught:
            plan_fleet([good, bad])
        assert caught.value.field == "nodes[1].policy.risk"

    def test_no_nodes(self) -> None:
        assert plan_fleet([]).nodes == ()
