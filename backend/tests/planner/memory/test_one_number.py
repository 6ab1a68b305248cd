"""One quantity, one number: page tables, error bounds and the pages of a pod are the same wherever they are shown."""

from __future__ import annotations

import random

import pytest
import yaml
from support.seeds import SEEDS

from hugeplan.artifacts import render
from hugeplan.cli.plan_answer import plan_answer
from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.memory.page_tables import page_table_bytes
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    LedgerKind,
    NodeFacts,
    NumaNode,
    Plan,
    PlanRequest,
    Reservations,
    Workload,
)
from hugeplan.planner.pages import ceil_pages
from hugeplan.planner.plan import plan
from hugeplan.planner.units import parse_kubernetes_bytes


def node(gib: int, sizes: tuple[int, ...] = (2 * MIB, GIB), **facts: object) -> NodeFacts:
    numa = (NumaNode(id=0, mem_total_bytes=gib * GIB),)
    return NodeFacts(
        name="n",
        numa=numa,
        kernel_used_bytes=GIB,
        huge_page_sizes_bytes=sizes,
        default_huge_page_bytes=sizes[0],
        **facts,  # type: ignore[arg-type]
    )


def postgresql(buffers: str, connections: int, **fields: object) -> DatabaseInstance:
    settings = {"shared_buffers": buffers, "max_connections": str(connections), **fields.pop("settings", {})}  # type: ignore[dict-item]
    return DatabaseInstance(name="db", engine="postgresql", version="16", settings=settings, **fields)  # type: ignore[arg-type]


# --- page tables ----------------------------------------------------------------------------------


def test_page_tables_that_the_node_cannot_hold_are_missing_not_capped() -> None:
    request = PlanRequest(node=node(64), databases=(postgresql("48GB", 1000, settings={"huge_pages": "off"}),))
    found = plan(request)
    tables = found.instances[0].page_tables_base_bytes
    assert 96 * GIB < tables < 98 * GIB
    assert found.shortfall is not None
    assert 86 * GIB < found.shortfall.shortfall_bytes < 90 * GIB
    on = next(option for option in found.shortfall.options if option.setting == "huge_pages")
    assert on.value == "on"
    answer = plan_answer(found, render(found, request))
    assert "Page tables of db on 4K pages take 96." in answer
    assert "huge_pages = on" in " ".join(answer.split())


def test_the_offered_setting_makes_it_fit() -> None:
    database = postgresql("48GB", 1000, settings={"huge_pages": "on"})
    assert plan(PlanRequest(node=node(64), databases=(database,))).feasible


@pytest.mark.parametrize("seed", SEEDS)
def test_page_tables_are_one_number(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        gib = rng.choice((16, 64, 256))
        connections = rng.choice((10, 200, 1000, 8000))
        active = rng.choice((None, 5, connections // 2, connections * 3))
        workload = Workload(active_connections=active, working_set_bytes=rng.choice((None, 4 * GIB)))
        size = rng.choice((None, 0, 2 * MIB, GIB))
        buffers = rng.randrange(1, gib)
        found = plan(
            PlanRequest(
                node=node(gib),
                databases=(postgresql(f"{buffers}GB", connections, workload=workload, page_bytes=size),),
            )
        )
        instance = found.instances[0]
        processes = connections if active is None else max(1, min(active, connections))
        touched = min(1.0, 4 / buffers) if workload.working_set_bytes else 1.0
        for page, tables in ((4 * KIB, instance.page_tables_base_bytes), (instance.demand.page_bytes, None)):
            wanted = page_table_bytes(
                instance.demand.segment_bytes, page, processes=processes, touched_fraction=touched
            )
            assert (instance.page_tables_huge_bytes if tables is None else tables) == wanted
        ledger = sum(part.bytes for part in found.ledger.parts if part.kind is LedgerKind.PAGE_TABLES)
        assert ledger == instance.page_tables_huge_bytes
        chosen = next(gain for gain in found.gains if gain.is_chosen)
        assert chosen.page_tables_bytes == instance.page_tables_huge_bytes
        returned = found.net_memory.returned_page_tables_bytes
        assert 0 <= returned <= max(0, gib * GIB - instance.demand.segment_bytes)
        if instance.page_bytes is None:
            assert returned == 0


# --- error bounds and pods ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "settings", "page", "sizes", "error"),
    [
        ("db2", {"database_memory": "60G"}, 16 * GIB, (16 * MIB, 16 * GIB), 0),
        ("db2", {"database_memory": "64G"}, 16 * GIB, (16 * MIB, 16 * GIB), 1),
        ("db2", {"database_memory": "8G"}, 2 * MIB, (2 * MIB, GIB), 32),
        ("oracle", {"sga_target": "63G"}, GIB, (2 * MIB, GIB), 0),
        ("oracle", {"sga_target": "64G"}, GIB, (2 * MIB, GIB), 0),
    ],
)
def test_the_room_in_the_last_page_covers_the_error_first(
    engine: str, settings: dict[str, str], page: int, sizes: tuple[int, ...], error: int
) -> None:
    database = DatabaseInstance(name="db", engine=engine, settings=settings, page_bytes=page)
    found = demand_of(database, page, DemandContext.of_node(node(128, sizes)))
    assert found.error_pages == error


@pytest.mark.parametrize("memory", range(1, 130, 7))
@pytest.mark.parametrize("page", [16 * MIB, 16 * GIB])
def test_error_pages_follow_from_bytes(memory: int, page: int) -> None:
    database = DatabaseInstance(name="db", engine="db2", settings={"database_memory": f"{memory}G"})
    found = demand_of(database, page, DemandContext.of_node(node(512, (16 * MIB, 16 * GIB))))
    assert found.error_pages == ceil_pages(memory * GIB + 64 * MIB, page) - ceil_pages(memory * GIB, page)


def pod_bytes(found: Plan, request: PlanRequest, resource: str) -> int:
    total = 0
    for item in render(found, request):
        if item.kind.startswith("pod"):
            limits = yaml.safe_load(item.content)["resources"]["limits"]
            total += parse_kubernetes_bytes(limits[resource], resource) if resource in limits else 0
    return total


def test_a_pod_never_asks_for_more_than_its_pool() -> None:
    database = DatabaseInstance(
        name="db",
        engine="mysql",
        version="8.0",
        settings={"innodb_buffer_pool_size": "48G", "innodb_buffer_pool_chunk_size": "999M"},
        page_bytes=GIB,
    )
    request = PlanRequest(node=node(128, (GIB,)), databases=(database,), reservations=Reservations(kubernetes=True))
    found = plan(request)
    assert pod_bytes(found, request, "hugepages-1Gi") <= sum(p.pages * p.page_bytes for p in found.pools)


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_together_stay_within_the_pools_and_above_their_demands(seed: int) -> None:
    rng = random.Random(seed)
    engines = (
        lambda: ("postgresql", {"shared_buffers": f"{rng.randrange(1, 40)}GB"}, rng.choice(("13", "16", "18"))),
        lambda: ("mysql", {"innodb_buffer_pool_size": f"{rng.randrange(1, 40)}G"}, rng.choice(("5.7", "8.0", "8.4"))),
        lambda: ("mariadb", {"innodb_buffer_pool_size": f"{rng.randrange(1, 40)}G"}, None),
        lambda: ("oracle", {"sga_target": f"{rng.randrange(1, 40)}100M"[:6]}, None),
        lambda: ("db2", {"database_memory": f"{rng.randrange(1, 40)}G"}, None),
        lambda: ("jvm", {"Xmx": f"{rng.randrange(1, 40)}g"}, rng.choice(("11", "17", "25"))),
    )
    for _ in range(25):
        databases = []
        for index in range(rng.randrange(1, 4)):
            engine, settings, version = rng.choice(engines)()
            databases.append(
                DatabaseInstance(
                    name=f"d{index}",
                    engine=engine,
                    version=version,
                    settings=settings,
                    page_bytes=rng.choice((None, 2 * MIB, GIB)),
                )
            )
        facts = node(512)
        if rng.random() < 0.3:
            facts = NodeFacts(name="n", numa=facts.numa, kernel_used_bytes=GIB, default_huge_page_bytes=GIB)
        request = PlanRequest(node=facts, databases=tuple(databases), reservations=Reservations(kubernetes=True))
        found = plan(request)
        if not found.feasible:  # three pools of small chunks on 1G pages exceed the node: no file is written
            continue
        for size, resource in ((2 * MIB, "hugepages-2Mi"), (GIB, "hugepages-1Gi")):
            reserved = sum(p.pages * size for p in found.pools if p.page_bytes == size)
            demand = sum(i.demand.pages * size for i in found.instances if i.page_bytes == size)
            assert demand <= pod_bytes(found, request, resource) <= reserved, (size, databases)
