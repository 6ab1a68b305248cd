"""Memory of engines without a pool is in the ledger, or said to be unknown."""

from __future__ import annotations

from hugeplan.planner.model import GIB, DatabaseInstance, LedgerKind, NodeFacts, NumaNode, PlanRequest
from hugeplan.planner.plan import plan


def request(database: DatabaseInstance) -> PlanRequest:
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB, cpus=8)
    return PlanRequest(node=node, databases=(database,))


def engine_private_bytes(database: DatabaseInstance) -> int:
    parts = plan(request(database)).ledger.parts
    return sum(part.bytes for part in parts if part.kind is LedgerKind.ENGINE_PRIVATE)


def test_redis_memory_is_counted() -> None:
    redis = DatabaseInstance(name="cache", engine="redis", settings={"maxmemory": "12gb"})
    assert engine_private_bytes(redis) == 12 * GIB
    assert plan(request(redis)).pools == ()


def test_oracle_pga_is_counted_beside_the_pool() -> None:
    oracle = DatabaseInstance(
        name="ora", engine="oracle", settings={"sga_target": "16G", "pga_aggregate_target": "5G"}, connections=100
    )
    assert engine_private_bytes(oracle) == 5 * GIB
    assert sum(pool.pages * pool.page_bytes for pool in plan(request(oracle)).pools) >= 16 * GIB


def test_unknown_memory_is_no_zero_in_silence() -> None:
    redis = DatabaseInstance(name="cache", engine="redis")
    assert engine_private_bytes(redis) == 0
    assert "cache: its memory" in plan(request(redis)).unknowns
