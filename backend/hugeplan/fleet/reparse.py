"""Running today's parsers over stored runs and unread reports: after an upgrade, in turns, while reports come in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import Row, delete, insert, select, text, tuple_
from sqlalchemy.exc import OperationalError

from hugeplan.benchmarks.records import wins_records
from hugeplan.db.alone import alone
from hugeplan.db.connection import Connection
from hugeplan.db.models import NodeRow, ReportDocumentRow, ReportRow, RunRow, RunWinsRow, SealedSamplesRow
from hugeplan.db.session import Database, WriteSession
from hugeplan.documents.decoding import decode
from hugeplan.documents.kept import unpack
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.errors import InvalidInputError
from hugeplan.fleet import read_back, repository, service
from hugeplan.fleet.ingest import incoming
from hugeplan.fleet.ingest.batch import store_kept

KEYS: Final = 1_000
"""Of a node's unread reports, before other nodes have their turn: it may have sent one per second for a month. Of a
node's runs at a time."""
_ATTEMPTS: Final = 5
_DEADLOCK: Final = "40P01"
BLOCKS: Final = 100
"""Of a node's sealed samples at a time: one takes some milliseconds, and no transaction is open meanwhile."""
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Place = tuple[datetime, UUID]
_T = TypeVar("_T")
_BEGIN: Final[_Place] = _LONG_AGO, UUID(int=0)

# Rows of before the column was there hold null. A sample may have been dropped since: nothing becomes smaller.
_HISTORY: Final = """
UPDATE {table} t SET anon_shmem_bytes_max = s.bytes
FROM (
    SELECT date_trunc('{width}', taken_at, 'UTC') AS start_at, max(bytes) AS bytes
    FROM (
        SELECT taken_at, {anon_shmem} FROM samples s WHERE node_id = :node_id
        UNION ALL
        SELECT * FROM unnest(CAST(:times AS timestamptz[]), CAST(:bytes AS bigint[]))
    ) AS both_forms (taken_at, bytes) GROUP BY 1
) s
WHERE t.node_id = :node_id AND t.start_at = s.start_at AND s.bytes > coalesce(t.anon_shmem_bytes_max, 0)
"""


@dataclass(slots=True)
class Reparsed:
    """What was done. ``unreadable`` are runs and reports that today's parser refuses; they stay as they are.

    ``reports`` were kept unread, because they are of a schema that only a later version reads, and are read now.
    """

    nodes: int = 0
    runs: int = 0
    reports: int = 0
    unreadable: int = 0


async def reparse(database: Database) -> Reparsed:
    """Make wins, hardware facts and geometry anew from every stored run, and read what was kept unread.

    The planner's history (hours and days) is filled from the samples that are left. A lock is held for one step of one
    node, as its reports wait. It may be ended at any time and begun again: what was done stays done, and doing it twice
    changes nothing. OperationalError where a lock or a time ended it.
    """
    done = Reparsed()
    async with database.read() as session:
        left = dict.fromkeys((await session.scalars(select(NodeRow.id).order_by(NodeRow.id))).all(), _BEGIN)
    while left:
        for node_id, after in list(left.items()):
            following = None
            with alone(f"node {node_id}", OperationalError) as tried:  # timeouts are no node's
                following = await _unread_reports(database, node_id, after, done)
                if following is None:
                    await _node(database, node_id, done)
            done.unreadable += tried.why is not None
            left[node_id] = following or _BEGIN
            if following is None:
                del left[node_id]
    return done


async def _write(database: Database, step: Callable[..., Awaitable[_T]], *given: Any) -> _T:
    """A step in a transaction of its own, once more after a deadlock: whom it met is done then.

    RuntimeError after several, which ends no other node's work.
    """
    for _ in range(_ATTEMPTS):
        try:
            async with database.write() as session:
                return await step(session, *given)
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _DEADLOCK:
                raise
    raise RuntimeError(f"{_ATTEMPTS} deadlocks")


async def _node(database: Database, node_id: UUID, done: Reparsed) -> None:
    await _runs(database, node_id, done)
    largest: dict[datetime, int] = {}

    def take(blocks: Sequence[Row[datetime, UUID, bytes]]) -> None:
        for start_at, _, block in blocks:
            for one in read_back.numbers_of(node_id, start_at, block, _LONG_AGO):
                if one.anon_shmem_bytes is not None:
                    hour = one.taken_at.replace(minute=0, second=0, microsecond=0)
                    largest[hour] = max(largest.get(hour, 0), one.anon_shmem_bytes)

    row, after = SealedSamplesRow, _BEGIN
    key = row.start_at, row.first_report_id
    while True:
        of_page = select(*key, row.numbers).where(row.node_id == node_id, tuple_(*key) > after)
        async with database.read() as reading:
            blocks = (await reading.execute(of_page.order_by(*key).limit(BLOCKS))).all()
        await asyncio.to_thread(take, blocks)
        if len(blocks) < BLOCKS:
            break
        after = blocks[-1].start_at, blocks[-1].first_report_id
    values = {"node_id": node_id, "times": list(largest), "bytes": list(largest.values())}
    if await _write(database, _history, node_id, values):
        await _write(database, service.measure_again, node_id)
        done.nodes += 1


async def _history(session: WriteSession, node_id: UUID, values: dict[str, Any]) -> bool:
    """Fill a node's hours and days; False where it was deleted meanwhile."""
    if await repository.lock_node(session, node_id) is None:  # before its hours, as reports do
        return False
    for table, width in (("sample_hours", "hour"), ("sample_days", "day")):
        history = _HISTORY.format(table=table, width=width, anon_shmem=repository.ANON_SHMEM)
        await session.execute(text(history), values)
    return True


async def _runs(database: Database, node_id: UUID, done: Reparsed) -> None:
    after = UUID(int=0)
    while True:
        of_page = select(RunRow.id).where(RunRow.node_id == node_id, RunRow.id > after).order_by(RunRow.id).limit(KEYS)
        async with database.read() as reading:
            ids = (await reading.scalars(of_page)).all()
        for run_id in ids:  # each with a transaction of its own: who deletes one waits for no other
            is_read = await _write(database, _run, node_id, run_id)
            done.runs += is_read is True
            done.unreadable += is_read is False
        if len(ids) < KEYS:
            break
        after = ids[-1]


async def _run(session: WriteSession, node_id: UUID, run_id: UUID) -> bool | None:
    """Read one of them again. False where today's parser refuses it, None where it was deleted meanwhile."""
    of_it = select(RunRow.document).where(RunRow.node_id == node_id, RunRow.id == run_id)
    kept = (await session.execute(of_it.with_for_update(read=True, key_share=True))).scalar_one_or_none()
    if kept is None:
        return None
    try:
        document = decode(TlbbenchDocument, unpack(kept))
    except ValueError:
        return False
    await session.execute(delete(RunWinsRow).where(RunWinsRow.node_id == node_id, RunWinsRow.run_id == run_id))
    wins = wins_records(document, node_id=node_id, run_id=run_id)
    if wins:
        await session.execute(insert(RunWinsRow), [msgspec.structs.asdict(found) for found in wins])
    return True


async def _unread_reports(database: Database, node_id: UUID, after: _Place, done: Reparsed) -> _Place | None:
    """Store some reports that an earlier version kept unread, oldest first, as if they arrived at their time.

    Where to go on, or None.
    """
    row = ReportDocumentRow
    unread = (
        select(row.received_at, row.report_id, NodeRow.machine_id)
        .join(ReportRow, (ReportRow.node_id == node_id) & (ReportRow.report_id == row.report_id))
        .join(NodeRow, NodeRow.id == node_id)
        .where(row.node_id == node_id, row.received_at == ReportRow.received_at)
        .where(ReportRow.state == "newer_schema", ReportRow.schema_version <= incoming.SCHEMA_VERSION)
        .where(tuple_(row.received_at, row.report_id) > after)
        .order_by(row.received_at, row.report_id)
        .limit(KEYS)
    )
    async with database.read() as reading:
        found = (await reading.execute(unread)).all()
    for received_at, report_id, machine_id in found:
        is_read = await _write(database, _unread_report, node_id, received_at, report_id, machine_id)
        done.reports += is_read is True
        done.unreadable += is_read is False
    return None if len(found) < KEYS else (found[-1].received_at, found[-1].report_id)


async def _unread_report(
    session: WriteSession, node_id: UUID, received_at: datetime, report_id: UUID, machine_id: str
) -> bool | None:
    """Store one of them. False where today's parser refuses it, None where it was deleted meanwhile."""
    await repository.lock_node(session, node_id)  # the batch would not wait for it
    row = ReportDocumentRow
    of_it = select(row.document).where(
        row.node_id == node_id, row.received_at == received_at, row.report_id == report_id
    )
    if (packed := (await session.execute(of_it)).scalar_one_or_none()) is None:
        return None
    raw = unpack(packed)
    try:
        read = incoming.read_report(raw, msgspec.json.decode(raw), token_id=UUID(int=0), now=received_at)
    except InvalidInputError:
        return False
    for table in (ReportRow, ReportDocumentRow):
        await session.execute(delete(table).where(table.node_id == node_id, table.report_id == report_id))
    connection = (await (await session.connection()).get_raw_connection()).driver_connection
    assert isinstance(connection, Connection)
    await store_kept(connection, replace(read, machine_id=machine_id))
    return True
