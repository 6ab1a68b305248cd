"""``hugeplan restore FILE``: a backup into an empty database, in one transaction."""

from __future__ import annotations

import argparse
from pathlib import Path

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``restore``."""
    parser.add_argument("file", type=Path, help="a file that hugeplan backup wrote")


def run(arguments: argparse.Namespace) -> int:
    """Restore, or change nothing."""
    settings = load_settings()
    if not arguments.file.is_file():
        raise InputError(f"{arguments.file} is not a file")
    with postgres_programs.connect(settings) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    if row is None or row[0] != 0:
        raise InputError("HUGEPLAN_DATABASE_URL: the database has tables; expected an empty one to restore into")
    options = ("--no-owner", "--single-transaction", "--exit-on-error")
    database = postgres_programs.database_name(settings)
    postgres_programs.run(settings, "pg_restore", *options, f"--dbname={database}", str(arguments.file))
    print("Restored. Run: hugeplan migrate")
    return 0
