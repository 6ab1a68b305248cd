"""Plans in force while reports come in: verified with each report, and put in force by a GitOps label.

A saved plan never changes, so it is read once per process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from hugeplan.documents.plans import parts_to_verify, read_plan
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.planner.model import Finding, Plan, State
from hugeplan.planner.remembered import Latest
from hugeplan.proof import Observation, verify
from hugeplan.proof.verdict import Outcome

LABEL: Final = "hugeplan.dev/plan"
"""A node with this label has its plan of this id in force: GitOps writes it where it rolls the plan's files out."""

UNREADABLE: Final = "plan_unreadable"
"""Can this version read the plan in force? One that it cannot read is compared with no report."""
REMEMBERED_BYTES: Final = 16 * 1024**2
"""Of the JSON of what is remembered of plans, which takes twice that as objects."""
_LARGE_BYTES: Final = 256 * 1024
"""Of the JSON of a plan that is parsed in a thread."""
_READ: Final = """
SELECT p.id, p.node_id, CASE WHEN p.approved_at IS NULL THEN '; nobody approved it.'
    WHEN p.approval_ended_at IS NULL THEN '.' ELSE '; a later decision ended its approval.' END, p.schema_version,
    CASE WHEN NOT w.is_known THEN p.plan::text END
FROM unnest(%s::uuid[], %s::uuid[], %s::boolean[]) AS w(id, node_id, is_known)
JOIN plans p ON p.id = w.id AND (w.node_id IS NULL OR w.node_id = p.node_id)
"""


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

    ``approval``: what an event says of it, as of when it was read.
    """

    node_id: UUID | None
    approval: str
    plan: Plan | Unreadable


Plans = Mapping[UUID, Kept]
"""The plans that a batch looks at. One that is not there was deleted."""


class SavedPlans:
    """What verifying needs of saved plans by id, the last used remembered over batches."""

    def __init__(self) -> None:
        self._known: Latest[UUID, Kept] = Latest(REMEMBERED_BYTES)

    async def read(
        self, connection: AsyncConnection[Any], ids: Iterable[UUID], *, labelled: Iterable[tuple[UUID, UUID]]
    ) -> Plans:
        """The plans of these ids, and those ``labelled`` (plan and node) that are of the node whose label names them.

        Another node's plan is not read for a label. The node's own is looked up again, since it may have been approved
        or deleted meanwhile, but not parsed again. What a batch needs it holds itself: however many plans there are,
        what is remembered may be dropped meanwhile.
        """
        asked: list[tuple[UUID, UUID | None]] = [*sorted(labelled)]
        found: dict[UUID, Kept] = {}
        for plan_id in sorted(set(ids)):
            if (kept := self._known.get(plan_id)) is not None:
                found[plan_id] = kept
            else:
                asked.append((plan_id, None))
        if not asked:
            return found
        known = {plan_id: kept for plan_id, _ in asked if (kept := self._known.get(plan_id)) is not None}
        plans, nodes = zip(*asked, strict=True)
        rows = await connection.execute(_READ, [list(plans), list(nodes), [plan_id in known for plan_id in plans]])
        for plan_id, node_id, approval, version, text in await rows.fetchall():
            if text is None:
                found[plan_id] = replace(known[plan_id], approval=approval)
            elif plan_id not in found:
                is_large = len(text) > _LARGE_BYTES
                plan, size = await asyncio.to_thread(_read, text, version) if is_large else _read(text, version)
                found[plan_id] = Kept(node_id, approval, plan)
                self._known.keep(plan_id, found[plan_id], size)
        return found


def _read(text: str, version: int) -> tuple[Plan | Unreadable, int]:
    """What verifying needs of a plan, and the bytes of its JSON."""
    document, size = parts_to_verify(text)
    try:
        return read_plan(document, version), size
    except ValueError as error:
        return Unreadable(f"This version of hugeplan cannot read the saved plan: {error}"), size


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
