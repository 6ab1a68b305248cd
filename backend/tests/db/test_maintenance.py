"""Partitions, roll-ups and retention: nothing is lost before its time, nothing stays after it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from hugeplan.db.models import Machine
from hugeplan.db.retention import listen
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


async def test_of_a_node_its_newest_runs_are_kept_and_the_sources_of_its_facts(
    fresh: tuple[Database, Settings],
) -> None:
    """In two steps, as 5,501 are past the bound; another node's run stays."""
    database, given = fresh
    settings = given.model_copy(update={"max_runs_per_node": 1000, "retention_max_share": 1.0})
    await store(database, settings, NOW, ran=run(started_at="2026-11-20T12:00:00Z"))
    copy = (
        "INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid(), {}))).* FROM"
        " runs r, generate_series(1, {}) i"
    )
    async with database.write() as session:
        other = (
            "INSERT INTO nodes SELECT (jsonb_populate_record(n, jsonb_build_object('id', gen_random_uuid(),"
            " 'name', 'o', 'machine_id', 'o'))).* FROM nodes n"
        )
        await session.execute(text(other))
        elsewhere = (
            "'node_id', (SELECT id FROM nodes WHERE name = 'o'), 'ordered_at', r.ordered_at - i * interval '1 h'"
        )
        await session.execute(text(copy.format("'ordered_at', r.ordered_at + i * interval '1 h'", 6500)))
        await session.execute(
            text(copy.format(elsewhere, 1) + " WHERE r.id = (SELECT latest_run_id FROM nodes LIMIT 1)")
        )
        state = "jsonb_populate_record(s, jsonb_build_object('node_id', (SELECT id FROM nodes WHERE name = 'o')))"
        await session.execute(text(f"INSERT INTO node_states SELECT ({state}).* FROM node_states s"))
    newest = "SELECT id FROM runs WHERE node_id <> :other ORDER BY ordered_at DESC LIMIT 1000"
    ((other_id,),) = await rows(database, "SELECT id FROM nodes WHERE name = 'o'")
    async with database.read() as session:
        kept = set((await session.scalars(text(newest), {"other": other_id})).all())
    assert await maintenance.maintain(database, settings, NOW) is None
    left = {(node == other_id, one) for node, one in await rows(database, "SELECT node_id, id FROM runs")}
    ((source,),) = await rows(database, "SELECT latest_run_id FROM nodes WHERE name <> 'o'")
    assert source not in kept
    assert {one for is_other, one in left if not is_other} == {*kept, source}
    assert sum(is_other for is_other, _ in left) == 1


async def test_a_node_that_is_silent_for_long_goes_and_the_audit_log_says_so(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await store(database, settings, NOW)
    ((node_id, name),) = await rows(database, "SELECT CAST(id AS text), name FROM nodes")
    await maintenance.maintain(database, settings, NOW + timedelta(days=3000))
    assert await rows(database, "SELECT count(*) FROM nodes") == [(1,)], "by default no node is removed"
    limited = settings.model_copy(update={"silent_node_retention_days": 60})
    await maintenance.maintain(database, limited, NOW + timedelta(days=59))
    assert await rows(database, "SELECT count(*) FROM nodes") == [(1,)]
    for since, until, left in ((30, 1, 1), (20, 0, 1), (30, 0, 0)):  # hours ago; the service was away, or began late
        async with database.write() as session:
            values = "INSERT INTO listening VALUES (true, now() - :since * :hour, now() - :until * :hour)"
            await session.execute(text("DELETE FROM listening"))
            await session.execute(text(values), {"since": since, "until": until, "hour": timedelta(hours=1)})
        await listen(database)
        await maintenance.maintain(database, limited, NOW + timedelta(days=61))
        assert await rows(database, "SELECT count(*) FROM nodes") == [(left,)]
    await maintenance.maintain(database, limited, NOW + timedelta(days=62))
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


async def test_a_backup_under_way_makes_no_report_wait_for_maintenance(fresh: tuple[Database, Settings]) -> None:
    """pg_dump reads every table to its end: who waits for a whole table then holds up all that come after."""
    database, settings = fresh
    await maintenance.maintain(database, settings, NOW)
    async with database.read() as dump:
        for table in ("samples", "report_documents"):
            await dump.execute(text(f"LOCK TABLE {table} IN ACCESS SHARE MODE"))
        round_ = asyncio.create_task(maintenance.maintain(database, settings, NOW + timedelta(days=1)))
        slowest = 0.0
        minute = 0
        while not round_.done():
            began, minute = time.monotonic(), minute + 1
            await store(database, settings, NOW - timedelta(seconds=minute))
            slowest = max(slowest, time.monotonic() - began)
        assert isinstance(await asyncio.gather(round_, return_exceptions=True), list)
    assert minute > 5
    assert slowest < 1, "seconds"


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


FAILS = "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'out of order'; END $$"
ON_CHANGE = "CREATE TRIGGER fails BEFORE DELETE OR UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION fails()"
PAST = ("samples", "report_documents", "sample_hours", "reports", "browser_sessions")


async def fill_with_what_is_past(database: Database, settings: Settings) -> None:
    await store(database, settings, NOW)
    async with database.write() as session:
        await session.execute(
            text(
                "INSERT INTO browser_sessions (id, secret_sha256, token_id, created_at, expires_at)"
                " SELECT gen_random_uuid(), sha256('x'), id, now(), now() FROM tokens"
            )
        )


async def let_fail(database: Database, table: str) -> None:
    async with database.write() as session:
        await session.execute(text(FAILS))
        await session.execute(text(ON_CHANGE.format(table)))


async def left(database: Database) -> dict[str, int]:
    return {table: (await rows(database, f"SELECT count(*) FROM {table}"))[0][0] for table in PAST}


@pytest.mark.parametrize("table", ["samples_default", "sample_hours_default", "reports"])
async def test_a_table_of_which_nothing_can_be_deleted_stops_no_other(
    fresh: tuple[Database, Settings], table: str
) -> None:
    database, settings = fresh
    await fill_with_what_is_past(database, settings)
    await let_fail(database, table)
    failed: list[str] = []
    assert await maintenance.maintain(database, settings, NOW + timedelta(days=3000), failed) is None
    own = table.removesuffix("_default")
    assert failed == [own]
    assert await left(database) == {name: int(name == own) for name in PAST}


async def test_rows_that_a_silent_node_is_shown_by_stay_until_they_are_kept_beside_it(
    fresh: tuple[Database, Settings],
) -> None:
    database, settings = fresh
    await fill_with_what_is_past(database, settings)
    await let_fail(database, "node_states")
    failed: list[str] = []
    assert await maintenance.maintain(database, settings, NOW + timedelta(days=3000), failed) is None
    assert failed == ["node_states"]
    assert await left(database) == {name: int(name in {"samples", "report_documents", "reports"}) for name in PAST}


async def test_the_tables_that_failed_are_said_and_counted(fresh: tuple[Database, Settings]) -> None:
    database, settings = fresh
    await store(database, settings, NOW)
    async with database.write() as session:
        await session.execute(text("UPDATE reports SET received_at = received_at - interval '9 years'"))
    await let_fail(database, "reports")
    told: list[bool] = []
    with pytest.raises(maintenance.TablesFailedError, match="of reports; the log says why"):
        await maintenance.Maintenance(database, settings, told.append).round()
    assert told == [False]


async def test_a_partition_waits_while_too_many_of_its_rows_are_elsewhere(
    fresh: tuple[Database, Settings], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every reader and writer of the table waited while 4.9 million rows moved, for 17 s."""
    database, settings = fresh
    monkeypatch.setattr(maintenance, "MOVED_AT_MOST", 1)
    for _ in range(2):
        await store(database, settings, NOW)
    await maintenance.maintain(database, settings, NOW)
    assert await placed(database) == {"samples_default": 2}
    said = [record.__dict__ for record in caplog.records if "a partition waits" in record.message]
    assert {(each["table"], each["day"]) for each in said} == {
        ("samples", NOW.date().isoformat()), ("report_documents", NOW.date().isoformat())
    }  # fmt: skip
    tomorrow = partition_name("samples", NOW.date() + timedelta(days=1))
    assert await rows(database, f"SELECT count(*) FROM {tomorrow}") == [(0,)], "the days without such rows have theirs"
    async with database.write() as session:
        await session.execute(text("DELETE FROM samples WHERE ctid = (SELECT min(ctid) FROM samples)"))
    await maintenance.maintain(database, settings, NOW)
    assert await placed(database) == {partition_name("samples", NOW.date()): 1}


async def test_a_machine_that_nothing_refers_to_is_forgotten_when_it_was_not_heard_for_long(
    fresh: tuple[Database, Settings],
) -> None:
    """The first of clones has the id that they share: without its row the next clone would take its place."""
    database, settings = fresh
    await store(database, settings, NOW)
    longest = timedelta(days=settings.day_rollup_retention_days)
    seen = dict.fromkeys(("x", "x~1", "x~2", "y", "z", "w", report()["machine_id"]), NOW - longest - timedelta(1))
    seen["heard"] = NOW - longest + timedelta(1)
    asked = "gen_random_uuid(), 'w', 'w', 'w', '', '', 1, now(), now()"
    async with database.write() as session:
        for machine, at in seen.items():
            session.add(
                Machine(
                    node_machine_id=machine, machine_id=machine.partition("~")[0], former_boot_ids=[],
                    boots_interleaved=False, first_seen_at=at, last_seen_at=at,
                )
            )  # fmt: skip
        for statement in (
            "INSERT INTO enrolment_approvals VALUES ('z', '', now(), now() + interval '1 day')",
            "INSERT INTO enrolment_requests (id, node_machine_id, machine_id, node_name, reason, token_name, attempts,"
            f" first_asked_at, last_asked_at) VALUES ({asked})",
        ):
            await session.execute(text(statement))
        own = await access.mint(session, name="test", role=Role.AGENT, machine_id="x~1")
    await maintenance.maintain(database, settings, NOW)
    left = {machine for (machine,) in await rows(database, "SELECT node_machine_id FROM machines")}
    assert left == seen.keys() - {"x~2", "y"}
    async with database.write() as session:
        await session.execute(text("DELETE FROM tokens WHERE id = :id"), {"id": own.id})
    for _ in range(2):
        await maintenance.maintain(database, settings, NOW)
    left = {machine for (machine,) in await rows(database, "SELECT node_machine_id FROM machines")}
    assert left == seen.keys() - {"x", "x~1", "x~2", "y"}


@pytest.mark.parametrize("days", [0, 40])
async def test_a_replica_that_takes_a_turn_meanwhile_lets_no_table_fail(
    fresh: tuple[Database, Settings], monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """A round lets others in before each of its transactions; here one that makes and drops what this one would."""
    database, settings = fresh
    await maintenance.maintain(database, settings, NOW - timedelta(days=1))
    now, turn, failed, taken = NOW + timedelta(days=days), maintenance._turn, list[str](), list[int]()

    @asynccontextmanager
    async def after_another(database: Database) -> AsyncIterator[Any]:
        if not taken:
            taken.append(days)
            monkeypatch.setattr(maintenance, "_turn", turn)
            await maintenance.maintain(database, settings, now)
        async with turn(database) as session:
            yield session

    monkeypatch.setattr(maintenance, "_turn", after_another)
    assert await maintenance.maintain(database, settings, now, failed) is None
    assert (taken, failed) == ([days], [])
