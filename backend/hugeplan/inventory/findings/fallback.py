"""``huge_pages = try`` without pages to take, and ``on`` without them: a silent fallback, or no start."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import DatabaseNow, NodeNow, finding, limits_stand
from hugeplan.planner.model import Finding, State
from hugeplan.planner.pages import kubernetes_resource_name, page_label
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

CODE = "silent_fallback"


def check(now: NodeNow) -> Iterable[Finding]:
    """One finding per database that asks for pages which the node has not reserved."""
    if now.node.pool_bytes is None:
        return
    for database in now.databases:
        demand = database.demand
        if not database.wants_pages or demand is None:
            continue
        held = now.node.pool_bytes.get(demand.page_bytes, 0)
        others = now.limited_bytes(demand.page_bytes) - _own(database, demand.page_bytes)
        left = max(0, held - others)
        if left >= database.needed_bytes:
            continue
        label = page_label(demand.page_bytes)
        fix = _fix(now, database, demand.page_bytes, others)
        shortage = f"It needs {demand.pages:,} pages of {label}; the node has {held // demand.page_bytes:,} reserved"
        shortage += f", of which other pods may use {format_bytes(others)}." if others else "."
        if database.refuses_start:
            yield finding(
                CODE,
                State.WRONG,
                database.found.subject,
                "It will not start here",
                f"{shortage} Its settings insist on huge pages.",
                fix=f"{fix}.",
            )
        else:
            yield finding(
                CODE,
                State.ATTENTION,
                database.found.subject,
                "It silently falls back to base pages",
                f"{shortage} Its settings try huge pages and do without.",
                fix=f"{fix}, then let the engine insist on them.",
            )


def _fix(now: NodeNow, database: DatabaseNow, page_bytes: int, others_bytes: int) -> str:
    """The count that is enough for it and for all other pods, and the limit that it lacks."""
    pages = (others_bytes + database.needed_bytes) // page_bytes
    in_all = " in all" if others_bytes else ""
    text = f"Reserve {pages:,} pages of {page_label(page_bytes)}{in_all} on {now.name}"
    # Where pages are reserved already, a missing limit has a finding of its own.
    if database.found.huge_pages_limit_bytes == {} and not now.pool_bytes:
        amount = f"{kubernetes_resource_name(page_bytes)}: {format_kubernetes_bytes(database.needed_bytes)}"
        text += f" and set {amount} as request and limit {limits_stand(database.found.recognised)}"
    return text


def _own(database: DatabaseNow, page_bytes: int) -> int:
    return (database.found.huge_pages_limit_bytes or {}).get(page_bytes, 0)
