"""Statements about plans of many nodes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Text,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.orm import defer

from hugeplan.db.base import newest_first
from hugeplan.db.models import FleetPlanGroupRow, FleetPlanNodeRow, FleetPlanRow
from hugeplan.db.session import ReadSession, WriteSession

ENDED: Final = ("done", "failed", "cancelled")
_NO_SCENARIO: Final = defer(FleetPlanRow.scenario, raiseload=True)
_GROUPS_AT_ONCE, _NODES_AT_ONCE = 4, 1000
"""Of a result, that one statement writes: a plan may have a megabyte and more."""
_ROW_BYTES: Final = 200
"""Of a row, beside its large columns."""
_ADD_GROUPS: Final = insert(FleetPlanGroupRow.__table__).values(plan=cast(bindparam("plan", type_=Text), JSON))  # type: ignore[arg-type]
"""With a plan as its text: as objects, those of wide nodes were more than a job's memory."""


async def add_job(session: WriteSession, row: FleetPlanRow) -> None:
    """Store a new job."""
    session.add(row)
    await session.flush()


async def get_job(session: ReadSession, job_id: UUID, *, with_scenario: bool = False) -> FleetPlanRow | None:
    """A job by id. Its scenario has up to a megabyte, which few need."""
    statement = select(FleetPlanRow).where(FleetPlanRow.id == job_id)
    row: FleetPlanRow | None = await session.scalar(statement if with_scenario else statement.options(_NO_SCENARIO))
    return row


async def count_unfinished(session: ReadSession, author_id: UUID) -> tuple[int, int]:
    """How many jobs have not ended: of a credential, and in all."""
    row = FleetPlanRow
    statement = select(func.count().filter(row.author_id == author_id), func.count())
    found = (await session.execute(statement.where(row.status.not_in(ENDED)))).one()
    return found[0], found[1]


async def measure_job(session: WriteSession, job_id: UUID) -> None:
    """Keep how large a job is, with its groups and nodes, as PostgreSQL stores them."""
    job, group, node = FleetPlanRow, FleetPlanGroupRow, FleetPlanNodeRow
    size = func.pg_column_size
    groups = select(func.coalesce(func.sum(_ROW_BYTES + size(group.plan) + size(group.pools)), 0))
    nodes = select(func.coalesce(func.sum(_ROW_BYTES + size(node.exceptions)), 0))
    of_job = [
        func.coalesce(size(job.scenario), 0),
        groups.where(group.fleet_plan_id == job_id).scalar_subquery(),
        nodes.where(node.fleet_plan_id == job_id).scalar_subquery(),
    ]
    statement = update(job).where(job.id == job_id).values(stored_bytes=sum(of_job, start=literal(_ROW_BYTES)))
    await session.execute(statement.execution_options(synchronize_session=False))


async def make_room(session: WriteSession, author_id: UUID | None, *, most: int, most_bytes: int) -> bool:
    """Delete the oldest job that has ended past these bounds, of a credential or of all. False where there is none."""
    row = FleetPlanRow
    whose: ColumnElement[bool] = true() if author_id is None else row.author_id == author_id
    newest_first = (row.finished_at.desc().nulls_last(), row.id.desc())
    ranked = (
        select(
            row.id,
            func.row_number().over(order_by=newest_first).label("rank"),
            func.sum(row.stored_bytes).over(order_by=newest_first).label("bytes"),
        )
        .where(row.status.in_(ENDED), whose)
        .subquery()
    )
    too_many = (ranked.c.rank > most) | ((ranked.c.bytes > most_bytes) & (ranked.c.rank > 1))
    oldest = select(ranked.c.id).where(too_many).order_by(ranked.c.rank.desc()).limit(1)
    gone = delete(row).where(row.id.in_(oldest)).returning(row.id).execution_options(synchronize_session=False)
    return await session.scalar(gone) is not None


async def list_jobs(session: ReadSession, *, after: tuple[datetime, UUID] | None, limit: int) -> Sequence[FleetPlanRow]:
    """Jobs, newest first, without their scenarios."""
    key, statement = (FleetPlanRow.created_at, FleetPlanRow.id), select(FleetPlanRow).options(_NO_SCENARIO)
    return (await session.scalars(newest_first(statement, *key, after=after, limit=limit))).all()


async def request_cancel(session: WriteSession, job_id: UUID, now: datetime) -> None:
    """Ask a job to end; one that has not begun ends at once."""
    statement = update(FleetPlanRow).where(FleetPlanRow.id == job_id)
    running = statement.where(FleetPlanRow.status == "running").values(cancel_requested=True)
    queued = statement.where(FleetPlanRow.status == "queued").values(
        cancel_requested=True, status="cancelled", finished_at=now
    )
    for change in (running, queued):
        await session.execute(change.execution_options(synchronize_session=False))


async def begin_job(session: WriteSession, job_id: UUID, now: datetime) -> FleetPlanRow | None:
    """Take a job. None when it is not there to be taken: cancelled before its turn."""
    statement = (
        update(FleetPlanRow)
        .where(FleetPlanRow.id == job_id, FleetPlanRow.status == "queued")
        .values(status="running", started_at=now, heartbeat_at=now)
        .returning(FleetPlanRow)
    )
    row: FleetPlanRow | None = await session.scalar(statement)
    return row


async def say_progress(
    session: WriteSession, job_id: UUID, now: datetime, *, nodes_done: int, plans_computed: int
) -> bool:
    """Store how far a job is. False when it is to end: somebody asked for that, or it was given up."""
    statement = (
        update(FleetPlanRow)
        .where(FleetPlanRow.id == job_id, FleetPlanRow.status == "running")
        .values(nodes_done=nodes_done, plans_computed=plans_computed, heartbeat_at=now)
        .returning(FleetPlanRow.cancel_requested)
    )
    return await session.scalar(statement) is False


async def wait_on(session: WriteSession, job_ids: Sequence[UUID], now: datetime) -> None:
    """Store that somebody still waits to run these jobs."""
    statement = update(FleetPlanRow).where(FleetPlanRow.id.in_(job_ids), FleetPlanRow.status == "queued")
    await session.execute(statement.values(heartbeat_at=now).execution_options(synchronize_session=False))


async def add_results(
    session: WriteSession,
    job_id: UUID,
    groups: Sequence[Mapping[str, Any]],
    nodes: Sequence[Mapping[str, Any]],
) -> None:
    """Store the groups of a job, the plan of each as compressed JSON, and the lines of its nodes in their order."""
    for start in range(0, len(groups), _GROUPS_AT_ONCE):
        part = groups[start : start + _GROUPS_AT_ONCE]
        plans = [{**group, "plan": zlib.decompress(group["plan"]).decode()} for group in part]
        await session.execute(_ADD_GROUPS, [{"fleet_plan_id": job_id, **plan} for plan in plans])
    for start in range(0, len(nodes), _NODES_AT_ONCE):
        numbered = enumerate(nodes[start : start + _NODES_AT_ONCE], start)
        rows = [{"fleet_plan_id": job_id, "position": position, **node} for position, node in numbered]
        await session.execute(insert(FleetPlanNodeRow), rows)


async def end_job(
    session: WriteSession,
    job_id: UUID,
    now: datetime,
    *,
    status: str,
    error: str | None = None,
    summary: Mapping[str, Any] | None = None,
) -> None:
    """End a job unless it has ended. With a ``summary`` all its nodes are done."""
    values: dict[str, Any] = {"status": status, "finished_at": now, "error": error}
    if summary is not None:
        done = {"nodes_done": summary["nodes"], "plans_computed": summary["plans_computed"]}
        values |= {"summary": summary, "nodes_total": summary["nodes"], **done}
    statement = update(FleetPlanRow).where(FleetPlanRow.id == job_id, FleetPlanRow.status.in_(["queued", "running"]))
    await session.execute(statement.values(**values).execution_options(synchronize_session=False))


async def end_abandoned(session: WriteSession, before: datetime, now: datetime) -> None:
    """Mark jobs as failed of which nobody has been heard since ``before``: those who run or wait for them say so."""
    statement = (
        update(FleetPlanRow)
        .where(FleetPlanRow.status.in_(["queued", "running"]), FleetPlanRow.heartbeat_at < before)
        .values(status="failed", finished_at=now, error="The process that planned it has ended. Start it again.")
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def list_groups(
    session: ReadSession, job_id: UUID, *, after: tuple[int, int] | None, limit: int
) -> Sequence[FleetPlanGroupRow]:
    """Groups of a job, the largest first, without their plans."""
    row = FleetPlanGroupRow
    statement = select(row).options(defer(row.plan, raiseload=True)).where(row.fleet_plan_id == job_id)
    statement = statement.order_by(row.nodes.desc(), row.number).limit(limit)
    if after is not None:
        nodes, number = after
        statement = statement.where((row.nodes < nodes) | ((row.nodes == nodes) & (row.number > number)))
    return (await session.scalars(statement)).all()


async def get_group(
    session: ReadSession, job_id: UUID, number: int, most_bytes: int
) -> tuple[FleetPlanGroupRow, str | None] | None:
    """One group of a job without its plan, and the plan as JSON; None for one of more bytes."""
    row, plan = FleetPlanGroupRow, cast(FleetPlanGroupRow.plan, Text)
    read = case((func.octet_length(plan) <= most_bytes, plan))
    statement = select(row, read).options(defer(row.plan, raiseload=True))
    found = (await session.execute(statement.where(row.fleet_plan_id == job_id, row.number == number))).one_or_none()
    return None if found is None else (found[0], found[1])


async def list_nodes(
    session: ReadSession,
    job_id: UUID,
    *,
    severity: int | None,
    group_number: int | None,
    search: str | None,
    after: int | None,
    limit: int,
) -> Sequence[FleetPlanNodeRow]:
    """Nodes of a job, exceptions first."""
    row = FleetPlanNodeRow
    statement = select(row).where(row.fleet_plan_id == job_id).order_by(row.position).limit(limit)
    if severity is not None:
        statement = statement.where(row.severity == severity)
    if group_number is not None:
        statement = statement.where(row.group_number == group_number)
    if search:
        statement = statement.where(row.name.icontains(search, autoescape=True))
    if after is not None:
        statement = statement.where(row.position > after)
    return (await session.scalars(statement)).all()
