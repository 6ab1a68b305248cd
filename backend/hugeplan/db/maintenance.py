"""Partitions and retention.

The owner's functions make and drop partitions (docs/adr/0047): the service's role owns no table.

Any replica may run a round; an advisory lock lets one do it and the others skip. A round is idempotent.
Rows outside the days that have a partition go to the table's default partition and are moved when their
day gets one, so that a report is never refused because maintenance has not run.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import text

from hugeplan.db import retention
from hugeplan.db.locks import AdvisoryLock
from hugeplan.db.session import Database, ReadSession, WriteSession
from hugeplan.settings import Settings

DAYS_AHEAD = 3
DELETED_AT_A_TIME = 5000

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


async def _partition_days(session: WriteSession, table: str) -> set[date]:
    rows = await session.scalars(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = CAST(:table AS regclass)"
        ),
        {"table": table},
    )
    return set(_days_of(table, rows))


def _days_of(table: str, partitions: Iterable[str]) -> list[date]:
    names = [str(name).removeprefix(f"{table}_") for name in partitions]
    return [datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC).date() for name in names if name.isdecimal()]


async def _lock(session: WriteSession, target: Partitioned) -> None:
    """Hold the table from its root: writers lock root before partition too, so neither waits for the other in a ring.

    That is only true while a transaction changes the partitions of one table, so each step has its own.
    """
    await session.execute(text("SET LOCAL lock_timeout = '5s'"))
    await session.execute(text(f"LOCK TABLE {target.table} IN ACCESS EXCLUSIVE MODE"))


async def create_partition(session: WriteSession, target: Partitioned, day: date) -> None:
    """Make the partition that begins on a day, taking over its rows from the default partition."""
    await _lock(session, target)
    await session.execute(
        text("SELECT make_partition(:table, :day, :end_day)"),
        {"table": target.table, "day": day, "end_day": target.end(day)},
    )


async def _create_missing(session: WriteSession, target: Partitioned, today: date) -> None:
    present = await _partition_days(session, target.table)
    for start in target.wanted(today):
        if start not in present:
            await create_partition(session, target, start)


def _expired(target: Partitioned, days: Iterable[date], today: date) -> list[date]:
    """The partitions that are past their retention."""
    oldest = today - timedelta(days=target.retention_days)
    return sorted(day for day in days if target.end(day) <= oldest)


async def _drop_old(session: WriteSession, target: Partitioned, today: date) -> None:
    oldest = today - timedelta(days=target.retention_days)
    expired = _expired(target, await _partition_days(session, target.table), today)
    if expired:
        await _lock(session, target)
    for day in expired:
        await session.execute(text("SELECT drop_partition(:table, :day)"), {"table": target.table, "day": day})
    await session.execute(
        text(f"DELETE FROM {target.table}_default WHERE {target.column} < :oldest"),  # noqa: S608 - constants
        {"oldest": datetime.combine(oldest, time(), UTC)},
    )


async def maintain(database: Database, settings: Settings, now: datetime) -> str | None:
    """One round: make partitions, drop what is past its retention. Each step is its own transaction.

    None, or why nothing was deleted (``hugeplan.db.retention``); the clock is the caller's to judge.
    """
    today = now.astimezone(UTC).date()
    targets = partitioned_tables(settings)
    if not await _steps(database, [partial(_create_missing, target=target, today=today) for target in targets]):
        return None
    refusal = await _too_much(database, settings, now)
    if refusal is not None:
        return refusal
    days = min(settings.document_retention_days, settings.sample_retention_days)
    oldest = {"before": datetime.combine(today - timedelta(days=days), time(), UTC)}
    while await _delete_batch(database, _KEEP_NEWEST, oldest) == DELETED_AT_A_TIME:
        pass
    if not await _steps(database, [partial(_drop_old, target=target, today=today) for target in targets]):
        return None
    for statement, values in _old_rows(settings, now):
        while await _delete_batch(database, statement, values) == DELETED_AT_A_TIME:
            pass
    return None


async def _steps(database: Database, steps: Sequence[Callable[[WriteSession], Awaitable[None]]]) -> bool:
    """Run steps, each in its own transaction. False when another replica has the round."""
    for step in steps:
        async with database.write() as session:
            if not await _takes_its_turn(session):
                return False
            await session.execute(text("SET LOCAL statement_timeout = '10min'"))
            await step(session)
    return True


async def _too_much(database: Database, settings: Settings, now: datetime) -> str | None:
    """Why this round would delete too much."""
    share, today = settings.retention_max_share, now.astimezone(UTC).date()
    async with database.read() as session:
        for target in partitioned_tables(settings):
            kept = await _days_with_rows(session, target.table)
            found = retention.too_many_days(target.table, kept, _expired(target, kept, today), share)
            if found is not None:
                return found
        before = now - timedelta(days=settings.document_retention_days)
        return await retention.too_many_rows(session, "reports", "received_at", before, share)


async def _days_with_rows(session: ReadSession, table: str) -> list[date]:
    """The partitions that hold anything; the default one is not among them."""
    rows = await session.scalars(
        text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = CAST(:table AS regclass) AND pg_relation_size(c.oid) > 0"
        ),
        {"table": table},
    )
    return _days_of(table, rows)


async def maintain_if_sure(database: Database, settings: Settings, now: datetime) -> str | None:
    """A round whose clock agrees with PostgreSQL and with recent reports; else why nothing was deleted."""
    async with database.read() as session:
        doubt = await retention.clock_doubt(session, now)
    if doubt is None or settings.retention_max_share >= 1:
        return await maintain(database, settings, now)
    today = now.astimezone(UTC).date()
    await _steps(
        database, [partial(_create_missing, target=target, today=today) for target in partitioned_tables(settings)]
    )
    return doubt


async def _tell(database: Database, now: datetime, refusal: str) -> None:
    """Keep in the audit log, where administrators look, that nothing is deleted."""
    values = {"at": now, "detail": json.dumps({"why": refusal})}
    async with database.write() as session:
        await session.execute(text(_REFUSED), values)


async def _takes_its_turn(session: WriteSession) -> bool:
    """Whether no other replica is at it."""
    lock = {"key": int(AdvisoryLock.MAINTENANCE)}
    return bool(await session.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), lock))


async def _delete_batch(database: Database, statement: str, values: dict[str, Any]) -> int:
    """Delete at most DELETED_AT_A_TIME rows in a transaction of their own, so that nobody waits long for its locks."""
    async with database.write() as session:
        if not await _takes_its_turn(session):
            return 0
        found = await session.execute(text(statement), values | {"limit": DELETED_AT_A_TIME})
        return int(found.rowcount)  # type: ignore[attr-defined]


def _batch(table: str, condition: str) -> str:
    return f"DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE {condition} LIMIT :limit)"  # noqa: S608


def _old_rows(settings: Settings, now: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is past its retention, as statements that delete a part of it."""

    def before(days: int) -> dict[str, Any]:
        return {"before": now - timedelta(days=days)}

    yield _batch("reports", "received_at < :before"), before(settings.document_retention_days)
    yield f"{FORGET_REFERENCES} AND r.made_at < :before LIMIT :limit)", before(settings.document_retention_days)
    yield _batch("webhook_deliveries", "finished_at < :before"), before(settings.event_retention_days)
    yield _batch("events", "at < :before"), before(settings.event_retention_days)
    yield _DELETE_RUNS, before(settings.run_retention_days)
    if settings.silent_node_retention_days:
        yield _DELETE_SILENT_NODES, before(settings.silent_node_retention_days) | {"now": now}
    for table in ("browser_sessions", "login_links", "oidc_logins", "enrolment_approvals"):
        yield _batch(table, "expires_at < :before"), {"before": now}
    yield _batch("enrolment_requests", "last_asked_at < :before"), before(settings.token_retention_days)
    # The audit log keeps what is to be known of them.
    yield _batch("tokens", _OLD_TOKENS), before(settings.token_retention_days)


# A clone's last token says that the one that was copied to it is not its own: without it, that one would be again.
_OLD_TOKENS: Final = """
(revoked_at < :before OR expires_at < :before) AND (coalesce(machine_id, '') NOT LIKE '%~%' OR EXISTS (
    SELECT FROM tokens n
    WHERE n.machine_id = tokens.machine_id AND (n.created_at, n.id) > (tokens.created_at, tokens.id)
))"""


# A node's newest reference serves the reports that arrive. Who makes a newer one holds the node's lock, as those do
# that refer to the one before: so where a newer one is seen, all that refer to an earlier one are seen too.
FORGET_REFERENCES: Final = r"""
DELETE FROM report_references WHERE ctid IN (
    SELECT r.ctid FROM report_references r
    WHERE EXISTS (SELECT FROM report_references n WHERE n.node_id = r.node_id AND n.made_at > r.made_at)
        AND NOT EXISTS (
            SELECT FROM report_documents d
            WHERE d.node_id = r.node_id AND substring(d.document FOR 17) = '\x01'::bytea || uuid_send(r.report_id)
        ) AND NOT EXISTS (
            SELECT FROM node_states s
            WHERE s.node_id = r.node_id
                AND substring(s.newest_document FOR 17) = '\x01'::bytea || uuid_send(r.report_id)
        )
"""
"""References to which no document refers any more. Conditions and a bracket follow."""


# Who reports meanwhile holds its node's lock, and has a newer one.
_KEEP_NEWEST = """
WITH due AS MATERIALIZED (
    SELECT n.id, d.document FROM nodes n
    JOIN node_states s ON s.node_id = n.id AND s.newest_document IS NULL
    JOIN samples a ON a.node_id = n.id AND a.taken_at = n.sampled_at
    JOIN reports r ON r.node_id = n.id AND r.report_id = a.report_id
    JOIN report_documents d ON d.node_id = n.id AND d.received_at = r.received_at AND d.report_id = r.report_id
    WHERE n.sampled_at < :before AND a.taken_at < :before LIMIT :limit FOR UPDATE OF n SKIP LOCKED
)
UPDATE node_states s SET newest_document = due.document FROM due WHERE s.node_id = due.id
"""
"""The newest documents of silent nodes, before they go with their partition: the nodes are still shown by them."""


# What was measured on a node is kept beside it, so a run that is still the source of it stays.
_DELETE_RUNS = """
DELETE FROM runs WHERE (node_id, id) IN (
    SELECT r.node_id, r.id FROM runs r JOIN node_states s ON s.node_id = r.node_id
    WHERE r.stored_at < :before AND NOT EXISTS (
        SELECT FROM jsonb_each(coalesce(s.measured -> 'parts', '{}')) p WHERE CAST(p.value ->> 'run_id' AS uuid) = r.id
    ) AND r.id IS DISTINCT FROM CAST(s.measured -> 'latest' ->> 'run_id' AS uuid)
    LIMIT :limit
)
"""


# Nobody asked for this deletion, so the audit log says why the node is gone.
_DELETE_SILENT_NODES = """
WITH gone AS (
    DELETE FROM nodes WHERE ctid IN (SELECT ctid FROM nodes WHERE last_report_at < :before LIMIT :limit)
    RETURNING id, name, last_report_at
)
INSERT INTO audit_events (at, actor_name, action, subject_kind, subject_id, detail)
SELECT :now, 'retention', 'nodes_delete', 'nodes', CAST(id AS text),
    jsonb_build_object('name', name, 'last_report_at', last_report_at)
FROM gone
"""


_REFUSED = """
INSERT INTO audit_events (at, actor_name, action, subject_kind, subject_id, detail)
VALUES (:at, 'retention', 'retention_refused', 'retention', '', CAST(:detail AS jsonb))
"""


class Maintenance:
    """The rounds of one process. A round that deletes nothing because it is not sure is logged and told to ``note``.

    When it begins, it is kept in the audit log too.
    """

    def __init__(self, database: Database, settings: Settings, note: Callable[[bool], None]) -> None:
        self._database, self._settings, self._note = database, settings, note
        self._is_told = False

    async def round(self) -> None:
        """One round, by this machine's clock as far as it is trusted."""
        now = datetime.now(UTC)
        refusal = await maintain_if_sure(self._database, self._settings, now)
        self._note(refusal is not None)
        if refusal is not None:
            _logger.warning("retention deleted nothing", extra={"why": refusal})
            if not self._is_told:
                await _tell(self._database, now, refusal)
        self._is_told = refusal is not None
