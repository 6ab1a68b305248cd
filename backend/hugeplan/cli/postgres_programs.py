"""PostgreSQL's own programs, run on the database of the settings. The password goes by the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hugeplan import embedded
from hugeplan.cli import InputError
from hugeplan.settings import Settings

_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
}


def find(program: str) -> Path:
    """The program of the embedded PostgreSQL where it is installed, else that of the PATH. InputError without one."""
    try:
        return embedded.programs_dir() / program
    except embedded.EmbeddedPostgresError:
        found = shutil.which(program)
    if found is None:
        raise InputError(f"{program} is missing: install the client programs of PostgreSQL")
    return Path(found)


def libpq_url(settings: Settings) -> str:
    """The database URL as libpq reads it."""
    return settings.database_url.get_secret_value().replace("postgresql+psycopg://", "postgresql://", 1)


def run(settings: Settings, program: str, *arguments: str) -> None:
    """Run a program to its end. InputError with its last line when it fails."""
    parts = conninfo_to_dict(libpq_url(settings))
    environment = {_VARIABLES[name]: str(value) for name, value in parts.items() if name in _VARIABLES and value}
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own program, never through a shell
        [str(find(program)), "--no-password", *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise InputError(f"{program} failed: {lines[-1]}")


def connect(settings: Settings) -> psycopg.Connection[tuple[object, ...]]:
    """A connection for a command. InputError when the database cannot be reached."""
    try:
        return psycopg.connect(libpq_url(settings), connect_timeout=max(2, round(settings.database_timeout_seconds)))
    except psycopg.OperationalError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"HUGEPLAN_DATABASE_URL: the database cannot be reached: {reason}") from error


def database_name(settings: Settings) -> str:
    """The database's name."""
    parts = conninfo_to_dict(libpq_url(settings))
    return str(parts.get("dbname") or parts.get("user") or "")
