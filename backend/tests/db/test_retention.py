"""Retention under wrong clocks: what is in doubt is kept, and somebody is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from conftest import MIGRATIONS
from prometheus_client import CollectorRegistry
from sqlalchemy import text
from support.reports import report

from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.api.background import Supervisor
from hugeplan.api.metrics import Metrics
from hugeplan.db import maintenance, migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.retention import old_rows, too_many_days
from hugeplan.db.session import Database
from hugeplan.fleet.ingest.incoming import read_report
from hugeplan.fleet.ingest.writer import ReportWriter
from hugeplan.settings import Settings

NOW = datetime.now(UTC)
KEPT = ("reports", "samples", "report_documents", "nodes", "browser_sessions", "tokens")


@pytest.fixture
async def fresh(own_database_url: str) -> AsyncIterator[tuple[Database, Settings]]:
    """A database of this test alone, with the share that is usual."""
    settings = Settings.model_validate({"database_url": own_database_url, "silent_node_retention_days": 20})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    database = Database(create_engine(settings))
    await maintenance.maintain(database, settings, NOW)
    yield database, settings
    await database.dispose()


async def store(
    fresh: tuple[Database, Settings], received_at: datetime, taken_at: datetime, node: int = 0, clone: str = ""
) -> None:
    database, settings = fresh
    document = report()
    document["machine_id"] = f"{node:032x}"
    document["node_name"] = f"db-{node}"
    document["sample"]["taken_at"] = document["created_at"] = taken_at.isoformat()
    raw = json.dumps(document).encode()
    async with database.write() as session:
        token = await access.mint(session, name="t", role=Role.AGENT, machine_id=document["machine_id"])
    writer = ReportWriter(settings)
    work = Supervisor(CollectorRegistry())
    await writer.open(work)
    incoming = read_report(raw, document, token_id=token.id, now=received_at)
    await writer.store(replace(incoming, machine_id=incoming.machine_id + clone))
    await work.close()
    await writer.close()


async def fill(fresh: tuple[Database, Settings], days: int = 20) -> None:
    """Reports of each of the last days, and a session."""
    database, settings = fresh
    async with database.write() as session:
        for back in range(2, days):
            for target in maintenance.partitioned_tables(settings):
                if not target.monthly:
                    await maintenance.create_partition(session, target, (NOW - timedelta(days=back)).date())
    for back in reversed(range(days)):
        await store(fresh, NOW - timedelta(days=back), NOW - timedelta(days=back))
    async with database.write() as session:
        one = (
            "INSERT INTO browser_sessions (id, secret_sha256, token_id, created_at, expires_at)"
            " SELECT gen_random_uuid(), sha256('x'), id, now(), now() + interval '14 days' FROM tokens LIMIT 1"
        )
        await session.execute(text(one))


async def counts(database: Database) -> dict[str, int]:
    async with database.read() as session:
        return {t: int(await session.scalar(text(f"SELECT count(*) FROM {t}")) or 0) for t in KEPT}


@pytest.mark.parametrize("days", [40, 400, -40])
async def test_a_clock_that_is_wrong_for_one_round_deletes_nothing(fresh: Any, days: int) -> None:
    database, settings = fresh
    await fill(fresh)
    before = await counts(database)
    assert all(before.values())
    why = await maintenance.maintain_if_sure(database, settings, NOW + timedelta(days=days))
    assert why is not None
    assert "PostgreSQL's" in why
    assert await counts(database) == before
    assert await maintenance.maintain_if_sure(database, settings, datetime.now(UTC)) is None


async def test_a_clock_that_postgresql_shares_deletes_nothing_either(fresh: Any) -> None:
    """One machine, one wrong clock: the share alone stands between it and everything that is kept."""
    database, settings = fresh
    await fill(fresh)
    before = await counts(database)
    why = await maintenance.maintain(database, settings, NOW + timedelta(days=40))
    assert why is not None
    assert "would go" in why
    assert await counts(database) == before
    forced = settings.model_copy(update={"retention_max_share": 1})
    assert await maintenance.maintain(database, forced, NOW + timedelta(days=40)) is None
    assert (await counts(database))["reports"] == 0


async def test_a_young_installation_is_kept_too(fresh: Any) -> None:
    database, settings = fresh
    await store(fresh, NOW, NOW)
    before = await counts(database)
    assert await maintenance.maintain(database, settings, NOW + timedelta(days=40)) is not None
    assert await counts(database) == before


async def test_the_usual_rounds_delete_what_is_past_its_time(fresh: Any) -> None:
    database, settings = fresh
    own = settings.model_copy(update={"sample_retention_days": 15, "document_retention_days": 15})
    await fill(fresh)
    for hour in range(0, 24 * 3, 12):
        assert await maintenance.maintain(database, own, NOW - timedelta(days=3) + timedelta(hours=hour)) is None
    assert (await counts(database))["reports"] in range(14, 18)


async def test_a_clones_last_token_is_kept_so_that_the_copied_one_stays_refused(fresh: Any) -> None:
    database, settings = fresh
    async with database.write() as session:
        for machine in ("m", None, "m~a", "m~a", "m~b"):
            await access.mint(session, name="t", role=Role.AGENT, machine_id=machine)
        days = settings.token_retention_days
        old = (
            f"UPDATE tokens SET expires_at = now() - interval '{days + 1} days' WHERE machine_id IS DISTINCT FROM 'm~b'"
        )
        await session.execute(text(old))
    assert await maintenance.maintain(database, settings, datetime.now(UTC)) is None
    async with database.read() as session:
        kept = (await session.scalars(text("SELECT machine_id FROM tokens ORDER BY created_at"))).all()
        assert kept == ["m~a", "m~b"]


async def test_a_row_that_says_no_outlives_what_it_forbids(fresh: Any) -> None:
    """A revoked person gets no new row at the next login, a restart brings no revoked enrolment token back, and a
    restore none that a backup has as good: revoked, or ended when it was rotated. What has ended by itself goes.
    """
    database, settings = fresh
    async with database.write() as session:
        for name, role in (("person", Role.ADMIN), ("left", Role.ADMIN), ("t", Role.ADMIN), ("e", Role.ENROLMENT)):
            await access.mint(session, name=name, role=role)
        rotated = await access.mint(session, name="rotated", role=Role.VIEWER)
        await access.mint(session, name="new", role=Role.VIEWER, replaces=rotated.id)
        old = f"now() - interval '{settings.token_retention_days + 1} days'"
        await session.execute(text(f"UPDATE tokens SET revoked_at = {old} WHERE name IN ('person', 't', 'e')"))
        await session.execute(text("UPDATE tokens SET oidc_subject = name WHERE name = 'person'"))
        await session.execute(text(f"UPDATE tokens SET expires_at = {old} WHERE name IN ('left', 'rotated', 'new')"))
        for decision in ("'refused'", "NULL"):
            await session.execute(
                text(
                    "INSERT INTO enrolment_requests (id, node_machine_id, machine_id, node_name, reason, token_name,"
                    " attempts, first_asked_at, last_asked_at, decision) VALUES (gen_random_uuid(),"
                    f" coalesce({decision}, ''), 'm', 'n', '', '', 1, {old}, {old}, {decision})"
                )
            )
    assert await maintenance.maintain(database, settings, datetime.now(UTC)) is None
    async with database.read() as session:
        kept = set((await session.scalars(text("SELECT name FROM tokens"))).all())
        assert (await session.scalars(text("SELECT decision FROM enrolment_requests"))).all() == ["refused"]
    assert kept == {"person", "t", "e", "rotated", "new"}


async def test_reports_of_another_day_are_heard(fresh: Any) -> None:
    """Server and database are 40 days ahead, and the fleet goes on reporting: its own times say what day it is."""
    database, settings = fresh
    for node in range(3):
        await store(fresh, NOW, NOW - timedelta(days=40 if node else 0), node)
    why = await maintenance.maintain_if_sure(database, settings, datetime.now(UTC))
    assert why is not None
    assert "another day" in why
    # One node that makes up for an outage, or lies, is no majority.
    for node in range(1, 3):
        await store(fresh, NOW, NOW, node)
    assert await maintenance.maintain_if_sure(database, settings, datetime.now(UTC)) is None


async def test_a_machine_has_one_vote_and_a_new_one_none(fresh: Any) -> None:
    """One agent makes any number of clones of its machine; that takes retention from nobody."""
    database, settings = fresh
    long_ago = NOW - timedelta(days=3)
    age = "UPDATE nodes SET first_report_at = first_report_at - interval '2 days'"
    for clone in ("", "~a", "~b", "~c"):
        await store(fresh, NOW, long_ago, clone=clone)
    for node in (1, 2):
        await store(fresh, NOW, NOW, node)
    assert await maintenance.maintain_if_sure(database, settings, datetime.now(UTC)) is None
    async with database.write() as session:
        await session.execute(text(age))
    for node in range(3, 8):
        await store(fresh, NOW, long_ago, node)
    assert await maintenance.maintain_if_sure(database, settings, datetime.now(UTC)) is None
    # What the machines say that have been there for a day counts, and who they are is told.
    async with database.write() as session:
        await session.execute(text(age))
    why = await maintenance.maintain_if_sure(database, settings, datetime.now(UTC))
    assert why == (
        "Of 8 machines that reported within a day, 6 say that it is another day: db-0, db-3, db-4 and 3 more."
    )


async def test_a_fleet_that_is_silent_says_nothing_about_the_clock(fresh: Any) -> None:
    database, settings = fresh
    await store(fresh, NOW - timedelta(days=3), NOW - timedelta(days=3))
    why = await maintenance.maintain_if_sure(database, settings, datetime.now(UTC))
    assert why is not None
    assert "within a day" in why


async def test_the_refusal_is_logged_shown_and_counted(fresh: Any, caplog: pytest.LogCaptureFixture) -> None:
    database, settings = fresh
    await store(fresh, NOW - timedelta(days=3), NOW - timedelta(days=3))
    metrics = Metrics()
    assert b"hugeplan_retention_refused 0.0" in metrics.render()
    rounds = maintenance.Maintenance(database, settings, metrics.note_retention)
    for _ in range(3):
        await rounds.round()
    assert sum("retention deleted nothing" in each.message for each in caplog.records) == 3
    assert b"hugeplan_retention_refused 1.0" in metrics.render()
    async with database.read() as session:
        kept = (await session.execute(text("SELECT detail FROM audit_events WHERE action = 'retention_refused'"))).all()
    assert len(kept) == 1  # once, not each round
    assert "within a day" in kept[0][0]["why"]


@pytest.mark.parametrize(
    ("kept", "expired", "is_refused"),
    [
        (30, 0, False), (31, 1, False), (30, 15, False), (30, 16, True), (3, 2, False), (2, 2, True), (1, 1, True),
        (0, 0, False),
    ],
)  # fmt: skip
def test_how_many_days_may_go(kept: int, expired: int, is_refused: bool) -> None:
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(kept)]
    assert (too_many_days("samples", days, days[:expired], 0.5) is not None) == is_refused
    assert too_many_days("samples", days, days[:expired], 1.0) is None


async def test_a_server_two_days_behind_takes_good_reports(fresh: Any) -> None:
    """Refused, each agent would put them aside for good."""
    database, _ = fresh
    await store(fresh, NOW - timedelta(days=2), NOW)
    assert (await counts(database))["samples"] == 1


async def test_a_clock_that_was_ahead_lets_no_node_be_heard_for_days(fresh: Any) -> None:
    """Found: it was not stale, nor could it enrol again, and retention found another day in it."""
    database, _ = fresh
    for ahead in (2, 0):
        await store(fresh, NOW + timedelta(days=ahead), NOW)
    async with database.read() as session:
        assert await session.scalar(text("SELECT last_report_at <= now() FROM nodes"))


def test_what_changed_meanwhile_is_asked_again() -> None:
    """Found with PostgreSQL 16.2: a silent node that had just come back went with its acknowledged report."""
    settings = Settings.model_validate({"database_url": "postgresql://h/d", "silent_node_retention_days": 20})
    statements = {table: statement for table, statement, _ in old_rows(settings, NOW) if " ctid IN " in statement}
    assert {"nodes", "tokens", "machines"} < {*statements}
    once = [table for table, statement in statements.items() if "LIMIT :limit) AND (" not in statement]
    assert once == ["report_references"]  # which never change


async def test_each_silent_node_keeps_its_newest_report_however_many_are_of_one_time(
    fresh: tuple[Database, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One node's rows filled the batch, and the others' newest reports went with their partition."""
    database, settings = fresh
    for node in range(3):
        for second in range(3):
            await store(fresh, NOW + timedelta(seconds=second), NOW, node)
    monkeypatch.setattr(maintenance, "LOCKED_AT_A_TIME", 2)
    everything = settings.model_copy(update={"retention_max_share": 1.0, "silent_node_retention_days": 0})
    assert await maintenance.maintain(database, everything, NOW + timedelta(days=40)) is None
    async with database.read() as session:
        kept = "SELECT count(*), count(newest_document), (SELECT count(*) FROM report_documents) FROM node_states"
        assert (await session.execute(text(kept))).one() == (3, 3, 0)


async def test_the_newest_report_of_a_node_that_is_locked_stays_until_it_is_kept(
    fresh: tuple[Database, Settings],
) -> None:
    """It was passed over, and its newest report went with its partition."""
    database, settings = fresh
    for node in range(3):
        await store(fresh, NOW, NOW, node)
    everything = settings.model_copy(update={"retention_max_share": 1.0, "silent_node_retention_days": 0})
    kept = text("SELECT count(newest_document), (SELECT count(*) FROM report_documents) FROM node_states")
    async with database.write() as session:
        await session.execute(text("SELECT FROM nodes WHERE name = 'db-1' FOR UPDATE"))
        failed: list[str] = []
        assert await maintenance.maintain(database, everything, NOW + timedelta(days=40), failed) is None
        assert failed == ["node_states"]
        assert (await session.execute(kept)).one()[1] == 3
    assert await maintenance.maintain(database, everything, NOW + timedelta(days=40)) is None
    async with database.read() as session:
        assert (await session.execute(kept)).one() == (3, 0)


async def test_a_node_that_reports_meanwhile_ends_no_round(fresh: tuple[Database, Settings]) -> None:
    """An agent whose clock is 40 days behind locks its node with each report: retention waits for it, once."""
    database, settings = fresh
    for node in range(3):
        await store(fresh, NOW, NOW, node)
    everything = settings.model_copy(update={"retention_max_share": 1.0, "silent_node_retention_days": 0})
    failed: list[str] = []
    async with database.write() as session:
        await session.execute(text("SELECT FROM nodes WHERE name = 'db-1' FOR UPDATE"))
        round_ = asyncio.create_task(maintenance.maintain(database, everything, NOW + timedelta(days=40), failed))
        waits = text(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE OF n%'"
        )
        async with asyncio.timeout(20):
            is_waiting = 0
            while not is_waiting:  # each look in a transaction of its own, which sees what is now
                async with database.read() as looking:
                    is_waiting = await looking.scalar(waits)
    assert await round_ is None
    assert failed == []
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(newest_document) FROM node_states")) == 3
