"""Documents of reports after an hour: many of one node become one row (docs/adr/0039).

Any replica may run a round; an advisory lock lets one do it. A batch is one transaction, so that each document is
whole in one form or the other whenever the process ends, and a round that ends early is begun again by the next.
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import delete, select, text, tuple_

from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.models import ReportDocumentRow, ReportRow, SealedDocumentsRow
from hugeplan.db.session import Database, WriteSession
from hugeplan.documents.kept import unpack
from hugeplan.documents.sealed import seal

BATCH_DOCUMENTS: Final = 64
"""Of one node, in one row: an hour at one report per minute. What one reader unpacks to read one document."""
BATCH_BYTES: Final = 32 << 20
MAX_SHARE: Final = 0.2
"""Of the time, at most: reports come first."""
SEAL_SECONDS: Final = 600.0
"""Between rounds."""
EMPTIED_AFTER: Final = timedelta(hours=6)
"""How long after its day a partition that sealing has emptied gives its space back."""

_logger = logging.getLogger(__name__)


async def seal_round(database: Database, after_seconds: float, now: datetime | None = None) -> int:
    """Seal what arrived more than ``after_seconds`` ago, node by node; the number of documents sealed.

    What an earlier version could not read (``newer_schema``) stays as it is until it has been read.
    """
    before = (now or datetime.now(UTC)) - timedelta(seconds=after_seconds)
    # Whole hours: a few documents per row would each cost as much as a whole one.
    before = before.replace(minute=0, second=0, microsecond=0)
    node_id, sealed = UUID(int=0), 0
    while True:
        began = time.monotonic()
        async with database.write() as session:
            if not await _takes_its_turn(session):
                return sealed
            found = await _next_node(session, node_id, before)
            done = 0 if found is None else await _seal_batch(session, found, before)
        if found is None:
            return sealed
        sealed += done
        # A whole batch may have left more of the same node behind.
        if done < BATCH_DOCUMENTS:
            node_id = found
        await asyncio.sleep((time.monotonic() - began) * (1 / MAX_SHARE - 1))


async def give_space_back(database: Database, now: datetime) -> list[str]:
    """Truncate the partitions of past days that are empty: deleted rows hold their space until then."""
    async with database.write() as session:
        if not await _takes_its_turn(session):
            return []
        partitions = await session.scalars(
            text(
                "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                " WHERE i.inhparent = CAST('report_documents' AS regclass) AND pg_relation_size(c.oid) > 0"
            )
        )
        emptied = []
        for name in sorted(partitions):
            day = str(name).removeprefix("report_documents_")
            if not day.isdecimal() or _end_of(day) + EMPTIED_AFTER > now:
                continue
            if not await session.scalar(text(f"SELECT EXISTS (SELECT FROM {name})")):  # noqa: S608 - a partition's name
                await session.execute(text("SET LOCAL lock_timeout = '5s'"))
                await session.execute(text(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE"))
                if not await session.scalar(text(f"SELECT EXISTS (SELECT FROM {name})")):  # noqa: S608
                    await session.execute(text(f"TRUNCATE {name}"))
                    emptied.append(str(name))
        return emptied


class Sealing:
    """The rounds of one process."""

    def __init__(self, database: Database, after_seconds: float) -> None:
        self._database, self._after_seconds = database, after_seconds

    async def round(self) -> None:
        """One round; nothing where sealing is off (0 seconds)."""
        if self._after_seconds:
            sealed = await seal_round(self._database, self._after_seconds)
            emptied = await give_space_back(self._database, datetime.now(UTC))
            if sealed or emptied:
                _logger.info("documents sealed", extra={"documents": sealed, "emptied": emptied})


async def _takes_its_turn(session: WriteSession) -> bool:
    lock = {"key": int(AdvisoryLock.SEALING)}
    return bool(await session.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), lock))


async def _next_node(session: WriteSession, after: UUID, before: datetime) -> UUID | None:
    """The next node with anything to seal, one index entry per partition at a time."""
    statement = (
        select(ReportDocumentRow.node_id)
        .where(ReportDocumentRow.node_id > after, ReportDocumentRow.received_at < before)
        .order_by(ReportDocumentRow.node_id)
        .limit(1)
    )
    found: UUID | None = await session.scalar(statement)
    return found


async def _seal_batch(session: WriteSession, node_id: UUID, before: datetime) -> int:
    """Seal the oldest documents of a node; how many."""
    unread = (
        select(ReportRow.report_id)
        .where(ReportRow.node_id == node_id, ReportRow.report_id == ReportDocumentRow.report_id)
        .where(ReportRow.state != "parsed")
        .exists()
    )
    statement = (
        select(ReportDocumentRow.received_at, ReportDocumentRow.report_id, ReportDocumentRow.document)
        .where(ReportDocumentRow.node_id == node_id, ReportDocumentRow.received_at < before, ~unread)
        .order_by(ReportDocumentRow.received_at, ReportDocumentRow.report_id)
        .limit(BATCH_DOCUMENTS)
    )
    rows = (await session.execute(statement)).all()
    documents: list[bytes] = []
    taken, size = [], 0
    for row in rows:
        try:
            document = unpack(row.document)
        except zlib.error:  # it stays as it is, and is named when it is read
            continue
        size += len(document)
        if documents and size > BATCH_BYTES:
            break
        documents.append(document)
        taken.append(row)
    if not taken:
        return 0
    block = await asyncio.to_thread(seal, documents)
    session.add(
        SealedDocumentsRow(
            node_id=node_id, start_at=taken[0].received_at, first_report_id=taken[0].report_id,
            end_at=taken[-1].received_at, report_ids=[row.report_id for row in taken],
            sizes_bytes=[len(document) for document in documents], documents=block,
        )
    )  # fmt: skip
    await session.flush()
    keys = [(row.received_at, row.report_id) for row in taken]
    key = tuple_(ReportDocumentRow.received_at, ReportDocumentRow.report_id)
    await session.execute(delete(ReportDocumentRow).where(ReportDocumentRow.node_id == node_id, key.in_(keys)))
    return len(taken)


def _end_of(day: str) -> datetime:
    return datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC) + timedelta(days=1)
