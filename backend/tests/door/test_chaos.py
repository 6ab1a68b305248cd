"""The short forms of `make chaos`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hugeplan import embedded
from hugeplan.db import migrate
from hugeplan.settings import Settings
from tools.chaos.clock_steps import clock_steps
from tools.chaos.database_away import database_away
from tools.chaos.disk_full import disk_full
from tools.chaos.forged_tokens import forged_tokens
from tools.chaos.kills import kills
from tools.chaos.migration import migration
from tools.chaos.pool_exhausted import pool_exhausted
from tools.chaos.rig import REPOSITORY, Outcome


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a PostgreSQL that has ended, with the parts' database at the newest migration."""
    data = tmp_path_factory.mktemp("chaos") / "postgresql"
    with embedded.running(data, embedded.DEMO_SETTINGS) as postgres:
        postgres.ensure_database("chaos")
        migrate.upgrade(Settings(database_url=postgres.url("chaos")).sqlalchemy_url(), REPOSITORY / "migrations")
    return data


@pytest.fixture
def folder(migrated: Path, tmp_path: Path) -> Path:
    """A part's folder. Its database is a copy, with the server's user as its owner: the part makes none."""
    return with_database(tmp_path, migrated)


def with_database(folder: Path, migrated: Path) -> Path:
    """The folder, with a copy of the database that the part starts."""
    subprocess.run(["/bin/cp", "--archive", str(migrated), str(folder / "postgresql")], check=True)
    return folder


def judge(found: Outcome) -> None:
    print(found.text)
    if found.skipped:
        pytest.skip(found.skipped)
    assert found.wrong == []


def test_kills_under_load_lose_nothing_and_go_on_where_they_ended(tmp_path: Path, migrated: Path) -> None:
    """The server is killed twice and PostgreSQL twice, the first victim in a run that ends after it."""
    progress = tmp_path / "progress"
    for expected, seconds in (("1 of 4", 0.05), ("4 of 4", None)):
        folder = tmp_path / expected[0]
        folder.mkdir()
        found = kills(
            with_database(folder, migrated),
            server_kills=2,
            postgres_kills=2,
            seed=7,
            progress=progress,
            seconds=seconds,
        )
        judge(found)
        assert found.text.startswith(expected)


def test_forged_tokens_are_refused_and_agents_go_on(folder: Path) -> None:
    judge(forged_tokens(folder, tokens=300))


def test_steps_of_the_clock_lose_and_freeze_nothing(folder: Path) -> None:
    judge(clock_steps(folder, reports=5))


def test_service_returns_with_its_database(folder: Path) -> None:
    judge(database_away(folder, seconds=3))


def test_service_returns_when_there_are_connections_again(folder: Path) -> None:
    judge(pool_exhausted(folder, seconds=3))


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    judge(disk_full(tmp_path, seconds=5))


def test_a_migration_keeps_writers_going(tmp_path: Path) -> None:
    judge(migration(tmp_path, samples=20_000, nodes=10))
