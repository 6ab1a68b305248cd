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
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, DateTime, Row, Select, Uuid, cast, delete, func, select, text, update

from hugeplan.db.alone import alone
from hugeplan.db.locks import LOCK_TIMEOUT, AdvisoryLock
from hugeplan.db.models import (
    NodeRow,
    NodeStateRow,
    ReportDocumentRow,
    SampleRow,
    SealedDocumentsRow,
)
from hugeplan.db.retention import FORGET_REFERENCES
from hugeplan.db.session import Database, WriteSession
from hugeplan.documents.against import REFERENCE_ID, document_of, read
from hugeplan.documents.sealed import DamagedBlockError, seal_sized, weight_bytes
from hugeplan.fleet.read_back import SAMPLE_BYTES, SAMPLE_COLUMNS, SAMPLES, get_document, said_of
from hugeplan.fleet.sealed_samples import Details, Said, details_of, said_by, sealed_rows, taken_at
from hugeplan.settings import Settings

if TYPE_CHECKING:
    from hugeplan.documents.numbers import Changes

BATCH_ROWS: Final = 360
"""Of one node, in one row: six hours at one report per minute."""
BATCH_BYTES: Final = 6 << 20
"""Of documents by their weight, or of pools of samples, in one row, and of what is read for it. Sealing takes up to ten
times as much memory, whatever a node has stored.
"""
SPAN: Final = timedelta(hours=6)
"""A node is sealed when its oldest row is older by this, so that rows are few: each costs as much as 20 documents."""
MAX_SHARE: Final = 0.2
"""Of the time, at most: reports come first."""
SEAL_SECONDS: Final = 600.0
"""Between rounds."""
EMPTIED_AFTER: Final = timedelta(hours=6)
"""How long after its day a partition that sealing has emptied gives its space back."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SEALING: Final = ThreadPoolExecutor(1, "seal")
"""Always the same thread: what each has freed is kept for itself."""
_T = TypeVar("_T")
_NOT_READ: Final = DamagedBlockError, zlib.error, msgspec.MsgspecError
_logger = logging.getLogger(__name__)

_SealBatch = Callable[[WriteSession, UUID, datetime], Awaitable[tuple[int, int]]]
_Key = tuple[Any, Any, Any]
"""The columns of a table's key: node, time and report."""
_DOCUMENT_KEY: Final[_Key] = (ReportDocumentRow.node_id, ReportDocumentRow.received_at, ReportDocumentRow.report_id)
_SAMPLE_KEY: Final[_Key] = (SampleRow.node_id, SampleRow.taken_at, SampleRow.report_id)


async def seal_round(
    database: Database, after_seconds: float, now: datetime | None = None, *, samples_outlive: bool = False
) -> tuple[int, int]:
    """Seal what is more than ``after_seconds`` old, node by node; the numbers of documents and of samples sealed.

    What an earlier version could not read (``newer_schema``) stays as it is until it has been read.
    ``samples_outlive``: samples are kept for longer than documents, and say everything themselves.
    """
    before = (now or datetime.now(UTC)) - timedelta(seconds=after_seconds)
    seal_documents = partial(_documents, samples_outlive=samples_outlive)
    documents, with_them = await _seal_table(database, before, _DOCUMENT_KEY, seal_documents)
    # Those whose documents came late and are not due yet, or are gone.
    _, alone = await _seal_table(database, before, _SAMPLE_KEY, _samples)
    return documents, with_them + alone


async def _seal_table(database: Database, before: datetime, key: _Key, seal_batch: _SealBatch) -> tuple[int, int]:
    """How many documents and samples were sealed."""
    nodes, times, _ = key
    node_id, documents, samples, is_new = UUID(int=0), 0, 0, True
    while True:
        began, done = time.monotonic(), (0, 0)
        if is_new:
            # One index entry per partition at a time.
            due = select(nodes).where(nodes > node_id, times < before - SPAN).order_by(nodes).limit(1)
            async with database.read() as reading:
                found = await reading.scalar(due)
            if found is None:
                return documents, samples
            node_id = found
        # What cannot be sealed stays as it is, and the nodes behind it do not wait for it.
        with alone(f"sealing of node {node_id}") as tried:
            async with database.write() as session:
                if not await _takes_its_turn(session):
                    return documents, samples
                done = await seal_batch(session, node_id, before)
        done = (0, 0) if tried.why else done
        documents, samples = documents + done[0], samples + done[1]
        # A whole batch may have left more of the same node behind.
        is_new = not any(done)
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
            await session.execute(text(LOCK_TIMEOUT))
            given = {"table": parent, "day": _start_of(suffix).date()}
            if await session.scalar(text("SELECT give_space_back(:table, :day)"), given):
                emptied.append(str(name))
        return emptied


async def seal_and_give_back(database: Database, settings: Settings) -> None:
    """One round; nothing where sealing is off (0 seconds)."""
    if settings.seal_after_seconds:
        outlive = settings.sample_retention_days > settings.document_retention_days
        documents, samples = await seal_round(database, settings.seal_after_seconds, samples_outlive=outlive)
        emptied = await give_space_back(database, datetime.now(UTC))
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


async def _documents(
    session: WriteSession, node_id: UUID, before: datetime, *, samples_outlive: bool
) -> tuple[int, int]:
    """Seal the oldest documents of a node with their samples and the rows that say that these reports are stored; how
    many documents and samples.
    """
    values: dict[str, Any] = {"node": node_id, "before": before, "rows": BATCH_ROWS, "bytes": BATCH_BYTES}
    values |= {"at": _EPOCH, "id": node_id}
    taken: list[Row[Any]] = []
    while not taken:
        rows = (await session.execute(_OLDEST_DOCUMENTS, values)).all()
        if not rows:
            # Not with a batch: it looks at all of the node's documents, and the node is locked there.
            await session.execute(_FORGET_REFERENCES, {"node": node_id})
            return 0, 0
        since = rows[0].received_at - SPAN
        samples = await _samples_of(session, node_id, rows, since)
        # In another thread, as all that takes long: this one answers everybody.
        taken, documents, stated = await _aside(_readable, rows, samples)
        # Behind those of which none can be read.
        values |= {"at": rows[-1].received_at, "id": rows[-1].report_id}
    ids = [one.report_id for one in taken]
    block, sizes = await _aside(seal_sized, documents, ids)
    kept = [min(at, one.received_at) for at, one in zip(stated, taken, strict=True)]
    if len(taken) < len(rows) or min(kept) < since:
        samples = await _samples_of(session, node_id, taken, min(kept))
    is_said = not samples_outlive and {one.report_id for one in samples if one.memory is None} == set(ids)
    found = dict(zip(ids, documents, strict=True))
    details = partial(map, lambda one: details_of(one, _said(found.get(one.report_id), one.report_id)), samples)
    sealed = await _aside(sealed_rows, node_id, samples, details, BATCH_BYTES, ids if is_said else ())
    if not await _take_out(session, _DOCUMENT_KEY, node_id, [(one.received_at, one.report_id) for one in taken]):
        return 0, 0
    if not await _take_out(session, _SAMPLE_KEY, node_id, [(one.taken_at, one.report_id) for one in samples]):
        return 0, 0
    session.add_all(sealed)
    forgotten = await session.execute(_FORGET_REPORTS, {"node": node_id, "ids": ids})
    session.add(
        SealedDocumentsRow(
            node_id=node_id, start_at=taken[0].received_at, first_report_id=ids[0], end_at=taken[-1].received_at,
            report_ids=ids, sizes_bytes=sizes, documents=block,
            taken_from=min(stated), taken_to=max(stated),
            report_count=len(forgotten.all()),
        )
    )  # fmt: skip
    later = func.greatest(NodeRow.sealed_until, max(stated))
    await session.execute(update(NodeRow).where(NodeRow.id == node_id).values(sealed_until=later))
    await _keep_newest(session, node_id, zip(kept, (one.document for one in taken), strict=True))
    return len(taken), len(samples)


async def _keep_newest(
    session: WriteSession, node_id: UUID, documents: Iterable[tuple[datetime, bytes | None]]
) -> None:
    """Keep the document that the node is shown by, where it has fallen silent: the last of its newest sample's time.

    ``documents``: as they are kept, with the times of their samples. The node is locked.
    """
    sampled_at = await session.scalar(select(NodeRow.sampled_at).where(NodeRow.id == node_id))
    newest = [document for at, document in documents if at == sampled_at and document is not None]
    if newest:
        state = update(NodeStateRow).where(NodeStateRow.node_id == node_id)
        await session.execute(state.values(newest_document=newest[-1]))


# Of each run of documents with one reference the first has it beside itself, and counts for both.
_OLDEST_DOCUMENTS: Final = text(f"""
SELECT received_at, report_id, document, reference_id, reference FROM (
    SELECT *, row_number() OVER in_order AS number,
        sum(octet_length(document) + coalesce(octet_length(reference), 0)) OVER in_order AS bytes
    FROM (
        SELECT d.*, CASE WHEN lag(d.reference_id) OVER (ORDER BY d.received_at, d.report_id)
            IS DISTINCT FROM d.reference_id THEN f.document END AS reference
        FROM (
            SELECT d.received_at, d.report_id, d.document, {REFERENCE_ID} AS reference_id
            FROM report_documents d LEFT JOIN reports r ON r.node_id = d.node_id AND r.report_id = d.report_id
            WHERE d.node_id = :node AND d.received_at < :before AND r.state IS DISTINCT FROM 'newer_schema'
                AND d.received_at >= :at AND (d.received_at, d.report_id) > (:at, :id)
            ORDER BY d.received_at, d.report_id LIMIT :rows
        ) d LEFT JOIN report_references f ON f.node_id = :node AND f.report_id = d.reference_id
    ) d WINDOW in_order AS (ORDER BY received_at, report_id)
) d WHERE bytes <= :bytes OR number = 1 ORDER BY received_at, report_id
""")  # noqa: S608 - constants


async def _samples_of(
    session: WriteSession, node_id: UUID, documents: Sequence[Row[Any]], since: datetime
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The samples of documents in the order of their arrival, as far as they were taken since then, but for those that
    say everything themselves: they are large, and are sealed alone.
    """
    of_them: Select[*tuple[Any, ...]] = select(*SAMPLE_COLUMNS).where(
        SampleRow.node_id == node_id,
        SampleRow.memory.is_(None),
        SampleRow.report_id == func.any(cast([one.report_id for one in documents], ARRAY(Uuid))),
    )
    of_them = of_them.where(SampleRow.taken_at.between(since, documents[-1].received_at))
    return (await session.execute(of_them.order_by(SampleRow.taken_at, SampleRow.report_id))).all()


async def _aside(function: Callable[..., _T], *given: Any) -> _T:
    return await asyncio.get_running_loop().run_in_executor(_SEALING, function, *given)


def _readable(
    rows: Sequence[Row[Any]], samples: Sequence[Row[*tuple[Any, ...]]]
) -> tuple[list[Row[Any]], list[bytes | Changes], list[datetime]]:
    """The rows that are sealed together, their documents, and when these say that their samples were taken."""
    sampled = {one.report_id: one.taken_at for one in samples}
    references = {one.reference_id: one.reference for one in rows if one.reference is not None}
    bases: dict[int, int] = {}
    taken: list[Row[Any]] = []
    documents: list[bytes | Changes] = []
    stated: list[datetime] = []
    size = 0
    for row in rows:
        try:
            document = read(row.document, references.get(row.reference_id))
            at = sampled.get(row.report_id, row.received_at)
            # A sample says what its document does, but for a time after the arrival. To read all costs much more.
            if isinstance(document, bytes) or at >= row.received_at:
                at = _in_utc(taken_at(document_of(document, row.report_id)))
        except (*_NOT_READ, ValueError):  # it stays as it is, and is named when it is read
            continue
        if isinstance(document, bytes):
            size += weight_bytes(document, len(row.document))
        else:
            size += document.weight_bytes
            bases[id(document.base)] = document.base.weight_bytes
        if documents and size + sum(bases.values()) > BATCH_BYTES:
            break
        taken.append(row)
        documents.append(document)
        stated.append(at)
    return taken, documents, stated


def _said(document: bytes | Changes | None, report_id: UUID) -> Said | None:
    with suppress(msgspec.MsgspecError):
        return None if document is None else said_by(document_of(document, report_id))
    return None


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


async def _samples(session: WriteSession, node_id: UUID, before: datetime) -> tuple[int, int]:
    """Seal the oldest samples of a node; no documents, and how many samples."""
    sizes = await session.scalars(_oldest(SAMPLE_BYTES, _SAMPLE_KEY, node_id, before))
    few = sum(size <= BATCH_BYTES for size in accumulate(sizes)) or 1
    rows = (await session.execute(_oldest(SAMPLES, _SAMPLE_KEY, node_id, before).limit(few))).all()
    details: list[Details] = []
    size = 0
    for one in rows:
        document = None
        if one.memory is None and one.document is None:  # a replica of the release before has sealed its document
            with suppress(*_NOT_READ):
                document = await get_document(session, node_id, one.report_id)
        found = await _aside(_in_full, one, document)
        size += weight_bytes(bytes(found.pools))
        if details and size > BATCH_BYTES:
            break
        details.append(found)
    rows = rows[: len(details)]
    sealed = await _aside(sealed_rows, node_id, rows, lambda: details, BATCH_BYTES)
    if not await _take_out(session, _SAMPLE_KEY, node_id, [(one.taken_at, one.report_id) for one in rows]):
        return 0, 0
    session.add_all(sealed)
    await _keep_newest(session, node_id, ((one.taken_at, one.document) for one in rows))
    return 0, len(rows)


def _in_full(row: Row[*tuple[Any, ...]], document: bytes | None) -> Details:
    """What a row of SAMPLES says, or the document that is given with it."""
    return details_of(row, said_of(row) if document is None else _said(document, row.report_id))


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
    if not keys:
        return True
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
