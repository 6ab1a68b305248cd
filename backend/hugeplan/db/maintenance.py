"""Partitions and retention.

The owner's functions make and drop partitions (docs/adr/0047): the service's role owns no table.

Any replica may run a round; an advisory lock lets one do it and the others skip. A round is idempotent.
Rows outside the days that have a partition go to the table's default partition and are moved when their
day gets one, so that a report is never refused because maintenance has not run.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text

from hugeplan.db import retention
from hugeplan.db.connection import allow
from hugeplan.db.locks import AdvisoryLock, lock_table
from hugeplan.db.session import Database, ReadSession, WriteSession
from hugeplan.settings import Settings

DAYS_AHEAD = 3
DELETED_AT_A_TIME = 5000
GONE_SECONDS: Final = 60.0
LOCKED_AT_A_TIME = 25
"""Nodes: their reports wait meanwhile."""
MOVED_AT_MOST = 100_000
"""Rows that a new partition takes over: a second, for which all wait who use the table. With more it waits until they
are sealed or past their retention (docs/adr/0057).
"""
_NEWEST_IS_IN: Final = frozenset({"samples", "report_documents", "reports"})
"""Nodes are shown by rows of these until KEEP_NEWEST has been done."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A table partitioned by day or month of ``column``, kept for ``retention_days``."""

    table: str
    column: str
    retention_days: int
    monthly: bool = False

    def start(self, day: date) -> date:
        """The first day of the partition that holds a day."""
        return day.replace(day=1) if self.monthly else day

    def end(self, start: date) -> date:
        """The first day after the partition that begins at ``start``."""
        return (start + timedelta(days=32)).replace(day=1) if self.monthly else start + timedelta(days=1)

    def wanted(self, today: date) -> list[date]:
        """The starts of the partitions that should be there: from yesterday's to those of the next days."""
        days = [today + timedelta(days=offset) for offset in range(-1, DAYS_AHEAD + 1)]
        return sorted({self.start(day) for day in days})


def partitioned_tables(settings: Settings) -> tuple[Partitioned, ...]:
    """The partitioned tables with their retention."""
    return (
        Partitioned("samples", "taken_at", settings.sample_retention_days),
        Partitioned("report_documents", "received_at", settings.document_retention_days),
        Partitioned("sealed_documents", "start_at", settings.document_retention_days),
        Partitioned("sealed_samples", "start_at", settings.sample_retention_days),
        Partitioned("sample_hours", "start_at", settings.rollup_retention_days, monthly=True),
        Partitioned("sample_days", "start_at", settings.day_rollup_retention_days, monthly=True),
    )


_EVERY: Final = (
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
    " WHERE i.inhparent = CAST(:table AS regclass)"
)
_WITH_ROWS: Final = f"{_EVERY} AND pg_relation_size(c.oid) > 0"


async def _partition_days(session: ReadSession, table: str, which: str = _EVERY) -> set[date]:
    """The starts of partitions; the default one is not among them."""
    rows = await session.scalars(text(which), {"table": table})
    names = [str(name).removeprefix(f"{table}_") for name in rows]
    return {datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC).date() for name in names if name.isdecimal()}


async def _lock(session: WriteSession, target: Partitioned) -> None:
    """Hold the table from its root: writers lock root before partition too, so neither waits for the other in a ring.

    That is only true while a transaction changes the partitions of one table, so each step has its own.
    """
    await lock_table(session, target.table)


async def create_partition(session: WriteSession, target: Partitioned, day: date) -> None:
    """Make the partition that begins on a day, taking over its rows from the default partition."""
    await _lock(session, target)
    await session.execute(
        text("SELECT make_partition(:table, :day, :end_day)"),
        {"table": target.table, "day": day, "end_day": target.end(day)},
    )


async def _create_missing(database: Database, target: Partitioned, today: date) -> None:
    for start in target.wanted(today):
        async with _turn(database) as session:
            if start in await _partition_days(session, target.table):
                continue
            if await _is_crowded(session, target, start):
                about = {"table": target.table, "day": start.isoformat(), "rows": f"more than {MOVED_AT_MOST:,}"}
                _logger.warning("a partition waits: too many rows to move while all wait for the table", extra=about)
            else:
                await create_partition(session, target, start)


async def _is_crowded(session: ReadSession, target: Partitioned, day: date) -> bool:
    """Whether more rows of a partition than may be moved are in the default one."""
    rows = f"SELECT FROM {target.table}_default WHERE {target.column} >= :start AND {target.column} < :end LIMIT :most"
    values = {"start": _midnight(day), "end": _midnight(target.end(day)), "most": MOVED_AT_MOST + 1}
    found = await session.execute(text(f"SELECT count(*) FROM ({rows}) r"), values)  # noqa: S608 - constants
    return int(found.scalar_one()) > MOVED_AT_MOST


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _expired(target: Partitioned, days: Iterable[date], today: date) -> list[date]:
    """The partitions that are past their retention."""
    oldest = today - timedelta(days=target.retention_days)
    return sorted(day for day in days if target.end(day) <= oldest)


async def _drop_old(database: Database, target: Partitioned, today: date) -> None:
    is_left = True
    while is_left:
        async with _turn(database) as session:
            expired = _expired(target, await _partition_days(session, target.table), today)
            for day in expired[:1]:
                await _lock(session, target)
                await session.execute(text("SELECT drop_partition(:table, :day)"), {"table": target.table, "day": day})
        is_left = len(expired) > 1
    oldest = _midnight(today - timedelta(days=target.retention_days))
    await _in_batches(
        database, retention.batch(f"{target.table}_default", f"{target.column} < :before"), {"before": oldest}
    )


async def maintain(
    database: Database, settings: Settings, now: datetime, failed: list[str] | None = None
) -> str | None:
    """One round: make partitions, drop what is past its retention. Each step is its own transaction.

    None, or why nothing was deleted (``hugeplan.db.retention``); the clock is the caller's to judge. ``failed`` is told
    each table of which a step failed: the others go on.
    """
    failed = [] if failed is None else failed
    with suppress(_ElsewhereError):
        await _make_partitions(database, settings, now, failed)
        refusal = await _too_much(database, settings, now)
        if refusal is not None:
            return refusal
        await _delete(database, settings, now, failed)
    return None


async def _make_partitions(database: Database, settings: Settings, now: datetime, failed: list[str]) -> None:
    for target in partitioned_tables(settings):
        with _apart(target.table, failed):
            await _create_missing(database, target, now.astimezone(UTC).date())


async def _delete(database: Database, settings: Settings, now: datetime, failed: list[str]) -> None:
    today = now.astimezone(UTC).date()
    days = min(settings.document_retention_days, settings.sample_retention_days)
    with _apart("node_states", failed):
        await _keep_newest(database, _midnight(today - timedelta(days=days)))
    kept = _NEWEST_IS_IN if "node_states" in failed else frozenset()
    for target in partitioned_tables(settings):
        if target.table not in kept:
            with _apart(target.table, failed):
                await _drop_old(database, target, today)
    for table, statement, values in retention.old_rows(settings, now):
        if table not in kept:
            with _apart(table, failed):
                await _in_batches(database, statement, values)


async def _keep_newest(database: Database, before: datetime) -> None:
    after: UUID | None = UUID(int=0)
    while after is not None:
        values = {"before": before, "after": after, "limit": LOCKED_AT_A_TIME}
        async with _turn(database) as session:
            await session.execute(text("SET LOCAL lock_timeout = '2s'"))
            after = await session.scalar(text(retention.KEEP_NEWEST), values)


class _ElsewhereError(Exception):
    """Another replica has the round."""


@contextmanager
def _apart(table: str, failed: list[str]) -> Iterator[None]:
    """End what the block does for this one table where it fails, whatever the reason; the next round tries again."""
    try:
        yield
    except _ElsewhereError:
        raise
    except Exception as error:
        failed.append(table)
        about = {"table": table, "error": f"{type(error).__name__}: {error}"[:500]}
        _logger.warning("maintenance of a table failed; the others go on", extra=about)


@asynccontextmanager
async def _turn(database: Database) -> AsyncIterator[WriteSession]:
    """A transaction of a round. _ElsewhereError."""
    async with database.write() as session:
        lock = {"key": int(AdvisoryLock.MAINTENANCE)}
        if not await session.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), lock):
            raise _ElsewhereError
        await allow(session, 600)
        yield session


async def _in_batches(
    database: Database, statement: str, values: dict[str, Any], many: int = DELETED_AT_A_TIME
) -> None:
    """Change at most so many rows in a transaction of their own, so that nobody waits long for its locks."""
    changed = many
    while changed == many:
        async with _turn(database) as session:
            found = await session.execute(text(statement), values | {"limit": many})
            changed = int(found.rowcount)  # type: ignore[attr-defined]


async def _too_much(database: Database, settings: Settings, now: datetime) -> str | None:
    """Why this round would delete too much."""
    share, today = settings.retention_max_share, now.astimezone(UTC).date()
    async with database.read() as session:
        for target in partitioned_tables(settings):
            kept = await _partition_days(session, target.table, _WITH_ROWS)
            found = retention.too_many_days(target.table, kept, _expired(target, kept, today), share)
            if found is not None:
                return found
        before = now - timedelta(days=settings.document_retention_days)
        return await retention.too_many_rows(session, "reports", "received_at", before, share)


async def remove_gone(database: Database) -> None:
    """Remove what was left of scenarios when they were deleted, a few rows at a time."""
    with suppress(_ElsewhereError):
        async with database.read() as session:
            gone = (await session.scalars(text("SELECT id FROM scenarios WHERE is_gone"))).all()
        for scenario_id in gone:
            for statement in retention.GONE_SCENARIO:
                await _in_batches(database, statement, {"id": scenario_id}, retention.GONE_AT_ONCE)


async def maintain_if_sure(
    database: Database, settings: Settings, now: datetime, failed: list[str] | None = None
) -> str | None:
    """A round whose clock agrees with PostgreSQL and with recent reports; else why nothing was deleted."""
    failed = [] if failed is None else failed
    async with database.read() as session:
        doubt = await retention.clock_doubt(session, now)
    if doubt is None or settings.retention_max_share >= 1:
        return await maintain(database, settings, now, failed)
    with suppress(_ElsewhereError):
        await _make_partitions(database, settings, now, failed)
    return doubt


async def _tell(database: Database, now: datetime, refusal: str) -> None:
    """Keep in the audit log, where administrators look, that nothing is deleted."""
    values = {"at": now, "detail": json.dumps({"why": refusal})}
    async with database.write() as session:
        await session.execute(text(_REFUSED), values)


_REFUSED = """
INSERT INTO audit_events (at, actor_name, action, subject_kind, subject_id, detail)
VALUES (:at, 'retention', 'retention_refused', 'retention', '', CAST(:detail AS jsonb))
"""


class TablesFailedError(Exception):
    """A round failed for some tables, and did its work for the others."""


class Maintenance:
    """The rounds of one process. A round that deletes nothing because it is not sure is logged and told to ``note``.

    When it begins, it is kept in the audit log too.
    """

    def __init__(self, database: Database, settings: Settings, note: Callable[[bool], None]) -> None:
        self._database, self._settings, self._note = database, settings, note
        self._is_told = False

    async def round(self) -> None:
        """One round, by this machine's clock as far as it is trusted. TablesFailedError."""
        now, failed = datetime.now(UTC), list[str]()
        refusal = await maintain_if_sure(self._database, self._settings, now, failed)
        self._note(refusal is not None)
        if refusal is not None:
            _logger.warning("retention deleted nothing", extra={"why": refusal})
            if not self._is_told:
                await _tell(self._database, now, refusal)
        self._is_told = refusal is not None
        if failed:
            raise TablesFailedError(f"of {', '.join(failed)}; the log says why")
