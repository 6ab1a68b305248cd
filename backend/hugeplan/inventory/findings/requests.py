"""Would the node's pods still be scheduled once the plan's pools have left allocatable memory?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import finding
from hugeplan.inventory.model import FoundNode
from hugeplan.planner.model import Finding, Plan, State
from hugeplan.planner.units import format_bytes

CODE = "requests_exceed_allocatable"


def check(node: FoundNode, plan: Plan) -> Iterable[Finding]:
    """At most one finding. A database's memory request may fall by its segment, which then lies in the pool."""
    if node.requested_bytes is None or plan.kubernetes is None:
        return
    moved = 0
    planned_by_name = {planned.name: planned for planned in plan.instances}
    for found in node.databases:
        planned = planned_by_name[found.instance.name]
        if planned.page_bytes is None:
            continue
        already = sum((found.huge_pages_limit_bytes or {}).values())
        segment = max(0, planned.demand.segment_bytes - already)
        moved += min(segment, found.memory_request_bytes or 0)
    left = node.requested_bytes - moved
    offered = plan.kubernetes.allocatable["memory"]
    if left <= offered:
        return
    yield finding(
        CODE,
        State.WRONG,
        node.facts.name,
        f"Its pods' memory requests exceed what is left by {format_bytes(left - offered)}",
        f"Requests of {format_bytes(left)} remain after the databases' requests fall by {format_bytes(moved)} that move"
        f" into the pool; allocatable memory becomes {format_bytes(offered)}. Some pods would have to leave.",
        fix="Move pods or a database to another node, or make a buffer pool smaller.",
        requests=format_bytes(left),
        allocatable=format_bytes(offered),
    )
