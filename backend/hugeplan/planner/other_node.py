"""When a plan does not fit: another node on which one of its databases does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.ledger import available_bytes
from hugeplan.planner.model import DatabaseInstance, FitOption, Plan, PlanRequest
from hugeplan.planner.plan import plan
from hugeplan.planner.units import format_bytes

Planned = Callable[[PlanRequest], Plan | None]

#: Nodes that are tried; each is a plan of its own.
MOST_TRIED = 3
#: Databases that are tried, the largest first: each is a plan of what stays.
MOST_MOVED = 4


def planned(request: PlanRequest) -> Plan | None:
    """The plan of a request; None where it cannot be planned."""
    try:
        return plan(request)
    except PlannerError:
        return None


def with_other_node(
    found: Plan,
    request: PlanRequest,
    others: Sequence[PlanRequest],
    may_go_on: Callable[[], bool] = lambda: True,
    planned: Planned = planned,
) -> Plan:
    """The plan, and where it does not fit the first move that helps: a database that leaves, and a node that takes it.

    ``others`` are requests of other nodes as they stand, the most promising first; the first MOST_TRIED are tried, and
    the MOST_MOVED largest databases. A move is offered only when it is known that what stays fits here and that the
    whole plan of the other node fits, within its risk. ``may_go_on`` is asked before each plan that is tried: no move
    is offered where it ends the search. ``planned`` makes the plans.
    """
    if found.shortfall is None:
        return found
    order = sorted(zip(request.databases, found.instances, strict=True), key=lambda pair: -pair[1].demand.segment_bytes)
    for instance, _ in order[:MOST_MOVED]:
        left = tuple(d for d in request.databases if d.name != instance.name)
        stays = planned(replace(request, databases=left)) if may_go_on() else None
        if stays is None or stays.fits is not True:
            continue
        for other in others[:MOST_TRIED]:
            option = _move(instance, other, planned) if may_go_on() else None
            if option is not None:
                shortfall = replace(found.shortfall, options=(*found.shortfall.options, option))
                return replace(found, shortfall=shortfall)
        return found
    return found


def _move(instance: DatabaseInstance, other: PlanRequest, planned: Planned) -> FitOption | None:
    taken = {database.name for database in other.databases}
    name = instance.name if instance.name not in taken else f"{instance.name} (moved)"
    moved = replace(instance, name=name, numa_node=None, runs_as=None)
    there = planned(replace(other, databases=(*other.databases, moved)))
    if there is None or there.fits is not True or there.risk.meets_policy is False:
        return None
    free = format_bytes(available_bytes(there.ledger))
    return FitOption(
        kind="node",
        text=f"{instance.name} fits on {there.node}: {free} stay available there, by its own report.",
        instance=instance.name,
        node=there.node,
    )
