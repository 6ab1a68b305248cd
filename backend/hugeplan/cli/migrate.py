"""``hugeplan migrate``: bring the database to the newest migration."""

from __future__ import annotations

import argparse

import psycopg
from alembic.util import CommandError
from sqlalchemy.exc import OperationalError

from hugeplan.cli import InputError
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import migrate, reader_role
from hugeplan.db.server_release import ServerReleaseError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``migrate``."""
    parser.add_argument("--revision", default="head", help="the revision to go to (default: head)")


def run(arguments: argparse.Namespace) -> int:
    """Migrate."""
    settings = load_settings()
    try:
        migrate.upgrade(settings.sqlalchemy_url(), migrate.migrations_dir(settings.migrations_dir), arguments.revision)
        if arguments.revision == "head" and reader_role.grant_reading(settings.psycopg_url()):
            print(f"{reader_role.READER} may read everything but credentials.")
    except CommandError as error:
        raise InputError(
            f"--revision: {arguments.revision!r} is not valid; expected head or a revision: {error}"
        ) from error
    except migrate.MigrationsMissingError as error:
        raise InputError(str(error)) from error
    except (migrate.DatabaseEncodingError, ServerReleaseError) as error:
        raise InputError(f"HUGEPLAN_DATABASE_URL: {error}") from error
    except (OperationalError, psycopg.OperationalError) as error:
        cause = getattr(error, "orig", error)
        reason = str(cause).splitlines()[0]
        if isinstance(cause, psycopg.errors.LockNotAvailable):
            raise InputError(
                f"HUGEPLAN_DATABASE_URL: nothing was changed: {reason}. Another transaction holds a table that a"
                " migration changes; stop the service, then run: hugeplan migrate"
            ) from error
        raise InputError(f"HUGEPLAN_DATABASE_URL: the database cannot be reached: {reason}") from error
    print("The database is at the newest migration." if arguments.revision == "head" else "Done.")
    return 0
