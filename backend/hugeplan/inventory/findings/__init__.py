"""Findings about the state that a source shows, before any plan: one file per check, one row per check."""

from __future__ import annotations

from typing import Final

from hugeplan.inventory.findings import (
    fallback,
    idle_pool,
    no_mount,
    not_scheduled,
    pool_short,
    requests,
)
from hugeplan.inventory.findings.base import Check, DatabaseNow, NodeNow
from hugeplan.inventory.model import FoundNode, Inventory
from hugeplan.planner.model import Finding, Plan

#: Checks of a node as it is.
NODE_CHECKS: Final[tuple[Check, ...]] = (
    pool_short.check,
    idle_pool.check,
    fallback.check,
    no_mount.check,
)


def findings_of_node(now: NodeNow) -> tuple[Finding, ...]:
    """All findings about a node as it is."""
    return tuple(found for check in NODE_CHECKS for found in check(now))


def findings_of_plan(node: FoundNode, plan: Plan) -> tuple[Finding, ...]:
    """Findings about what a plan does to the node's pods."""
    return tuple(requests.check(node, plan))


def findings_of_inventory(inventory: Inventory) -> tuple[Finding, ...]:
    """Findings about databases that have no node."""
    return tuple(found for database in inventory.not_scheduled for found in not_scheduled.check(database))


__all__ = ["DatabaseNow", "NodeNow", "findings_of_inventory", "findings_of_node", "findings_of_plan"]
