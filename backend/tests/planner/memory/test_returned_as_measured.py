"""Page tables that a pool gives back are at most what was measured of the server while it runs on base pages."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.seeds import SEEDS

from hugeplan.cli.plan_answer import plan_answer
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    LedgerKind,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    Plan,
    PlanRequest,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.units import format_bytes
from hugeplan.planner.verdict import verdict


def running(gib: int, tables: int | None, *, huge: bool, clients: int = 100) -> PlanRequest:
    settings = {"shared_buffers": f"{gib}GB", "max_connections": str(clients)}
    segment = ObservedSegment(bytes=gib * GIB, backing="hugetlb" if huge else "base", page_bytes=2 * MIB)
    server = ObservedDatabase(
        key="pg@1",
        engine="postgresql",
        version="17",
        settings=settings,
        clients=clients,
        private_bytes=100 * MIB,
        shared_bytes=0 if huge else gib * GIB,
        hugetlb_bytes=gib * GIB if huge else 0,
        page_tables_bytes=tables,
        segments=(segment,),
        huge_pages_status="on" if huge else "off",
    )
    memory = Meminfo(
        mem_total_bytes=256 * GIB,
        mem_free_bytes=150 * GIB,
        cached_bytes=gib * GIB + GIB,
        anon_pages_bytes=GIB,
        shmem_bytes=0 if huge else gib * GIB,
        page_tables_bytes=tables,
    )
    return PlanRequest(
        node=NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=256 * GIB),)),
        databases=(DatabaseInstance(name="db", engine="postgresql", version="17", settings=settings),),
        sample=NodeSample(memory=memory, databases=(server,), processes=()),
    )


def memory_score(found: Plan) -> float:
    chosen = found.instances[0].chosen
    assert chosen is not None
    assert chosen.memory_score is not None
    return chosen.memory_score


def test_163_mib_of_page_tables_give_back_no_gib() -> None:
    request = running(32, 163 * MIB, huge=False)
    found = plan(request)
    assert 0 < found.net_memory.returned_page_tables_bytes <= 163 * MIB
    unbounded = plan(running(32, None, huge=False))
    assert unbounded.net_memory.returned_page_tables_bytes > 6 * GIB
    assert memory_score(unbounded) - memory_score(found) == pytest.approx(
        100
        * (unbounded.net_memory.returned_page_tables_bytes - found.net_memory.returned_page_tables_bytes)
        / (256 * GIB),
        abs=0.01,
    )
    assert "give back up to 1" in " ".join(plan_answer(found, ()).split())


def test_a_server_on_huge_pages_gives_no_page_tables_back() -> None:
    found = plan(running(32, 5 * MIB, huge=True))
    assert found.net_memory.returned_page_tables_bytes == 0
    # Base pages would take 6 GiB of them: that is what the choice weighs.
    assert memory_score(found) > 2
    assert "page tables" not in " ".join(plan_answer(found, ()).split()).partition("Now ->")[0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_servers_whose_tables_nobody_read_give_back_no_more_than_the_node_has(count: int) -> None:
    request = running(16, None, huge=False)
    sample = request.sample
    assert sample is not None
    assert sample.memory is not None
    names = [f"db-{index}" for index in range(count)]
    request = replace(
        request,
        databases=tuple(replace(request.databases[0], name=name, runs_as=name) for name in names),
        sample=replace(
            sample,
            memory=replace(
                sample.memory,
                page_tables_bytes=150 * MIB,
                cached_bytes=(count * 16 + 1) * GIB,
                shmem_bytes=count * 16 * GIB,
            ),
            databases=tuple(replace(sample.databases[0], key=name) for name in names),
        ),
    )
    found = plan(request)
    # Each page of ordinary memory needs one entry; the rest of 150 MiB may be the servers', and the plan says so.
    most = 150 * MIB - (count * 16 * GIB + GIB) // 512
    assert 0 < found.net_memory.returned_page_tables_bytes <= most
    assert found.now is not None
    assert sum("page tables were not reported apart" in note for note in found.now.notes) == count


@pytest.mark.parametrize("clients", [10, 1000])
@pytest.mark.parametrize("read", [True, False])
def test_a_terminal_a_page_and_the_ledger_say_one_number(clients: int, *, read: bool) -> None:
    tables = 20 * GIB
    request = running(16, tables, huge=False, clients=clients)
    assert request.sample is not None
    if not read:
        server = replace(request.sample.databases[0], page_tables_bytes=None)
        request = replace(request, sample=replace(request.sample, databases=(server,)))
    found = plan(request)
    assert found.difference is not None
    back = next(c for c in found.difference.memory if c.kind is LedgerKind.PAGE_TABLES)
    said = format_bytes(back.now_bytes - back.planned_bytes)
    assert f"give back up to {said}" in " ".join(plan_answer(found, ()).split())
    assert f"Up to {said} of page tables come back." in verdict(found).costs
    # Ten connections to 16 GiB cannot have built 20 GiB of tables; a thousand can have built nearly all.
    measured = found.net_memory.returned_page_tables_bytes
    assert measured > 19 * GIB if read or clients == 1000 else measured < GIB


@pytest.mark.parametrize("seed", SEEDS)
def test_never_more_than_measured(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        tables = rng.randrange(0, 20 * GIB)
        request = running(rng.randrange(1, 90), tables, huge=False, clients=rng.choice((5, 100, 900)))
        if rng.random() < 0.5:  # described larger than it runs
            changed = {**request.databases[0].settings, "shared_buffers": f"{rng.randrange(1, 90)}GB"}
            request = replace(request, databases=(replace(request.databases[0], settings=changed),))
        found = plan(request)
        assert 0 <= found.net_memory.returned_page_tables_bytes <= tables
