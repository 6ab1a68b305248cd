"""An upgrade that is cut off: nothing of the database has changed, and the same command again brings it along.

``data/release_before.sql`` is the database of the previous release. A lock of somebody else's holds the upgrade in its
middle, on a table that a later migration changes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from hugeplan import embedded
from hugeplan.db import migrate

DUMP = Path(__file__).parent / "data" / "release_before.sql"
TABLES = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"


@pytest.fixture
def former(own_database_url: str) -> str:
    """The URL of a database of the previous release, with its rows."""
    psql = [str(embedded.programs_dir() / "psql"), "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1"]
    with DUMP.open("rb") as dump:
        subprocess.run([*psql, own_database_url], stdin=dump, stdout=subprocess.DEVNULL, check=True)
    return own_database_url


def upgrade(url: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "hugeplan.cli", "migrate"]
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": url}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def contents(url: str) -> tuple[object, ...]:
    """Every column, the migration, and how many reports there are."""
    with psycopg.connect(url) as connection:
        columns = sorted(connection.execute(TABLES).fetchall())
        version = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return columns, version, connection.execute("SELECT count(*) FROM reports").fetchone()


@contextmanager
def held_up(url: str, *, seconds: float = 60) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """An upgrade that waits in its middle, and the process id of its connection in PostgreSQL."""
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as watch:
        other.execute("LOCK TABLE plans IN ACCESS SHARE MODE")
        begun = upgrade(url)
        try:
            deadline = time.monotonic() + seconds
            asked = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'plans'::regclass"
            while not (found := watch.execute(asked).fetchone()):
                assert begun.poll() is None, begun.communicate()
                assert time.monotonic() < deadline, "the upgrade does not come to the table"
                time.sleep(0.02)
            yield begun, int(found[0])
        finally:
            begun.kill()
            begun.communicate()


@pytest.mark.parametrize("fault", ["kill -9", "the database ends the connection", "a lock that lasts"])
def test_an_upgrade_that_is_cut_off_changes_nothing_and_is_repeated(former: str, fault: str) -> None:
    before = contents(former)
    with held_up(former) as (begun, pid):
        if fault == "kill -9":
            begun.kill()
        elif fault == "the database ends the connection":
            with psycopg.connect(former) as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        said = begun.communicate(timeout=60)[1]
        assert begun.returncode != 0
        if fault != "kill -9":
            assert said.startswith("hugeplan migrate: HUGEPLAN_DATABASE_URL: ")
            assert said.count("\n") == 1, said
            assert ("stop the service, then run: hugeplan migrate" in said) == (fault == "a lock that lasts"), said
    assert contents(former) == before
    again = upgrade(former)
    said = again.communicate(timeout=120)[1]
    assert again.returncode == 0, said
    columns, version, reports = contents(former)
    assert version == [(migrate.head_revision(migrate.migrations_dir(None)),)]
    assert reports == before[2]
    assert columns != before[0]
