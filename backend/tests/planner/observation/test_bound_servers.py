"""A server that may allocate on some NUMA nodes only is planned there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.documents import observed
from hugeplan.fleet.observation import observed_database
from hugeplan.planner.model import (
    GIB,
    DatabaseInstance,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    Plan,
    PlanRequest,
)
from hugeplan.planner.plan import plan

SETTINGS = {"shared_buffers": "4GB", "max_connections": "100", "huge_pages": "on"}
MAIN = DatabaseInstance(name="main", engine="postgresql", version="17", settings=SETTINGS)
SERVER = ObservedDatabase(key="postgresql@systemd:postgresql.service:5432", engine="postgresql", settings=SETTINGS)


def planned(nodes: tuple[int, ...], of_memory: tuple[int, ...] = (32, 32), **fields: object) -> Plan:
    numa = tuple(NumaNode(id=i, mem_total_bytes=size * GIB) for i, size in enumerate(of_memory))
    sample = NodeSample(
        memory=Meminfo(mem_total_bytes=sum(of_memory) * GIB, mem_free_bytes=40 * GIB),
        databases=(replace(SERVER, allowed_numa_nodes=nodes),),
    )
    node = NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB)
    return plan(PlanRequest(node=node, databases=(replace(MAIN, **fields),), sample=sample))


def pages(found: Plan) -> list[int]:
    return [pool.numa_node for pool in found.pools if pool.demand_pages]


def notes(found: Plan) -> list[str]:
    return [text for text in found.assumptions if "as its server is bound there" in text]


@pytest.mark.parametrize(("nodes", "of_memory", "where", "is_bound"), [
    ((1,), (32, 32), [1], True),
    ((0, 1), (32, 32), [0, 1], False),
    ((), (32, 32), [0, 1], False),  # an older agent's report
    ((0, 2), (32, 32, 32), [0, 2], True),
    ((0,), (64,), [0], False),
    ((0, 1), (64, 0), [0], False),  # a node without memory is none of several
    ((0, 1), (32, 0, 32), [0], True),
    ((7,), (32, 32), [0, 1], False),  # of another machine
])  # fmt: skip
def test_where_its_pages_are_planned(
    nodes: tuple[int, ...], of_memory: tuple[int, ...], where: list[int], *, is_bound: bool
) -> None:
    """Of a PostgreSQL with systemd's NUMAPolicy=bind half the pages were planned elsewhere; it did not start."""
    found = planned(nodes, of_memory)
    assert found.instances[0].runs_as == SERVER.key, "matched by what it is"
    assert set(pages(found)) <= set(where)
    assert bool(notes(found)) is is_bound
    if is_bound:
        assert pages(found) == list(found.instances[0].numa_nodes) == where
        assert pages(planned(nodes, of_memory, page_bytes=0)) == []


def test_the_scenario_is_stronger_than_the_server_and_says_so() -> None:
    found = planned((1,), numa_node=0)
    (wrong,) = (one for one in found.findings if one.code == "numa_node_not_allowed")
    assert (pages(found), wrong.state, notes(found)) == ([0], "wrong", [])
    assert "NUMA node 1 only; its pages are on NUMA node 0" in wrong.reason


def test_a_way_out_of_a_shortage_is_none_that_its_server_cannot_go() -> None:
    found = planned((1,), (64, 2))
    assert found.shortfall is not None
    assert "numa_node" not in {option.kind for option in found.shortfall.options}


@pytest.mark.parametrize(
    ("said", "nodes"), [({}, ()), ({"allowed_numa_nodes": None}, ()), ({"allowed_numa_nodes": [0, 2]}, (0, 2))]
)
def test_a_report_of_any_agent_says_it_or_not(said: dict[str, object], nodes: tuple[int, ...]) -> None:
    report = {"key": "postgresql@node", "engine": "postgresql", "main_pid": 1, **said}
    assert observed_database(observed.Database.model_validate(report)).allowed_numa_nodes == nodes
