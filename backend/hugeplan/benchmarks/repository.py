"""Statements about runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
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


LOOKED_AT: Final = 50_000
"""Runs that a page looks through for those of some nodes: no index has both nodes' conditions and runs' times."""


async def list_keys(
    session: ReadSession,
    node_id: UUID | None,
    where: Sequence[ColumnElement[bool]],
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> tuple[list[RunKey], tuple[datetime, UUID] | None]:
    """Runs of one node or of all, of nodes that meet the conditions, newest first, among LOOKED_AT; and where the next
    look begins, where these are fewer than ``limit`` and older ones were not looked at."""
    statement = select(RunRow.ordered_at, RunRow.id, RunRow.node_id)
    statement = statement if node_id is None else statement.where(RunRow.node_id == node_id)
    statement = newest_first(statement, RunRow.ordered_at, RunRow.id, after=after, limit=LOOKED_AT)
    row = statement.subquery()
    found = select(*row.c).order_by(row.c.ordered_at.desc(), row.c.id.desc()).limit(limit)
    if where:
        found = found.join(NodeRow, NodeRow.id == row.c.node_id).where(*where)
    keys = [(key[0], key[1], key[2]) for key in await session.execute(found)]
    if len(keys) == limit:
        return keys, None
    last = (await session.execute(statement.offset(LOOKED_AT - 1).limit(1))).first()
    return keys, None if last is None else (last[0], last[1])


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
