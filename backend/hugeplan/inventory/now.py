"""A node's databases as they are set today: whether they ask for huge pages, and for how many."""

from __future__ import annotations

from typing import Final

from hugeplan.inventory.findings import DatabaseNow, NodeNow
from hugeplan.inventory.model import FoundDatabase, FoundNode
from hugeplan.planner.demand import DemandContext, OnShortage, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
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
    return NodeNow(node=node, databases=[_database_now(found, context) for found in node.databases])


def _database_now(found: FoundDatabase, context: DemandContext) -> DatabaseNow:
    instance = found.instance
    try:
        use = engine_named(instance.engine).pool_use(instance, context)
        sizes = use.page_sizes_bytes
        limits = found.huge_pages_limit_bytes or {}
        size = next((s for s in sizes if limits.get(s)), None)
        if size is None:
            size = context.default_huge_page_bytes if context.default_huge_page_bytes in sizes else next(iter(sizes), 0)
        demand = demand_of(instance, size, context) if size else None
    except PlannerError:
        return DatabaseNow(found=found, demand=None, wants_pages=False, refuses_start=False)
    return DatabaseNow(
        found=found,
        demand=demand if demand is not None and demand.wants_pool else None,
        wants_pages=bool(sizes) and _asks(found),
        refuses_start=use.on_shortage is OnShortage.REFUSE,
    )


def _asks(found: FoundDatabase) -> bool:
    """Whether the settings, or the operator, let the engine ask for huge pages."""
    switch = _SWITCHES.get(found.instance.engine)
    if switch is not None:
        return found.instance.settings.get(switch, "off").lower() not in _OFF
    follows = found.recognised.operator in _FOLLOW_THE_LIMIT and "huge_pages" not in found.instance.settings
    return bool(found.huge_pages_limit_bytes) if follows else True
