"""Documents and samples read back, from their rows and from the blocks that they are sealed into.

Reports are stored by hugeplan.fleet.ingest, and sealed by hugeplan.fleet.sealing.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import Row, Select, Text, and_, cast, func, literal_column, select, text, true, tuple_
from sqlalchemy.orm import aliased

from hugeplan.db.models import ReportReferenceRow, ReportRow, SampleRow, SealedDocumentsRow
from hugeplan.db.session import ReadSession
from hugeplan.documents.against import REFERENCE_ID, restored
from hugeplan.documents.sealed import DamagedBlockError, cost_of, unseal
from hugeplan.fleet.newest import DOCUMENT, IS_DOCUMENT_OF_REPORT, IS_REPORT_OF_SAMPLE
from hugeplan.fleet.sealed_samples import (
    Numbers,
    Said,
    read_numbers,
    said_by,
)

T = TypeVar("T")
_logger = logging.getLogger(__name__)

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
            return await beside(restored, *kept)
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
    block = None if row is None else await block_of(session, row)
    if row is None or block is None:
        return None
    read(len(block))
    number = len(row.report_ids) - 1 if report_id is None else row.report_ids.index(report_id)
    return await beside(unseal, block, row.sizes_bytes, number, row.report_ids)


async def block_of(session: ReadSession, row: Row[*tuple[Any, ...]]) -> bytes | None:
    """The documents of a row of ``sealed_documents`` that begins with its key; None where it was deleted meanwhile."""
    parts: list[bytes] = []
    while not parts or len(parts[-1]) == _PART_BYTES:
        part = func.substr(SealedDocumentsRow.documents, 1 + len(parts) * _PART_BYTES, _PART_BYTES)
        found = await session.scalar(select(part).where(tuple_(*_SEALED_KEY) == tuple(row[:3])))
        if found is None:
            return None
        parts.append(found)
    return b"".join(parts)


async def beside(work: Callable[..., T], *given: Any) -> T:
    """What work gives that reads a block, in the one thread that does."""
    return await asyncio.get_running_loop().run_in_executor(_UNSEALING, work, *given)


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


# A row of sealed samples spans a day at most.
_NEWEST_NUMBERS: Final = text("""
SELECT wanted.node_id, newest.start_at, newest.numbers
FROM unnest(CAST(:ids AS uuid[]), CAST(:starts AS timestamptz[])) AS wanted (node_id, start)
CROSS JOIN LATERAL (
    SELECT s.start_at, s.numbers FROM sealed_samples s
    WHERE s.node_id = wanted.node_id AND s.end_at >= wanted.start AND s.start_at >= :earliest
    ORDER BY s.end_at DESC, s.start_at DESC, s.first_report_id DESC LIMIT :most
) newest
""")


async def sealed_numbers(
    session: ReadSession, starts: Mapping[UUID, datetime], take: Callable[[UUID, list[Numbers]], None], most: int
) -> None:
    """Give ``take`` what histories read of the sealed samples since each node's start, block by block: the newest
    of each node that cost ``most``. It is called in another thread. A damaged block is logged and left out.
    """
    values = {"ids": list(starts), "starts": list(starts.values()), "most": most}
    values["earliest"] = min(starts.values()) - timedelta(days=1)
    rows = (await session.execute(_NEWEST_NUMBERS, values)).all()

    def read() -> None:
        spent: Counter[UUID] = Counter()
        for node_id, start_at, block in rows:
            if spent[node_id] < most:
                spent[node_id] += cost_of(block)
                take(node_id, numbers_of(node_id, start_at, block, starts[node_id]))

    await asyncio.to_thread(read)


def numbers_of(node_id: UUID, start_at: datetime, block: bytes, since: datetime) -> list[Numbers]:
    """What histories read of a block; nothing of a damaged one, which is logged."""
    try:
        return read_numbers([block], since)
    except DamagedBlockError as error:
        about = {"node_id": str(node_id), "start_at": start_at.isoformat(), "why": str(error)}
        _logger.warning("sealed samples cannot be read back", extra=about)
        return []
