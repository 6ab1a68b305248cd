"""An event as it is written, and the statements that write it. Whoever changes something writes its events with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import text

from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.session import WriteSession

KINDS: Final = (
    "node_added",
    "node_deleted",
    "run_added",
    "finding_opened",
    "finding_changed",
    "finding_closed",
    "plan_in_force_set",
    "plan_in_force_ended",
    "plan_verified",
    "plan_proposed",
    "plan_approved",
    "plan_withdrawn",
    "plan_stale",
    "fleet_plan_finished",
)


class Event(msgspec.Struct, kw_only=True):
    """A change. ``state`` is what holds now, ``previous_state`` what held before; both are set for findings."""

    at: datetime
    kind: str
    node_id: UUID | None = None
    node_name: str | None = None
    code: str | None = None
    subject: str | None = None
    state: str | None = None
    previous_state: str | None = None
    text: str = ""


LOCK_EVENTS: Final = f"SELECT pg_advisory_xact_lock({AdvisoryLock.EVENTS:d})"
"""Taken last and held to the commit, so that events become visible in the order of their ids."""
_NAMES: Final = "at, kind, node_id, node_name, code, subject, state, previous_state, text"
_RECORDS: Final = (
    "AS r(at timestamptz, kind text, node_id uuid, node_name text, code text, subject text, state text,"
    " previous_state text, text text)"
)
INSERT_EVENTS: Final = f"INSERT INTO events ({_NAMES}) SELECT {_NAMES} FROM jsonb_to_recordset(%s::jsonb) {_RECORDS}"  # noqa: S608
_INSERT_BY_SESSION: Final = (
    f"INSERT INTO events ({_NAMES}) SELECT {_NAMES} FROM jsonb_to_recordset(CAST(:rows AS jsonb)) {_RECORDS}"  # noqa: S608
)


async def write_events(session: WriteSession, events: Sequence[Event]) -> None:
    """Write events in this transaction. Call it last: other transactions that write events wait for the commit."""
    if events:
        await session.execute(text(LOCK_EVENTS))
        await session.execute(text(_INSERT_BY_SESSION), {"rows": msgspec.json.encode(events).decode()})
