"""A database without a huge page limit on a node that has pools: the kubelet gives its pod a limit of 0."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import NodeNow, finding, limits_stand
from hugeplan.inventory.findings.kubelets import described, limits_reservations
from hugeplan.planner.model import Finding, State
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_kubernetes_bytes

CODE = "pod_without_huge_pages_limit"


def check(now: NodeNow) -> Iterable[Finding]:
    """One finding per database that asks for huge pages, has no limit, and runs where pages are reserved."""
    if not now.pool_bytes:
        return
    for database in now.databases:
        found = database.found
        if not database.wants_pages or database.demand is None or found.huge_pages_limit_bytes:
            continue
        if found.huge_pages_limit_bytes is None:
            continue
        demand = database.demand
        resource = kubernetes_resource_name(demand.page_bytes)
        size = format_kubernetes_bytes(database.needed_bytes)
        where = described(now.node)
        if database.refuses_start:
            what = "The server does not start, because it insists on huge pages."
        elif limits_reservations(now.node):
            what = f"With {where} the server silently falls back to base pages."
        else:
            what = (
                f"With {where}: initdb or the server dies of a Bus error where only the usage counter is limited,"
                " else the server silently falls back to base pages."
            )
        yield finding(
            CODE,
            State.WRONG,
            found.subject,
            "It may use none of the node's huge pages",
            f"Node {now.name} has huge pages reserved and the container has no huge page limit, so its limit is 0."
            f" {what}",
            fix=f"Set {resource}: {size} as request and limit {limits_stand(found.recognised)}.",
            needed=size,
        )
