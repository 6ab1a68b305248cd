"""Plans in force while reports come in: verified with each report, and put in force by a GitOps label.

A saved plan never changes, so it is read once per process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from hugeplan.documents.plans import read_plan
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.planner.model import Plan
from hugeplan.proof import Observation, verify

LABEL: Final = "hugeplan.dev/plan"
"""A node with this label has the plan of this id in force: GitOps writes it where it rolls the plan's files out."""

MAX_REMEMBERED: Final = 512
_READ: Final = "SELECT id, plan::text, schema_version FROM plans WHERE id = ANY(%s)"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a report says of the plan in force."""

    outcome: str
    checks: list[dict[str, Any]]


class SavedPlans:
    """Saved plans by id; None for one that is not there or cannot be read by this version."""

    def __init__(self) -> None:
        self._known: OrderedDict[UUID, Plan] = OrderedDict()

    async def read(self, connection: AsyncConnection[Any], ids: Iterable[UUID], *, again: set[UUID]) -> None:
        """Read those that are not known yet, and ``again`` those that may have been deleted."""
        missing = {plan_id for plan_id in ids if plan_id not in self._known} | again
        if not missing:
            return
        for plan_id in again:
            self._known.pop(plan_id, None)
        found = await connection.execute(_READ, [sorted(missing)])
        for plan_id, plan, version in await found.fetchall():
            try:
                self._known[plan_id] = read_plan(msgspec.json.decode(plan), version)
            except ValueError:
                continue  # a later version of hugeplan saved it: that one verifies it
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)

    def get(self, plan_id: UUID | None) -> Plan | None:
        """A plan that was read."""
        return None if plan_id is None else self._known.get(plan_id)


def labelled_plan(labels: dict[str, str]) -> UUID | None:
    """The plan that a node's labels name; None where they name none."""
    try:
        return UUID(labels[LABEL]) if LABEL in labels else None
    except ValueError:
        return None


def pools_of(plan: Plan) -> tuple[PlannedPool, ...]:
    """The pools of a plan as they are compared with each report."""
    return tuple(PlannedPool(pool.page_bytes, pool.pages, pool.numa_node) for pool in plan.pools)


def verified(plan: Plan, content: Any) -> Verification:
    """The plan against a report's content, check by check."""
    found = verify(plan, Observation(content["inventory"], content["sample"]))
    checks: list[dict[str, Any]] = msgspec.to_builtins(list(found.findings))
    return Verification(found.outcome.value, checks)
