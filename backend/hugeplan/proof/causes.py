"""Why a plan is not in force, as one cause with one next step: what to do first when several things are wrong.

A finding says its cause as a term of its evidence. Pools go before servers, because a server cannot be right on a pool
that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from hugeplan.planner.findings.base import computed
from hugeplan.planner.model import Finding, State, Term


class Cause(StrEnum):
    """What keeps the plan from being in force, the first to be mended first."""

    LOWERED = "pool_lowered"
    NOT_RESERVED = "pool_not_reserved"
    SHORT = "pool_short"
    LIMIT = "limit_below_segment"
    OTHER_SIZE = "other_page_size"
    HELD = "pages_held"
    NOT_RESTARTED = "not_restarted"
    NOT_RUNNING = "not_running"
    KUBELET = "kubelet_not_restarted"
    OTHER = "other"
    NOT_OBSERVED = "not_observed"
    IN_FORCE = "in_force"


_NAME: Final = "cause"
#: What to do next, in a few words; the finding's own fix has the rest.
_NEXT: Final = {
    Cause.LOWERED: "The pool was lowered under a running server: raise it again before that server stops.",
    Cause.NOT_RESERVED: "The pools are not reserved yet: run hugeplan apply, or install the plan's file and reboot.",
    Cause.SHORT: "A pool is short: run hugeplan apply, or reserve it at boot.",
    Cause.LIMIT: "The pools are allocated: raise the limit, then restart the database.",
    Cause.OTHER_SIZE: "The pools are allocated: name the page size in the database's file, then restart it.",
    Cause.HELD: "The pools are allocated, others hold them: stop those or plan for them, then restart the database.",
    Cause.NOT_RESTARTED: "The pools are allocated: install the plan's file for the database and restart it.",
    Cause.NOT_RUNNING: "The pools are allocated: install the plan's file for the database and start it.",
    Cause.KUBELET: "The pools are allocated: restart the kubelet.",
}


def because(cause: Cause) -> Term:
    """The cause as a term of a finding's evidence."""
    return computed(_NAME, cause.value)


def cause_of(finding: Finding) -> Cause | None:
    """The cause that a finding names; one that is wrong and names none is another."""
    named = next((term.value for term in finding.evidence if term.name == _NAME), None)
    if named is not None:
        return Cause(str(named))
    return Cause.OTHER if finding.state is State.WRONG else None


def first_cause(findings: Sequence[Finding]) -> Cause | None:
    """The cause to deal with first; None where nothing is wrong and nothing is left to do."""
    found = {cause_of(finding) for finding in findings}
    return next((cause for cause in Cause if cause in found), None)


def next_step(cause: Cause) -> str | None:
    """The next step in one sentence; None where the findings say it."""
    return _NEXT.get(cause)
