"""Net memory: what pools lock against what they give back.

Given back are page tables (huge leaf entries replace thousands of small ones) and, with HVO, the pool's own struct
pages. Idle is what no segment fills: rounding waste and slack. Source: translation sheet section 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from hugeplan.planner.memory.ledger import hvo_returned_bytes
from hugeplan.planner.memory.page_tables import base_tables_bytes, returned_tables_bytes
from hugeplan.planner.model import (
    DatabaseInstance,
    Demand,
    Explanation,
    InstancePlan,
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
    smaller: Sequence[Demand] = (),
    databases: Sequence[DatabaseInstance] = (),
    *,
    tables_now_bytes: int | None = None,
) -> NetMemory:
    """Locked, idle and returned bytes. ``net_bytes`` = returned - idle; above zero the reservation pays for itself.

    ``smaller``: mappings that instances have on smaller huge pages beside their own size; their pages count as used.
    ``databases``: the instances as described, whose measured page tables bound what comes back.
    ``tables_now_bytes``: all page tables of the node, the bound of what its running servers have together.
    HVO's part is None when it is unknown whether HVO is on, and is then left out of the net.
    """
    locked = sum(pool.pages * pool.page_bytes for pool in pools)
    used = sum(plan.demand.segment_bytes for plan in instances if plan.page_bytes)
    used += sum(part.segment_bytes for part in smaller) + sum(pool.held_pages * pool.page_bytes for pool in pools)
    idle = locked - used
    room = node.mem_total_bytes - sum(plan.demand.segment_bytes for plan in instances)
    on_base = {database.name: database for database in databases if database.page_tables_now_bytes is not None}
    pooled = [plan for plan in instances if plan.page_bytes]
    running = modelled = 0
    for plan in pooled:
        instance = on_base.get(plan.name)
        if instance is None:
            modelled += plan.page_tables_base_bytes
        else:
            running += base_tables_bytes(plan.page_tables_base_bytes, instance)
    base = modelled + (running if tables_now_bytes is None else min(running, tables_now_bytes))
    tables = returned_tables_bytes(base, sum(plan.page_tables_huge_bytes for plan in pooled), room)
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
                    "at most what the running servers have today"
                    if on_base
                    else "of the active connections where they are known, else of all that may connect",
                ),
                _hvo_term(hvo),
            ),
            "translation sheet section 9; Documentation/mm/vmemmap_dedup.rst",
        ),
    )


def _hvo_term(returned: int | None) -> Term:
    if returned is None:
        return Term("struct pages returned", "unknown, left out", Source.UNKNOWN)
    return Term("struct pages returned", format_bytes(returned), Source.COMPUTED)
