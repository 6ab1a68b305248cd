"""A move to another node is offered only where both nodes are known to fit."""

from __future__ import annotations

from dataclasses import replace

from hugeplan.planner.model import GIB, DatabaseInstance, NodeFacts, NumaNode, PlanRequest, Policy
from hugeplan.planner.other_node import with_other_node
from hugeplan.planner.plan import plan


def request(gib: int, *buffers_gib: int, name: str = "n", risk: float = 0.01) -> PlanRequest:
    """A node of so much memory with PostgreSQLs of these sizes."""
    databases = tuple(
        DatabaseInstance(name=f"db{number}", engine="postgresql", settings={"shared_buffers": f"{size}GB"})
        for number, size in enumerate(buffers_gib)
    )
    node = NodeFacts(name=name, numa=(NumaNode(id=0, mem_total_bytes=gib * GIB),), kernel_used_bytes=GIB)
    return PlanRequest(node=node, databases=databases, policy=replace(Policy(), risk=risk))


FULL = request(24, 4, 22)
LARGE = request(64, 8, name="large")


def texts(full: PlanRequest, *others: PlanRequest) -> list[str]:
    shortfall = with_other_node(plan(full), full, others).shortfall
    assert shortfall is not None
    return [option.text for option in shortfall.options if option.kind == "node"]


def test_the_first_node_that_takes_it_and_still_fits() -> None:
    small, unplannable = request(8, name="small"), request(64, name="odd", risk=2.0)
    (text,) = texts(FULL, small, unplannable, LARGE)
    assert text.startswith("db1 fits on large: ")
    assert texts(FULL, small, unplannable) == []


def test_a_name_that_is_taken_there_is_no_obstacle() -> None:
    assert texts(FULL, request(64, 1, 1, name="large")) != []


def test_nothing_is_offered_where_what_stays_does_not_fit() -> None:
    assert texts(request(16, 22, 22), LARGE) == []


def test_nothing_is_tried_for_a_plan_that_fits_or_when_the_search_has_ended() -> None:
    fits = request(64, 8)
    assert with_other_node(plan(fits), fits, [LARGE]) == plan(fits)
    found, asked = plan(FULL), []
    assert with_other_node(found, FULL, [LARGE], lambda: bool(asked.append(1))) == found
    turns = iter([True, False])
    assert with_other_node(found, FULL, [LARGE], lambda: next(turns)) == found
    assert len(asked) == 2
