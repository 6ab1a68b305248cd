"""What a restore is given is SQL of somebody else: what is no whole database of hugeplan leaves all as it was."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cli.test_backup_faults import asked, begun, database_url, do, hugeplan, load, names, token, until, well
from db.test_service_role import Roles, roles

from hugeplan import embedded
from hugeplan.db import migrate, replacement
from hugeplan.db.replacement import ASIDE

__all__ = ["database_url", "roles"]

_RAISES = "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';"
_SLEEPS = "CREATE FUNCTION zz() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3600); RETURN NULL; END';"
_LATE = "CREATE FUNCTION late(t text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN {} RETURN true; END$$"
_FOREIGN = {
    "another application of the first migration": (
        "CREATE TABLE alembic_version AS SELECT text '0001' AS version_num; CREATE TABLE users (id int);"
        " CREATE SCHEMA app CREATE TABLE things (id int)"
    ),
    "the newest migration and nothing else": (
        f"CREATE TABLE alembic_version (version_num text PRIMARY KEY);"
        f"INSERT INTO alembic_version VALUES ('{migrate.head_revision(migrate.migrations_dir(None))}')"
    ),
    "a view that sleeps as the migration": (
        "CREATE VIEW alembic_version AS SELECT '0001' AS version_num FROM pg_sleep(3600)"
    ),
}
"""Made in an empty database."""
_CHANGED = {
    "a trigger that raises": f"{_RAISES} CREATE TRIGGER no BEFORE DELETE ON login_links EXECUTE FUNCTION no()",
    "a trigger that sleeps": f"{_SLEEPS} CREATE TRIGGER zz BEFORE UPDATE ON tokens EXECUTE FUNCTION zz()",
    "a trigger of ours that raises": (
        "CREATE OR REPLACE FUNCTION line_of_token() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'"
    ),
    "a trigger of ours that sleeps": (
        "CREATE OR REPLACE FUNCTION line_of_token() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN PERFORM pg_sleep(3600); RETURN NEW; END'"
    ),
    "a rule": "CREATE RULE kept AS ON DELETE TO browser_sessions DO INSTEAD NOTHING",
    "a view as a table": "DROP TABLE browser_sessions; CREATE VIEW browser_sessions AS SELECT 1 AS id",
    "a table that is not there": "DROP TABLE webhook_deliveries",
    "a column that is not there": "ALTER TABLE webhooks DROP COLUMN url",
    "an index that is not there": "DROP INDEX ix_tokens_machine_id",
    "a trigger that is not there": "DROP TRIGGER audit_events_append_only ON audit_events",
    "a trigger that is off": "ALTER TABLE audit_events DISABLE TRIGGER audit_events_append_only",
    "a table without its key": "ALTER TABLE webhook_deliveries DROP CONSTRAINT pk_webhook_deliveries CASCADE",
}
"""Made in a migrated database."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ten minutes here."""
    monkeypatch.setattr(replacement, "BOUND", "3s")
    monkeypatch.setattr(migrate, "_BOUND", "3s")


def pg(program: str, *words: str) -> None:
    subprocess.run([str(embedded.programs_dir() / program), *words], check=True)


@pytest.fixture
def refused(own_database_url: str, template: str, postgres: embedded.EmbeddedPostgres) -> str:
    """A migrated database of whose owner backups come that nobody should restore."""
    name = own_database_url.rpartition("?")[0].rpartition("/")[2] + "_refused"
    postgres.ensure_database(name, template)
    return postgres.url(name)


@pytest.fixture
def empty(own_database_url: str, postgres: embedded.EmbeddedPostgres) -> str:
    name = own_database_url.rpartition("?")[0].rpartition("/")[2] + "_empty"
    postgres.ensure_database(name)
    return postgres.url(name)


def public(url: str) -> list[tuple[object, ...]]:
    """What there is but for PostgreSQL's own: schemas, and what lies in them."""
    ours = "nspname !~ '^pg_' AND nspname <> 'information_schema'"
    return asked(
        url,
        f"SELECT nspname, relname FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid WHERE {ours}"
        f" UNION ALL SELECT nspname, proname FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE {ours}"
        " ORDER BY 1, 2",
    )


def replaced(url: str) -> bool:
    return asked(url, f"SELECT FROM pg_namespace WHERE nspname = '{ASIDE}'") != []


@pytest.mark.parametrize("what", [*_FOREIGN, *_CHANGED, "an upgrade that fails", "an upgrade that sleeps"])
def test_what_is_no_whole_database_leaves_all_as_it_was(
    database_url: str, refused: str, empty: str, tmp_path: Path, what: str
) -> None:
    """In place of what is there, in an empty database, and after a kill."""
    file = str(tmp_path / "refused")
    token(database_url, "kept")
    do(database_url, "UPDATE tokens SET revoked_at = now()")
    if what in _FOREIGN:
        do(empty, _FOREIGN[what])
        pg("pg_dump", "-Fc", "-f", file, empty)
        do(empty, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP SCHEMA IF EXISTS app CASCADE")
    elif what in _CHANGED:
        do(refused, _CHANGED[what])
        pg("pg_dump", "-Fc", "-f", file, refused)
    else:
        load(empty)
        do(empty, _LATE.format("RAISE 'no';" if "fails" in what else "PERFORM pg_sleep(3600);"))
        do(empty, "UPDATE nodes SET name = 'same'")  # which a migration tells apart
        do(empty, "ALTER TABLE nodes ADD CHECK (late('x')) NOT VALID")
        pg("pg_dump", "-Fc", "-f", file, empty)
        do(empty, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    places = [(database_url, ["--replace"]), (empty, [])]
    for url, words in places[:1] if "of ours" in what else places:  # nothing is made in an empty one's tokens
        before = public(url)
        done = hugeplan(url, "restore", *words, file)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr.startswith("hugeplan restore: nothing was changed: "), done.stderr
        assert done.stderr.count("\n") == 1
        assert public(url) == before
        # Killed when the backup had arrived.
        with psycopg.connect(url, autocommit=True) as connection:
            replacement.begin(connection)
        pg("pg_restore", "--no-owner", "--schema=public", "-d", url, file)
        said = well(url, "migrate")
        assert said.startswith("A restore was cut off. What it was to replace is back: "), said
        assert asked(url, f"SELECT FROM pg_namespace WHERE nspname IN ('{ASIDE}', 'app')") == []
    assert names(database_url) == ["kept"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_there_comes_back_while_the_backups_own_sql_sleeps(
    roles: Roles, refused: str, tmp_path: Path, how: signal.Signals
) -> None:
    """In pg_restore, which nothing of ours bounds. PostgreSQL would not see for an hour that it was killed."""
    file = str(tmp_path / "refused")
    well(roles.owner, "migrate")
    token(roles.owner, "kept")
    do(refused, _LATE.format("IF current_database() !~ '_refused$' THEN PERFORM pg_sleep(3600); END IF;"))
    do(refused, "CREATE TABLE slow (x text CHECK (late(x))); INSERT INTO slow VALUES ('x')")
    pg("pg_dump", "-Fc", "-f", file, refused)
    sleeps = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    with begun(roles.owner, "restore", "--replace", file) as process:
        until(lambda: asked(roles.owner, sleeps), "a backup that sleeps")
        process.send_signal(how)
        assert process.wait(30) == (130 if how == signal.SIGINT else -how)
    if how == signal.SIGKILL:
        assert "A restore was cut off. What it was to replace is back: " in well(roles.owner, "migrate")
    assert asked(roles.owner, sleeps) == []
    assert names(roles.owner) == ["kept"]
    assert not replaced(roles.owner)


def test_a_migration_waits_for_no_restore_for_ever(database_url: str) -> None:
    """One that goes on is not ended under it."""
    token(database_url, "kept")
    with psycopg.connect(database_url, autocommit=True) as connection:
        replacement.hold(connection)
        replacement.begin(connection)
        done = hugeplan(database_url, "migrate")
        assert done.returncode == 2
        assert "nothing was changed: canceling statement due to statement timeout. Another" in done.stderr
        assert replaced(database_url)
    assert "A restore was cut off" in well(database_url, "migrate")
    assert names(database_url) == ["kept"]


def test_the_owner_of_a_database_needs_no_more_rights_than_that(
    roles: Roles, database_url: str, tmp_path: Path
) -> None:
    """What is refused comes back, what is whole stays, and the public schema of an empty database keeps its rights."""
    rights = "SELECT nspowner, nspacl[1:2] FROM pg_namespace WHERE nspname = 'public'"
    before = asked(roles.owner, rights)
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    token(database_url, "kept")
    well(database_url, "backup", good)
    do(database_url, _CHANGED["a rule"])
    well(database_url, "backup", bad)
    well(roles.owner, "restore", good)
    assert asked(roles.owner, rights) == before
    token(roles.owner, "later")
    done = hugeplan(roles.owner, "restore", "--replace", bad)
    assert "the rule kept of browser_sessions" in done.stderr
    assert names(roles.service) == ["kept", "later"]
    well(roles.owner, "restore", "--replace", good)
    assert names(roles.service) == ["kept"]
    do(roles.owner, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    assert hugeplan(roles.owner, "restore", bad).returncode == 2
    assert asked(roles.owner, "SELECT FROM pg_tables WHERE schemaname = 'public'") == []


def test_who_may_not_give_an_empty_database_back_changes_nothing(
    roles: Roles, database_url: str, own_database_url: str, tmp_path: Path
) -> None:
    well(database_url, "backup", str(tmp_path / "good"))
    do(own_database_url, "GRANT CREATE ON SCHEMA public TO hugeplan_service")
    done = hugeplan(roles.service, "restore", str(tmp_path / "good"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nothing was changed: must be owner of schema public; restore as the role that owns" in done.stderr


def test_a_restore_of_which_the_last_answer_is_lost_stands(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there is gone by then, so nothing says that it is back."""
    well(database_url, "backup", str(tmp_path / "backup"))
    token(database_url, "later")
    real = replacement.finish

    def finish(*given: Any) -> None:
        assert real(*given) is None
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(replacement, "finish", finish)
    well(database_url, "restore", "--replace", str(tmp_path / "backup"))
    assert names(database_url) == []


def test_a_full_database_is_refused_and_none_of_its_tables_is_locked(database_url: str, tmp_path: Path) -> None:
    """All others would queue behind the lock."""
    well(database_url, "backup", str(tmp_path / "backup"))
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM tokens")
        done = hugeplan(database_url, "restore", str(tmp_path / "backup"))
    assert "expected an empty one" in done.stderr


def test_views_of_ones_own_are_restored(database_url: str, tmp_path: Path) -> None:
    """A dashboard's view runs in no step of ours, and a backup with one is to be restored."""
    do(database_url, "CREATE VIEW mine AS SELECT name FROM tokens; CREATE INDEX mine_too ON tokens (name, role)")
    do(database_url, "COMMENT ON COLUMN nodes.name IS 'of the catalogue'; ALTER TABLE nodes ALTER name SET DEFAULT 'x'")
    well(database_url, "backup", str(tmp_path / "backup"))
    well(database_url, "restore", "--replace", str(tmp_path / "backup"))
    assert asked(database_url, "SELECT * FROM mine") == []
