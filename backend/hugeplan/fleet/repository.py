"""Statements about nodes, reports and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import defer

from hugeplan.db.models import NodeRow, ReportDocumentRow, ReportRow, SampleRow
from hugeplan.db.session import ReadSession, WriteSession


async def lock_node(session: WriteSession, values: Mapping[str, Any]) -> NodeRow:
    """The node with this machine id, created from ``values`` if new, and locked until the transaction ends.

    The lock puts concurrent reports of one machine in a row; reports of different machines do not wait.
    """
    created = insert(NodeRow).values(**values).on_conflict_do_nothing(index_elements=[NodeRow.machine_id])
    await session.execute(created)
    statement = select(NodeRow).where(NodeRow.machine_id == values["machine_id"]).with_for_update()
    return (await session.execute(statement)).scalar_one()


async def update_node(session: WriteSession, node_id: UUID, values: Mapping[str, Any]) -> None:
    """Change a node's columns."""
    statement = update(NodeRow).where(NodeRow.id == node_id).values(**values)
    await session.execute(statement.execution_options(synchronize_session=False))


async def get_report(session: ReadSession, node_id: UUID, report_id: UUID) -> ReportRow | None:
    """A stored report of a node."""
    statement = select(ReportRow).where(ReportRow.node_id == node_id, ReportRow.report_id == report_id)
    report: ReportRow | None = await session.scalar(statement)
    return report


async def add_report(session: WriteSession, report: ReportRow, document: ReportDocumentRow, sample: SampleRow) -> None:
    """Store a report, its bytes and its sample."""
    session.add_all([report, document, sample])
    await session.flush()


async def get_document(session: ReadSession, node_id: UUID, report_id: UUID) -> bytes | None:
    """The bytes of a report as they came."""
    statement = select(ReportDocumentRow.document).where(
        ReportDocumentRow.node_id == node_id, ReportDocumentRow.report_id == report_id
    )
    document: bytes | None = await session.scalar(statement)
    return document


async def list_nodes(
    session: ReadSession, *, search: str | None, after: tuple[str, UUID] | None, limit: int
) -> Sequence[NodeRow]:
    """Nodes by name and id, without their processes."""
    statement = select(NodeRow).options(defer(NodeRow.processes, raiseload=True))
    statement = statement.order_by(NodeRow.name, NodeRow.id).limit(limit)
    if search:
        statement = statement.where(func.lower(NodeRow.name).contains(search.lower(), autoescape=True))
    if after is not None:
        statement = statement.where(tuple_(NodeRow.name, NodeRow.id) > after)
    return (await session.scalars(statement)).all()


async def get_node(session: ReadSession, node_id: UUID) -> NodeRow | None:
    """A node by id."""
    node: NodeRow | None = await session.scalar(select(NodeRow).where(NodeRow.id == node_id))
    return node


async def list_samples(
    session: ReadSession,
    node_id: UUID,
    *,
    start: datetime | None,
    end: datetime | None,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> Sequence[SampleRow]:
    """Samples of a node, newest first, within [start, end)."""
    statement = select(SampleRow).where(SampleRow.node_id == node_id)
    statement = statement.order_by(SampleRow.taken_at.desc(), SampleRow.report_id.desc()).limit(limit)
    if start is not None:
        statement = statement.where(SampleRow.taken_at >= start)
    if end is not None:
        statement = statement.where(SampleRow.taken_at < end)
    if after is not None:
        # The plain bound lets PostgreSQL skip partitions, which it cannot do for a row comparison.
        statement = statement.where(SampleRow.taken_at <= after[0])
        statement = statement.where(tuple_(SampleRow.taken_at, SampleRow.report_id) < after)
    return (await session.scalars(statement)).all()
