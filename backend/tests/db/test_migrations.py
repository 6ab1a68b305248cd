"""The migrations build the database, alone and completely."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from conftest import MIGRATIONS

from hugeplan.db import migrate
from hugeplan.db.base import Base
from hugeplan.settings import Settings


def sqlalchemy_url(url: str) -> str:
    """The URL with its driver."""
    return Settings.model_validate({"database_url": url}).sqlalchemy_url()


def tables(url: str) -> set[str]:
    """The tables of a database."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {row[0] for row in rows}


def test_models_and_migrations_agree(worker_database: str) -> None:
    # The worker's database also has partitions by now, which must not count as differences.
    migrate.check(sqlalchemy_url(worker_database), MIGRATIONS)


def test_upgrade_makes_every_table_and_downgrade_removes_them(own_database_url: str) -> None:
    url = sqlalchemy_url(own_database_url)
    migrate.upgrade(url, MIGRATIONS)
    assert set(Base.metadata.tables) <= tables(own_database_url)
    migrate.downgrade(url, MIGRATIONS, "base")
    assert tables(own_database_url) == {"alembic_version"}
    migrate.upgrade(url, MIGRATIONS)
    migrate.check(url, MIGRATIONS)


def test_upgrade_twice_changes_nothing(own_database_url: str) -> None:
    url = sqlalchemy_url(own_database_url)
    migrate.upgrade(url, MIGRATIONS)
    before = tables(own_database_url)
    migrate.upgrade(url, MIGRATIONS)
    assert tables(own_database_url) == before


def test_upgrades_of_several_processes_wait_for_each_other(own_database_url: str) -> None:
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": own_database_url}
    command = [sys.executable, "-m", "hugeplan.cli", "migrate"]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    migrate.check(sqlalchemy_url(own_database_url), MIGRATIONS)


def test_a_finding_keeps_its_beginning_where_a_pool_got_another_name(own_database_url: str) -> None:
    url = sqlalchemy_url(own_database_url)
    migrate.upgrade(url, MIGRATIONS)
    migrate.downgrade(url, MIGRATIONS, "0005_history")
    subjects = ["2 MiB pool", "1 GiB pool on NUMA node 1", "postgresql", "64 KiB pool"]
    with psycopg.connect(own_database_url) as connection:
        # Only the findings are looked at; the nodes they belong to are not.
        connection.execute("SET session_replication_role = replica")
        for subject in subjects:
            connection.execute(
                "INSERT INTO node_findings (node_id, code, subject, state, title, since)"
                " VALUES ('00000000-0000-0000-0000-000000000001', 'pool_idle', %s, 'attention', 't', '2026-01-01')",
                [subject],
            )

    def stored() -> list[tuple[str, int]]:
        with psycopg.connect(own_database_url) as connection:
            statement = "SELECT subject, extract(year FROM since)::int FROM node_findings ORDER BY subject"
            return list(connection.execute(statement).fetchall())

    migrate.upgrade(url, MIGRATIONS)
    assert sorted(stored()) == [
        ("1G pool on NUMA node 1", 2026),
        ("2M pool", 2026),
        ("64K pool", 2026),
        ("postgresql", 2026),
    ]
    migrate.downgrade(url, MIGRATIONS, "0005_history")
    assert sorted(name for name, _ in stored()) == sorted(subjects)


def test_a_database_that_is_not_utf8_is_refused_in_one_line(own_database_url: str) -> None:
    with psycopg.connect(own_database_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS ascii_only")
        connection.execute(
            "CREATE DATABASE ascii_only ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
        )
    name = psycopg.conninfo.conninfo_to_dict(own_database_url)["dbname"]
    url = own_database_url.replace(f"/{name}", "/ascii_only", 1)
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": url}
    command = [sys.executable, "-m", "hugeplan.cli", "migrate"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "the database's encoding is SQL_ASCII; expected UTF8" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_missing_folder_is_one_sentence() -> None:
    with pytest.raises(migrate.MigrationsMissingError, match="HUGEPLAN_MIGRATIONS_DIR"):
        migrate.migrations_dir(MIGRATIONS / "nothing")


def test_blocks_of_the_release_before_stay_and_new_ones_stop_the_way_back(own_database_url: str) -> None:
    url = sqlalchemy_url(own_database_url)
    migrate.upgrade(url, MIGRATIONS)
    migrate.downgrade(url, MIGRATIONS, "0014_trials")
    block = (
        "INSERT INTO sealed_documents (node_id, start_at, first_report_id, end_at, report_ids, sizes_bytes, documents)"
        " VALUES (gen_random_uuid(), '2026-11-24', gen_random_uuid(), '2026-11-24', '{}', '{}', 'former')"
    )
    with psycopg.connect(own_database_url) as connection:
        # With a partition of its own, as maintenance makes it.
        connection.execute("CREATE TABLE sealed_documents_20261124 (LIKE sealed_documents INCLUDING ALL)")
        connection.execute(
            "ALTER TABLE sealed_documents ATTACH PARTITION sealed_documents_20261124"
            " FOR VALUES FROM ('2026-11-24T00:00Z') TO ('2026-11-25T00:00Z')"
        )
        connection.execute(block)
    migrate.upgrade(url, MIGRATIONS)
    with psycopg.connect(own_database_url) as connection:
        found = connection.execute("SELECT documents, taken_from, taken_to, report_count FROM sealed_documents")
        assert found.fetchall() == [(b"former", None, None, 0)]
    migrate.downgrade(url, MIGRATIONS, "0014_trials")
    migrate.upgrade(url, MIGRATIONS)
    with psycopg.connect(own_database_url) as connection:
        connection.execute("UPDATE sealed_documents SET taken_to = now()")
    with pytest.raises(Exception, match="restore the backup"):
        migrate.downgrade(url, MIGRATIONS, "0014_trials")
