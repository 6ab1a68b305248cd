"""Many nodes at once: each gets the plan that it would get alone, and a node that cannot be planned says why.

Nodes of a real fleet are alike in what they are and never in what runs on them, so that no two start from the same
memory. Each is planned by itself; nodes with the same pools are one group afterwards (docs/adr/0032).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """One node's answer. ``plan`` is None where it cannot be planned; ``why_not`` is the sentence that says why.

    ``missing_pages`` are planned and not there, ``idle_pages`` there and not planned; None: unknown.
    """

    request: PlanRequest
    plan: Plan | None
    why_not: str | None = None
    free_bytes: int | None = None
    missing_pages: int | None = None
    idle_pages: int | None = None

    @property
    def fits(self) -> bool | None:
        """Whether the plan fits; None without a plan."""
        return None if self.plan is None else self.plan.feasible

    @property
    def pools(self) -> tuple[tuple[int, int, int], ...]:
        """NUMA node, page size and pages of each pool that has pages; nodes with the same pools are one group."""
        return (
            () if self.plan is None else tuple((p.numa_node, p.page_bytes, p.pages) for p in self.plan.pools if p.pages)
        )

    @property
    def group(self) -> Hashable:
        """What tells groups of nodes apart: the pools, and what each database gets of them."""
        if self.plan is None:
            return None
        return (self.pools, tuple((i.name, i.page_bytes, i.demand.pool_bytes) for i in self.plan.instances))


def plan_node(request: PlanRequest) -> NodePlan:
    """The plan of one node of many: what ``plan`` answers, or why it refuses."""
    try:
        found = plan(request)
    except PlannerError as error:
        return NodePlan(request=request, plan=None, why_not=str(error))
    missing, idle = _difference(found, request)
    return NodePlan(
        request=request, plan=found, free_bytes=free_bytes(found.ledger), missing_pages=missing, idle_pages=idle
    )


def _difference(found: Plan, request: PlanRequest) -> tuple[int | None, int | None]:
    """Pages of the plan that do not stand, and standing pages beyond it; None where a NUMA node's pools are unknown."""
    if any(numa.pools is None for numa in request.node.numa):
        return None, None
    planned = {(p.numa_node, p.page_bytes): p.pages for p in found.pools if p.pages}
    present = {(numa.id, pool.page_bytes): pool.nr_hugepages for numa in request.node.numa for pool in numa.pools or ()}
    keys = planned.keys() | present.keys()
    missing = sum(max(0, planned.get(key, 0) - present.get(key, 0)) for key in keys)
    idle = sum(max(0, present.get(key, 0) - planned.get(key, 0)) for key in keys)
    return missing, idle
