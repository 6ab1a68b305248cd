"""Findings: one file a check, one row a check. A check says ok, attention, wrong or unknown, with reason and fix."""

from __future__ import annotations

from hugeplan.planner.findings import fit, pools_present
from hugeplan.planner.findings.base import Check, FindingInputs
from hugeplan.planner.model import Finding, State

CHECKS: tuple[Check, ...] = (
    fit.check,
    pools_present.check,
)

_WORST_FIRST = {State.WRONG: 0, State.ATTENTION: 1, State.UNKNOWN: 2, State.OK: 3}


def findings_of(inputs: FindingInputs) -> tuple[Finding, ...]:
    """All findings, the worst first, else in the order of the table."""
    found = [finding for check in CHECKS for finding in check(inputs)]
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST[finding.state]))
