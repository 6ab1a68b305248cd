"""Net memory: locked, idle and returned bytes of the published oracles."""

from __future__ import annotations

import dataclasses

import pytest

from hugeplan.planner.model import GIB, MIB, DatabaseInstance, NodeFacts, NumaNode, Plan, PlanRequest
from hugeplan.planner.plan import plan


def planned(hvo: bool | None, **fields: object) -> Plan:
    instance = DatabaseInstance(
        name="main",
        engine="postgresql",
        version="17",
        settings={"shared_buffers": "32GB", "max_connections": "512"},
    )
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=128 * GIB),), hvo_enabled=hvo)
    return plan(PlanRequest(node=node, databases=(dataclasses.replace(instance, **fields),)))


def test_512_connections_over_32_gib_return_about_32_gib_of_page_tables() -> None:
    net = planned(hvo=False, page_bytes=2 * MIB).net_memory
    # The sheet's bound for 32 GiB exactly is 32.06 - 0.0625 GiB; the segment is 2 % larger than its buffers.
    assert net.returned_page_tables_bytes / GIB == pytest.approx(32.0 * 1.02, rel=0.02)
    assert net.returned_hvo_bytes == 0


def test_hvo_returns_28_kib_a_page_and_is_unknown_when_it_is() -> None:
    found = planned(hvo=True, page_bytes=2 * MIB)
    pages = sum(pool.pages for pool in found.pools)
    assert found.net_memory.returned_hvo_bytes == pages * 28 * 1024
    assert planned(hvo=None, page_bytes=2 * MIB).net_memory.returned_hvo_bytes is None


def test_the_parts_add_up() -> None:
    net = planned(hvo=True).net_memory
    assert net.locked_bytes == net.used_bytes + net.idle_bytes
    assert net.break_even_idle_bytes == net.returned_page_tables_bytes + (net.returned_hvo_bytes or 0)
    assert net.net_bytes == net.break_even_idle_bytes - net.idle_bytes


def test_no_pool_is_all_zero() -> None:
    net = planned(hvo=True, page_bytes=0).net_memory
    assert (net.locked_bytes, net.idle_bytes, net.returned_page_tables_bytes, net.net_bytes) == (0, 0, 0, 0)
