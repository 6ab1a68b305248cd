"""Statements about runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.orm import defer

from hugeplan.db.models import NodeRow, RunRow
from hugeplan.db.session import ReadSession, WriteSession


async def list_runs(
    session: ReadSession, node_id: UUID, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[tuple[RunRow, str]]:
    """Runs of a node with the node's name, newest first, without their documents."""
    statement = (
        select(RunRow, NodeRow.name)
        .join(NodeRow, NodeRow.id == RunRow.node_id)
        .options(defer(RunRow.document, raiseload=True))
        .where(RunRow.node_id == node_id)
        .order_by(RunRow.ordered_at.desc(), RunRow.id.desc())
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(tuple_(RunRow.ordered_at, RunRow.id) < after)
    return [(row[0], row[1]) for row in await session.execute(statement)]


async def get_runs(session: ReadSession, run_ids: Sequence[UUID]) -> dict[UUID, tuple[RunRow, str]]:
    """Runs with their nodes' names, by id; absent ids are left out."""
    statement = select(RunRow, NodeRow.name).join(NodeRow, NodeRow.id == RunRow.node_id).where(RunRow.id.in_(run_ids))
    return {row[0].id: (row[0], row[1]) for row in await session.execute(statement)}


async def mark_run(session: WriteSession, run: RunRow, *, bad: bool, reason: str | None) -> bool:
    """Mark a run as bad, or take the mark away. False when it is not there any more."""
    statement = update(RunRow).where(RunRow.node_id == run.node_id, RunRow.id == run.id)
    statement = statement.values(bad=bad, bad_reason=reason).execution_options(synchronize_session=False)
    return (await session.execute(statement.returning(RunRow.id))).scalar_one_or_none() is not None


async def delete_run(session: WriteSession, run: RunRow) -> bool:
    """Delete a run and its wins. False when it is not there any more."""
    statement = delete(RunRow).where(RunRow.node_id == run.node_id, RunRow.id == run.id)
    statement = statement.execution_options(synchronize_session=False)
    return (await session.execute(statement.returning(RunRow.id))).scalar_one_or_none() is not None
