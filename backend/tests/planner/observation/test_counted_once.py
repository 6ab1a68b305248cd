"""A running database is counted once, also where nobody reported its memory apart from everything else's."""

from __future__ import annotations

import random

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


def test_what_cannot_be_told_apart_is_said() -> None:
    found = plan(request(100 * GIB, 30 * GIB, 32 * GIB, apart=False, mappings=False))
    assert found.now is not None
    assert any("may be counted twice" in note for note in found.now.notes)
