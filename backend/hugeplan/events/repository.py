"""Statements about events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select

from hugeplan.db.models import EventRow
from hugeplan.db.session import ReadSession


async def list_events(
    session: ReadSession,
    *,
    kinds: Sequence[str],
    node_id: UUID | None,
    code: str | None,
    since: datetime | None,
    before_id: int | None,
    limit: int,
) -> Sequence[EventRow]:
    """Events, newest first."""
    statement = select(EventRow).order_by(EventRow.id.desc()).limit(limit)
    if kinds:
        statement = statement.where(EventRow.kind.in_(kinds))
    if node_id is not None:
        statement = statement.where(EventRow.node_id == node_id)
    if code is not None:
        statement = statement.where(EventRow.code == code)
    if since is not None:
        statement = statement.where(EventRow.at >= since)
    if before_id is not None:
        statement = statement.where(EventRow.id < before_id)
    return (await session.scalars(statement)).all()


async def events_after(session: ReadSession, event_id: int, limit: int) -> Sequence[EventRow]:
    """Events with a larger id, oldest first."""
    statement = select(EventRow).where(EventRow.id > event_id).order_by(EventRow.id).limit(limit)
    return (await session.scalars(statement)).all()


async def last_event_id(session: ReadSession) -> int:
    """The id of the newest event; 0 without any."""
    return int(await session.scalar(select(func.max(EventRow.id))) or 0)
