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

KINDS: Final = {
    "node_added": "A node's first report came.",
    "node_deleted": "A node was deleted with its history.",
    "run_added": "A report brought a run of tlbbench.",
    "finding_opened": "A finding holds now that did not: `code`, `subject`, `state`.",
    "finding_changed": "A finding holds still, in another `state`.",
    "finding_closed": "A finding no longer holds; `state` is null.",
    "plan_in_force_set": "A plan was put in force on a node: by a person, a label, or a verification.",
    "plan_in_force_ended": "A node's plan is no longer in force.",
    "plan_verified": "A report of the node says whether its plan in force holds, and that has changed.",
    "plan_proposed": "A kept plan waits for approval.",
    "plan_approved": "A kept plan was approved.",
    "plan_withdrawn": "A proposal or an approval was taken back.",
    "plan_stale": "A newer sample of the node changes the pools or the fit of a proposed or approved plan.",
    "fleet_plan_finished": "A fleet plan's job ended; `text` has its counts.",
}
"""What an event is about, by its kind: the rows of docs/reference-webhooks.md."""


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
_INSERT_BY_SESSION: Final = INSERT_EVENTS.replace("%s::jsonb", "CAST(:rows AS jsonb)")


async def write_events(session: WriteSession, events: Sequence[Event]) -> None:
    """Write events in this transaction. Call it last: other transactions that write events wait for the commit."""
    if events:
        await session.execute(text(LOCK_EVENTS))
        await session.execute(text(_INSERT_BY_SESSION), {"rows": msgspec.json.encode(events).decode()})
