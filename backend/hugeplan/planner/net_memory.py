"""Net memory: what pools lock against what they give back.

Given back are page tables (huge leaf entries replace thousands of small ones) and, with HVO, the pool's own struct
pages. Idle is what no segment fills: rounding waste and slack. Source: translation sheet section 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from hugeplan.planner.ledger import hvo_returned_bytes
from hugeplan.planner.model import InstancePlan, NetMemory, NodeFacts, PoolPlan


def net_memory(node: NodeFacts, pools: Sequence[PoolPlan], instances: Sequence[InstancePlan]) -> NetMemory:
    """Locked, idle and returned bytes. ``net_bytes`` = returned - idle; above zero the reservation pays for itself.

    HVO's part is None when it is unknown whether HVO is on, and is then left out of the net.
    """
    locked = sum(pool.pages * pool.page_bytes for pool in pools)
    used = sum(plan.demand.segment_bytes for plan in instances if plan.page_bytes)
    idle = locked - used
    tables = sum(plan.page_tables_base_bytes - plan.page_tables_huge_bytes for plan in instances if plan.page_bytes)
    hvo: int | None = None
    if node.hvo_enabled is not None:
        hvo = sum(hvo_returned_bytes(p.pages, p.page_bytes, node.base_page_bytes) for p in pools) * node.hvo_enabled
    returned = tables + (hvo or 0)
    return NetMemory(
        locked_bytes=locked,
        used_bytes=used,
        idle_bytes=idle,
        returned_page_tables_bytes=tables,
        returned_hvo_bytes=hvo,
        net_bytes=returned - idle,
        break_even_idle_bytes=returned,
    )


def break_even_idle_pages(returned_bytes: int, page_bytes: int) -> int:
    """Idle pages up to which a reservation costs nothing: returned bytes / page size, rounded down."""
    return max(0, returned_bytes) // page_bytes
