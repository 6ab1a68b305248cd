"""``hugeplan restore FILE``: a backup into an empty database, or with ``--replace`` in place of what is there.

The backup is restored in one transaction and brought to the newest migration. ``-`` is standard input.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

import psycopg

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import migrate
from hugeplan.settings import Settings

#: The first bytes of pg_dump's custom format.
MAGIC: Final = b"PGDMP"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``restore``."""
    parser.add_argument("file", type=Path, help="a file that hugeplan backup wrote; - is standard input")
    parser.add_argument("--replace", action="store_true", help="drop every table that is there, with its rows, before")


def run(arguments: argparse.Namespace) -> int:
    """Restore, or change nothing."""
    settings = load_settings()
    with tempfile.TemporaryFile(buffering=0) as copy:  # pg_restore reads the same place of the same file
        try:
            with sys.stdin.buffer if str(arguments.file) == "-" else arguments.file.open("rb") as given:
                shutil.copyfileobj(given, copy)
        except OSError as error:
            raise InputError(f"{arguments.file} cannot be read: {error.strerror}") from error
        copy.seek(0)
        if copy.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{arguments.file} is no backup; expected a file that hugeplan backup wrote, whole")
        _restore(settings, copy, replace=arguments.replace)
    migrate.upgrade(settings.sqlalchemy_url(), migrate.migrations_dir(settings.migrations_dir))
    print("Restored, and brought to the newest migration.")
    return 0


_BEFORE = "hugeplan_before"
"""The schema that holds what is being replaced until the backup stands whole in its place."""


def _restore(settings: Settings, backup: IO[bytes], *, replace: bool) -> None:
    """One transaction of pg_restore. With ``replace`` the tables of before are put aside, and come back if it fails.

    A restore that was killed leaves them aside: the next one puts them back before it begins.
    """
    database = postgres_programs.database_name(settings)
    # Read it whole once before anything is replaced: a backup that was cut off fails here.
    backup.seek(0)
    postgres_programs.run(settings, "pg_restore", "--file=/dev/null", given=backup)
    with postgres_programs.connect(settings) as connection:
        _put_back(connection)
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        if row is None or (row[0] != 0 and not replace):
            raise InputError(
                "HUGEPLAN_DATABASE_URL: the database has tables; expected an empty one to restore into, or --replace"
            )
        if replace:
            connection.execute(f"ALTER SCHEMA public RENAME TO {_BEFORE}")
            connection.execute("CREATE SCHEMA public")
    backup.seek(0)
    options = ("--no-owner", "--single-transaction", "--exit-on-error")
    try:
        postgres_programs.run(settings, "pg_restore", *options, f"--dbname={database}", given=backup)
    except BaseException:
        with postgres_programs.connect(settings) as connection:
            _put_back(connection)
        raise
    with postgres_programs.connect(settings) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {_BEFORE} CASCADE")


def _put_back(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """What a restore put aside stands where it was; nothing where none is aside."""
    if connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (_BEFORE,)).fetchone() is not None:
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        connection.execute(f"ALTER SCHEMA {_BEFORE} RENAME TO public")
