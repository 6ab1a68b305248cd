"""A database that waits for a node with enough huge pages, or was refused by the kubelet for lack of them."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import finding
from hugeplan.inventory.model import FoundDatabase
from hugeplan.planner.model import Finding, State

CODE = "database_not_scheduled"


def check(found: FoundDatabase) -> Iterable[Finding]:
    """One finding per database without a node; the scheduler's words are the reason."""
    reason = found.not_scheduled_because or "The input does not say why."
    huge = "hugepages-" in reason
    yield finding(
        CODE,
        State.WRONG if huge else State.ATTENTION,
        found.subject,
        "It does not run for lack of huge pages" if huge else "It has no node yet",
        reason if reason.endswith(".") else f"{reason}.",
        fix="Reserve its pages on the nodes that it may run on, and restart their kubelets." if huge else None,
    )
