"""Pages in use whose owner is not known stay beside what is planned; idle are pages that are free and not promised."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    GlobalPool,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    Plan,
    PlanRequest,
    Pool,
    State,
)
from hugeplan.planner.plan import plan

PAGE = 2 * MIB


def node(nr: int, free: int | None, *, resv: int | None = None, nodes: int = 1) -> NodeFacts:
    pools = (Pool(page_bytes=PAGE, nr_hugepages=nr, free_hugepages=free, resv_hugepages=resv),)
    numa = tuple(NumaNode(id=i, mem_total_bytes=64 * GIB, pools=pools) for i in range(nodes))
    return NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB)


def server(mib: int) -> DatabaseInstance:
    return DatabaseInstance(name="db", engine="generic", settings={"segment_size": f"{mib}MiB"}, page_bytes=PAGE)


def findings(found: Plan, code: str) -> list[State]:
    return [f.state for f in found.findings if f.code == code]


def test_250_pages_in_use_stay_beside_a_server_that_needs_250() -> None:
    found = plan(PlanRequest(node=node(400, 150), databases=(server(500),)))
    (pool,) = found.pools
    assert pool.held_pages == 250
    assert pool.pages == 250 + 250 + pool.slack_pages
    assert State.OK not in findings(found, "pool_short")


@pytest.mark.parametrize(
    ("numa_node", "allowed", "others", "held"),
    [
        (1, (), (), {0: 218, 1: 0}),
        (None, (), (), {0: 159, 1: 59}),
        (None, (), (0,), {0: 218, 1: 0}),  # the other is bound, and the planned one is not
        (0, (1,), (0,), {0: 218, 1: 0}),  # it is to move to the other's node
        (0, (1,), (), {0: 218, 1: 0}),
    ],
)
def test_the_pages_of_a_bound_server_are_on_its_node(
    numa_node: int | None, allowed: tuple[int, ...], others: tuple[int, ...], held: dict[int, int]
) -> None:
    """Found: pages of a server bound to node 0 were kept on node 1, and it did not start after the next boot."""
    numa = tuple(
        NumaNode(id=i, mem_total_bytes=64 * GIB, pools=(Pool(page_bytes=PAGE, nr_hugepages=nr, free_hugepages=0),))
        for i, nr in enumerate((218, 80))
    )
    own = ObservedDatabase(
        key="own", engine="mariadb", settings={}, hugetlb_bytes=80 * PAGE, allowed_numa_nodes=allowed
    )
    other = ObservedDatabase(
        key="other", engine="postgresql", settings={}, hugetlb_bytes=218 * PAGE, allowed_numa_nodes=others
    )
    database = DatabaseInstance(
        name="db", engine="mariadb", settings={"innodb_buffer_pool_size": "256M"}, runs_as="own", numa_node=numa_node
    )
    sample = NodeSample(databases=(own, other), processes=())
    found = plan(PlanRequest(node=NodeFacts(name="n", numa=numa), databases=(database,), sample=sample))
    assert {pool.numa_node: pool.held_pages for pool in found.pools} == held


@given(
    nr=st.integers(1, 3000),
    free=st.integers(0, 3000),
    resv=st.none() | st.integers(0, 3000),
    mib=st.integers(2, 8000),
    nodes=st.sampled_from([1, 2]),
    visible=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_in_use_and_demand_and_slack(
    nr: int, free: int, resv: int | None, mib: int, nodes: int, *, visible: bool
) -> None:
    free = min(free, nr)
    resv = None if resv is None else min(resv, free)
    databases: tuple[ObservedDatabase, ...] | None = () if visible else None
    sample = NodeSample(databases=databases, processes=() if visible else None)
    found = plan(PlanRequest(node=node(nr, free, resv=resv, nodes=nodes), databases=(server(mib),), sample=sample))
    in_use = nodes * (nr - free + (resv or 0))
    assert sum(p.held_pages for p in found.pools) == in_use
    for pool in found.pools:
        assert pool.pages == pool.demand_pages + pool.slack_pages
    assert sum(p.demand_pages for p in found.pools) == in_use + found.instances[0].demand.pages
    for finding in found.findings:
        said = re.search(r"([\d,]+) pages \([^)]*\) are idle", finding.reason)
        if said is not None:
            assert resv is not None
            assert int(said[1].replace(",", "")) == nodes * (free - resv)
            assert ("all " in finding.reason) == (free - resv == nr)


@pytest.mark.parametrize("nr", [1, 100, 255, 400, 9000])
def test_a_pool_whose_free_count_is_unknown_is_never_ok(nr: int) -> None:
    found = plan(PlanRequest(node=node(nr, None), databases=(server(500),)))
    (pool,) = found.pools
    assert pool.pages == max(nr, 250 + pool.slack_pages)
    assert State.OK not in findings(found, "pool_short")
    if nr >= pool.pages:
        assert State.UNKNOWN in findings(found, "pool_short")


def test_a_running_server_whose_mappings_could_not_be_read_keeps_its_own_pages_and_says_that_it_is_a_guess() -> None:
    running = ObservedDatabase(key="pg@1", engine="postgresql", version="16", settings={"shared_buffers": "2GB"})
    totals = (GlobalPool(page_bytes=PAGE, nr_hugepages=1500, free_hugepages=100, resv_hugepages=0),)
    database = DatabaseInstance(
        name="main", engine="postgresql", version="16", settings={"shared_buffers": "2GB"}, page_bytes=PAGE
    )
    sample = NodeSample(databases=(running,), processes=(), pools=totals)
    found = plan(PlanRequest(node=node(1500, 100), databases=(database,), sample=sample))
    demand = found.instances[0].demand.pages
    assert found.pools[0].held_pages == 1400 - demand
    assert State.UNKNOWN in findings(found, "pool_idle")
    off = NodeSample(
        databases=(
            ObservedDatabase(
                key="pg@1",
                engine="postgresql",
                version="16",
                settings={"shared_buffers": "2GB"},
                huge_pages_status="off",
            ),
        ),
        processes=(),
        pools=totals,
    )
    assert plan(PlanRequest(node=node(1500, 100), databases=(database,), sample=off)).pools[0].held_pages == 1400
