"""An event as it is written, and the statements that write it. Whoever changes something writes its events with it."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.event import listens_for
from sqlalchemy.orm import Session, SessionTransaction

from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.session import Transactions, WriteSession

KINDS: Final = {
    "node_added": "A node's first report came.",
    "node_deleted": "A node was deleted with its history.",
    "run_added": "A report brought a run of tlbbench.",
    "finding_opened": "A finding holds now that did not: `code`, `subject`, `state`.",
    "finding_changed": "A finding holds still, in another `state`.",
    "finding_closed": "A finding no longer holds; `state` is null. Where it had come again, half an hour later.",
    "plan_in_force_set": "A plan was put in force on a node: by a person, a label, or a verification.",
    "plan_in_force_ended": "A node's plan is no longer in force.",
    "plan_verified": "A report of the node says whether its plan in force holds, and that has changed.",
    "plan_proposed": "A kept plan waits for approval.",
    "plan_approved": "A kept plan was approved.",
    "plan_withdrawn": "A proposal or an approval was taken back.",
    "plan_stale": "A newer sample of the node changes the pools or the fit of a proposed or approved plan.",
    "fleet_plan_finished": "A fleet plan's job ended; `text` has its counts.",
    "events_left_out": "A node's reports brought more events than are kept; `text` has their number.",
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


MOST_EVENTS: Final = ((timedelta(hours=1), 64), (timedelta(days=1), 256))
"""How many events a node's reports may bring within a time. The rest is counted."""
BOUND: Final = (
    f"A node has {MOST_EVENTS[0][1]} per hour and {MOST_EVENTS[1][1]} per day, and who owns some of its databases never"
    " more than are left for others; its findings are complete."
)
CALM: Final = timedelta(minutes=30)
"""How long a finding that comes and goes has to be away before its end is told, and its next beginning."""
MOST_AWAY: Final = 64


class Away(msgspec.Struct, kw_only=True):
    """A finding that ended at ``at``. ``is_open``: that it began again was told, and that it ended again was not."""

    code: str
    subject: str
    state: str
    title: str
    at: datetime
    is_open: bool = False


class Told(msgspec.Struct):
    """What was told of a node lately. It is kept with the node's state, so that each report knows it.

    ``taken``: when events were told within the last day, in seconds since 1970, by a hash of whose they were.
    """

    taken: dict[str, list[int]] = {}
    away: list[Away] = []
    left_out: int = 0
    said_at: datetime | None = None

    def has_room(self, now: datetime, whose: str = "") -> bool:
        """Whether there is room for one more event about what somebody owns; "" is the node itself.

        Nobody has more than are left for others: so a flood of one leaves half of them, and of two a third.
        """
        seconds, own = int(now.timestamp()), _hash(whose)
        day_ago = seconds - int(MOST_EVENTS[-1][0].total_seconds())
        for one, taken in list(self.taken.items()):
            if taken[-1] > seconds:  # the clock was ahead for a moment: those are of now
                taken[:] = [min(at, seconds) for at in taken]
            if taken[0] <= day_ago:
                del taken[: bisect_right(taken, day_ago)]
            if not taken:
                del self.taken[one]
        for span, most in MOST_EVENTS:
            since = seconds - int(span.total_seconds())
            used = {one: len(taken) - bisect_right(taken, since) for one, taken in self.taken.items()}
            if used.get(own, 0) >= most - sum(used.values()):
                return False
        return True

    def takes(self, now: datetime, whose: str = "") -> bool:
        """Take room for one more event; without room it is counted."""
        if not self.has_room(now, whose):
            self.left_out += 1
            return False
        self.taken.setdefault(_hash(whose), []).append(int(now.timestamp()))
        return True

    def to_say(self, now: datetime) -> int:
        """How many events were left out and not said yet; 0 within an hour after the last time."""
        if self.left_out == 0 or (self.said_at is not None and _is_within(self.said_at, now, MOST_EVENTS[0][0])):
            return 0
        count, self.left_out, self.said_at = self.left_out, 0, now
        return count

    def begins(self, code: str, subject: str) -> str | None:
        """The state in which its readers still know a finding that begins; None where they are to be told."""
        for one in self.away:
            if (one.code, one.subject) == (code, subject):
                known, one.is_open = one.state if one.is_open else None, True
                return known
        return None

    def ends(self, ended: Away) -> bool:
        """Note that a finding ended. Whether that is told: not where it began again a short time ago."""
        same = [one for one in self.away if (one.code, one.subject) == (ended.code, ended.subject)]
        ended.is_open = any(one.is_open for one in same)
        self.away = [one for one in self.away if one not in same]
        if same or len(self.away) < MOST_AWAY:
            self.away.append(ended)
        return not ended.is_open

    def calm(self, now: datetime, present: Collection[tuple[str, str]]) -> list[Away]:
        """Forget what ended some time ago. Those of it that did not come again, and whose end is still to be told."""
        past = [one for one in self.away if not _is_within(one.at, now, CALM)]
        self.away = [one for one in self.away if one not in past]
        return [one for one in past if one.is_open and (one.code, one.subject) not in present]


def _hash(whose: str) -> str:
    return hashlib.sha256(whose.encode()).hexdigest()[:12]


def _is_within(at: datetime, now: datetime, span: timedelta) -> bool:
    return timedelta() <= now - at < span


LOCK_EVENTS: Final = f"SELECT pg_advisory_xact_lock({AdvisoryLock.EVENTS:d})"
"""Taken last and held to the commit, so that events become visible in the order of their ids."""
_NAMES: Final = "at, kind, node_id, node_name, code, subject, state, previous_state, text"
_RECORDS: Final = (
    "AS r(at timestamptz, kind text, node_id uuid, node_name text, code text, subject text, state text,"
    " previous_state text, text text)"
)
INSERT_EVENTS: Final = f"INSERT INTO events ({_NAMES}) SELECT {_NAMES} FROM jsonb_to_recordset(%s::jsonb) {_RECORDS}"  # noqa: S608
_LOCK_AND_INSERT: Final = (
    f"WITH locked AS MATERIALIZED ({LOCK_EVENTS}) INSERT INTO events ({_NAMES}) SELECT {_NAMES}"  # noqa: S608
    f" FROM locked, jsonb_to_recordset(CAST(:rows AS jsonb)) {_RECORDS}"
)
"""In one: between two statements the lock would be held for as long as this process has other things to do."""


@dataclass(slots=True)
class _Unwritten:
    """The events of a transaction, and how many there were when each of its savepoints began."""

    events: list[Event] = field(default_factory=list)
    before: dict[SessionTransaction, int] = field(default_factory=dict)


def write_events(session: WriteSession, events: Sequence[Event]) -> None:
    """Write events when this transaction is committed, and at no earlier time: others that write some wait from then on
    for its end. A savepoint that is undone takes its own with it.
    """
    _unwritten(session.sync_session).events.extend(events)


def _unwritten(session: Session) -> _Unwritten:
    found: _Unwritten = session.info.setdefault("events", _Unwritten())
    return found


@listens_for(Transactions, "before_commit")
def _write(session: Session) -> None:
    events = _unwritten(session).events
    if events and not session.in_nested_transaction():  # a savepoint's end is none
        session.flush()
        session.execute(text(_LOCK_AND_INSERT), {"rows": msgspec.json.encode(events).decode()})


@listens_for(Transactions, "after_transaction_create")
def _note_savepoint(session: Session, begun: SessionTransaction) -> None:
    if begun.nested:
        own = _unwritten(session)
        own.before[begun] = len(own.events)


@listens_for(Transactions, "after_soft_rollback")
def _undo_savepoint(session: Session, undone: SessionTransaction) -> None:
    own = _unwritten(session)
    del own.events[own.before.get(undone, len(own.events)) :]


@listens_for(Transactions, "after_transaction_end")
def _forget(session: Session, ended: SessionTransaction) -> None:
    if ended.parent is None:
        session.info.pop("events", None)
