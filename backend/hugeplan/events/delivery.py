"""Sending events to webhooks: queued once, signed, tried again with growing pauses, given up after a day.

Any replica may send: rows are taken with SKIP LOCKED, and a sender that dies leaves its row to the next. Each receiver
has a task of its own, so that one which is slow or away keeps no other waiting.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import html
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.exc import SQLAlchemyError

from hugeplan.db.session import Database, WriteSession
from hugeplan.events import repository
from hugeplan.events.records import MOST_EVENTS
from hugeplan.events.sending import TIMEOUT_SECONDS, Outcome
from hugeplan.planner.printable import printable

POLL_SECONDS: Final = 1.0
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(hours=1)
GIVEN_UP_AFTER: Final = timedelta(days=1)
SIGNATURE_HEADER: Final = "Hugeplan-Signature"
_BATCH = 20
_CONNECTIONS: Final = 2
"""Of the pool that requests use, for all receivers together: the others wait without one."""
# One after the other, each for as long as an attempt may last.
LEASE_SECONDS: Final = _BATCH * TIMEOUT_SECONDS + 60

Send = Callable[[str, bytes, Mapping[str, str]], Awaitable[Outcome]]

_logger = logging.getLogger(__name__)

# What goes first is known when it is queued, so that of millions that wait none is read but what is taken. A node's
# first event within a day goes before another's second, so that one with many holds back no other. One token makes
# thousands of nodes: those of the last day, and clones, begin where others are after an hour's bound of events.
_QUEUE = f"""
WITH due AS (
    SELECT id, kinds, last_event_id FROM webhooks
    WHERE last_event_id < (SELECT max(id) FROM events) FOR UPDATE SKIP LOCKED
), a_day_ago AS MATERIALIZED (
    SELECT coalesce((SELECT id FROM events WHERE at <= now() - interval '1 day' ORDER BY at DESC LIMIT 1), 0) AS id
), new AS MATERIALIZED (
    SELECT e.id, e.kind, CASE WHEN n.first_report_at > e.at - interval '1 day' OR strpos(n.machine_id, '~') > 0
        THEN {MOST_EVENTS[0][1]} ELSE 0 END + earlier.number AS turn
    FROM events e LEFT JOIN nodes n ON n.id = e.node_id, LATERAL (SELECT count(*) AS number FROM (
        SELECT FROM events o WHERE o.node_id = e.node_id AND o.id < e.id AND o.id > (SELECT id FROM a_day_ago)
        LIMIT {MOST_EVENTS[0][1]}
    ) o) earlier
    WHERE e.id > (SELECT min(last_event_id) FROM due)
), queued AS (
    INSERT INTO webhook_deliveries (webhook_id, event_id, attempts, turn, next_attempt_at, delivered)
    SELECT due.id, new.id, 0, new.turn, now(), false FROM due JOIN new ON new.id > due.last_event_id
    WHERE due.kinds = '[]'::jsonb OR due.kinds ? new.kind ON CONFLICT DO NOTHING
)
UPDATE webhooks w SET last_event_id = greatest(w.last_event_id, (SELECT coalesce(max(id), 0) FROM events))
FROM due WHERE due.id = w.id
"""  # noqa: S608 - a constant
_DUE = """
SELECT w.id FROM webhooks w, LATERAL (
    SELECT FROM webhook_deliveries d
    WHERE d.webhook_id = w.id AND d.finished_at IS NULL AND d.next_attempt_at <= now()
    ORDER BY d.next_attempt_at LIMIT 1
) one
"""
# Taken for as long as an attempt may last, in a transaction that ends before the attempt: a receiver that hangs holds
# no connection and no lock. A sender that dies leaves its rows to the next when their lease has run out.
_TAKE = """
WITH due AS (
    SELECT event_id FROM webhook_deliveries
    WHERE webhook_id = :webhook_id AND finished_at IS NULL AND next_attempt_at <= now()
    ORDER BY turn, event_id LIMIT :limit FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE webhook_deliveries d SET next_attempt_at = now() + make_interval(secs => :lease) FROM due
    WHERE d.webhook_id = :webhook_id AND d.event_id = due.event_id
    RETURNING d.webhook_id, d.event_id, d.attempts, d.turn
)
SELECT d.webhook_id, d.event_id, d.attempts, w.url, w.secret, w.format, e.at, e.kind, e.node_id, e.node_name, e.code,
    e.subject, e.state, e.previous_state, e.text
FROM taken d JOIN webhooks w ON w.id = d.webhook_id JOIN events e ON e.id = d.event_id
ORDER BY d.turn, d.event_id
"""
_RELEASE = """
UPDATE webhook_deliveries SET next_attempt_at = now()
WHERE webhook_id = :webhook_id AND event_id = ANY(:event_ids) AND finished_at IS NULL
"""
_NOTE = """
UPDATE webhook_deliveries SET attempts = attempts + 1, turn = turn + 1, next_attempt_at = :next,
    finished_at = :finished, delivered = :delivered, last_status = :status, last_error = :error
WHERE webhook_id = :webhook_id AND event_id = :event_id
"""


def signature(secret: str, body: bytes, at: datetime) -> str:
    """``t=SECONDS,v1=HEX``: HMAC-SHA256 with the secret over the seconds, a full stop and the body.

    A receiver makes the same, and refuses what is older than a few minutes: so nobody can send it again.
    """
    seconds = int(at.timestamp())
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def body_of(row: Row[tuple[object, ...]]) -> bytes:
    """What is sent: the event as JSON, or its text as Slack's incoming webhooks take it.

    Slack's three control characters are escaped as its manual says (Formatting text for app surfaces): a node's name is
    no mention and no link. A word joiner (U+2060) keeps an address in it from becoming one; asterisks stay asterisks.
    """
    if row.format == "slack":
        who = f"{row.node_name}: " if row.node_name else ""
        text = html.escape(f"{who}{row.text}", quote=False).replace("://", ":\u2060//")
        return msgspec.json.encode({"text": text, "mrkdwn": False})
    names = ("at", "kind", "node_id", "node_name", "code", "subject", "state", "previous_state", "text")
    return msgspec.json.encode({"id": row.event_id, **{name: getattr(row, name) for name in names}})


class Courier:
    """Brings events to their receivers, each in a task of its own. ``send`` makes one attempt and never raises."""

    def __init__(self, database: Database, send: Send) -> None:
        self._database = database
        self._send = send
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._connections = asyncio.Semaphore(_CONNECTIONS)
        #: Receivers that were away: failures in a row, and when they are asked again.
        self._away: dict[UUID, tuple[int, float]] = {}

    async def round(self) -> None:
        """Queue what is new, and start what is due at receivers that have no task and no pause."""
        async with self._database.write() as session:
            await session.execute(text(_QUEUE))
        async with self._database.read() as session:
            due = (await session.scalars(text(_DUE))).all()
        for webhook_id in due:
            if webhook_id not in self._tasks and self._away.get(webhook_id, (0, 0.0))[1] <= time.monotonic():
                task = asyncio.create_task(self._serve(webhook_id), name=f"webhook {webhook_id}")
                self._tasks[webhook_id] = task
                task.add_done_callback(lambda _, done=webhook_id: self._tasks.pop(done))  # type: ignore[misc]

    async def settle(self) -> None:
        """Wait until no attempt is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self) -> None:
        """Break off what is under way; the next sender tries it again."""
        for task in [*self._tasks.values()]:
            task.cancel()
        await self.settle()

    async def _serve(self, webhook_id: UUID) -> None:
        try:
            while await self._batch(webhook_id):
                pass
        except (SQLAlchemyError, OSError) as error:
            _logger.warning("events cannot be delivered", extra={"error": str(error).splitlines()[0]})
        except Exception:  # whatever it is, the other receivers and the next round go on
            _logger.exception("delivery to a webhook failed", extra={"webhook_id": str(webhook_id)})
            self._pause(webhook_id)

    async def _batch(self, webhook_id: UUID) -> bool:
        """Try what is due at one receiver, one after the other. Whether more may be due."""
        # A receiver that was away is asked with one event first.
        limit = 1 if webhook_id in self._away else _BATCH
        values = {"webhook_id": webhook_id, "limit": limit, "lease": LEASE_SECONDS}
        async with self._write() as session:
            await session.execute(text(repository.NO_SORT))
            rows = (await session.execute(text(_TAKE), values)).all()
        left = [row.event_id for row in rows]
        try:
            while left:
                row = rows[len(rows) - len(left)]
                outcome = await self._attempt(row)
                async with self._write() as session:
                    await _note(session, row, outcome)
                left.pop(0)
                if outcome.is_of_receiver:
                    self._pause(webhook_id)
                    return False
                self._away.pop(webhook_id, None)
        finally:
            # Also when this sender is broken off: the next one does not wait for the lease to run out.
            if left:
                async with self._write() as session:
                    await session.execute(text(_RELEASE), {"webhook_id": webhook_id, "event_ids": left})
        return len(rows) == limit

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[WriteSession]:
        async with self._connections, self._database.write() as session:
            yield session

    def _pause(self, webhook_id: UUID) -> None:
        failures = self._away.get(webhook_id, (0, 0.0))[0]
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 20))
        self._away[webhook_id] = failures + 1, time.monotonic() + pause.total_seconds()

    async def _attempt(self, row: Row[tuple[object, ...]]) -> Outcome:
        try:
            body = body_of(row)
            headers = {
                "Content-Type": "application/json",
                "Hugeplan-Event": str(row.event_id),
                SIGNATURE_HEADER: signature(row.secret, body, datetime.now(UTC)),
            }
            outcome = await self._send(row.url, body, headers)
        except Exception as error:  # an attempt that fails in a way of its own is a failed attempt, and is shown
            outcome = Outcome(None, printable(f"{type(error).__name__}: {error}", 500))
        if outcome.error is not None:
            told = {"webhook_id": str(row.webhook_id), "event_id": row.event_id, "error": outcome.error}
            _logger.warning("a webhook did not take an event", extra=told)
        return outcome


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


async def deliver_forever(database: Database, send: Send) -> None:
    """Deliver until cancelled."""
    courier = Courier(database, send)
    try:
        while True:
            await courier.round()
            await asyncio.sleep(POLL_SECONDS)
    finally:
        await courier.close()
