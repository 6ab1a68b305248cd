"""Statements about runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import defer

from hugeplan.db.base import newest_first
from hugeplan.db.models import NodeRow, RunRow
from hugeplan.db.session import ReadSession, WriteSession

#: A run with its node's name and whether the node is synthetic.
NamedRun = tuple[RunRow, str, bool]


async def list_runs(
    session: ReadSession,
    where: Sequence[ColumnElement[bool]],
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> Sequence[NamedRun]:
    """Runs of the nodes that meet the conditions, newest first, without their documents."""
    statement = (
        select(RunRow, NodeRow.name, NodeRow.synthetic)
        .join(NodeRow, NodeRow.id == RunRow.node_id)
        .options(defer(RunRow.document, raiseload=True))
        .where(*where)
    )
    statement = newest_first(statement, RunRow.ordered_at, RunRow.id, after=after, limit=limit)
    return [(row[0], row[1], row[2]) for row in await session.execute(statement)]


async def kept_bytes(session: ReadSession, run_ids: Sequence[UUID]) -> int:
    """How much the documents of these runs take together, as they are kept."""
    lengths = select(func.coalesce(func.sum(func.octet_length(RunRow.document)), 0)).where(RunRow.id.in_(run_ids))
    return int((await session.execute(lengths)).scalar_one())


async def get_runs(session: ReadSession, run_ids: Sequence[UUID]) -> dict[UUID, NamedRun]:
    """Runs by id, with their documents; absent ids are left out."""
    statement = (
        select(RunRow, NodeRow.name, NodeRow.synthetic)
        .join(NodeRow, NodeRow.id == RunRow.node_id)
        .where(RunRow.id.in_(run_ids))
    )
    return {row[0].id: (row[0], row[1], row[2]) for row in await session.execute(statement)}


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
