"""``hugeplan migrate``: bring the database to the newest migration."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import migrate, roles
from hugeplan.db.replacement import KeptAsideError
from hugeplan.db.server_release import ServerReleaseError
from hugeplan.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``migrate``."""
    parser.add_argument("--revision", default="head", help="the revision to go to (default: head)")


def run(arguments: argparse.Namespace) -> int:
    """Migrate."""
    for sentence in bring_along(load_settings(), arguments.revision):
        print(sentence)
    print("The database is at the newest migration." if arguments.revision == "head" else "Done.")
    return 0


def bring_along(settings: Settings, revision: str = "head") -> list[str]:
    """Bring the database to a revision; at the newest, what other roles may do there. Raises InputError."""
    with in_words(revision):
        folder = migrate.migrations_dir(settings.migrations_dir)
        why = migrate.upgrade(settings.sqlalchemy_url(), folder, revision)
        said = [f"A restore was cut off. What it was to replace is back: {why}."] if why else []
        return said + (roles.grant(settings.psycopg_url()) if revision == "head" else [])


@contextmanager
def in_words(revision: str = "head") -> Iterator[None]:
    """Errors of the database and of its migrations as InputError."""
    try:
        yield
    except CommandError as error:
        raise InputError(f"--revision: {revision!r} is not valid; expected head or a revision: {error}") from error
    except (migrate.MigrationsMissingError, KeptAsideError) as error:
        raise InputError(str(error)) from error
    except (migrate.DatabaseEncodingError, ServerReleaseError) as error:
        raise InputError(f"HUGEPLAN_DATABASE_URL: {error}") from error
    except (DBAPIError, psycopg.Error) as error:
        if (meaning := _meaning(getattr(error, "orig", error))) is None:
            raise
        raise InputError(f"HUGEPLAN_DATABASE_URL: {meaning}") from error


def _meaning(cause: object) -> str | None:
    """What went wrong and what mends it; None for an error that only a fault in a migration explains."""
    reason = str(cause).splitlines()[0]
    match cause:
        case psycopg.errors.LockNotAvailable() | psycopg.errors.QueryCanceled():
            return (
                f"nothing was changed: {reason}. Another transaction holds a table that a migration changes, or a"
                " restore still runs: wait for it, or stop the service, then run: hugeplan migrate"
            )
        case psycopg.errors.DiskFull():
            return f"nothing was changed: {reason}. Make room on the database's disk, then run: hugeplan migrate"
        case psycopg.errors.InsufficientPrivilege():
            return f"nothing was changed: {reason}. Run hugeplan migrate as the role that owns the tables"
        case psycopg.OperationalError():
            return postgres_programs.unreachable(cause)
    return None
