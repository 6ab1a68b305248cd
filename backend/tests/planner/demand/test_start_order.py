"""Start order and shared pools: who gets which page, who falls back, who does not start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.demand.start_order import Contention, losing_orders, simulate_orders
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, NodeFacts, NumaNode, PlanRequest, State
from hugeplan.planner.plan import plan

NODE = DemandContext()
MARIADB = DatabaseInstance(
    name="maria",
    engine="mariadb",
    version="10.11.19",
    settings={"innodb_buffer_pool_size": "10G", "key_buffer_size": "0", "aria_pagecache_buffer_size": "128K"},
)
POSTGRESQL = DatabaseInstance(
    name="pg",
    engine="postgresql",
    version="17",
    settings={"shared_buffers": "8GB", "huge_pages": "on", "huge_page_size": "1GB"},
)
POSTGRESQL_TRY = DatabaseInstance(
    name="pg", engine="postgresql", version="17", settings={"shared_buffers": "8GB", "huge_page_size": "1GB"}
)
MYSQL = DatabaseInstance(
    name="my",
    engine="mysql",
    version="8.0",
    settings={"innodb_buffer_pool_size": "1G", "innodb_buffer_pool_instances": "1"},
)


def started(databases: Sequence[DatabaseInstance], free: Mapping[int, int], context: DemandContext) -> Contention:
    """Instances started one after the other in the given order."""
    return simulate_orders(databases, free, context)[0]


def test_mariadb_takes_the_1g_pages_meant_for_postgresql() -> None:
    run = started((MARIADB, POSTGRESQL), {GIB: 10, 2 * MIB: 6000}, NODE)
    maria, pg = run.outcomes
    assert maria.grants[0].page_bytes == GIB
    assert maria.grants[0].pages == 10
    assert not pg.starts
    assert "does not start" in pg.text
    assert dict(run.free_pages)[GIB] == 0


def test_the_other_order_serves_both() -> None:
    run = started((POSTGRESQL, MARIADB), {GIB: 9, 2 * MIB: 6000}, NODE)
    assert run.all_served
    assert run.outcomes[1].grants[0].page_bytes == 2 * MIB
    assert dict(run.free_pages) == {GIB: 0, 2 * MIB: 6000 - 5120 - 16}


def test_try_falls_back_silently() -> None:
    run = started((MARIADB, POSTGRESQL_TRY), {GIB: 10, 2 * MIB: 6000}, NODE)
    pg = run.outcomes[1]
    assert pg.starts
    assert pg.silent
    assert pg.huge_bytes == 0
    assert pg.fell_back_bytes > 8 * GIB


@pytest.mark.parametrize(("collector", "free", "starts"), [("Z", 4250, False), ("Z", 4096, True), ("G1", 4250, True)])
def test_zgc_does_not_start_on_what_another_left_of_its_pages(collector: str, free: int, starts: bool) -> None:
    first = DatabaseInstance(name="a", engine="generic", settings={"segment_size": "8GiB"}, page_bytes=2 * MIB)
    second = DatabaseInstance(name="j", engine="jvm", settings={"Xmx": "1g", "gc": collector})
    _, outcome = started((first, second), {2 * MIB: free}, NODE).outcomes
    assert outcome.starts is starts
    assert ("does not start" in outcome.text) is not starts
    assert outcome.fell_back_bytes


def test_losing_orders_are_found() -> None:
    losing = losing_orders((POSTGRESQL, MARIADB), {GIB: 10, 2 * MIB: 6000}, NODE)
    assert [run.order for run in losing] == [("maria", "pg")]
    assert losing_orders((POSTGRESQL, MARIADB), {GIB: 19, 2 * MIB: 6000}, NODE) == ()


def test_mysql_uses_only_the_default_size_and_loses_chunk_by_chunk() -> None:
    chunks = 8
    run = started((MYSQL,), {2 * MIB: 3 * 66 + 10, GIB: 100}, NODE)
    mine = run.outcomes[0]
    assert [(grant.count, grant.page_bytes) for grant in mine.grants] == [(3, 2 * MIB), (chunks - 3, None)]
    assert dict(run.free_pages) == {2 * MIB: 10, GIB: 100}


def test_mysql_on_a_1g_default_takes_a_page_for_each_chunk() -> None:
    run = started((MYSQL,), {GIB: 8}, DemandContext(default_huge_page_bytes=GIB))
    assert run.all_served
    assert dict(run.free_pages) == {GIB: 0}


def test_oracle_takes_what_there_is() -> None:
    oracle = DatabaseInstance(name="ora", engine="oracle", settings={"sga_target": "1G"})
    run = started((oracle,), {2 * MIB: 100}, NODE)
    mine = run.outcomes[0]
    assert mine.starts
    assert mine.huge_bytes == 200 * MIB
    assert mine.fell_back_bytes == GIB + 2 * MIB - 200 * MIB
    only = DatabaseInstance(name="ora", engine="oracle", settings={"sga_target": "1G", "use_large_pages": "ONLY"})
    assert not started((only,), {2 * MIB: 100}, NODE).outcomes[0].starts


def test_a_server_that_does_not_start_takes_nothing() -> None:
    run = started((POSTGRESQL, MYSQL), {GIB: 5, 2 * MIB: 8 * 66}, NODE)
    assert not run.outcomes[0].starts
    assert run.outcomes[1].starts
    assert dict(run.free_pages)[GIB] == 5


def test_jvm_heap_goes_down_from_1g_to_2m() -> None:
    jvm = DatabaseInstance(name="j", engine="jvm", version="17", settings={"Xmx": "2g", "LargePageSizeInBytes": "1g"})
    run = started((jvm,), {GIB: 1, 2 * MIB: 2000}, NODE)
    assert {grant.page_bytes for grant in run.outcomes[0].grants} == {2 * MIB}
    assert run.all_served


def test_engines_without_a_pool_take_nothing() -> None:
    redis = DatabaseInstance(name="r", engine="redis")
    run = started((redis,), {2 * MIB: 10}, NODE)
    assert run.outcomes[0].text == "r uses no huge pages."
    assert dict(run.free_pages) == {2 * MIB: 10}


def test_forbidden_huge_pages_are_respected() -> None:
    none = DatabaseInstance(name="pg", engine="postgresql", page_bytes=0)
    assert started((none,), {2 * MIB: 100}, NODE).outcomes[0].huge_bytes == 0


def test_negative_pools_are_refused() -> None:
    with pytest.raises(PlannerError, match="2M"):
        started((), {2 * MIB: -1}, NODE)


def test_all_orders_of_three() -> None:
    assert len(simulate_orders((MARIADB, POSTGRESQL, MYSQL), {GIB: 9}, NODE)) == 6


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 20), st.integers(0, 8000), st.permutations([MARIADB, POSTGRESQL_TRY, MYSQL, POSTGRESQL]))
def test_pages_are_neither_made_nor_lost(giga: int, mega: int, order: list[DatabaseInstance]) -> None:
    run = started(order, {GIB: giga, 2 * MIB: mega}, NODE)
    left = dict(run.free_pages)
    for page_bytes, before in ((GIB, giga), (2 * MIB, mega)):
        taken = sum(g.pages for o in run.outcomes for g in o.grants if g.page_bytes == page_bytes)
        assert left[page_bytes] == before - taken >= 0
    for outcome in run.outcomes:
        for grant in outcome.grants:
            if grant.page_bytes is not None:
                assert grant.pages * grant.page_bytes >= grant.mapping_bytes * grant.count


@settings(deadline=None, max_examples=40)
@given(st.sampled_from([MARIADB, POSTGRESQL, MYSQL]))
def test_reserving_the_demand_serves_the_instance_alone(database: DatabaseInstance) -> None:
    page_bytes = GIB if database is POSTGRESQL else 2 * MIB
    demand = demand_of(database, page_bytes, NODE)
    assert started((database,), {page_bytes: demand.pages}, NODE).all_served


def test_the_plan_says_when_the_start_order_matters() -> None:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=128 * GIB),), kernel_used_bytes=GIB)
    small = {**MARIADB.settings, "innodb_buffer_pool_size": "4G"}
    databases = (replace(POSTGRESQL, page_bytes=GIB), replace(MARIADB, settings=small, page_bytes=2 * MIB))
    found = [f for f in plan(PlanRequest(node=node, databases=databases)).findings if f.code == "start_order"]
    assert [finding.state for finding in found] == [State.ATTENTION]
    assert "maria" in found[0].reason
    calm = (replace(POSTGRESQL, name="a", settings={}, page_bytes=2 * MIB), replace(MYSQL, page_bytes=2 * MIB))
    found = [f for f in plan(PlanRequest(node=node, databases=calm)).findings if f.code == "start_order"]
    assert [finding.state for finding in found] == [State.OK]
    alone = plan(PlanRequest(node=node, databases=databases[:1]))
    assert not any(finding.code == "start_order" for finding in alone.findings)
