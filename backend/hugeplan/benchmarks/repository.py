"""Statements about runs and curves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, tuple_
from sqlalchemy.orm import defer

from hugeplan.db.models import CurveRow, NodeRow, RunRow
from hugeplan.db.session import ReadSession, WriteSession


async def add_run(session: WriteSession, run: RunRow, curves: Sequence[CurveRow]) -> None:
    """Store a run and its curves."""
    session.add(run)
    await session.flush()
    session.add_all(curves)
    await session.flush()


async def list_runs(
    session: ReadSession, node_id: UUID, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[tuple[RunRow, str]]:
    """Runs of a node with the node's name, newest first, without their documents."""
    statement = (
        select(RunRow, NodeRow.name)
        .join(NodeRow, NodeRow.id == RunRow.node_id)
        .options(defer(RunRow.document, raiseload=True))
        .where(RunRow.node_id == node_id)
        .order_by(RunRow.started_at.desc(), RunRow.id.desc())
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(tuple_(RunRow.started_at, RunRow.id) < after)
    return [(row[0], row[1]) for row in await session.execute(statement)]


async def get_runs(session: ReadSession, run_ids: Sequence[UUID]) -> dict[UUID, tuple[RunRow, str]]:
    """Runs with their nodes' names, by id; absent ids are left out."""
    statement = select(RunRow, NodeRow.name).join(NodeRow, NodeRow.id == RunRow.node_id).where(RunRow.id.in_(run_ids))
    return {row[0].id: (row[0], row[1]) for row in await session.execute(statement)}


async def get_curves(session: ReadSession, run_ids: Sequence[UUID]) -> Sequence[CurveRow]:
    """The curves of runs, in document order within each run."""
    statement = select(CurveRow).where(CurveRow.run_id.in_(run_ids)).order_by(CurveRow.run_id, CurveRow.ordinal)
    return (await session.scalars(statement)).all()


async def newest_run_with(session: ReadSession, node_id: UUID, section: str) -> RunRow | None:
    """The newest run of a node whose section is complete, else the newest that has the section at all."""
    is_complete = RunRow.sections.contains([{"name": section, "status": "ok"}])
    statement = (
        select(RunRow)
        .where(RunRow.node_id == node_id, RunRow.sections.contains([{"name": section}]))
        .order_by(is_complete.desc(), RunRow.started_at.desc(), RunRow.id.desc())
        .limit(1)
    )
    run: RunRow | None = await session.scalar(statement)
    return run
