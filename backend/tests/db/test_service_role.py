"""The service's own role: everything it does works with rights on rows alone, and no table can be made or dropped."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hugeplan import embedded
from hugeplan.cli import main
from hugeplan.db import maintenance
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.fleet import sealing
from hugeplan.settings import Settings

BACKEND = Path(__file__).resolve().parents[2]
ROLES = """
CREATE ROLE role_owner LOGIN;
CREATE ROLE hugeplan_service LOGIN;
CREATE ROLE hugeplan_reader LOGIN;
"""


@dataclass(frozen=True)
class Roles:
    """One database as its owner, as the service and as the reader see it."""

    owner: str
    service: str
    reader: str


def as_role(url: str, role: str) -> str:
    """The URL with another role: over the socket no password is asked for."""
    return url.replace("//hugeplan@", f"//{role}@")


@pytest.fixture
def roles(postgres: embedded.EmbeddedPostgres, own_database_url: str) -> Iterator[Roles]:
    name = conninfo_to_dict(own_database_url)["dbname"]
    made = Roles(*(as_role(own_database_url, role) for role in ("role_owner", "hugeplan_service", "hugeplan_reader")))
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(ROLES)
        connection.execute(f"ALTER DATABASE {name} OWNER TO role_owner")  # type: ignore[arg-type]
    try:
        yield made
    finally:
        with psycopg.connect(own_database_url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} OWNER TO hugeplan")  # type: ignore[arg-type]
            for role in ("hugeplan_reader", "hugeplan_service", "role_owner"):
                connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")  # type: ignore[arg-type]


def hugeplan(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": url}
    return subprocess.run(
        [sys.executable, "-m", "hugeplan.cli", *words], env=environment, capture_output=True, text=True, check=False
    )


def migrated(roles: Roles) -> None:
    done = hugeplan(roles.owner, "migrate")
    assert done.returncode == 0, done.stderr
    assert "hugeplan_service may change rows and no table." in done.stdout


def test_reports_maintenance_and_sealing_need_no_table_of_ones_own(roles: Roles) -> None:
    """A fleet with history, its partitions made and dropped, its past days given back, all as the service's role."""
    migrated(roles)
    seed = [sys.executable, "-m", "tools.seed", "--nodes", "3"]
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": roles.service}
    subprocess.run(seed, cwd=BACKEND, env=environment, check=True, capture_output=True)
    settings = Settings(database_url=roles.service, seal_after_seconds=1)
    now = datetime.now(UTC)

    async def rounds() -> tuple[str | None, str | None, list[str]]:
        engine = create_engine(settings)
        database = Database(engine)
        try:
            first = await maintenance.maintain(database, settings, now)
            await sealing.seal_round(database, settings.seal_after_seconds)
            later = now + timedelta(days=3)
            emptied = await sealing.give_space_back(database, later)
            old = settings.model_copy(update={"retention_max_share": 1.0})
            return first, await maintenance.maintain(database, old, now + timedelta(days=60)), emptied
        finally:
            await engine.dispose()

    assert asyncio.run(rounds())[:2] == (None, None)
    with psycopg.connect(roles.owner) as connection:
        today = connection.execute(f"SELECT to_regclass('samples_{now:%Y%m%d}')").fetchone()  # type: ignore[arg-type]
        then = connection.execute(
            f"SELECT to_regclass('samples_{now + timedelta(days=60):%Y%m%d}') IS NOT NULL"  # type: ignore[arg-type]
        ).fetchone()
    assert (today, then) == ((None,), (True,)), "a day past its retention is dropped, that of the day is made"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (y int)",
        "DROP TABLE nodes",
        "ALTER TABLE nodes ADD COLUMN x int",
        "TRUNCATE reports",
        "UPDATE alembic_version SET version_num = 'x'",
        "DROP SCHEMA public CASCADE",
        "SELECT make_partition('nodes', '2026-11-20', '2026-11-21')",
        "SELECT drop_partition('samples', '1999-01-01')",
        "SELECT give_space_back('pg_class', '2026-11-20')",
        "SELECT drop_partition('samples; DROP TABLE nodes', '2026-11-20')",
        "CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_what_the_services_role_must_not_do(roles: Roles, statement: str) -> None:
    migrated(roles)
    with psycopg.connect(roles.service) as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)  # type: ignore[arg-type]
    assert isinstance(refused.value, psycopg.errors.InsufficientPrivilege | psycopg.errors.UndefinedTable), refused


def test_who_may_not_delete_a_tables_rows_drops_no_partition_of_it(roles: Roles) -> None:
    """A backup that is restored without its rights leaves functions to everybody: they ask by themselves."""
    migrated(roles)
    with psycopg.connect(roles.owner, autocommit=True) as connection:
        connection.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO hugeplan_reader")
        connection.execute("SELECT make_partition('samples', '2020-01-01', '2020-01-02')")
    with (
        psycopg.connect(roles.reader) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="hugeplan_reader may not delete rows of samples"),
    ):
        connection.execute("SELECT drop_partition('samples', '2020-01-01')")


def test_what_somebody_else_owns_is_not_granted_and_stops_nothing(roles: Roles, own_database_url: str) -> None:
    """An extension's objects in the same schema, which the owner may not even read."""
    with psycopg.connect(own_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE theirs (x int); REVOKE ALL ON theirs FROM PUBLIC")
        connection.execute("CREATE FUNCTION theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        connection.execute("REVOKE ALL ON FUNCTION theirs() FROM PUBLIC")
    migrated(roles)
    with psycopg.connect(own_database_url) as connection:
        allowed = connection.execute("SELECT has_table_privilege('hugeplan_service', 'theirs', 'SELECT')").fetchone()
    assert allowed == (False,)


def test_replicas_that_migrate_at_once_all_grant(roles: Roles) -> None:
    migrated(roles)
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": roles.owner}
    command = [sys.executable, "-m", "hugeplan.cli", "migrate"]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ended = [one.communicate()[1] for one in started]
    assert [one.returncode for one in started] == [0] * 4, ended


def test_a_backup_goes_back_with_the_rights_of_the_roles_that_are_there(roles: Roles, tmp_path: Path) -> None:
    """Backup and restore as the owner; the service reads and writes afterwards, and restores nothing itself."""
    migrated(roles)
    made = hugeplan(roles.service, "token", "create", "--role", "viewer", "--name", "kept")
    assert made.returncode == 0, made.stderr
    file = tmp_path / "all.dump"
    assert hugeplan(roles.owner, "backup", str(file)).returncode == 0
    refused = hugeplan(roles.service, "restore", "--replace", str(file))
    assert refused.returncode == 2
    assert "nothing was changed" in refused.stderr
    assert "as the role that owns the tables" in refused.stderr
    restored = hugeplan(roles.owner, "restore", "--replace", str(file))
    assert restored.returncode == 0, restored.stderr
    listed = hugeplan(roles.service, "token", "list")
    assert "kept" in listed.stdout, listed.stderr
    assert hugeplan(roles.service, "token", "create", "--role", "viewer", "--name", "more").returncode == 0


def test_the_doctor_tells_the_two_roles_apart(roles: Roles) -> None:
    migrated(roles)
    assert "ok        The database's role hugeplan_service changes rows and no table." in (
        hugeplan(roles.service, "doctor").stdout
    )
    assert "attention The database's role role_owner may make and drop tables" in hugeplan(roles.owner, "doctor").stdout


def test_who_waits_for_a_role_says_so_and_goes_on(
    roles: Roles, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", roles.owner)
    assert main(["wait", "--seconds", "0", "--role", "nobody_here"]) == 1
    assert "after 0 s the database has no role nobody_here" in capsys.readouterr().err
    assert main(["wait", "--seconds", "0", "--role", "hugeplan_service"]) == 0
    # Tables of the newest migration whose rights the service has not got yet.
    migrated(roles)
    with psycopg.connect(roles.owner, autocommit=True) as connection:
        connection.execute("REVOKE ALL ON alembic_version FROM hugeplan_service")
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", roles.service)
    assert main(["wait", "--seconds", "0", "--migrated"]) == 1
    assert "may not read the database before hugeplan migrate" in capsys.readouterr().err
