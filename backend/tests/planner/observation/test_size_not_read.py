"""A running server whose size was not read is not planned at its engine's default: the plan would take its pages."""

from __future__ import annotations

import pytest

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    Plan,
    PlanRequest,
    Pool,
)
from hugeplan.planner.plan import plan

PAGE = 2 * MIB
SIZE = {"mysql": "innodb_buffer_pool_size", "mariadb": "innodb_buffer_pool_size", "postgresql": "shared_buffers"}


def planned(engine: str, settings: dict[str, str], mapped_bytes: int, backing: str = "hugetlb") -> Plan:
    pools = (Pool(page_bytes=PAGE, nr_hugepages=60_000, free_hugepages=60_000 - mapped_bytes // PAGE),)
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=256 * GIB, pools=pools),), kernel_used_bytes=GIB)
    segment = ObservedSegment(bytes=mapped_bytes, backing=backing, page_bytes=PAGE if backing == "hugetlb" else None)
    hugetlb = mapped_bytes if backing == "hugetlb" else 0
    runs = ObservedDatabase(key="db:main", engine=engine, hugetlb_bytes=hugetlb, segments=(segment,))
    instance = DatabaseInstance(name="db", engine=engine, settings=settings, runs_as="db:main")
    return plan(PlanRequest(node=node, databases=(instance,), sample=NodeSample(databases=(runs,), processes=())))


@pytest.mark.parametrize("backing", ["hugetlb", "base"])
@pytest.mark.parametrize("engine", sorted(SIZE))
@pytest.mark.parametrize("others", [{}, {"max_connections": "300"}])
def test_a_size_that_was_not_read_is_asked_for(engine: str, others: dict[str, str], backing: str) -> None:
    with pytest.raises(PlannerError, match="it maps 100 GiB") as raised:
        planned(engine, others, 100 * GIB, backing)
    assert raised.value.field == f"databases[0].settings.{SIZE[engine]}"


@pytest.mark.parametrize("engine", sorted(SIZE))
def test_a_size_that_is_given_is_planned_however_much_runs_today(engine: str) -> None:
    assert planned(engine, {SIZE[engine]: "8G" if engine != "postgresql" else "8GB"}, 100 * GIB).pools


@pytest.mark.parametrize("engine", sorted(SIZE))
def test_a_server_that_runs_at_its_defaults_is_planned(engine: str) -> None:
    assert planned(engine, {}, 150 * MIB).instances
