"""Events and their receivers."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from hugeplan.api.pagination import Page, decode_cursor, decode_time_cursor, encode_cursor, page_of
from hugeplan.api.schemas import fields_of
from hugeplan.db.locks import LockOfOne, keep_within
from hugeplan.db.models import WebhookRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import ConflictError, FieldProblem, NotFoundError
from hugeplan.events import repository
from hugeplan.events.feed import events_of
from hugeplan.events.repository import WebhookCounts
from hugeplan.events.schemas import FleetEvent, Webhook, WebhookCreated, WebhookWrite

MOST_WEBHOOKS: Final = 100
"""In all: each event of the fleet costs some milliseconds for each of them."""


async def list_events(
    session: ReadSession, *, cursor: str | None, limit: int, kinds: Sequence[str], node_id: UUID | None,
    code: str | None, since: datetime | None, synthetic: bool | None,
) -> Page[FleetEvent]:  # fmt: skip
    """Past events, newest first. A page with few or none has a cursor where older ones were not looked through yet."""
    position = decode_cursor(cursor, int, str)
    before_id = await repository.last_event_id(session) + 1 if position is None else position[0]
    rows = await repository.list_events(
        session,
        kinds=kinds,
        node_id=node_id,
        code=code,
        since=since,
        synthetic=synthetic,
        before_id=before_id,
        limit=limit + 1,
    )
    goes_on_at = rows[limit - 1].id if len(rows) > limit else None
    if goes_on_at is None and node_id is None:
        end = before_id - repository.SCANNED
        goes_on_at = end if end > 0 and await repository.has_older(session, end, since) else None
    next_cursor = None if goes_on_at is None else encode_cursor(str(goes_on_at), "")
    return Page(items=events_of(rows[:limit]), next_cursor=next_cursor)


def _webhook(row: WebhookRow, counts: WebhookCounts) -> Webhook:
    stored = fields_of(Webhook, row, "pending", "failed", "last_error")
    return Webhook(**stored, pending=counts.pending, failed=counts.failed, last_error=counts.last_error)


async def list_webhooks(session: ReadSession, *, limit: int, cursor: str | None) -> Page[Webhook]:
    """Receivers, newest first."""
    after = decode_time_cursor(cursor)
    rows = await repository.list_webhooks(session, after=after, limit=limit + 1)
    counts = await repository.counts(session, [row.id for row in rows])
    items, next_cursor = page_of(
        rows,
        limit,
        lambda row: (row.created_at.isoformat(), str(row.id)),
        lambda row: _webhook(row, counts.get(row.id, WebhookCounts())),
    )
    return Page(items=items, next_cursor=next_cursor)


async def create_webhook(session: WriteSession, body: WebhookWrite, *, created_by: str) -> WebhookCreated:
    """A new receiver. It gets the events that are written from now on. ConflictError for one too many."""

    async def require_room(coming: int) -> None:
        if await repository.count_webhooks(session) + coming > MOST_WEBHOOKS:
            raise ConflictError(
                f"There are {MOST_WEBHOOKS} webhooks, as many as may be. Delete one, then create this one.",
                [FieldProblem(field="name", value=body.name, expected=f"one of at most {MOST_WEBHOOKS} webhooks")],
            )

    await keep_within(session, LockOfOne.WEBHOOKS, "all", require_room)
    row = WebhookRow(
        id=uuid.uuid4(),
        name=body.name,
        url=body.url,
        secret="whsec_" + secrets.token_urlsafe(32),
        format=body.format,
        kinds=list(body.kinds),
        last_event_id=await repository.last_event_id(session),
        created_at=datetime.now(UTC),
        created_by=created_by,
    )
    await repository.add_webhook(session, row)
    return WebhookCreated(**_webhook(row, WebhookCounts()).model_dump(), secret=row.secret)


async def delete_webhook(session: WriteSession, webhook_id: UUID) -> None:
    """Remove a receiver with what was on its way to it."""
    if not await repository.delete_webhook(session, webhook_id):
        raise NotFoundError(f"There is no webhook {webhook_id}.")
