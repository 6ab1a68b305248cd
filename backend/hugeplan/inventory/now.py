"""A node's databases as they are set today: whether they ask for huge pages, and for how many."""

from __future__ import annotations

from typing import Final

from hugeplan.inventory.findings import DatabaseNow, NodeNow, limits_stand
from hugeplan.inventory.model import FoundDatabase, FoundNode
from hugeplan.planner.demand import DemandContext, OnShortage, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.findings.base import Claim
from hugeplan.planner.findings.container_limits import RESERVATION, counter_of_kubelet
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.recognition import OPERATORS

#: Engines that use huge pages only when a setting asks for them, and that setting. The others try by themselves.
_SWITCHES: Final = {
    "mysql": "large_pages",
    "mariadb": "large_pages",
    "jvm": "UseLargePages",
    "db2": "db2_large_page_mem",
}
_OFF: Final = frozenset({"off", "false", "0", "no", ""})
_FOLLOW_THE_LIMIT: Final = frozenset(one.name for one in OPERATORS if one.switches_huge_pages)


def node_now(node: FoundNode) -> NodeNow:
    """The node with each database's demand as its settings are."""
    context = DemandContext.of_node(node.facts)
    return NodeNow(node=node, databases=[_database_now(node, found, context) for found in node.databases])


def claims(now: NodeNow) -> tuple[Claim, ...]:
    """What the databases map today beside their containers' limits; without a limit only where the node has pools."""
    counter = counter_of_kubelet(now.node.kubelet_version)
    found = []
    for database in now.databases:
        demand, limits = database.demand, database.found.huge_pages_limit_bytes
        if not database.wants_pages or demand is None or limits is None or not (limits or now.hugetlb_pool_bytes):
            continue
        limit = limits.get(demand.page_bytes, 0)
        if limits and not limit:
            continue  # of another size: what it takes of that, its page size tells
        found.append(
            Claim(
                subject=database.found.subject,
                engine=database.found.instance.engine,
                page_bytes=demand.page_bytes,
                pages=demand.pages,
                grant={kubernetes_resource_name(demand.page_bytes): database.needed_bytes},
                limit_bytes=limit,
                counter=counter,
                holder=limits_stand(database.found.recognised),
                refuses_start=database.refuses_start,
            )
        )
    return tuple(found)


def left_idle_bytes(now: NodeNow) -> dict[int, int]:
    """Bytes of huge pages, by size, that limits promise to databases that take none of them.

    A database of one mapping falls back, or does not start, as a whole. Counted only where the kubelet is known to
    limit reservations.
    """
    found: dict[int, int] = {}
    one_mapping = {
        database.found.subject
        for database in now.databases
        if database.demand is not None and sum(segment.count for segment in database.demand.segments) == 1
    }
    for claim in claims(now):
        limit = claim.limit_bytes or 0
        whole = claim.refuses_start or claim.subject in one_mapping
        if claim.counter == RESERVATION and whole and 0 < limit < claim.pages * claim.page_bytes:
            found[claim.page_bytes] = found.get(claim.page_bytes, 0) + limit
    return found


def _database_now(node: FoundNode, found: FoundDatabase, context: DemandContext) -> DatabaseNow:
    instance = found.instance
    try:
        use = engine_named(instance.engine).pool_use(instance, context)
        sizes = use.page_sizes_bytes
        limits = found.huge_pages_limit_bytes or {}
        size = next((s for s in sizes if limits.get(s)), None)
        if size is None:
            size = context.default_huge_page_bytes if context.default_huge_page_bytes in sizes else next(iter(sizes), 0)
        demand = demand_of(instance, size, context) if size else None
        if demand is not None and not demand.wants_pool:  # its size is not known
            demand = None
    except PlannerError:
        return DatabaseNow(found=found, demand=None, wants_pages=False, refuses_start=False)
    return DatabaseNow(
        found=found,
        demand=demand if demand is not None and demand.wants_pool else None,
        wants_pages=bool(sizes) and _asks(found),
        refuses_start=use.on_shortage is OnShortage.REFUSE
        and not (use.all_or_none and node.hugetlb_pool_bytes is not None and not node.hugetlb_pool_bytes.get(size)),
    )


def _asks(found: FoundDatabase) -> bool:
    """Whether the settings, or the operator, let the engine ask for huge pages."""
    switch = _SWITCHES.get(found.instance.engine)
    if switch is not None:
        return found.instance.settings.get(switch, "off").lower() not in _OFF
    follows = found.recognised.operator in _FOLLOW_THE_LIMIT and "huge_pages" not in found.instance.settings
    return bool(found.huge_pages_limit_bytes) if follows else True
