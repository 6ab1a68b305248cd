"""Plans in force while reports come in: verified with each report, and put in force by a GitOps label.

A saved plan never changes, so it is read once per process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from hugeplan.documents.plans import read_plan
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.planner.model import Finding, Plan, State
from hugeplan.proof import Observation, verify
from hugeplan.proof.verdict import Outcome

LABEL: Final = "hugeplan.dev/plan"
"""A node with this label has its plan of this id in force: GitOps writes it where it rolls the plan's files out."""

UNREADABLE: Final = "plan_unreadable"
"""Can this version read the plan in force? One that it cannot read is compared with no report."""
MAX_REMEMBERED: Final = 512
_READ: Final = "SELECT id, node_id, approved_at, plan::text, schema_version FROM plans WHERE id = ANY(%s)"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a report says of the plan in force."""

    outcome: str
    checks: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A saved plan that this version cannot read; ``why`` is a sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A saved plan. ``node_id``: the node that it was made for, which alone may say that it is in force.

    ``approved_at`` is as of when it was read.
    """

    node_id: UUID | None
    approved_at: datetime | None
    plan: Plan | Unreadable


Plans = Mapping[UUID, Kept]
"""The plans that a batch looks at. One that is not there was deleted."""


class SavedPlans:
    """Saved plans by id, the last used remembered over batches."""

    def __init__(self) -> None:
        self._known: OrderedDict[UUID, Kept] = OrderedDict()

    async def read(self, connection: AsyncConnection[Any], ids: Iterable[UUID], *, again: set[UUID]) -> Plans:
        """The plans of these ids, and those of ``again``, which may have been deleted since they were read.

        What a batch needs it holds itself: however many plans there are, what is remembered may be dropped meanwhile.
        """
        wanted = {*ids, *again}
        found = {plan_id: plan for plan_id in wanted - again if (plan := self._known.get(plan_id)) is not None}
        missing = sorted(wanted - found.keys())
        if missing:
            rows = await connection.execute(_READ, [missing])
            for plan_id, node_id, approved_at, plan, version in await rows.fetchall():
                found[plan_id] = Kept(node_id, approved_at, _read(plan, version))
        for plan_id in wanted:
            self._known.pop(plan_id, None)
        self._known.update(found)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return dict(found)


def _read(plan: str, version: int) -> Plan | Unreadable:
    try:
        return read_plan(msgspec.json.decode(plan), version)
    except ValueError as error:
        return Unreadable(f"This version of hugeplan cannot read the saved plan: {error}")


def labelled_plan(labels: dict[str, str]) -> UUID | None:
    """The plan that a node's labels name; None where they name none."""
    try:
        return UUID(labels[LABEL]) if LABEL in labels else None
    except ValueError:
        return None


def pools_of(plan: Plan) -> tuple[PlannedPool, ...]:
    """The pools of a plan as they are compared with each report."""
    return tuple(PlannedPool(pool.page_bytes, pool.pages, pool.numa_node) for pool in plan.pools)


def not_verified(node: str, plan: Unreadable) -> Verification:
    """What is said where a plan in force cannot be compared with a report."""
    fix = "Verify it with the version of hugeplan that saved it, or put a plan of this version in force."
    found = Finding(
        code=UNREADABLE,
        state=State.UNKNOWN,
        subject=node,
        title="The plan in force cannot be read",
        reason=plan.why,
        fix=fix,
    )
    return Verification(Outcome.UNDECIDED.value, [msgspec.to_builtins(found)])


def verified(plan: Plan, content: Any) -> Verification:
    """The plan against a report's content, check by check."""
    found = verify(plan, Observation(content["inventory"], content["sample"]))
    checks: list[dict[str, Any]] = msgspec.to_builtins(list(found.findings))
    return Verification(found.outcome.value, checks)
