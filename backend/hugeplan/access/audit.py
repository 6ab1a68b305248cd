"""The audit log: every change that a person or a program made through the API, in the change's own transaction.

It is written where the request's transaction ends (``hugeplan.api.dependencies``), so that no handler can forget it. A
handler says more with ``note``. The database refuses to change or delete a row.
"""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import Request
from sqlalchemy import Select, select, tuple_

from hugeplan.access.gate import client_address
from hugeplan.access.schemas import AuditEntry
from hugeplan.access.service import Actor
from hugeplan.api.pagination import Page, aware_time, decode_cursor, page_of
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


def wanted(
    *, actor: str | None, action: str | None, subject: str | None, start: datetime | None, end: datetime | None
) -> Select[AuditEvent]:
    """What to list, newest first. Every part that is None matches all."""
    statement = select(AuditEvent).order_by(AuditEvent.at.desc(), AuditEvent.id.desc())
    for column, value in (
        (AuditEvent.actor_name, actor),
        (AuditEvent.action, action),
        (AuditEvent.subject_id, subject),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if start is not None:
        statement = statement.where(AuditEvent.at >= start)
    return statement if end is None else statement.where(AuditEvent.at < end)


async def list_events(
    session: ReadSession, *, statement: Select[AuditEvent], limit: int, cursor: str | None
) -> Page[AuditEntry]:
    """Changes, newest first."""
    statement = statement.limit(limit + 1)
    after = decode_cursor(cursor, aware_time, int)
    if after is not None:
        statement = statement.where(tuple_(AuditEvent.at, AuditEvent.id) < after)
    rows = (await session.scalars(statement)).all()
    items, next_cursor = page_of(rows, limit, lambda row: (row.at.isoformat(), str(row.id)), AuditEntry.model_validate)
    return Page(items=items, next_cursor=next_cursor)
