"""A node of many has the plan that it would have alone, or a reason why it has none."""

from __future__ import annotations

import dataclasses

from hugeplan.planner.fleet import plan_node
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, NodeFacts, NumaNode, PlanRequest, Policy, Pool
from hugeplan.planner.plan import plan

PG = DatabaseInstance(
    name="main", engine="postgresql", version="17",
    settings={"shared_buffers": "4GB", "max_connections": "100", "effective_cache_size": "8GB"},
)  # fmt: skip


def node(name: str = "n", pools: tuple[Pool, ...] | None = None, memory_bytes: int = 64 * GIB) -> NodeFacts:
    return NodeFacts(name=name, numa=(NumaNode(id=0, mem_total_bytes=memory_bytes, pools=pools),))


def test_it_is_the_plan_of_the_node() -> None:
    for memory_bytes in (3 * GIB, 64 * GIB):
        request = PlanRequest(node=node(memory_bytes=memory_bytes), databases=(PG,))
        own, found = plan(request), plan_node(request)
        assert found.plan == own
        assert (found.free_bytes, found.fits) == (free_bytes(own.ledger), own.feasible)


def test_missing_and_idle_pages_are_counted() -> None:
    pools = (
        Pool(page_bytes=2 * MIB, nr_hugepages=100, free_hugepages=100),
        Pool(page_bytes=GIB, nr_hugepages=2, free_hugepages=2),
    )
    found = plan_node(PlanRequest(node=node(pools=pools), databases=(PG,)))
    assert found.plan is not None
    planned = sum(p.pages for p in found.plan.pools)
    assert (found.missing_pages, found.idle_pages) == (planned - 100, 2)


def test_unknown_pools_are_not_zero() -> None:
    assert plan_node(PlanRequest(node=node(), databases=(PG,))).missing_pages is None


def test_nodes_with_the_same_pools_are_one_group() -> None:
    small, large, none = (
        plan_node(PlanRequest(node=node(f"n{size}", memory_bytes=size * GIB), databases=databases))
        for size, databases in ((64, (PG,)), (128, (PG,)), (64, ()))
    )
    assert small.group == large.group != none.group


def test_a_node_that_cannot_be_planned_says_why() -> None:
    found = plan_node(PlanRequest(node=node(), policy=Policy(risk=2.0)))
    assert (found.plan, found.fits, found.free_bytes, found.group) == (None, None, None, None)
    assert "policy.risk" in (found.why_not or "")
    assert dataclasses.replace(found.request, policy=Policy()) == PlanRequest(node=node())
