"""Documents and samples after an hour: many of one node become one row (docs/adr/0039 and 0042).

Any replica may run a round; an advisory lock lets one do it. A batch is one transaction, so that each document and
sample is whole in one form or the other whenever the process ends, and a round that ends early is begun again by the
next.
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, DateTime, Row, Select, Text, Uuid, and_, cast, delete, func, select, text, update

from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.maintenance import FORGET_REFERENCES
from hugeplan.db.models import (
    NodeRow,
    ReportDocumentRow,
    ReportReferenceRow,
    ReportRow,
    SampleRow,
    SealedDocumentsRow,
    SealedSamplesRow,
)
from hugeplan.db.session import Database, WriteSession
from hugeplan.documents.against import reference_of, restored
from hugeplan.documents.sealed import DamagedBlockError, seal
from hugeplan.fleet.sealed_samples import Details, Numbers, microseconds, sealed_block

BATCH_ROWS: Final = 360
"""Of one node, in one row: six hours at one report per minute."""
BATCH_BYTES: Final = 12 << 20
"""Of documents, or of pools of samples, in one row. Sealing takes about eight times as much memory."""
SPAN: Final = timedelta(hours=6)
"""A node is sealed when its oldest row is older by this, so that rows are few: each costs as much as 20 documents."""
MAX_SHARE: Final = 0.2
"""Of the time, at most: reports come first."""
SEAL_SECONDS: Final = 600.0
"""Between rounds."""
EMPTIED_AFTER: Final = timedelta(hours=6)
"""How long after its day a partition that sealing has emptied gives its space back."""

_logger = logging.getLogger(__name__)

_SealBatch = Callable[[WriteSession, UUID, datetime], Awaitable[int]]
_Key = tuple[Any, Any, Any]
"""The columns of a table's key: node, time and report."""
_DOCUMENT_KEY: Final[_Key] = (ReportDocumentRow.node_id, ReportDocumentRow.received_at, ReportDocumentRow.report_id)
_SAMPLE_KEY: Final[_Key] = (SampleRow.node_id, SampleRow.taken_at, SampleRow.report_id)


class _SampleTime(msgspec.Struct):
    taken_at: datetime


class _Stated(msgspec.Struct):
    """Of a report, when it says that its sample was taken."""

    sample: _SampleTime


_stated = msgspec.json.Decoder(_Stated)


async def seal_round(database: Database, after_seconds: float, now: datetime | None = None) -> tuple[int, int]:
    """Seal what is more than ``after_seconds`` old, node by node; the numbers of documents and of samples sealed.

    What an earlier version could not read (``newer_schema``) stays as it is until it has been read.
    """
    before = (now or datetime.now(UTC)) - timedelta(seconds=after_seconds)
    documents = await _seal_table(database, before, _DOCUMENT_KEY, _documents)
    return documents, await _seal_table(database, before, _SAMPLE_KEY, _samples)


async def _seal_table(database: Database, before: datetime, key: _Key, seal_batch: _SealBatch) -> int:
    nodes, times, _ = key
    node_id, sealed, is_new = UUID(int=0), 0, True
    while True:
        began = time.monotonic()
        async with database.write() as session:
            if not await _takes_its_turn(session):
                return sealed
            if is_new:
                # One index entry per partition at a time.
                due = select(nodes).where(nodes > node_id, times < before - SPAN).order_by(nodes).limit(1)
                found = await session.scalar(due)
                if found is None:
                    return sealed
                node_id = found
            done = await seal_batch(session, node_id, before)
        sealed += done
        # A whole batch may have left more of the same node behind.
        is_new = done == 0
        await asyncio.sleep((time.monotonic() - began) * (1 / MAX_SHARE - 1))


async def give_space_back(database: Database, now: datetime) -> list[str]:
    """Truncate the partitions of past days that are empty: deleted rows hold their space until then."""
    async with database.write() as session:
        if not await _takes_its_turn(session):
            return []
        partitions = await session.execute(
            text(
                "SELECT CAST(CAST(i.inhparent AS regclass) AS text), c.relname"
                " FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                " WHERE i.inhparent IN (CAST('report_documents' AS regclass), CAST('samples' AS regclass))"
                " AND pg_relation_size(c.oid) > 0 ORDER BY c.relname"
            )
        )
        emptied = []
        for parent, name in partitions.all():
            suffix = str(name).rpartition("_")[2]
            if not suffix.isdecimal() or _start_of(suffix) + timedelta(days=1) + EMPTIED_AFTER > now:
                continue
            await session.execute(text("SET LOCAL lock_timeout = '5s'"))
            given = {"table": parent, "day": _start_of(suffix).date()}
            if await session.scalar(text("SELECT give_space_back(:table, :day)"), given):
                emptied.append(str(name))
        return emptied


class Sealing:
    """The rounds of one process."""

    def __init__(self, database: Database, after_seconds: float) -> None:
        self._database, self._after_seconds = database, after_seconds

    async def round(self) -> None:
        """One round; nothing where sealing is off (0 seconds)."""
        if self._after_seconds:
            documents, samples = await seal_round(self._database, self._after_seconds)
            emptied = await give_space_back(self._database, datetime.now(UTC))
            if documents or samples or emptied:
                _logger.info("sealed", extra={"documents": documents, "samples": samples, "emptied": emptied})


async def _takes_its_turn(session: WriteSession) -> bool:
    lock = {"key": int(AdvisoryLock.SEALING)}
    return bool(await session.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), lock))


def _oldest(
    statement: Select[*tuple[Any, ...]], key: _Key, node_id: UUID, before: datetime
) -> Select[*tuple[Any, ...]]:
    nodes, times, report_ids = key
    return statement.where(nodes == node_id, times < before).order_by(times, report_ids).limit(BATCH_ROWS)


async def _documents(session: WriteSession, node_id: UUID, before: datetime) -> int:
    """Seal the oldest documents of a node, with the rows that say that these reports are stored; how many."""
    row, known = ReportDocumentRow, ReportRow
    statement = (
        select(row.received_at, row.report_id, row.document)
        .outerjoin(known, and_(known.node_id == row.node_id, known.report_id == row.report_id))
        .where(known.state.is_distinct_from("newer_schema"))
    )
    rows = (await session.execute(_oldest(statement, _DOCUMENT_KEY, node_id, before))).all()
    references = await _references(session, node_id)
    # Both in another thread: this one answers everybody.
    taken, documents, stated = await asyncio.to_thread(_readable, rows, references)
    if not taken:
        return 0
    ids = [one.report_id for one in taken]
    block = await asyncio.to_thread(seal, documents, ids)
    if not await _take_out(session, _DOCUMENT_KEY, node_id, [(one.received_at, one.report_id) for one in taken]):
        return 0
    values = {"node": node_id, "ids": ids}
    session.add(
        SealedDocumentsRow(
            node_id=node_id, start_at=taken[0].received_at, first_report_id=ids[0], end_at=taken[-1].received_at,
            report_ids=ids, sizes_bytes=[len(document) for document in documents], documents=block,
            taken_from=min(stated), taken_to=max(stated),
            report_count=len((await session.execute(_FORGET_REPORTS, values)).all()),
        )
    )  # fmt: skip
    later = func.greatest(NodeRow.sealed_until, max(stated))
    await session.execute(update(NodeRow).where(NodeRow.id == node_id).values(sealed_until=later))
    if len(references) > 1:
        await session.execute(_FORGET_REFERENCES, {"node": node_id})
    return len(taken)


async def _references(session: WriteSession, node_id: UUID) -> dict[UUID, bytes]:
    """The packed references of a node."""
    row = ReportReferenceRow
    found = await session.execute(select(row.report_id, row.document).where(row.node_id == node_id))
    return {one.report_id: one.document for one in found}


def _readable(
    rows: Sequence[Row[Any]], references: Mapping[UUID, bytes]
) -> tuple[list[Row[Any]], list[bytes], list[datetime]]:
    """The rows that are sealed together, their documents, and the times that they say."""
    taken: list[Row[Any]] = []
    documents: list[bytes] = []
    stated: list[datetime] = []
    size = 0
    for row in rows:
        try:
            reference = reference_of(row.document)
            document = restored(row.document, None if reference is None else references.get(reference))
            at = _stated.decode(document).sample.taken_at
        except (zlib.error, DamagedBlockError, msgspec.MsgspecError):  # it stays as it is, and is named when it is read
            continue
        size += len(document)
        if documents and size > BATCH_BYTES:
            break
        taken.append(row)
        documents.append(document)
        stated.append(at if at.tzinfo else at.replace(tzinfo=UTC))
    return taken, documents, stated


async def _samples(session: WriteSession, node_id: UUID, before: datetime) -> int:
    """Seal the oldest samples of a node; how many."""
    row = SampleRow
    pools = cast(row.pools, Text)
    sizes = await session.scalars(_oldest(select(func.octet_length(pools)), _SAMPLE_KEY, node_id, before))
    few = sum(size <= BATCH_BYTES for size in accumulate(sizes)) or 1
    statement = select(
        row.taken_at, row.report_id, row.mem_total_bytes, row.mem_available_bytes, row.page_tables_bytes,
        row.anon_huge_pages_bytes, row.hugetlb_bytes, row.pool_idle_bytes, row.memory, pools.label("pools"),
    )  # fmt: skip
    rows = (await session.execute(_oldest(statement, _SAMPLE_KEY, node_id, before).limit(few))).all()
    if not rows:
        return 0
    numbers, details = await asyncio.to_thread(sealed_block, [_sample(one) for one in rows])
    if not await _take_out(session, _SAMPLE_KEY, node_id, [(one.taken_at, one.report_id) for one in rows]):
        return 0
    session.add(
        SealedSamplesRow(
            node_id=node_id, start_at=rows[0].taken_at, first_report_id=rows[0].report_id, end_at=rows[-1].taken_at,
            report_ids=[one.report_id for one in rows], numbers=numbers, details=details,
        )
    )  # fmt: skip
    return len(rows)


def _sample(row: Row[Any]) -> tuple[Numbers, Details]:
    anon, shmem = row.memory.get("anon_pages_bytes"), row.memory.get("shmem_bytes")
    numbers = Numbers(
        taken_at_microseconds=microseconds(row.taken_at),
        mem_total_bytes=row.mem_total_bytes,
        mem_available_bytes=row.mem_available_bytes,
        page_tables_bytes=row.page_tables_bytes,
        anon_huge_pages_bytes=row.anon_huge_pages_bytes,
        hugetlb_bytes=row.hugetlb_bytes,
        pool_idle_bytes=row.pool_idle_bytes,
        anon_shmem_bytes=None if anon is None or shmem is None else anon + shmem,
    )
    return numbers, Details(msgspec.Raw(msgspec.json.encode(row.memory)), msgspec.Raw(row.pools))


_FORGET_REPORTS: Final = text(
    "DELETE FROM reports WHERE node_id = :node AND report_id = ANY(CAST(:ids AS uuid[]))"
    " AND state = 'parsed' AND run_id IS NULL RETURNING report_id"
)
"""What a report measured is found by its row in ``reports``, so that one stays."""


_FORGET_REFERENCES: Final = text(f"{FORGET_REFERENCES} AND r.node_id = :node)")


async def _take_out(session: WriteSession, key: _Key, node_id: UUID, keys: Sequence[tuple[datetime, UUID]]) -> bool:
    """Delete the rows that are being sealed, with the node locked as by its reports. False, and nothing is changed,
    where they or the node have gone meanwhile.
    """
    nodes, times, report_ids = key
    at, ids = [one for one, _ in keys], [one for _, one in keys]
    gone = (await session.execute(select(NodeRow.id).where(NodeRow.id == node_id).with_for_update())).first() is None
    if not gone:
        arrays = cast(at, ARRAY(DateTime(timezone=True))), cast(ids, ARRAY(Uuid))
        wanted = func.unnest(*arrays).table_valued("at", "report_id").render_derived()
        statement = (
            delete(nodes.class_)
            .where(nodes == node_id, times == wanted.c.at, report_ids == wanted.c.report_id)
            # So that PostgreSQL looks into few partitions.
            .where(times.between(at[0], at[-1]))
        )
        deleted = await session.execute(statement.execution_options(synchronize_session=False))
        gone = deleted.rowcount != len(ids)  # type: ignore[attr-defined]
    if gone:
        await session.rollback()
    return not gone


def _start_of(day: str) -> datetime:
    return datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC)
