"""A huge page limit below the segment: a time bomb or a silent fallback."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import NodeNow, finding, limits_stand
from hugeplan.inventory.findings.kubelets import described, limits_reservations
from hugeplan.planner.model import Finding, State
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_kubernetes_bytes

CODE = "huge_pages_limit_below_segment"


def check(now: NodeNow) -> Iterable[Finding]:
    """One finding per database whose limit at its page size is below its segment."""
    for database in now.databases:
        found, demand = database.found, database.demand
        if not database.wants_pages or demand is None or not found.huge_pages_limit_bytes:
            continue
        limit = found.huge_pages_limit_bytes.get(demand.page_bytes)
        if limit is None or limit >= database.needed_bytes:
            continue
        resource = kubernetes_resource_name(demand.page_bytes)
        short = demand.pages - limit // demand.page_bytes
        where = described(now.node)
        if database.refuses_start:
            what = f"The server does not start where reservations are limited ({where})."
        elif limits_reservations(now.node):
            what = f"With {where} the server silently falls back: all {demand.pages:,} pages stay unused."
        else:
            what = (
                f"With {where}: where only the usage counter is limited the server starts and fails with Bad address"
                " once its cache is warm; else it silently falls back."
            )
        yield finding(
            CODE,
            State.WRONG,
            found.subject,
            f"Its huge page limit is {short:,} pages short of its segment",
            f"The segment takes {demand.pages:,} pages, the limit allows {limit // demand.page_bytes:,}. {what}",
            fix=f"Set {resource}: {format_kubernetes_bytes(database.needed_bytes)} as request and limit"
            f" {limits_stand(found.recognised)}.",
            limit=format_kubernetes_bytes(limit),
            needed=format_kubernetes_bytes(database.needed_bytes),
        )


def left_idle_bytes(now: NodeNow) -> dict[int, int]:
    """Bytes of huge pages, by size, that limits promise to databases that take none of them.

    A database of one mapping falls back, or does not start, as a whole. Counted only where the kubelet is known to
    limit reservations.
    """
    found: dict[int, int] = {}
    for database in now.databases:
        demand, limits = database.demand, database.found.huge_pages_limit_bytes or {}
        if not database.wants_pages or demand is None or not limits_reservations(now.node):
            continue
        limit = limits.get(demand.page_bytes, 0)
        whole = database.refuses_start or sum(segment.count for segment in demand.segments) == 1
        if whole and 0 < limit < database.needed_bytes:
            found[demand.page_bytes] = found.get(demand.page_bytes, 0) + limit
    return found
