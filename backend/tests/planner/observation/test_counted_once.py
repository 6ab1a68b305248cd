"""A running database is counted once, also where nobody reported its memory apart from everything else's."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.seeds import SEEDS

from hugeplan.planner.memory.ledger import sum_bytes
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
    PlanRequest,
    Pool,
    State,
)
from hugeplan.planner.plan import plan


def request(
    total: int, free: int, segment: int, *, apart: bool, mappings: bool = True, anon: int | None = None
) -> PlanRequest:
    memory = Meminfo(
        mem_total_bytes=total,
        mem_free_bytes=free,
        mem_available_bytes=free,
        cached_bytes=GIB + (segment if anon is not None else 0),
        anon_pages_bytes=anon,
        shmem_bytes=None if anon is None else segment,
    )
    running = ObservedDatabase(
        key="pg@1",
        engine="postgresql",
        version="17",
        settings={"shared_buffers": f"{segment // MIB}MB"},
        private_bytes=100 * MIB if apart else None,
        shared_bytes=segment if apart else None,
        segments=(ObservedSegment(bytes=segment, backing="base_pages"),) if mappings else (),
    )
    database = DatabaseInstance(
        name="db",
        engine="postgresql",
        version="17",
        settings={"shared_buffers": f"{segment // MIB}MB"},
        page_bytes=2 * MIB,
    )
    return PlanRequest(
        node=NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=total),)),
        databases=(database,),
        sample=NodeSample(memory=memory, databases=(running,), processes=()),
    )


def test_a_server_of_32_gib_among_68_gib_of_processes_is_not_added_to_them() -> None:
    found = plan(request(100 * GIB, 30 * GIB, 32 * GIB, apart=False))
    assert sum_bytes(found.ledger, LedgerKind.TENANTS) < 38 * GIB
    assert found.now is not None
    assert any("estimate" in note for note in found.now.notes)


@pytest.mark.parametrize("seed", SEEDS)
def test_estimate_and_report_agree(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        segment = rng.randrange(1, 60) * GIB
        anon = rng.choice((None, rng.randrange(1, 30) * GIB))
        tenants = [
            sum_bytes(plan(request(128 * GIB, 20 * GIB, segment, apart=apart, anon=anon)).ledger, LedgerKind.TENANTS)
            for apart in (True, False)
        ]
        assert abs(tenants[0] - tenants[1]) <= 100 * MIB


def without_mappings(
    *,
    total: int = 100 * GIB,
    free: int = 30 * GIB,
    engine: str = "postgresql",
    server: dict[str, str] | None = None,
    planned: dict[str, str] | None = None,
    pools: tuple[Pool, ...] = (),
    running: bool = True,
    seen: bool = True,
    hugetlb: int | None = None,
    status: str | None = None,
    **lines: int,
) -> PlanRequest:
    """A node as imports and old agents report it: a server's settings at most, never its memory apart."""
    settings = {"shared_buffers": "32GB"} if planned is None else planned
    found = ObservedDatabase(
        key="db@1",
        engine=engine,
        settings=settings if server is None else server,
        hugetlb_bytes=hugetlb,
        huge_pages_status=status,
    )
    memory = Meminfo(mem_total_bytes=total, mem_free_bytes=free, mem_available_bytes=free, **lines)
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=total, pools=pools),), kernel_used_bytes=GIB)
    databases = (found,) if running else ()
    return PlanRequest(
        node=node,
        databases=(DatabaseInstance(name="db", engine=engine, settings=settings),),
        sample=NodeSample(memory=memory, databases=databases if seen else None),
    )


MYSQL = {"innodb_buffer_pool_size": "32G", "large_pages": "ON"}
IN_USE = (Pool(page_bytes=2 * MIB, nr_hugepages=17_500, free_hugepages=100, resv_hugepages=0),)
IDLE = (Pool(page_bytes=2 * MIB, nr_hugepages=1_000, free_hugepages=1_000, resv_hugepages=0),)


@pytest.mark.parametrize(
    ("case", "least_gib", "most_gib"),
    [
        pytest.param({}, 34, 38, id="an old kernel: neither AnonPages nor Shmem"),
        pytest.param({"cached_bytes": 40 * GIB, "shmem_bytes": 33 * GIB}, 28, 31, id="no AnonPages"),
        pytest.param({"cached_bytes": GIB, "anon_pages_bytes": 30 * GIB}, 34, 38, id="no Shmem"),
        pytest.param(
            {"cached_bytes": 40 * GIB, "anon_pages_bytes": 30 * GIB, "shmem_bytes": 33 * GIB},
            28,
            31,
            id="settings only",
        ),
        pytest.param(
            {"cached_bytes": 40 * GIB, "anon_pages_bytes": 30 * GIB, "shmem_bytes": 2 * GIB},
            29,
            31,
            id="a server that has touched 2 GiB of its buffers takes 2 GiB out, not another's memory",
        ),
        pytest.param({"engine": "mysql", "planned": MYSQL}, 34, 38, id="InnoDB"),
        pytest.param(
            {"engine": "mysql", "planned": MYSQL, "anon_pages_bytes": 60 * GIB, "shmem_bytes": 0, "cached_bytes": GIB},
            25,
            28,
            id="InnoDB, anonymous",
        ),
        pytest.param(
            {"pools": IN_USE, "anon_pages_bytes": 20 * GIB, "shmem_bytes": GIB, "cached_bytes": 2 * GIB},
            20,
            21,
            id="its pages are in a pool: nothing leaves the workloads",
        ),
        pytest.param(
            {"pools": IDLE, "anon_pages_bytes": 20 * GIB, "shmem_bytes": 33 * GIB, "cached_bytes": 34 * GIB},
            18,
            21,
            id="a pool that is idle holds no server",
        ),
        pytest.param(
            {"status": "off", "pools": IN_USE, "anon_pages_bytes": 5 * GIB, "shmem_bytes": 25 * GIB, "free": 10 * GIB},
            4,
            6,
            id="a server that says off is in no pool",
        ),
        pytest.param({"planned": {"shared_buffers": "64GB"}, "server": {"shared_buffers": "32GB"}}, 34, 38, id="grown"),
    ],
)
def test_a_server_of_which_only_the_settings_are_known_is_counted_once(
    case: dict[str, Any], least_gib: int, most_gib: int
) -> None:
    found = plan(without_mappings(**case))
    left = sum_bytes(found.ledger, LedgerKind.TENANTS)
    assert least_gib * GIB <= left <= most_gib * GIB, left / GIB
    assert found.now is not None
    assert any("estimate" in note for note in found.now.notes)
    assert sum(part.bytes for part in found.ledger.parts) == found.ledger.mem_total_bytes


@pytest.mark.parametrize("case", [{"server": {}}, {"seen": False}], ids=["its size was not read", "no server was read"])
def test_a_fit_that_rests_on_what_was_not_told_apart_is_unknown(case: dict[str, Any]) -> None:
    for shared_buffers, state in (("20GB", State.OK), ("40GB", State.UNKNOWN), ("160GB", State.WRONG)):
        found = plan(without_mappings(planned={"shared_buffers": shared_buffers}, **case))
        states = {finding.state for finding in found.findings if finding.code == "memory_fit"}
        assert states == {state}, shared_buffers
        assert ("unless what was observed there holds db already" in found.headline) == (state is State.UNKNOWN)


def test_a_server_that_was_not_there_comes_beside_what_runs() -> None:
    found = plan(without_mappings(planned={"shared_buffers": "40GB"}, running=False))
    assert {finding.state for finding in found.findings if finding.code == "memory_fit"} == {State.WRONG}
    assert "unless" not in found.headline
