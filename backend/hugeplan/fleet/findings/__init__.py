"""What is wrong with a node by its newest report: one file per rule, one row per rule.

The planner's findings judge a plan; these judge what is there, on every report, so they read a report and nothing else.
A rule yields only what needs attention: a node without findings has none stored. A code that the planner has too means
the same there.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings import (
    clock_ahead,
    cloned_machine_id,
    collectors_failed,
    fractured_guest,
    initdb_bus_error,
    memory_low,
    plan_drift,
    pool_idle,
    reports_lost,
    silent_fallback,
    surplus_pages,
    time_bomb,
)
from hugeplan.fleet.findings.base import NodeFinding, Observed, Rule

RULES: tuple[Rule, ...] = (
    time_bomb.check,
    initdb_bus_error.check,
    silent_fallback.check,
    plan_drift.check,
    memory_low.check,
    pool_idle.check,
    surplus_pages.check,
    fractured_guest.check,
    clock_ahead.check,
    cloned_machine_id.check,
    reports_lost.check,
    collectors_failed.check,
)

OF_THE_PLAN = frozenset({plan_drift.CODE})
"""What is found beside the plan in force alone: another plan changes these, and no other."""

__all__ = ["OF_THE_PLAN", "RULES", "NodeFinding", "Observed", "Rule", "findings_of", "worst_first"]

_WORST_FIRST = {"wrong": 0, "attention": 1}


def findings_of(observed: Observed) -> list[NodeFinding]:
    """All findings of a node, wrong ones first, else in the order of the table."""
    return worst_first(finding for rule in RULES for finding in rule(observed))


def worst_first(found: Iterable[NodeFinding]) -> list[NodeFinding]:
    """Wrong ones first, else in the order given."""
    return sorted(found, key=lambda finding: _WORST_FIRST[finding.state])
