"""Names are anybody's: to find a database's name in a workload's takes a time that grows as the names do."""

from __future__ import annotations

import time

import pytest

from hugeplan.planner.model import GIB, DatabaseInstance, Finding, NodeFacts, NumaNode, PlanRequest, Tenant
from hugeplan.planner.plan import plan

NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),))


def counted_twice(workload: str, *databases: str) -> Finding:
    """What is found of a workload beside PostgreSQL servers of these names."""
    tenants = (Tenant(name=workload, request_bytes=GIB),)
    servers = tuple(DatabaseInstance(name=name, engine="postgresql") for name in databases)
    (found,) = [
        f
        for f in plan(PlanRequest(node=NODE, databases=servers, tenants=tenants)).findings
        if f.code == "double_counting"
    ]
    return found


@pytest.mark.parametrize("databases", [("pg-0",), tuple("b-" * size + "c" for size in range(1, 80))])
def test_a_name_of_many_words_costs_what_it_is_long(databases: tuple[str, ...]) -> None:
    counted_twice("app", *databases)
    began = time.process_time()
    assert counted_twice("a-" * 3_000, *databases).state.value == "ok"
    assert time.process_time() - began < 2


@pytest.mark.parametrize("workload", ["a-shop-db-x", "shop-db", "x-shop-db", "shop-db-x", "a-" * 200 + "postgres"])
def test_a_part_of_a_name_is_found_wherever_it_is(workload: str) -> None:
    title = counted_twice(workload, "shop-db", "a-b-c").title
    assert ("shop-db" in title) or workload.startswith("a-a-")
    assert "counted twice" in title


def test_a_database_of_many_words_is_its_namesakes() -> None:
    assert "may be counted twice" in counted_twice("a-" * 300, "a-" * 300).title
