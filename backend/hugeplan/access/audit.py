"""The audit log: every change that a person or a program made through the API, in the change's own transaction.

It is written where the request's transaction ends (``hugeplan.api.dependencies``), so that no handler can forget it. A
handler says more with ``note``. The database refuses to change or delete a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fastapi import Request
from sqlalchemy import ColumnElement, Select, select, tuple_
from sqlalchemy.orm import aliased

from hugeplan.access.gate import client_address
from hugeplan.access.schemas import AuditEntry
from hugeplan.access.service import Actor
from hugeplan.api.pagination import Page, aware_time, decode_cursor, encode_cursor, page_of
from hugeplan.api.schemas import JsonObject
from hugeplan.db.models import AuditEvent
from hugeplan.db.session import ReadSession, WriteSession

NO_CHANGE = frozenset(
    {"reports_create", "plans_preview", "files_lint", "engine_settings_read", "imports_kubernetes_workloads"}
)
"""Operations with an unsafe method that change nothing a person decides: an agent's report, and what is only computed.

They are not counted as changes either: each would leave a line for good, 1,200 per minute of a viewer.
"""

CSV_COLUMNS = (
    "at",
    "actor_name",
    "actor_role",
    "actor_id",
    "address",
    "action",
    "subject_kind",
    "subject_id",
    "detail",
)


def note(request: Request, *, kind: str | None = None, subject: object = None, **detail: object) -> None:
    """Say what a change is about; ``detail`` holds no secret."""
    noted: JsonObject = getattr(request.state, "audit", {})
    fields = {"kind": kind, "subject": None if subject is None else str(subject)}
    noted |= {name: value for name, value in fields.items() if value is not None}
    if detail:
        noted["detail"] = noted.get("detail", {}) | detail
    request.state.audit = noted


async def record_request(session: WriteSession, request: Request) -> None:
    """Write the row of this request, when it is a change by somebody."""
    actor: Actor | None = getattr(request.state, "actor", None)
    action = str(getattr(request.scope.get("route"), "name", "other"))
    if actor is None or action in NO_CHANGE:
        return
    noted: JsonObject = getattr(request.state, "audit", {})
    ids = [str(value) for value in request.path_params.values()]
    await record(
        session,
        actor=actor,
        address=client_address(request),
        action=action,
        kind=noted.get("kind") or action.rpartition("_")[0],
        subject=noted.get("subject") or "/".join(ids),
        detail=noted.get("detail", {}),
    )


async def record(
    session: WriteSession,
    *,
    actor: Actor | None,
    address: str | None,
    action: str,
    kind: str,
    subject: str,
    detail: JsonObject,
    name: str = "",
) -> None:
    """Write one row. ``name`` says who it was when there is no actor: a command, a provider's person."""
    row = AuditEvent(
        at=datetime.now(UTC),
        actor_id=None if actor is None else actor.token_id,
        actor_name=name if actor is None else actor.name,
        actor_role=None if actor is None else actor.role.value,
        address=address,
        action=action,
        subject_kind=kind,
        subject_id=subject,
        detail=detail,
    )
    session.add(row)
    await session.flush()


LOOKED_AT: Final = 50_000
"""Lines that a page compares with several conditions: each has an index, and no two have one together."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to list. Every part that is None matches all."""

    subject: str | None = None
    actor: str | None = None
    action: str | None = None
    start: datetime | None = None
    end: datetime | None = None

    def conditions(self, row: type[AuditEvent]) -> list[ColumnElement[bool]]:
        """Those that have an index each, in the order of the list."""
        given = ((row.subject_id, self.subject), (row.actor_name, self.actor), (row.action, self.action))
        return [column == value for column, value in given if value is not None]


async def list_events(session: ReadSession, *, wanted: Wanted, limit: int, cursor: str | None) -> Page[AuditEntry]:
    """Changes, newest first. With several conditions a page looks through LOOKED_AT of the first one's, and one with
    few or none has a cursor where older ones were not looked through yet.
    """
    after = decode_cursor(cursor, aware_time, int)
    times = [] if wanted.start is None else [AuditEvent.at >= wanted.start]
    times += [] if wanted.end is None else [AuditEvent.at < wanted.end]
    times += [] if after is None else [tuple_(AuditEvent.at, AuditEvent.id) < after]
    conditions = wanted.conditions(AuditEvent)
    statement = _newest_first(AuditEvent).where(*conditions[:1], *times)
    found = statement
    if conditions[1:]:
        looked_at = aliased(AuditEvent, statement.limit(LOOKED_AT).subquery())
        found = _newest_first(looked_at).where(*wanted.conditions(looked_at)[1:])
    rows = (await session.scalars(found.limit(limit + 1))).all()
    items, next_cursor = page_of(rows, limit, _key, AuditEntry.model_validate)
    if next_cursor is None and conditions[1:]:
        last = (await session.scalars(statement.offset(LOOKED_AT - 1).limit(1))).first()
        next_cursor = None if last is None else encode_cursor(*_key(last))
    return Page(items=items, next_cursor=next_cursor)


def _newest_first(row: type[AuditEvent]) -> Select[AuditEvent]:
    return select(row).order_by(row.at.desc(), row.id.desc())


def _key(row: AuditEvent) -> tuple[str, str]:
    return row.at.isoformat(), str(row.id)
