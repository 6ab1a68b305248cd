"""What is wrong with a node by its newest report: one row per rule.

The planner's rules that need nothing but a sample run here, too; the rules of this table read what only a report has.
Only what needs attention is kept: a node without findings has none stored.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings import plan_drift, rules
from hugeplan.fleet.findings.base import NodeFinding, Observed, Rule, node_finding
from hugeplan.planner.findings import findings_by, what_is_wrong

RULES: tuple[Rule, ...] = (
    rules.silent_fallback,
    plan_drift.check,
    rules.memory_low,
    rules.pool_idle,
    rules.surplus_pages,
    rules.fractured_guest,
    rules.clock_ahead,
    rules.cloned_machine_id,
    rules.name_of_another,
    rules.reports_lost,
    rules.collectors_failed,
)

OF_THE_PLAN = frozenset({plan_drift.CODE})
"""What is found beside the plan in force alone: another plan changes these, and no other."""

__all__ = ["OF_THE_PLAN", "RULES", "NodeFinding", "Observed", "Rule", "findings_of", "worst_first"]

_WORST_FIRST = {"wrong": 0, "attention": 1}


def findings_of(observed: Observed) -> list[NodeFinding]:
    """All findings of a node, wrong ones first, else in the order of the table."""
    shared = what_is_wrong(findings_by(observed.facts))
    return worst_first([*map(node_finding, shared), *(finding for rule in RULES for finding in rule(observed))])


def worst_first(found: Iterable[NodeFinding]) -> list[NodeFinding]:
    """Wrong ones first, else in the order given."""
    return sorted(found, key=lambda finding: _WORST_FIRST[finding.state])
