"""Net memory: what pools lock against what they give back.

Given back are page tables (huge leaf entries replace thousands of small ones) and, with HVO, the pool's own struct
pages. Idle is what no segment fills: rounding waste and slack. Source: translation sheet section 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from hugeplan.planner.memory.ledger import hvo_returned_bytes, sum_bytes
from hugeplan.planner.memory.page_tables import returned_tables_bytes
from hugeplan.planner.model import (
    Demand,
    Explanation,
    InstancePlan,
    Ledger,
    LedgerKind,
    NetMemory,
    NodeFacts,
    PoolPlan,
    Source,
    Term,
)
from hugeplan.planner.units import format_bytes


def net_memory(
    node: NodeFacts,
    pools: Sequence[PoolPlan],
    instances: Sequence[InstancePlan],
    smaller: Sequence[Demand],
    ledger: Ledger,
    *,
    tables_now_bytes: int | None,
) -> NetMemory:
    """Locked, idle and returned bytes. ``net_bytes`` = returned - idle; above zero the reservation pays for itself.

    ``smaller``: mappings that instances have on smaller huge pages beside their own size; their pages count as used.
    ``tables_now_bytes``: all page tables of the node as it runs: what comes back is what the ledger has less. Without
    them it is what base pages would need more.
    HVO's part is None when it is unknown whether HVO is on, and is then left out of the net.
    """
    locked = sum(pool.pages * pool.page_bytes for pool in pools)
    used = sum(plan.demand.segment_bytes for plan in instances if plan.page_bytes)
    used += sum(part.segment_bytes for part in smaller) + sum(pool.held_pages * pool.page_bytes for pool in pools)
    idle = locked - used
    room = node.mem_total_bytes - sum(plan.demand.segment_bytes for plan in instances)
    if tables_now_bytes is None:
        pooled = [plan for plan in instances if plan.page_bytes]
        base, huge = (sum(p.page_tables_base_bytes for p in pooled), sum(p.page_tables_huge_bytes for p in pooled))
        tables = returned_tables_bytes(base, huge, room)
    else:
        tables = max(0, tables_now_bytes - sum_bytes(ledger, LedgerKind.PAGE_TABLES))
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
        explanation=Explanation(
            "net = page tables returned + struct pages returned - (locked - used)",
            (
                Term("locked", format_bytes(locked), Source.COMPUTED),
                Term("used by segments", format_bytes(used), Source.COMPUTED),
                Term(
                    "page tables returned",
                    format_bytes(tables),
                    Source.COMPUTED,
                    "of the active connections where they are known, else of all that may connect"
                    if tables_now_bytes is None
                    else "the node's page tables today less those of the ledger",
                ),
                Term("struct pages returned", "unknown, left out", Source.UNKNOWN)
                if hvo is None
                else Term("struct pages returned", format_bytes(hvo), Source.COMPUTED),
            ),
            "translation sheet section 9; Documentation/mm/vmemmap_dedup.rst",
        ),
    )
