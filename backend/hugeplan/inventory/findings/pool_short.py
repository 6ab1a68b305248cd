"""Pods may use more pages than the node has: the pool shrank after they were scheduled."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import NodeNow, finding
from hugeplan.planner.model import Finding, State
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_below_limits"


def check(now: NodeNow) -> Iterable[Finding]:
    """One finding per page size whose pods' limits exceed what the node reports."""
    if now.node.pool_bytes is None:
        return
    for size in sorted({size for user in now.node.huge_page_users for size in user.limit_bytes}):
        held, limited = now.node.pool_bytes.get(size, 0), now.limited_bytes(size)
        if limited <= held:
            continue
        users = ", ".join(user.subject for user in now.node.huge_page_users if user.limit_bytes.get(size))
        yield finding(
            CODE,
            State.WRONG,
            now.name,
            f"Its pods have limits for {format_bytes(limited - held)} of {page_label(size)} pages too many",
            f"The limits of {users} sum to {format_bytes(limited)}, the node reports {format_bytes(held)}:"
            " the pool was made smaller after they were scheduled. What starts last finds too few pages.",
            fix=f"Reserve {limited // size:,} pages of {page_label(size)} and restart the kubelet.",
            reserved=format_bytes(held),
            limits=format_bytes(limited),
        )
