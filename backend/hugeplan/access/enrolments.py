"""How machines come to their agent tokens: for the first time, again, and after an administrator's word.

docs/adr/0029 says who is let in without one, and what somebody with an enrolment token can do.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final
from uuid import UUID

from hugeplan.access import enrolment_repository as asking
from hugeplan.access import machines, recognition, repository
from hugeplan.access.schemas import (
    EnrolmentApproval,
    EnrolmentApprovalCreate,
    EnrolmentDecision,
    EnrolmentLimits,
    EnrolmentRequest,
    PendingEnrolment,
    Role,
    TokenCreated,
)
from hugeplan.access.service import Actor, hash_secret, mint, require_lasting
from hugeplan.api.pagination import Page, decode_time_cursor, page_of
from hugeplan.db.locks import LockOfOne, lock_one
from hugeplan.db.models import EnrolmentRequestRow, Machine
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import ConflictError, FieldProblem, ForbiddenError, NotFoundError, RateLimitedError

APPROVED, REFUSED = "approved", "refused"
APPROVAL_HOLDS = timedelta(days=1)
COUNTED_FOR: Final = timedelta(days=30)
"""How long a machine counts after its token was made or used: those that are gone for good make room."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asking:
    """A request that was not granted, as it is kept for an administrator."""

    node_machine_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Who asks for what, when, and how long an agent must have been silent."""

    actor: Actor
    body: EnrolmentRequest
    hints: machines.Hints
    now: datetime
    silence: timedelta


MOST_PER_HOUR: Final = 20
"""Agent tokens of one machine. Each of them is a row, and a line of the audit log."""


class NotRecognisedError(ConflictError):
    """A machine that enrols again is not let in without an administrator's word, or not yet."""

    asking: Asking


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The new token, and why the machine got it: new, clone, token, claim, approval, administrator or recognised."""

    token: TokenCreated
    how: str


async def enrol(session: WriteSession, actor: Actor, body: EnrolmentRequest, silence: timedelta, most: int) -> Enrolled:
    """Mint the agent token of a machine. NotRecognisedError, ForbiddenError, ConflictError for one past ``most``.

    A clone, whose hardware differs from every machine known under the id, is another machine.
    """
    now = datetime.now(UTC)
    if actor.role is Role.ADMIN:
        require_lasting(actor)
    await lock_one(session, LockOfOne.MACHINE, body.machine_id)
    was_known = await repository.is_machine_known(session, body.machine_id)
    hints = _hints_of(body, now)
    known = await repository.machines_with(session, body.machine_id)
    matched = machines.match(known, hints)
    if was_known and (matched is not None or not known):
        how = await _how_known(session, _Attempt(actor, body, hints, now, silence), matched)
    else:
        how = "clone" if was_known else "new"
        await _take_from_token(session, actor, body, now, most)
    machine = await machines.resolve(session, body.machine_id, hints, now)
    if await repository.count_agents_of(session, machine.node_machine_id, now - timedelta(hours=1)) >= MOST_PER_HOUR:
        raise RateLimitedError(
            f"This machine has enrolled {MOST_PER_HOUR} times within an hour: use the token that it got.",
            headers={"Retry-After": "3600"},
        )
    line_id = None
    if how not in {"new", "clone"}:
        # It goes on in its line: what is bounded per credential is not renewed by enrolling again.
        line_id = await repository.revoke_agents_of(session, machine.node_machine_id, now)
        await asking.forget(session, machine.node_machine_id)
    by_token = actor.role is Role.ENROLMENT  # what it may call itself, it may call itself in its reports
    pattern = (await asking.limits_of(session, actor.token_id)).name_pattern if by_token else None
    made = await mint(
        session,
        name=body.node_name,
        role=Role.AGENT,
        machine_id=machine.node_machine_id,
        claim_sha256=_claim_of(body),
        limits=EnrolmentLimits(name_pattern=pattern),
        line_id=line_id,
    )
    return Enrolled(made, how)


def _hints_of(body: EnrolmentRequest, now: datetime) -> machines.Hints:
    return machines.Hints(
        dmi_sha256=body.clone_hints.dmi_sha256 if body.clone_hints else None,
        mac_sha256=tuple(body.clone_hints.mac_sha256 or ()) if body.clone_hints else None,
        boot_id=body.boot_id,
        taken_at=now,
    )


def _claim_of(body: EnrolmentRequest) -> bytes | None:
    return None if body.claim is None else hash_secret(body.claim)


async def _take_from_token(
    session: WriteSession, actor: Actor, body: EnrolmentRequest, now: datetime, most: int
) -> None:
    """A machine that is not known uses up one enrolment of the token, whose pattern its name must match.

    Enrolments that come at once may exceed ``most`` by as many as there are connections: none waits for another.
    """
    if actor.role is not Role.ENROLMENT:
        return
    limits = await asking.limits_of(session, actor.token_id)
    if limits.name_pattern is not None and not fnmatchcase(body.node_name, limits.name_pattern):
        raise ForbiddenError(
            f"The enrolment token {actor.name!r} is for nodes named {limits.name_pattern!r}. Use another token, or give"
            " the node's name with --node-name.",
            [FieldProblem(field="node_name", value=body.node_name, expected=f"a name like {limits.name_pattern}")],
        )
    if not await asking.count_enrolment(session, actor.token_id):
        raise ForbiddenError(
            f"The enrolment token {actor.name!r} has enrolled all of its {limits.max_enrolments} machines. Make"
            " another: hugeplan token create --role enrolment --name NAME"
        )
    if await asking.count_in_force(session, now - COUNTED_FOR) >= most:
        _say_once(now.date(), actor.name, most)
        raise ConflictError(
            f"{most} machines have an agent token that was made or used within {COUNTED_FOR.days} days, as many as may"
            " be (HUGEPLAN_MOST_MACHINES). Let an administrator revoke some (hugeplan token list) or raise it.",
            [FieldProblem(field="machine_id", value=body.machine_id, expected=f"one of at most {most} machines")],
        )


@lru_cache(maxsize=1)
def _say_once(day: date, token_name: str, most: int) -> None:
    told = {"day": day.isoformat(), "token_name": token_name, "most": most}
    _logger.warning("no further machine enrols: as many have tokens as may (HUGEPLAN_MOST_MACHINES)", extra=told)


async def _how_known(session: WriteSession, attempt: _Attempt, machine: Machine | None) -> str:
    """By what a known machine may enrol again; NotRecognisedError or ForbiddenError when it may not."""
    body, now = attempt.body, attempt.now
    node_machine_id = body.machine_id if machine is None else machine.node_machine_id
    if attempt.actor.role is Role.ADMIN:
        return "administrator"
    proofs = (("token", body.current_token), ("claim", body.claim))
    for how, secret in proofs:
        if secret is not None and await asking.is_own(session, hash_secret(secret), node_machine_id):
            return how
    earlier = await asking.earlier(session, node_machine_id, _claim_of(body))
    # Whoever sends no claim shares one request with all who send none: an approval of it would be for anybody.
    is_approved = earlier is not None and earlier.decision == APPROVED and earlier.claim_sha256 is not None
    decided_at = earlier.decided_at if earlier is not None and is_approved else None
    if decided_at is not None and decided_at + APPROVAL_HOLDS > now:
        return "approval"
    if await repository.use_approval(session, body.machine_id, now):
        return "approval"
    if earlier is not None and earlier.decision == REFUSED:
        raise ForbiddenError(
            f"An administrator refused this machine. To let it in: hugeplan enrolment approve {earlier.id}"
        )
    if machine is None:
        raise _not_recognised(body, node_machine_id, ("nothing is known of its hardware",), 0)
    known = await asking.remembered(session, machine)
    name = body.node_name
    if known.node_name == machines.told_apart(name, node_machine_id):
        name = known.node_name  # it says what it said before, and another has that name
    judgement = recognition.judge(
        recognition.Asked(name, attempt.hints, body.cpu_brand, body.mem_total_bytes),
        known,
        attempt.silence,
    )
    if not judgement.is_recognised:
        raise _not_recognised(body, node_machine_id, judgement.doubts, judgement.wait_seconds)
    return f"recognised by {' and '.join(judgement.because)}"


def _not_recognised(
    body: EnrolmentRequest, node_machine_id: str, doubts: tuple[str, ...], wait_seconds: float
) -> NotRecognisedError:
    if doubts:
        reason = "; ".join(doubts)
        detail = (
            f"This machine has enrolled before, and {reason}. Enrol with its own agent token (current_token),"
            " or let an administrator approve it: hugeplan enrolment list. A clone needs a machine id of its own."
        )
        headers = {}
    else:
        reason = f"its agent was heard less than {wait_seconds:.0f} s before it may be replaced"
        detail = (
            f"This machine has enrolled before, and its agent was heard a moment ago, or could not be. It can enrol in"
            f" {wait_seconds:.0f} s if that agent stays silent, or at once: hugeplan enrolment approve."
        )
        headers = {"Retry-After": str(int(wait_seconds) + 1)}
    expected = "a machine that has not enrolled before"
    error = NotRecognisedError(
        detail, [FieldProblem(field="machine_id", value=body.machine_id, expected=expected)], headers
    )
    error.asking = Asking(node_machine_id, reason)
    return error


async def keep_asking(
    session: WriteSession, actor: Actor, body: EnrolmentRequest, asked: Asking, address: str | None
) -> None:
    """Keep a request that was not granted, so that an administrator sees it. What the session wrote before is undone.

    In its own connection: who waits for a second one while it holds the first keeps others from both.
    """
    await session.rollback()
    await lock_one(session, LockOfOne.MACHINE, body.machine_id)
    now = datetime.now(UTC)
    row = EnrolmentRequestRow(
        id=uuid.uuid4(),
        node_machine_id=asked.node_machine_id,
        machine_id=body.machine_id,
        claim_sha256=_claim_of(body),
        node_name=body.node_name,
        reason=asked.reason,
        address=address,
        token_name=actor.name,
        attempts=1,
        first_asked_at=now,
        last_asked_at=now,
    )
    await asking.keep(session, row)
    await session.commit()


async def list_pending(session: ReadSession, *, limit: int, cursor: str | None) -> Page[PendingEnrolment]:
    """Machines that ask to enrol again and were not let in, the newest first."""
    rows = await asking.pending(session, after=decode_time_cursor(cursor), limit=limit + 1)
    items, following = page_of(
        rows, limit, lambda row: (row.first_asked_at.isoformat(), str(row.id)), PendingEnrolment.model_validate
    )
    return Page(items=items, next_cursor=following)


async def decide(
    session: WriteSession, actor: Actor | str, request_id: UUID, decision: EnrolmentDecision
) -> PendingEnrolment:
    """An administrator's word on a request. An approval lets exactly its asker in, for a day; ``actor`` is a name where
    a command on the server does. NotFoundError, ConflictError, ForbiddenError.
    """
    at, name = datetime.now(UTC), actor if isinstance(actor, str) else actor.name
    if isinstance(actor, Actor) and decision.decision == APPROVED:
        require_lasting(actor)
    row = await asking.decide(session, request_id, decision.decision, name, at)
    if row is None:
        raise NotFoundError(f"There is no enrolment request {request_id}. See: hugeplan enrolment list")
    if row.decision == APPROVED and row.claim_sha256 is None:
        raise ConflictError(
            "Who asked sent no claim, and cannot be told from others who send none. To let the next one with this"
            f" machine id in: POST /api/v1/enrolments/approvals with machine_id {row.machine_id}"
        )
    return PendingEnrolment.model_validate(row)


async def approve_machine(session: WriteSession, actor: Actor, body: EnrolmentApprovalCreate) -> EnrolmentApproval:
    """An administrator's approval of one enrolment of a known machine. ForbiddenError."""
    require_lasting(actor)
    now = datetime.now(UTC)
    expires_at = now + timedelta(seconds=body.expires_in_seconds)
    await repository.approve_enrolment(session, body.machine_id, actor.name, now, expires_at)
    return EnrolmentApproval(machine_id=body.machine_id, approved_by=actor.name, expires_at=expires_at)
