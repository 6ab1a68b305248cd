"""Statements about runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, tuple_, update
from sqlalchemy.orm import defer

from hugeplan.db.base import newest_first
from hugeplan.db.models import NodeRow, RunRow
from hugeplan.db.session import ReadSession, WriteSession

#: A run with its node's name and whether the node is synthetic.
NamedRun = tuple[RunRow, str, bool]
#: What a list is ordered by, and the node.
RunKey = tuple[datetime, UUID, UUID]


async def list_keys(
    session: ReadSession, where: Sequence[ColumnElement[bool]], *, after: tuple[datetime, UUID] | None, limit: int
) -> list[RunKey]:
    """Runs of the nodes that meet the conditions, newest first."""
    statement = select(RunRow.ordered_at, RunRow.id, RunRow.node_id).join(NodeRow, NodeRow.id == RunRow.node_id)
    statement = newest_first(statement.where(*where), RunRow.ordered_at, RunRow.id, after=after, limit=limit)
    return [(row[0], row[1], row[2]) for row in await session.execute(statement)]


async def list_runs(session: ReadSession, keys: Sequence[RunKey]) -> Sequence[NamedRun]:
    """Some runs, newest first, without their documents."""
    statement = (
        select(RunRow, NodeRow.name, NodeRow.synthetic)
        .join(NodeRow, NodeRow.id == RunRow.node_id)
        .options(defer(RunRow.document, raiseload=True))
        .where(tuple_(RunRow.ordered_at, RunRow.id, RunRow.node_id).in_(keys), RunRow.id.in_([key[1] for key in keys]))
        .order_by(RunRow.ordered_at.desc(), RunRow.id.desc())
    )
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
