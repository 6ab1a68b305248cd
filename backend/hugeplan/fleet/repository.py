"""Statements about nodes, reports and samples. Reports are stored by hugeplan.fleet.ingest."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import add
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import (
    Row,
    Select,
    Text,
    TextClause,
    and_,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    select,
    text,
    true,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased, load_only
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.sql import ColumnElement

from hugeplan.api.pagination import PAGE_BYTES
from hugeplan.db.models import (
    NodeRow,
    NodeStateRow,
    PlanInForceRow,
    ReportDocumentRow,
    ReportReferenceRow,
    ReportRow,
    RunRow,
    SampleDayRow,
    SampleHourRow,
    SampleRow,
    SealedDocumentsRow,
    SealedSamplesRow,
)
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.against import REFERENCE_ID, restored
from hugeplan.documents.kept import unpack
from hugeplan.documents.sealed import DamagedBlockError, unseal
from hugeplan.fleet.newest import COLUMNS, DOCUMENT, IS_DOCUMENT_OF_REPORT, IS_REPORT_OF_SAMPLE, newest_of, with_newest
from hugeplan.fleet.schemas import NodeSummary
from hugeplan.fleet.sealed_samples import (
    Numbers,
    Said,
    Sample,
    SampleKey,
    details_of,
    read_numbers,
    read_samples,
    said_by,
)
from hugeplan.fleet.selector import NodeSelector, conditions

_logger = logging.getLogger(__name__)

SORTS: Mapping[str, ColumnElement[Any] | InstrumentedAttribute[Any]] = {
    "name": NodeRow.name,
    "last_report_at": NodeRow.last_report_at,
    "mem_total_bytes": NodeRow.mem_total_bytes,
    "pool_bytes": func.coalesce(NodeRow.pool_bytes, -1),
    "pool_idle_bytes": func.coalesce(NodeRow.pool_idle_bytes, -1),
    "mem_available_bytes": func.coalesce(NodeRow.mem_available_bytes, -1),
    "findings": NodeRow.findings_wrong * 1000 + NodeRow.findings_attention,
}


async def update_node(session: WriteSession, node_id: UUID, values: Mapping[str, Any]) -> None:
    """Change a node's columns."""
    statement = update(NodeRow).where(NodeRow.id == node_id).values(**values)
    await session.execute(statement.execution_options(synchronize_session=False))


async def lock_node(session: WriteSession, node_id: UUID) -> NodeRow | None:
    """A node, locked until the transaction ends: its reports wait."""
    node: NodeRow | None = await session.scalar(select(NodeRow).where(NodeRow.id == node_id).with_for_update())
    return node


async def delete_node(session: WriteSession, node_id: UUID) -> None:
    """Delete a node with all that is stored of it. Large tables have no foreign key that would do it."""
    for table in (ReportDocumentRow, SealedDocumentsRow, SampleRow, SealedSamplesRow, SampleHourRow, SampleDayRow):
        await session.execute(delete(table).where(table.node_id == node_id))
    await session.execute(delete(NodeRow).where(NodeRow.id == node_id))


_WITH_REFERENCE: Final = f"""
SELECT d.document, f.document, d.report_id FROM report_documents d
LEFT JOIN report_references f ON f.node_id = d.node_id AND f.report_id = {REFERENCE_ID}
WHERE d.node_id = :node_id
"""  # noqa: S608 - constants
_KEPT_DOCUMENT: Final = text(_WITH_REFERENCE + "AND d.received_at = :received_at AND d.report_id = :report_id")
_NEWEST_DOCUMENT: Final = text(_WITH_REFERENCE + "ORDER BY d.received_at DESC, d.report_id DESC LIMIT 1")
"""A document as it is kept, with its reference as it is then: in one statement, so that both are of one moment."""


async def get_document(
    session: ReadSession,
    node_id: UUID,
    report_id: UUID,
    *,
    block_start_at: datetime | None = None,
    read: Callable[[int], None] = lambda _: None,
) -> bytes | None:
    """The bytes of a report as they came; None when they are no longer kept. DamagedBlockError, zlib.error.

    ``block_start_at``: of the block that has it, where that is known. ``read`` is told how many octets were read.
    """
    received_at = await session.scalar(
        select(ReportRow.received_at).where(ReportRow.node_id == node_id, ReportRow.report_id == report_id)
    )
    row = SealedDocumentsRow
    sealed = select(*_SEALED).where(row.node_id == node_id, row.report_ids.contains([report_id]))
    if received_at is not None:
        values = {"node_id": node_id, "received_at": received_at, "report_id": report_id}
        kept = (await session.execute(_KEPT_DOCUMENT, values)).first()
        if kept is not None:
            read(len(kept[0]) + len(kept[1] or b""))
            return await _beside(restored, *kept)
        sealed = sealed.where(row.start_at <= received_at, row.end_at >= received_at)
    # After the other form: what is sealed between the statements is found by the last.
    elif block_start_at is not None:
        sealed = sealed.where(row.start_at == block_start_at)
    return await _unsealed(session, (await session.execute(sealed.limit(1))).first(), report_id, read)


_UNSEALING: Final = ThreadPoolExecutor(1, "unseal")
"""Another thread than the one that answers everybody, and one alone: a full block takes 80 MiB while it is read."""


_SEALED_KEY: Final = (SealedDocumentsRow.node_id, SealedDocumentsRow.start_at, SealedDocumentsRow.first_report_id)
_SEALED: Final = (*_SEALED_KEY, SealedDocumentsRow.report_ids, SealedDocumentsRow.sizes_bytes)
_PART_BYTES: Final = 1 << 20
"""Of a block, in one statement: its answer takes five times as much memory."""


async def _unsealed(
    session: ReadSession,
    row: Row[*tuple[Any, ...]] | None,
    report_id: UUID | None,
    read: Callable[[int], None] = lambda _: None,
) -> bytes | None:
    if row is None:
        return None
    parts: list[bytes] = []
    while not parts or len(parts[-1]) == _PART_BYTES:
        part = func.substr(SealedDocumentsRow.documents, 1 + len(parts) * _PART_BYTES, _PART_BYTES)
        found = await session.scalar(select(part).where(tuple_(*_SEALED_KEY) == tuple(row[:3])))
        if found is None:  # deleted meanwhile
            return None
        parts.append(found)
    block = b"".join(parts)
    parts.clear()
    read(len(block))
    number = len(row.report_ids) - 1 if report_id is None else row.report_ids.index(report_id)
    return await _beside(unseal, block, row.sizes_bytes, number, row.report_ids)


async def _beside(work: Callable[..., bytes], *given: Any) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(_UNSEALING, work, *given)


_LISTED: Final = tuple(getattr(NodeRow, name) for name in NodeSummary.model_fields if name != "stale")
"""Rows of their own instead of whole nodes, whose other documents would be decoded for each line of a list."""


async def list_nodes(
    session: ReadSession,
    selector: NodeSelector,
    *,
    sort: str,
    descending: bool,
    after: tuple[Any, UUID] | None,
    limit: int,
) -> Sequence[Row[Any]]:
    """The columns of nodes that a list shows, in order, with ``sorted_by`` and ``found``: how many there are, of which
    the last are left out where the labels of all have more than PAGE_BYTES.
    """
    value = SORTS[sort]
    key = (value.desc(), NodeRow.id.desc()) if descending else (value.asc(), NodeRow.id.asc())
    statement: Select[*tuple[Any, ...]] = select(*_LISTED, value.label("sorted_by"))
    statement = statement.where(*conditions(selector)).order_by(*key).limit(limit)
    if after is not None:
        position = tuple_(value, NodeRow.id)
        statement = statement.where(position < after if descending else position > after)
    rows = statement.subquery().c
    label_bytes = func.octet_length(cast(rows.labels, Text))
    so_far = func.sum(label_bytes).over(order_by=_in_order(rows, descending), rows=(None, 0))
    fits = ((so_far <= PAGE_BYTES) | (so_far == label_bytes)).label("fits")
    listed = select(*rows, func.count().over().label("found"), fits).subquery().c
    page = select(*(one for one in listed if one is not listed.fits)).where(listed.fits)
    return (await session.execute(page.order_by(*_in_order(listed, descending)))).all()


def _in_order(rows: Any, descending: bool) -> tuple[ColumnElement[Any], ...]:
    return (rows.sorted_by.desc(), rows.id.desc()) if descending else (rows.sorted_by.asc(), rows.id.asc())


async def count_nodes(session: ReadSession, selector: NodeSelector) -> int:
    """How many nodes a selector selects."""
    return int(await session.scalar(select(func.count()).select_from(NodeRow).where(*conditions(selector))) or 0)


async def get_node(session: ReadSession, node_id: UUID) -> NodeRow | None:
    """A node by id."""
    node: NodeRow | None = await session.scalar(select(NodeRow).where(NodeRow.id == node_id))
    return node


async def get_node_with_state(session: ReadSession, node_id: UUID) -> tuple[NodeRow, NodeStateRow] | None:
    """A node with all that its newest report says and its runs measured."""
    measured = load_only(NodeStateRow.measured, NodeStateRow.findings, raiseload=True)
    statement = with_newest(select(NodeRow, NodeStateRow, *COLUMNS).options(measured))
    row = (await session.execute(statement.where(NodeRow.id == node_id))).one_or_none()
    if row is None:
        return None
    for name, said in newest_of(row).in_full().items():
        set_committed_value(row[1], name, said)
    return row[0], row[1]


StateVersion = tuple[str, str, datetime, datetime, str]
"""A node's name and labels, when it last reported and when that was sampled, and the transaction that wrote its state:
what tells facts apart."""


# Made once: a preview under a slider runs it at every step, and building a statement costs more than running it.
_STATE_VERSION = (
    select(
        NodeRow.name, cast(NodeRow.labels, Text), NodeRow.last_report_at, NodeRow.sampled_at,
        cast(literal_column("node_states.xmin"), Text),
    )
    .join(NodeStateRow, NodeStateRow.node_id == NodeRow.id)
    .where(NodeRow.id == bindparam("node_id"))
)  # fmt: skip


async def get_state_version(session: ReadSession, node_id: UUID) -> StateVersion | None:
    """What changes whenever the node's state does, without the state."""
    row = (await session.execute(_STATE_VERSION, {"node_id": node_id})).one_or_none()
    return None if row is None else (row[0], row[1], row[2], row[3], row[4])


async def get_newest(session: ReadSession, node_id: UUID) -> Any | None:
    """``sampled_at`` of a node, and what ``newest_of`` reads."""
    statement = with_newest(select(NodeRow.sampled_at, *COLUMNS)).where(NodeRow.id == node_id)
    return (await session.execute(statement)).one_or_none()


async def newest_document(session: ReadSession, node_id: UUID) -> bytes | None:
    """The bytes of a node's newest report as they came; None when they are no longer kept."""
    kept = (await session.execute(_NEWEST_DOCUMENT, {"node_id": node_id})).first()
    if kept is not None:
        return restored(*kept)
    sealed = await session.execute(
        select(*_SEALED)
        .where(SealedDocumentsRow.node_id == node_id)
        .order_by(SealedDocumentsRow.end_at.desc(), SealedDocumentsRow.start_at.desc())
        .limit(1)
    )
    return await _unsealed(session, sealed.first(), None)


_REFERENCE = aliased(ReportReferenceRow)
_IS_ITS = and_(_REFERENCE.node_id == DOCUMENT.node_id, _REFERENCE.report_id == literal_column(REFERENCE_ID))
_KEPT = (
    select(DOCUMENT.document, _REFERENCE.document.label("reference"))
    .select_from(ReportRow)
    .join(DOCUMENT, IS_DOCUMENT_OF_REPORT)
    .outerjoin(_REFERENCE, _IS_ITS)
    .where(IS_REPORT_OF_SAMPLE, SampleRow.memory.is_(None))
    .limit(1)
    .lateral("kept")
)
SAMPLE_COLUMNS: Final = tuple(
    cast(column, Text).label(column.name) if column.name in {"memory", "pools"} else column
    for column in SampleRow.__table__.columns
)
"""What is JSON is read as its text."""
SAMPLES: Final[Select[*tuple[Any, ...]]] = select(*SAMPLE_COLUMNS, _KEPT.c.document, _KEPT.c.reference).outerjoin(
    _KEPT, true()
)
"""Samples, with the documents that say them in full where they do not themselves."""
_LARGE: Final = cast(SampleRow.pools, Text), _KEPT.c.document, _KEPT.c.reference
_BYTES: Final = reduce(add, (func.coalesce(func.octet_length(column), 0) for column in _LARGE))
SAMPLE_BYTES: Final[Select[*tuple[Any, ...]]] = SAMPLES.with_only_columns(_BYTES, maintain_column_froms=True)
"""How much is read of each."""


def said_of(row: Row[*tuple[Any, ...]], told: Callable[[int], None] = lambda _: None) -> Said | None:
    """What the document of a row of SAMPLES says; None where it is not there, or cannot be read back.

    ``told`` hears how many octets were read.
    """
    with suppress(DamagedBlockError, zlib.error, msgspec.MsgspecError):
        return None if row.document is None else said_by(restored(row.document, row.reference, row.report_id, told))
    return None


def _listed(rows: Sequence[Row[*tuple[Any, ...]]]) -> dict[tuple[datetime, UUID], Sample]:
    found = {}
    for row in rows:
        told: list[int] = []
        details = details_of(row, said_of(row, told.append))
        key = row.taken_at, row.report_id
        found[key] = Sample(*key, details.memory, details.pools, sum(told))
    return found


async def list_samples(
    session: ReadSession,
    node_id: UUID,
    *,
    start: datetime | None,
    end: datetime | None,
    after: SampleKey | None,
    limit: int,
) -> list[Sample]:
    """Samples of a node, newest first, within [start, end). DamagedBlockError."""
    statement = SAMPLES.where(SampleRow.node_id == node_id)
    statement = statement.order_by(SampleRow.taken_at.desc(), SampleRow.report_id.desc()).limit(limit)
    blocks = select(SealedSamplesRow).where(SealedSamplesRow.node_id == node_id)
    if start is not None:
        statement = statement.where(SampleRow.taken_at >= start)
        blocks = blocks.where(SealedSamplesRow.end_at >= start)
    if end is not None:
        statement = statement.where(SampleRow.taken_at < end)
        blocks = blocks.where(SealedSamplesRow.start_at < end)
    if after is not None:
        # The plain bound lets PostgreSQL skip partitions, which it cannot do for a row comparison.
        statement = statement.where(SampleRow.taken_at <= after[0])
        statement = statement.where(tuple_(SampleRow.taken_at, SampleRow.report_id) < after)
        blocks = blocks.where(SealedSamplesRow.start_at <= after[0])
    # By their key, so that a sample that is sealed between the statements is there once.
    found = await asyncio.to_thread(_listed, (await session.execute(statement)).all())
    newest = sorted(found, reverse=True)
    while True:
        row = await session.scalar(blocks.order_by(SealedSamplesRow.end_at.desc()).limit(1))
        if row is None or (len(newest) >= limit and row.end_at < newest[limit - 1][0]):
            return [found[key] for key in newest[:limit]]
        documents = await _documents_of(session, row)
        is_wanted = partial(_is_within, start, end, after)
        # Beside the loop: some of 4,096 pools each take a tenth of a second.
        for sample in await asyncio.to_thread(read_samples, row, documents, is_wanted, limit):
            found[sample.taken_at, sample.report_id] = sample
        newest = sorted(found, reverse=True)
        key_of_block = tuple_(SealedSamplesRow.start_at, SealedSamplesRow.first_report_id)
        blocks = blocks.where(
            SealedSamplesRow.end_at <= row.end_at, key_of_block != (row.start_at, row.first_report_id)
        )


async def _documents_of(session: ReadSession, samples: SealedSamplesRow) -> Any:
    """The sealed documents of the same reports; None where the samples say it themselves, or there are none any more.

    None of them came before it was taken.
    """
    row = SealedDocumentsRow
    found = select(row.report_ids, row.sizes_bytes, row.documents).where(
        row.node_id == samples.node_id,
        row.start_at >= samples.start_at,
        row.first_report_id == samples.first_report_id,
    )
    return None if samples.details else (await session.execute(found.order_by(row.start_at).limit(1))).first()


def _is_within(start: datetime | None, end: datetime | None, after: SampleKey | None, key: SampleKey) -> bool:
    return (start is None or key[0] >= start) and (end is None or key[0] < end) and (after is None or key < after)


async def good_runs(session: ReadSession, node_id: UUID) -> Sequence[RunRow]:
    """The runs of a node that are not marked as bad, without their documents."""
    narrow = load_only(
        RunRow.id, RunRow.ordered_at, RunRow.geometry_rank, RunRow.latency_rank, RunRow.pressure_rank, raiseload=True
    )
    statement = select(RunRow).options(narrow).where(RunRow.node_id == node_id, RunRow.bad.is_(False))
    return (await session.scalars(statement)).all()


async def run_documents(session: ReadSession, node_id: UUID, run_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """The documents of some runs of a node."""
    statement = select(RunRow.id, RunRow.document).where(RunRow.node_id == node_id, RunRow.id.in_(run_ids))
    return {row[0]: unpack(row[1]) for row in await session.execute(statement)}


async def set_measured(session: WriteSession, node_id: UUID, measured: dict[str, Any]) -> None:
    """Replace what was measured on a node."""
    statement = update(NodeStateRow).where(NodeStateRow.node_id == node_id).values(measured=measured)
    await session.execute(statement.execution_options(synchronize_session=False))


async def get_plan_in_force(session: ReadSession, node_id: UUID) -> PlanInForceRow | None:
    """The plan in force of a node."""
    row: PlanInForceRow | None = await session.scalar(select(PlanInForceRow).where(PlanInForceRow.node_id == node_id))
    return row


async def report_states(session: ReadSession, node_id: UUID) -> dict[str, int]:
    """How many reports of a node are stored, by state."""
    sealed = select(func.coalesce(func.sum(SealedDocumentsRow.report_count), 0))
    sealed = sealed.where(SealedDocumentsRow.node_id == node_id)
    statement = select(ReportRow.state, func.count()).where(ReportRow.node_id == node_id).group_by(ReportRow.state)
    # One statement, so that none is counted twice or not at all while it is sealed.
    rows = await session.execute(statement.union_all(select(literal_column("'parsed'"), sealed.scalar_subquery())))
    found: Counter[str] = Counter()
    for state, number in rows:
        found[state] += number
    return {state: number for state, number in found.items() if number}


def is_node(node_id: UUID) -> ColumnElement[bool]:
    """The condition that selects one node."""
    return NodeRow.id == node_id


def is_one_of(node_ids: Collection[UUID]) -> ColumnElement[bool]:
    """The condition that selects some nodes."""
    return NodeRow.id.in_(node_ids)


def selected(selector: NodeSelector) -> list[ColumnElement[bool]]:
    """The conditions of a selector."""
    return conditions(selector)


async def stored_nodes(
    session: ReadSession,
    which: Sequence[ColumnElement[bool]],
    *,
    after: tuple[str, UUID] | None,
    limit: int,
) -> list[dict[str, Any]]:
    """What is stored of nodes, by name: the fields of ``StoredNode`` but its history."""
    columns = NodeRow.id, NodeRow.name, NodeRow.labels, NodeRow.machine_type, NodeRow.mem_total_bytes, *COLUMNS
    of_them = NodeRow.sampled_at.label("taken_at"), cast(NodeStateRow.measured, Text).label("measured")
    statement = with_newest(select(*columns, *of_them)).where(*which).order_by(NodeRow.name, NodeRow.id).limit(limit)
    if after is not None:
        statement = statement.where(tuple_(NodeRow.name, NodeRow.id) > after)
    return [dict(row) for row in (await session.execute(statement)).mappings()]


_WANTED: Final = "unnest(CAST(:ids AS uuid[]), CAST(:starts AS timestamptz[])) AS wanted (node_id, start)"
_HOURLY_HISTORIES: Final = text(
    "SELECT h.node_id, array_agg(CAST(extract(epoch FROM h.start_at) AS float8) ORDER BY h.start_at),"  # noqa: S608
    f" array_agg(h.anon_shmem_bytes_max ORDER BY h.start_at) FROM {_WANTED}"
    " JOIN sample_hours h ON h.node_id = wanted.node_id AND h.start_at >= wanted.start"
    " WHERE h.start_at >= :earliest AND h.anon_shmem_bytes_max IS NOT NULL GROUP BY h.node_id"
)
ANON_SHMEM: Final = (
    "coalesce(s.anon_shmem_bytes, CAST(s.memory->>'anon_pages_bytes' AS bigint)"
    " + CAST(s.memory->>'shmem_bytes' AS bigint))"
)
"""SQL: AnonPages + Shmem of a row ``s`` of ``samples``."""
_SAMPLE_HISTORIES: Final = text(
    "SELECT node_id, array_agg(CAST(extract(epoch FROM at) AS float8) ORDER BY at), array_agg(used ORDER BY at) FROM ("  # noqa: S608
    "SELECT s.node_id, date_bin(:every, s.taken_at, TIMESTAMPTZ '2000-01-01 00:00:00+00') AS at,"
    f" max({ANON_SHMEM}) AS used"
    f" FROM {_WANTED} JOIN samples s ON s.node_id = wanted.node_id AND s.taken_at >= wanted.start"
    " WHERE s.taken_at >= :earliest GROUP BY s.node_id, at) AS steps WHERE used IS NOT NULL GROUP BY node_id"
)

History = tuple[UUID, Sequence[float], Sequence[int]]
"""A node, seconds since the epoch, and AnonPages + Shmem in bytes at each, oldest first."""


async def hourly_histories(session: ReadSession, starts: Mapping[UUID, datetime]) -> list[History]:
    """The largest AnonPages + Shmem of each hour since each node's start; hours that do not tell it are left out."""
    return await _histories(session, _HOURLY_HISTORIES, starts, {})


async def sample_histories(session: ReadSession, starts: Mapping[UUID, datetime], *, every: timedelta) -> list[History]:
    """The same from the samples: the largest of each step of ``every``."""
    found = await _histories(session, _SAMPLE_HISTORIES, starts, {"every": every})
    largest = {node_id: dict(zip(times, sizes, strict=True)) for node_id, times, sizes in found}
    for node_id, numbers in (await sealed_numbers(session, starts)).items():
        of_node = largest.setdefault(node_id, {})
        for one in numbers:
            if one.anon_shmem_bytes is not None:
                seconds = one.taken_at_microseconds / 10**6
                step = seconds - seconds % every.total_seconds()
                of_node[step] = max(of_node.get(step, 0), one.anon_shmem_bytes)
    return [(node_id, sorted(of_node), [of_node[at] for at in sorted(of_node)]) for node_id, of_node in largest.items()]


async def sealed_numbers(session: ReadSession, starts: Mapping[UUID, datetime]) -> dict[UUID, list[Numbers]]:
    """What histories read of the sealed samples since each node's start. A damaged block is logged and left out."""
    row = SealedSamplesRow
    statement = select(row.node_id, row.start_at, row.numbers)
    statement = statement.where(row.node_id.in_(starts), row.end_at >= min(starts.values()))
    found: dict[UUID, list[Numbers]] = defaultdict(list)
    for node_id, start_at, block in await session.execute(statement):
        try:
            found[node_id] += read_numbers([block], starts[node_id])
        except DamagedBlockError as error:
            about = {"node_id": str(node_id), "start_at": start_at.isoformat(), "why": str(error)}
            _logger.warning("sealed samples cannot be read back", extra=about)
    return found


async def _histories(
    session: ReadSession, statement: TextClause, starts: Mapping[UUID, datetime], more: Mapping[str, Any]
) -> list[History]:
    if not starts:
        return []
    values = {"ids": list(starts), "starts": list(starts.values()), "earliest": min(starts.values()), **more}
    return [(row[0], row[1], row[2]) for row in await session.execute(statement, values)]
