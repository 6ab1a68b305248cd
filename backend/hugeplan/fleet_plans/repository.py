"""Statements about plans of many nodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, tuple_, update

from hugeplan.db.models import FleetPlanGroupRow, FleetPlanNodeRow, FleetPlanRow
from hugeplan.db.session import ReadSession, WriteSession


async def add_job(session: WriteSession, row: FleetPlanRow) -> None:
    """Store a new job."""
    session.add(row)
    await session.flush()


async def get_job(session: ReadSession, job_id: UUID) -> FleetPlanRow | None:
    """A job by id."""
    row: FleetPlanRow | None = await session.scalar(select(FleetPlanRow).where(FleetPlanRow.id == job_id))
    return row


async def list_jobs(session: ReadSession, *, after: tuple[datetime, UUID] | None, limit: int) -> Sequence[FleetPlanRow]:
    """Jobs, newest first."""
    statement = select(FleetPlanRow).order_by(FleetPlanRow.created_at.desc(), FleetPlanRow.id.desc()).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(FleetPlanRow.created_at, FleetPlanRow.id) < after)
    return (await session.scalars(statement)).all()


async def request_cancel(session: WriteSession, job_id: UUID, now: datetime) -> None:
    """Ask a job to end; one that has not begun ends at once."""
    statement = update(FleetPlanRow).where(FleetPlanRow.id == job_id)
    running = statement.where(FleetPlanRow.status == "running").values(cancel_requested=True)
    queued = statement.where(FleetPlanRow.status == "queued").values(
        cancel_requested=True, status="cancelled", finished_at=now
    )
    for change in (running, queued):
        await session.execute(change.execution_options(synchronize_session=False))


async def end_abandoned(session: WriteSession, before: datetime, now: datetime) -> None:
    """Mark jobs whose process has not been heard of since ``before`` as failed."""
    statement = (
        update(FleetPlanRow)
        .where(FleetPlanRow.status.in_(["queued", "running"]), FleetPlanRow.heartbeat_at < before)
        .values(status="failed", finished_at=now, error="The process that planned it has ended. Start it again.")
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def fail_job(session: WriteSession, job_id: UUID, error: str, now: datetime) -> None:
    """Mark a job as failed unless it has ended."""
    statement = (
        update(FleetPlanRow)
        .where(FleetPlanRow.id == job_id, FleetPlanRow.status.in_(["queued", "running"]))
        .values(status="failed", finished_at=now, error=error)
    )
    await session.execute(statement.execution_options(synchronize_session=False))


async def list_groups(
    session: ReadSession, job_id: UUID, *, after: tuple[int, int] | None, limit: int
) -> Sequence[FleetPlanGroupRow]:
    """Groups of a job, the largest first."""
    row = FleetPlanGroupRow
    statement = select(row).where(row.fleet_plan_id == job_id).order_by(row.nodes.desc(), row.number).limit(limit)
    if after is not None:
        nodes, number = after
        statement = statement.where((row.nodes < nodes) | ((row.nodes == nodes) & (row.number > number)))
    return (await session.scalars(statement)).all()


async def get_group(session: ReadSession, job_id: UUID, number: int) -> FleetPlanGroupRow | None:
    """One group of a job."""
    row = FleetPlanGroupRow
    found: FleetPlanGroupRow | None = await session.scalar(
        select(row).where(row.fleet_plan_id == job_id, row.number == number)
    )
    return found


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
