"""The states of a kept plan, and who may change them: draft, proposed, approved, in force, superseded.

``in_force`` and ``superseded`` follow the table plans_in_force by a trigger, so that a label or ``hugeplan verify``
changes them as a person does. Each change is one event and one row of the audit log, and each can be taken back
while nothing has happened on the node.
"""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Protocol
from uuid import UUID

from pydantic import Field, TypeAdapter

from hugeplan.access.service import Actor
from hugeplan.api.preconditions import require_match
from hugeplan.api.schemas import RequestModel, ResponseModel
from hugeplan.db.models import PlanRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.plan_digest import short
from hugeplan.documents.plans import kept_fit
from hugeplan.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PlanDoesNotFitError,
    PlanFitUnknownError,
    ProblemError,
)
from hugeplan.events.records import Event, write_events
from hugeplan.fleet import edits
from hugeplan.fleet import service as fleet
from hugeplan.fleet.overview_schemas import PlanInForceWrite
from hugeplan.plans import repository, work
from hugeplan.plans.assumptions import NAME, Changed, renamed
from hugeplan.scenarios import plan_answers, saved_plans
from hugeplan.scenarios.schemas import PlanSummary, PlanVerification
from hugeplan.trials import service as trials


class FleetRowsDecision(RequestModel):
    """What to do with the rows of a fleet plan, or of one of its groups. ``after`` is the answer's ``next`` of the part
    before. ``accept_unknown_fit``: approve rows, too, of which it is not known whether they fit.
    """

    to: Literal["propose", "approve", "in_force"]
    accept_unknown_fit: bool = False
    group_number: Annotated[int | None, Field(ge=0, le=10**9)] = None
    after: Annotated[int | None, Field(ge=0, le=10**9)] = None


class SkippedRow(ResponseModel):
    """A row that was left as it is, and why."""

    node_id: UUID
    node_name: str
    reason: str


class FleetRowsDecided(ResponseModel):
    """What was done with a part of the rows. ``next`` is sent as ``after`` for the rest; null: all rows are done."""

    done: int
    already: int
    skipped: list[SkippedRow]
    next: int | None


_CHANGED: Final = TypeAdapter(tuple[Changed, ...])
_WORDS: Final = {"in_force": "in force"}


def name_of(row: PlanRow) -> str:
    """``plan 7f3a-91c2-5d0e-b846 of db-7``."""
    digest = "kept before digests" if row.digest is None else short(row.digest)
    return f"plan {digest} of {row.node_name}"


async def looked_at(session: ReadSession, beside: Work, plan_id: UUID, state: str) -> Looked | None:
    """``look`` for a plan that is in this state; None for another, which is refused once it is locked."""
    row = await saved_plans.stored_plan(session, plan_id)
    return await look(session, beside, row) if row.state == state else None


async def locked(session: WriteSession, plan_id: UUID, if_match: str | None) -> PlanRow:
    """A plan that nobody else changes until the transaction ends. If-Match must name its version."""
    row = await repository.lock_plan(session, plan_id)
    if row is None:
        raise NotFoundError(f"There is no plan {plan_id}.")
    require_match(if_match, row.version, "plan")
    return row


def _require_state(row: PlanRow, wanted: str, what: str) -> None:
    if row.state != wanted:
        state = _WORDS.get(row.state, row.state)
        raise ConflictError(f"The {name_of(row)} is {state}; only one that is {wanted} can be {what}.")


def _said(session: WriteSession, row: PlanRow, kind: str, text: str, at: datetime) -> None:
    write_events(session, [_event(row, kind, text, at)])


def _event(row: PlanRow, kind: str, text: str, at: datetime) -> Event:
    return Event(at=at, kind=kind, node_id=row.node_id, node_name=row.node_name, subject=str(row.id), text=text)


def propose_new(row: PlanRow, *, by: Actor) -> Event:
    """A draft that is not kept yet becomes a proposal. PlanDoesNotFitError for one that does not fit."""
    _require_fit(row)
    now = datetime.now(UTC)
    row.state, row.version, row.state_at = "proposed", row.version + 1, now
    row.proposed_by, row.proposed_by_id, row.proposed_at = by.name, by.line_id, now
    return _event(row, "plan_proposed", f"The {name_of(row)} was proposed by {by.name}.", now)


def _require_fit(row: PlanRow) -> None:
    if not row.plan.get("feasible", True):
        raise PlanDoesNotFitError(f"{row.headline} A plan without room as counted cannot be proposed.")


async def propose(session: WriteSession, row: PlanRow, looked: Looked | None, *, by: Actor) -> PlanSummary:
    """A draft is put before an approver. PlanDoesNotFitError for one that does not fit."""
    _require_state(row, "draft", "proposed")
    _require_fit(row)
    await saved_plans.require_its_name(session, row)
    await note_look(session, row, looked)
    now = datetime.now(UTC)
    values = {"state": "proposed", "state_at": now, "proposed_at": now, "proposed_by": by.name}
    await repository.change_plan(session, row, values | {"proposed_by_id": by.line_id})
    _said(session, row, "plan_proposed", f"The {name_of(row)} was proposed by {by.name}.", now)
    return await saved_plans.summary(session, row)


async def approve(
    session: WriteSession,
    row: PlanRow,
    looked: Looked | None,
    *,
    by: Actor,
    second_person: bool,
    accept_unknown_fit: bool,
) -> PlanSummary:
    """A proposal is approved; an approval that the node had before ends with it.

    ForbiddenError where a second person is asked for and this is the first; ConflictError for a stale proposal;
    PlanFitUnknownError where it is not known whether it fits, and the approver does not say that this is accepted.
    """
    _require_state(row, "proposed", "approved")
    if second_person and _is_same_person(row, by):
        who = "Somebody else than who kept or proposed a plan approves it"
        raise ForbiddenError(f"{who} (HUGEPLAN_APPROVAL_BY_SECOND_PERSON is set).")
    unknown = kept_fit(row.plan) is None
    if unknown and not accept_unknown_fit:
        raise PlanFitUnknownError(f"{row.headline} It is approved with accept_unknown_fit alone.")
    if looked is None and row.node_id is not None:  # another request proposed it while this one was on its way
        raise ConflictError(f"The {name_of(row)} was proposed at this moment. Read it again, then approve it.")
    stale = await note_look(session, row, looked)
    if stale:
        raise ConflictError(f"The node has changed since this plan was computed: {_listed(stale)}. Plan it again.")
    now = datetime.now(UTC)
    values = {"state": "approved", "state_at": now, "approved_at": now, "approved_by": by.name}
    await repository.change_plan(session, row, values | {"approved_by_id": by.line_id})
    if row.node_id is not None:
        await repository.supersede_approved(session, row.node_id, row.id, now)
    knowing = ", who accepts that it is not known whether it fits" if unknown else ""
    _said(session, row, "plan_approved", f"The {name_of(row)} was approved by {by.name}{knowing}.", now)
    return await saved_plans.summary(session, row)


def _is_same_person(row: PlanRow, by: Actor) -> bool:
    return by.line_id in {row.author_id, row.proposed_by_id} or by.name in {row.author, row.proposed_by}


async def withdraw(session: WriteSession, row: PlanRow, *, by: Actor) -> PlanSummary:
    """A proposal or an approval is taken back: the plan is a draft again. Nothing has happened on the node yet."""
    if row.state not in {"proposed", "approved"}:
        _require_state(row, "proposed or approved", "withdrawn")
    now = datetime.now(UTC)
    values: dict[str, Any] = {"state": "draft", "state_at": now}
    for step in ("proposed", "approved"):
        values |= {f"{step}_by": None, f"{step}_by_id": None, f"{step}_at": None}
    await repository.change_plan(session, row, values)
    _said(session, row, "plan_withdrawn", f"The {name_of(row)} was withdrawn by {by.name}.", now)
    return await saved_plans.summary(session, row)


async def put_in_force(
    session: WriteSession, row: PlanRow, verified: PlanVerification | None, *, by: Actor
) -> PlanSummary:
    """The node of an approved plan is meant to follow it: each report is compared with it from now on."""
    _require_state(row, "approved", "put in force")
    if verified is None:  # another request approved it while this one was on its way
        raise ConflictError(f"The {name_of(row)} was approved at this moment. Put it in force again.")
    # What the newest report says already is said at once.
    await plan_answers.put_in_force(session, verified, by=by.name)
    await session.refresh(row)
    return await saved_plans.summary(session, row)


async def end_in_force(session: WriteSession, row: PlanRow, *, by: Actor) -> PlanSummary:
    """Take it back while no report has said that the plan is in force; the plan of before is in force again, where
    somebody approved it and nobody approved another since.
    """
    _require_state(row, "in_force", "taken back")
    summary = await saved_plans.summary(session, row)
    if any(node.answer == "yes" for node in summary.in_force):
        raise ConflictError(
            f"The {name_of(row)} is in force on its node. Undo it there with the way back of its files,"
            " or put another plan in force."
        )
    replaced = await repository.approve_replaced(session, row)
    for node in summary.in_force:
        if replaced is not None:
            await edits.set_plan_in_force(session, node.node_id, PlanInForceWrite(plan_id=replaced), by=by.name)
        else:
            await edits.end_plan_in_force(session, node.node_id, by=by.name)
    await session.refresh(row)
    return await saved_plans.summary(session, row)


async def delete(session: WriteSession, row: PlanRow) -> None:
    """Delete a draft. Whatever was proposed stays: somebody has seen it."""
    _require_state(row, "draft", "deleted")
    await repository.delete_plan(session, row.id)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a newer sample of its node changes of a plan; ``at`` is when that was taken."""

    at: datetime
    found: tuple[Changed, ...]


class Work(Protocol):
    """The sandbox, as one request or one task of the service uses it."""

    async def work(self, job: str, payload: bytes, *, what: str) -> bytes:
        """What the job makes of the payload. Nothing may have been written before."""


async def look(session: ReadSession, beside: Work, row: PlanRow) -> Looked | None:
    """The plan of a row beside the newest sample of its node; None where it has no node, or one that is gone.

    Planning takes long, so it runs in the sandbox, before the row is locked. What a plan was made of never changes.
    """
    if row.node_id is None:
        return None
    if row.request is None:
        return unchanged(row)
    try:
        facts, sample = await fleet.get_facts(session, row.node_id)
        facts = await trials.with_trials(session, row.node_id, facts)
    except (ProblemError, ValueError):  # the node is gone, or its report lacks what a plan needs
        return unchanged(row)
    payload = pickle.dumps((row.request, row.plan, row.schema_version, facts, sample))
    answer = await beside.work(work.CHANGES, payload, what="Planning this again")
    at = sample.taken_at_seconds
    return Looked(datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC), _CHANGED.validate_json(answer))


def unchanged(row: PlanRow) -> Looked:
    """What was known of a plan stays: it cannot be planned again with the newest sample."""
    known = _CHANGED.validate_python(row.stale or ())
    return Looked(datetime.now(UTC), tuple(fact for fact in known if fact.what != NAME))


async def note_look(session: WriteSession, row: PlanRow, looked: Looked | None) -> tuple[Changed, ...]:
    """Keep with a plan what was found, and how its node is called now. The node is locked, so it stays called so.

    A proposed or approved plan that becomes stale is an event.
    """
    if looked is None:
        return ()
    found = (*renamed(row.node_name, await saved_plans.other_name(session, row)), *looked.found)
    was_stale = bool(row.stale)
    await repository.set_checked(session, row, looked.at, [asdict(fact) for fact in found])
    if found and not was_stale and row.state in {"proposed", "approved"}:
        text = f"The {name_of(row)} is stale: {_listed(found)}."
        _said(session, row, "plan_stale", text, datetime.now(UTC))
    return found


def _listed(found: tuple[Changed, ...]) -> str:
    first = "; ".join(f"{fact.what} was {fact.was}, is {fact.now}" for fact in found[:3])
    return first if len(found) <= 3 else f"{first}; and {len(found) - 3} more"
