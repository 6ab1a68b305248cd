"""Partitions, roll-ups and retention: nothing is lost before its time, nothing stays after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from conftest import MIGRATIONS
from prometheus_client import CollectorRegistry
from sqlalchemy import text
from support.reports import report, run

from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.api.background import Supervisor
from hugeplan.db import maintenance, migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet.ingest.incoming import read_report
from hugeplan.fleet.ingest.writer import ReportWriter
from hugeplan.settings import Settings

NOW = datetime.now(UTC)


def partition_name(table: str, day: date) -> str:
    """``samples_20261120`` for 20 November 2026."""
    return f"{table}_{day:%Y%m%d}"


@pytest.fixture
async def fresh(own_database_url: str) -> AsyncIterator[tuple[Database, Settings]]:
    """A database of this test alone, without partitions yet."""
    settings = Settings.model_validate({"database_url": own_database_url, "retention_max_share": 1})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    database = Database(create_engine(settings))
    yield database, settings
    await database.dispose()


async def store(
    database: Database, settings: Settings, taken_at: datetime, *, ran: dict[str, Any] | None = None, **memory: Any
) -> None:
    """Store a report taken at a time, perhaps with a run."""
    document = report() if ran is None else report(run=ran)
    document["sample"]["taken_at"] = taken_at.isoformat()
    document["sample"]["memory"] |= memory
    raw = json.dumps(document).encode()
    async with database.write() as session:
        token = await access.mint(session, name="test", role=Role.AGENT, machine_id=document["machine_id"])
    writer = ReportWriter(settings)
    work = Supervisor(CollectorRegistry())
    await writer.open(work)
    await writer.store(read_report(raw, document, token_id=token.id, now=NOW))
    await work.close()
    await writer.close()


async def rows(database: Database, query: str) -> list[Any]:
    """The rows of a query."""
    async with database.read() as session:
        return [tuple(row) for row in await session.execute(text(query))]


async def placed(database: Database, table: str = "samples") -> dict[str, int]:
    """Rows by the partition that holds them."""
    return dict(await rows(database, f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1"))


async def test_partitions_exist_for_yesterday_to_days_ahead(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await maintenance.maintain(database, settings, NOW)
    await maintenance.maintain(database, settings, NOW)
    for table in ("sample_hours", "sample_days"):
        found = await rows(
            database, f"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent='{table}'::regclass"
        )
        months = {(NOW + timedelta(days=offset)).date().replace(day=1) for offset in (-1, maintenance.DAYS_AHEAD)}
        expected = {partition_name(table, month) for month in months} | {f"{table}_default"}
        assert {name for (name,) in found} == expected
    for table in ("samples", "report_documents"):
        found = await rows(
            database, f"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent='{table}'::regclass"
        )
        days = [NOW.date() + timedelta(days=offset) for offset in range(-1, maintenance.DAYS_AHEAD + 1)]
        expected = {partition_name(table, day) for day in days} | {f"{table}_default"}
        assert {name for (name,) in found} == expected


async def test_rows_stored_before_maintenance_move_to_their_day(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await store(database, settings, NOW)
    await store(database, settings, NOW - timedelta(days=10))
    assert await placed(database) == {"samples_default": 2}
    await maintenance.maintain(database, settings, NOW)
    today = partition_name("samples", NOW.date())
    assert await placed(database) == {today: 1, "samples_default": 1}
    documents = partition_name("report_documents", NOW.date())
    assert await placed(database, "report_documents") == {documents: 2}


async def test_retention_drops_what_is_past_it_and_nothing_else(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await maintenance.maintain(database, settings, NOW)
    await store(database, settings, NOW)
    await store(database, settings, NOW - timedelta(days=settings.sample_retention_days - 2))
    await store(database, settings, NOW - timedelta(days=settings.sample_retention_days + 2))
    await maintenance.maintain(database, settings, NOW)
    assert sum((await placed(database)).values()) == 2
    later = NOW + timedelta(days=settings.sample_retention_days + 1)
    await maintenance.maintain(database, settings, later)
    assert await placed(database) == {}
    assert await rows(database, "SELECT count(*) FROM report_documents") == [(0,)]
    assert await rows(database, "SELECT count(*) FROM reports") == [(0,)]
    assert await rows(database, "SELECT count(*) FROM nodes") == [(1,)]
    gone = partition_name("samples", NOW.date())
    assert await rows(database, f"SELECT 1 FROM pg_class WHERE relname = '{gone}'") == []


async def test_runs_past_their_age_go_but_the_source_of_a_nodes_facts_stays(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    for started_at in ("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"):
        await store(database, settings, NOW, ran=run(started_at=started_at))
    await maintenance.maintain(database, settings, NOW + timedelta(days=settings.run_retention_days - 1))
    assert await rows(database, "SELECT count(*) FROM runs") == [(2,)]
    await maintenance.maintain(database, settings, NOW + timedelta(days=settings.run_retention_days + 1))
    (source,) = await rows(database, "SELECT latest_run_id FROM nodes")
    assert await rows(database, "SELECT id FROM runs") == [source]


async def test_a_node_that_is_silent_for_long_goes_and_the_audit_log_says_so(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await store(database, settings, NOW)
    ((node_id, name),) = await rows(database, "SELECT CAST(id AS text), name FROM nodes")
    await maintenance.maintain(database, settings, NOW + timedelta(days=3000))
    assert await rows(database, "SELECT count(*) FROM nodes") == [(1,)], "by default no node is removed"
    limited = settings.model_copy(update={"silent_node_retention_days": 60})
    await maintenance.maintain(database, limited, NOW + timedelta(days=59))
    assert await rows(database, "SELECT count(*) FROM nodes") == [(1,)]
    await maintenance.maintain(database, limited, NOW + timedelta(days=61))
    await maintenance.maintain(database, limited, NOW + timedelta(days=62))
    assert await rows(database, "SELECT count(*) FROM nodes") == [(0,)]
    written = "SELECT actor_name, action, subject_kind, subject_id, detail ->> 'name' FROM audit_events"
    assert await rows(database, written) == [("retention", "nodes_delete", "nodes", node_id, name)]


ROLLED_UP = (
    "start_at, samples, mem_available_bytes_min, mem_available_bytes_sum / mem_available_samples, page_tables_bytes_max"
)


async def test_roll_ups_keep_the_extremes_of_each_hour_and_day(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for minute, available in ((5, 100), (10, 50), (15, None), (65, 30)):
        changes = {"mem_available_bytes": available, "page_tables_bytes": minute}
        await store(database, settings, midnight + timedelta(minutes=minute), **changes)
    assert await rows(database, f"SELECT {ROLLED_UP} FROM sample_hours ORDER BY 1") == [
        (midnight, 3, 50, 75, 15),
        (midnight + timedelta(hours=1), 1, 30, 30, 65),
    ]
    assert await rows(database, f"SELECT {ROLLED_UP} FROM sample_days") == [(midnight, 4, 30, 60, 65)]


async def test_a_sample_that_waited_a_week_in_a_spool_corrects_its_hour(fresh: tuple[Database, Settings]) -> None:
    """Roll-ups used to look back 26 hours, while spools hold seven days."""
    database, settings = fresh
    hour = NOW.replace(minute=0, second=0, microsecond=0) - timedelta(days=6, hours=23)
    await store(database, settings, hour + timedelta(minutes=30), mem_available_bytes=100)
    await store(database, settings, NOW)
    await maintenance.maintain(database, settings, NOW)
    await store(database, settings, hour + timedelta(minutes=20), mem_available_bytes=40)
    found = await rows(database, "SELECT start_at, samples, mem_available_bytes_min FROM sample_hours ORDER BY 1")
    assert found[0] == (hour, 2, 40)


async def test_reports_are_stored_while_partitions_are_made(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh

    async def keep_storing() -> None:
        for minute in range(20):
            await store(database, settings, NOW - timedelta(minutes=minute))

    async def keep_maintaining() -> None:
        for day in range(4):
            await maintenance.maintain(database, settings, NOW + timedelta(days=day))

    await asyncio.gather(keep_storing(), keep_maintaining())
    assert sum((await placed(database)).values()) == 20


async def test_samples_of_a_node_in_a_range_read_only_its_days(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await maintenance.maintain(database, settings, NOW)
    query = (
        "EXPLAIN SELECT * FROM samples WHERE node_id = '00000000-0000-0000-0000-000000000001'"
        f" AND taken_at >= '{NOW.date()}T00:00Z' AND taken_at < '{NOW.date()}T23:00Z'"
    )
    lines = "\n".join(line for (line,) in await rows(database, query))
    assert partition_name("samples", NOW.date()) in lines
    assert partition_name("samples", NOW.date() + timedelta(days=1)) not in lines
