"""Sending events to webhooks: queued once, signed, tried again with growing pauses, given up after a day.

Any replica may send: rows are taken with SKIP LOCKED, and a sender that dies leaves its row to the next.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
import msgspec
from sqlalchemy import Row, text
from sqlalchemy.exc import SQLAlchemyError

from hugeplan.db.session import Database, WriteSession

POLL_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 10.0
# httpx counts connecting, sending and each wait for an answer on its own.
LEASE_SECONDS: Final = 6 * TIMEOUT_SECONDS
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(hours=1)
GIVEN_UP_AFTER: Final = timedelta(days=1)
SIGNATURE_HEADER: Final = "Hugeplan-Signature"
_BATCH = 20

_logger = logging.getLogger(__name__)

_QUEUE = """
WITH due AS (SELECT id, kinds, last_event_id FROM webhooks FOR UPDATE SKIP LOCKED),
new AS (
    SELECT d.id AS webhook_id, e.id AS event_id FROM due d JOIN events e ON e.id > d.last_event_id
    WHERE d.kinds = '[]'::jsonb OR d.kinds ? e.kind
), queued AS (
    INSERT INTO webhook_deliveries (webhook_id, event_id, attempts, next_attempt_at, delivered)
    SELECT webhook_id, event_id, 0, now(), false FROM new ON CONFLICT DO NOTHING
)
UPDATE webhooks w SET last_event_id = greatest(w.last_event_id, (SELECT coalesce(max(id), 0) FROM events))
FROM due WHERE due.id = w.id
"""
# Taken for as long as an attempt may last, in a transaction that ends before the attempt: a receiver that hangs holds
# no connection and no lock. A sender that dies leaves its rows to the next when their lease has run out.
_TAKE = """
WITH due AS (
    SELECT webhook_id, event_id FROM webhook_deliveries WHERE finished_at IS NULL AND next_attempt_at <= now()
    ORDER BY next_attempt_at, event_id LIMIT :limit FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE webhook_deliveries d SET next_attempt_at = now() + make_interval(secs => :lease) FROM due
    WHERE d.webhook_id = due.webhook_id AND d.event_id = due.event_id
    RETURNING d.webhook_id, d.event_id, d.attempts
)
SELECT d.webhook_id, d.event_id, d.attempts, w.url, w.secret, w.format, e.at, e.kind, e.node_id, e.node_name, e.code,
    e.subject, e.state, e.previous_state, e.text
FROM taken d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id
ORDER BY d.event_id
"""
_NOTE = """
UPDATE webhook_deliveries SET attempts = attempts + 1, next_attempt_at = :next, finished_at = :finished,
    delivered = :delivered, last_status = :status, last_error = :error
WHERE webhook_id = :webhook_id AND event_id = :event_id
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended. ``error`` is None when the receiver took the event."""

    status: int | None
    error: str | None


def signature(secret: str, body: bytes, at: datetime) -> str:
    """``t=SECONDS,v1=HEX``: HMAC-SHA256 with the secret over the seconds, a full stop and the body.

    A receiver makes the same, and refuses what is older than a few minutes: so nobody can send it again.
    """
    seconds = int(at.timestamp())
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def body_of(row: Row[tuple[object, ...]]) -> bytes:
    """What is sent: the event as JSON, or its text as Slack's incoming webhooks take it."""
    if row.format == "slack":
        who = f"{row.node_name}: " if row.node_name else ""
        return msgspec.json.encode({"text": f"{who}{row.text}"})
    names = ("at", "kind", "node_id", "node_name", "code", "subject", "state", "previous_state", "text")
    return msgspec.json.encode({"id": row.event_id, **{name: getattr(row, name) for name in names}})


async def deliver_once(database: Database, client: httpx.AsyncClient) -> int:
    """Queue what is new, and try what is due. How many were tried."""
    async with database.write() as session:
        await session.execute(text(_QUEUE))
    async with database.write() as session:
        rows = (await session.execute(text(_TAKE), {"limit": _BATCH, "lease": LEASE_SECONDS})).all()
    if not rows:
        return 0
    outcomes = await asyncio.gather(*(_send(client, row) for row in rows))
    async with database.write() as session:
        for row, outcome in zip(rows, outcomes, strict=True):
            await _note(session, row, outcome)
    return len(rows)


async def _send(client: httpx.AsyncClient, row: Row[tuple[object, ...]]) -> Outcome:
    body = body_of(row)
    headers = {
        "Content-Type": "application/json",
        "Hugeplan-Event": str(row.event_id),
        SIGNATURE_HEADER: signature(row.secret, body, datetime.now(UTC)),
    }
    try:
        answer = await client.post(row.url, content=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Outcome(None, f"{type(error).__name__}: {error}"[:500])
    if answer.is_success:
        return Outcome(answer.status_code, None)
    return Outcome(answer.status_code, f"answered {answer.status_code}")


async def _note(session: WriteSession, row: Row[tuple[object, ...]], outcome: Outcome) -> None:
    now = datetime.now(UTC)
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(row.attempts, 20))
    given_up = now + pause > row.at + GIVEN_UP_AFTER
    done = outcome.error is None
    values = {
        "webhook_id": row.webhook_id,
        "event_id": row.event_id,
        "next": now + pause,
        "finished": now if done or given_up else None,
        "delivered": done,
        "status": outcome.status,
        "error": outcome.error,
    }
    await session.execute(text(_NOTE), values)


async def deliver_forever(database: Database) -> None:
    """Deliver until cancelled. A database that is away is asked again."""
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False) as client:
        while True:
            tried = 0
            try:
                tried = await deliver_once(database, client)
            except (SQLAlchemyError, OSError) as error:
                _logger.warning("events cannot be delivered", extra={"error": str(error).splitlines()[0]})
            if tried < _BATCH:
                await asyncio.sleep(POLL_SECONDS)
