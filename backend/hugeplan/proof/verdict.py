"""The table of checks, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hugeplan.planner.model import Finding, Plan, State
from hugeplan.proof.causes import Cause, first_cause, next_step
from hugeplan.proof.checks import engines, machine, pools
from hugeplan.proof.observation import Observation

Check = Callable[[Plan, Observation], Iterable[Finding]]
CHECKS: Final[tuple[Check, ...]] = (
    pools.check_counts,
    pools.check_room,
    pools.check_overcommit,
    pools.check_idle,
    engines.check,
    machine.check_default_size,
    machine.check_kubelet,
    machine.check_thp,
    machine.check_next_boot,
)
#: Without a verdict on these nobody can say that the plan is in force.
_ESSENTIAL: Final = frozenset({pools.COUNT, engines.BACKING, engines.SETTINGS})


class Outcome(StrEnum):
    """``in_force``: nothing is wrong, everything essential is known; ``undecided``: something essential is unknown."""

    IN_FORCE = "in_force"
    NOT_IN_FORCE = "not_in_force"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings, the outcome, why it is so, and the next step; None where there is none, or the findings say it."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    cause: Cause = Cause.IN_FORCE
    next_step: str | None = None


def verify(plan: Plan, observed: Observation) -> Verdict:
    """The plan against one observation of its node."""
    findings = tuple(finding for check in CHECKS for finding in check(plan, observed))
    cause = first_cause(findings)
    if cause is not None:
        # A server that does not run is neither right nor wrong; everything else that has a cause is not in force.
        outcome = Outcome.UNDECIDED if cause is Cause.NOT_RUNNING else Outcome.NOT_IN_FORCE
        return Verdict(outcome, findings, cause, next_step(cause))
    if any(finding.state is State.UNKNOWN and finding.code in _ESSENTIAL for finding in findings):
        return Verdict(Outcome.UNDECIDED, findings, Cause.NOT_OBSERVED)
    return Verdict(Outcome.IN_FORCE, findings)
