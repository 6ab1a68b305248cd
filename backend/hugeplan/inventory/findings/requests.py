"""Would the node's pods still be scheduled once the plan's pools have left allocatable memory?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import finding
from hugeplan.inventory.model import FoundNode
from hugeplan.planner.memory.kubernetes import pod_memory
from hugeplan.planner.model import Finding, Plan, State
from hugeplan.planner.units import format_bytes

CODE = "requests_exceed_allocatable"


def check(node: FoundNode, plan: Plan) -> Iterable[Finding]:
    """One per database that alone is too large, and at most one for the sum.

    A database's memory request may fall by its segment, which then lies in the pool.
    """
    yield from _pending(node, plan)
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


def _pending(node: FoundNode, plan: Plan) -> Iterable[Finding]:
    """Databases whose patched request alone is more than what the node will offer: they stay Pending."""
    if plan.kubernetes is None:
        return
    offered = plan.kubernetes.allocatable["memory"]
    planned_by_name = {planned.name: planned for planned in plan.instances}
    for found in node.databases:
        planned = planned_by_name[found.instance.name]
        memory = pod_memory(plan, found.instance, planned) if planned.page_bytes is not None else None
        own = found.memory_request_bytes if memory is None else memory.request_bytes
        if own is None:
            continue
        # The scheduler counts the whole pod: sidecars and overhead too.
        request = own + (found.beside_request_bytes or 0)
        if request <= offered:
            continue
        yield finding(
            "patched_pod_stays_pending",
            State.WRONG,
            found.subject,
            f"Its request of {format_bytes(request)} is more than the {format_bytes(offered)} that {node.facts.name}"
            " will offer",
            "Allocatable memory falls by the pools, so the pod stays Pending after it is patched"
            f" ({memory.why if memory else 'it gets no huge pages'}).",
            fix="Lower its memory request, make its buffer pool smaller, or plan it for a larger node.",
            request=format_bytes(request),
            allocatable=format_bytes(offered),
        )
