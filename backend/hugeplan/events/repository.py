"""Statements about events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import delete, false, func, select, text, true

from hugeplan.db.base import newest_first
from hugeplan.db.models import EventRow, NodeRow, WebhookDeliveryRow, WebhookRow
from hugeplan.db.session import ReadSession, WriteSession

SCANNED: Final = 50_000
"""Ids that a page looks through: no index has the codes, kinds or nodes of few events."""

COUNTED: Final = 2_000
"""Events of a receiver that are counted at most: a flood leaves millions."""
NO_SORT: Final = "SET LOCAL enable_sort = off"
"""PostgreSQL may not know yet how many events a flood has left, and would read all of a receiver's to sort them."""


async def list_events(
    session: ReadSession,
    *,
    kinds: Sequence[str],
    node_id: UUID | None,
    code: str | None,
    since: datetime | None,
    synthetic: bool | None,
    before_id: int,
    limit: int,
) -> Sequence[EventRow]:
    """Events, newest first, of SCANNED ids before ``before_id``, or of all for one node.

    ``synthetic``: of made-up nodes, or of all others, those of deleted nodes among them.
    """
    statement = select(EventRow).where(EventRow.id < before_id).order_by(EventRow.id.desc()).limit(limit)
    if kinds:
        statement = statement.where(EventRow.kind.in_(kinds))
    if node_id is not None:
        statement = statement.where(EventRow.node_id == node_id)
    if code is not None:
        statement = statement.where(EventRow.code == code)
    if since is not None:
        statement = statement.where(EventRow.at >= since)
    if synthetic is not None:
        made_up = EventRow.node_id.in_(select(NodeRow.id).where(NodeRow.synthetic))
        statement = statement.where(made_up if synthetic else func.coalesce(made_up, false()).is_(False))
    if node_id is None:
        statement = statement.where(EventRow.id >= before_id - SCANNED)
    return (await session.scalars(statement)).all()


async def has_older(session: ReadSession, before_id: int, since: datetime | None) -> bool:
    """Whether there are events before an id, and the newest of them is not older than ``since``."""
    newest = select(EventRow.at).where(EventRow.id < before_id).order_by(EventRow.id.desc()).limit(1)
    at = await session.scalar(newest)
    return at is not None and (since is None or at >= since)


async def events_after(session: ReadSession, event_id: int, limit: int) -> Sequence[EventRow]:
    """Events with a larger id, oldest first."""
    statement = select(EventRow).where(EventRow.id > event_id).order_by(EventRow.id).limit(limit)
    return (await session.scalars(statement)).all()


async def last_event_id(session: ReadSession) -> int:
    """The id of the newest event; 0 without any."""
    return int(await session.scalar(select(func.max(EventRow.id))) or 0)


@dataclass(frozen=True, slots=True)
class WebhookCounts:
    """What became of the events of one receiver."""

    pending: int = 0
    failed: int = 0
    last_error: str | None = None


async def list_webhooks(
    session: ReadSession, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[WebhookRow]:
    """Receivers, newest first."""
    key = WebhookRow.created_at, WebhookRow.id
    statement = newest_first(select(WebhookRow), *key, after=after, limit=limit)
    return (await session.scalars(statement)).all()


async def counts(session: ReadSession, webhook_ids: Sequence[UUID]) -> dict[UUID, WebhookCounts]:
    """Pending and failed events of receivers, and an error. Of each receiver COUNTED are read, those tried first."""
    row, receiver = WebhookDeliveryRow, WebhookRow.id
    left = select(row).where(row.webhook_id == receiver, ~row.delivered).order_by(row.attempts.desc())
    some = left.limit(COUNTED).lateral()
    finished = some.c.finished_at
    numbers = func.count().filter(finished.is_(None)), func.count().filter(finished.is_not(None))
    statement = select(receiver, *numbers, func.max(some.c.last_error)).select_from(WebhookRow).join(some, true())
    statement = statement.where(receiver.in_(webhook_ids)).group_by(receiver)
    await session.execute(text(NO_SORT))
    return {found[0]: WebhookCounts(found[1], found[2], found[3]) for found in await session.execute(statement)}


async def count_webhooks(session: ReadSession) -> int:
    """How many receivers there are."""
    return (await session.execute(select(func.count()).select_from(WebhookRow))).scalar_one()


async def add_webhook(session: WriteSession, row: WebhookRow) -> None:
    """Store a receiver."""
    session.add(row)
    await session.flush()


async def delete_webhook(session: WriteSession, webhook_id: UUID) -> bool:
    """Delete a receiver. False when there is none."""
    statement = delete(WebhookRow).where(WebhookRow.id == webhook_id).returning(WebhookRow.id)
    return (await session.execute(statement)).scalar_one_or_none() is not None
