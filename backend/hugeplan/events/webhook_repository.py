"""Statements about webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, select, tuple_

from hugeplan.db.models import WebhookDeliveryRow, WebhookRow
from hugeplan.db.session import ReadSession, WriteSession


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
    statement = select(WebhookRow).order_by(WebhookRow.created_at.desc(), WebhookRow.id.desc()).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(WebhookRow.created_at, WebhookRow.id) < after)
    return (await session.scalars(statement)).all()


async def counts(session: ReadSession, webhook_ids: Sequence[UUID]) -> dict[UUID, WebhookCounts]:
    """Pending and failed events of receivers, and the newest error."""
    row = WebhookDeliveryRow
    statement = (
        select(
            row.webhook_id,
            func.count().filter(row.finished_at.is_(None)),
            func.count().filter(row.finished_at.is_not(None), row.delivered.is_(False)),
            func.max(row.last_error).filter(row.delivered.is_(False)),
        )
        .where(row.webhook_id.in_(webhook_ids))
        .group_by(row.webhook_id)
    )
    return {found[0]: WebhookCounts(found[1], found[2], found[3]) for found in await session.execute(statement)}


async def add_webhook(session: WriteSession, row: WebhookRow) -> None:
    """Store a receiver."""
    session.add(row)
    await session.flush()


async def delete_webhook(session: WriteSession, webhook_id: UUID) -> bool:
    """Delete a receiver. False when there is none."""
    statement = delete(WebhookRow).where(WebhookRow.id == webhook_id).returning(WebhookRow.id)
    return (await session.execute(statement)).scalar_one_or_none() is not None
