"""Statements about enrolment tokens, and machines that ask to enrol again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, delete, exists, func, or_, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import aliased

from hugeplan.access.recognition import Remembered
from hugeplan.api.forwarded import limit_key
from hugeplan.db.models import EnrolmentRequestRow, Machine, NodeRow, Token
from hugeplan.db.models.access import IS_IN_FORCE
from hugeplan.db.retention import LISTENING_SINCE
from hugeplan.db.session import ReadSession, WriteSession

MAX_REQUESTS_PER_MACHINE = 20
"""More than that is no help to an administrator, and a way to fill the table."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an enrolment token may do. None: no limit."""

    max_enrolments: int | None
    name_pattern: str | None


async def limits_of(session: ReadSession, token_id: UUID) -> Limits:
    """The limits of a token."""
    statement = select(Token.max_enrolments, Token.name_pattern).where(Token.id == token_id)
    row = (await session.execute(statement)).one()
    return Limits(row[0], row[1])


async def count_enrolment(session: WriteSession, token_id: UUID) -> bool:
    """Use up one enrolment of a token. False when it has none left."""
    has_left = or_(Token.max_enrolments.is_(None), Token.enrolments < Token.max_enrolments)
    statement = update(Token).where(Token.id == token_id, has_left).values(enrolments=Token.enrolments + 1)
    found = await session.scalar(statement.returning(Token.id).execution_options(synchronize_session=False))
    return found is not None


async def count_in_force(session: ReadSession, since: datetime) -> int:
    """Agents' tokens without an end, of which a line has one, that were made or used since then and not revoked."""
    is_heard = or_(Token.last_used_at > since, Token.created_at > since)
    return (await session.execute(select(func.count()).select_from(Token).where(IS_IN_FORCE, is_heard))).scalar_one()


async def is_own(session: ReadSession, secret_sha256: bytes, node_machine_id: str) -> bool:
    """Whether a secret is this machine's agent token, or the claim that it sent to get one. Revoked ones are not, nor
    is a token that has ended while the one that it was rotated to is in use.
    """
    newer = aliased(Token)
    is_replaced = exists().where(
        newer.replaces == Token.id, newer.revoked_at.is_(None), newer.last_used_at.is_not(None)
    )
    has_ended = and_(Token.expires_at.is_not(None), Token.expires_at <= func.now(), is_replaced)
    matches = or_(and_(Token.secret_sha256 == secret_sha256, ~has_ended), Token.claim_sha256 == secret_sha256)
    found = exists().where(matches, Token.machine_id == node_machine_id, Token.revoked_at.is_(None))
    return bool(await session.scalar(select(found)))


async def remembered(session: ReadSession, machine: Machine) -> Remembered:
    """What is known of a machine: from its node where it has reported, else from its token."""
    newest = await session.scalar(
        select(Token)
        .where(Token.machine_id == machine.node_machine_id)
        .order_by(Token.created_at.desc(), Token.id.desc())
        .limit(1)
    )
    node = await session.scalar(select(NodeRow).where(NodeRow.machine_id == machine.node_machine_id))
    refused = exists().where(
        EnrolmentRequestRow.node_machine_id == machine.node_machine_id,
        EnrolmentRequestRow.decision == "refused",
        *([EnrolmentRequestRow.decided_at > newest.created_at] if newest is not None else []),
    )
    now, since = (await session.execute(text(f"SELECT now(), {LISTENING_SINCE}"))).one()
    moments = [newest.created_at, newest.last_used_at] if newest is not None else []
    if node is not None:
        moments.append(node.last_report_at)
    return Remembered(
        machine=machine,
        node_name=node.name if node else newest.name if newest else None,
        cpu_brand=node.cpu_brand if node else None,
        mem_total_bytes=node.mem_total_bytes if node else None,
        silent_for=now - max(filter(None, moments)) if moments else None,
        heard_for=now - since,
        has_usable_token=newest is not None and newest.revoked_at is None,
        was_one_refused=bool(await session.scalar(select(refused))),
    )


async def earlier(
    session: WriteSession, node_machine_id: str, claim_sha256: bytes | None
) -> EnrolmentRequestRow | None:
    """The request that this machine made before with the same claim. Who decides on it waits for the transaction."""
    statement = select(EnrolmentRequestRow).where(
        EnrolmentRequestRow.node_machine_id == node_machine_id,
        EnrolmentRequestRow.claim_sha256.is_not_distinct_from(claim_sha256),
    )
    statement = statement.with_for_update()
    row: EnrolmentRequestRow | None = await session.scalar(statement)
    return row


async def keep(session: WriteSession, row: EnrolmentRequestRow) -> None:
    """Keep a request, or note that it was made again."""
    of_machine = EnrolmentRequestRow.node_machine_id == row.node_machine_id
    is_known = exists().where(of_machine, EnrolmentRequestRow.claim_sha256.is_not_distinct_from(row.claim_sha256))
    count = select(func.count()).select_from(EnrolmentRequestRow).where(of_machine)
    if (await session.scalar(count) or 0) >= MAX_REQUESTS_PER_MACHINE and not await session.scalar(select(is_known)):
        await session.execute(
            delete(EnrolmentRequestRow).where(EnrolmentRequestRow.id == await _gives_way(session, row))
        )
    names = [column.name for column in EnrolmentRequestRow.__table__.columns]
    statement = insert(EnrolmentRequestRow).values({name: getattr(row, name) for name in names})
    newer = {
        name: statement.excluded[name] for name in ("node_name", "reason", "address", "token_name", "last_asked_at")
    }
    await session.execute(
        statement.on_conflict_do_update(
            index_elements=["node_machine_id", "claim_sha256"],
            set_=newer | {"attempts": EnrolmentRequestRow.attempts + 1},
        )
    )


async def _gives_way(session: ReadSession, row: EnrolmentRequestRow) -> UUID | None:
    """The request of this machine whose place a new one gets: of the address that has asked with the most claims, the
    one that was silent the longest, and a refused one last. So nobody keeps another's request out, nor rids itself of a
    refusal. An approved one keeps its place.
    """
    asked = EnrolmentRequestRow
    others = asked.node_machine_id == row.node_machine_id, asked.decision.is_distinct_from("approved")
    in_order = asked.decision.is_not(None), asked.last_asked_at
    rows = await session.execute(select(asked.id, asked.address).where(*others).order_by(*in_order))
    found = {request_id: limit_key(address or "") for request_id, address in rows}
    from_there = Counter(found.values())
    return max(found, key=lambda one: from_there[found[one]], default=None)


async def pending(
    session: ReadSession, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[EnrolmentRequestRow]:
    """Requests, newest first."""
    key = tuple_(EnrolmentRequestRow.first_asked_at, EnrolmentRequestRow.id)
    statement = select(EnrolmentRequestRow).order_by(
        EnrolmentRequestRow.first_asked_at.desc(), EnrolmentRequestRow.id.desc()
    )
    if after is not None:
        statement = statement.where(key < after)
    return (await session.scalars(statement.limit(limit))).all()


async def known_names(session: ReadSession) -> dict[str, str | None]:
    """What each machine that was asked for is called: its node's name, else its newest token's."""
    machine_id = EnrolmentRequestRow.node_machine_id
    newest = select(Token.name).where(Token.machine_id == machine_id).order_by(Token.created_at.desc()).limit(1)
    statement = select(machine_id, func.coalesce(NodeRow.name, newest.scalar_subquery()))
    rows = await session.execute(statement.outerjoin(NodeRow, NodeRow.machine_id == machine_id).distinct())
    return {row[0]: row[1] for row in rows}


async def decide(
    session: WriteSession, request_id: UUID, decision: str, name: str, now: datetime
) -> EnrolmentRequestRow | None:
    """Record an administrator's decision on a request. None when there is no such request."""
    row = await session.get(EnrolmentRequestRow, request_id, with_for_update=True)
    if row is not None:
        row.decision, row.decided_by, row.decided_at = decision, name, now
        await session.flush()
    return row


async def forget(session: WriteSession, node_machine_id: str) -> None:
    """Remove the requests of a machine that was let in, but for those that an administrator refused."""
    asked = EnrolmentRequestRow
    is_refused = asked.decision.is_not_distinct_from("refused")
    await session.execute(delete(asked).where(asked.node_machine_id == node_machine_id, ~is_refused))
