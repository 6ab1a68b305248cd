"""``hugeplan restore FILE``: a backup into an empty database, or with ``--replace`` in place of what is there.

The backup is restored in one transaction and brought to the newest migration. ``-`` is standard input.
"""

from __future__ import annotations

import argparse
import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import psycopg
from psycopg.conninfo import make_conninfo

from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.files import to_read
from hugeplan.cli.migrate import bring_along, in_words
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import migrate, replacement
from hugeplan.settings import Settings

#: The first bytes of pg_dump's custom format.
MAGIC: Final = b"PGDMP"
LEAVING_SECONDS: Final = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``restore``."""
    parser.add_argument("file", type=Path, help="a file that hugeplan backup wrote; - is standard input")
    parser.add_argument("--replace", action="store_true", help="drop every table that is there, with its rows, before")
    parser.add_argument(
        "--even-if-in-use", action="store_true", help="replace although the service is connected; restart it afterwards"
    )


def run(arguments: argparse.Namespace) -> int:
    """Restore, or change nothing."""
    settings = load_settings()
    with in_words():
        try:
            _from(arguments, settings, migrate.migrations_dir(settings.migrations_dir))
        except psycopg.Error as error:
            is_refused = isinstance(error, psycopg.errors.InsufficientPrivilege)
            hint = "; restore as the role that owns the tables (docs/upgrading.md)" if is_refused else ""
            reason = str(error).splitlines()[0]
            raise InputError(f"HUGEPLAN_DATABASE_URL: nothing was changed: {reason}{hint}") from error
        except OSError as error:
            raise InputError(f"{arguments.file} cannot be read: {error.strerror}") from error
    bring_along(settings)
    print("Restored, and brought to the newest migration. Browsers log in again, and enrolments are approved again.")
    print("Tokens (hugeplan token list) are the backup's, without what was revoked since in what it replaced.")
    return 0


def _from(arguments: argparse.Namespace, settings: Settings, folder: Path) -> None:
    with to_read(str(arguments.file)) as given:
        if given.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{arguments.file} is no backup; expected a file that hugeplan backup wrote, whole")
        if arguments.replace and not arguments.even_if_in_use:
            _refuse_in_use(settings)
        with postgres_programs.connect(settings) as connection:
            connection.autocommit = True
            migrate.require_suitable(settings.sqlalchemy_url())
            replacement.hold(connection)
            if replacement.is_begun(connection):
                migrate.end_replacement(settings.sqlalchemy_url(), folder)
            if not arguments.replace and not replacement.is_empty(connection):
                raise InputError(
                    "HUGEPLAN_DATABASE_URL: the database's schema public holds something; expected an empty one to"
                    " restore into, or --replace"
                )
            _replace(connection, settings, folder, given)


_IN_USE: Final = """
SELECT DISTINCT format('%s as %s%s', application_name, usename, ' from ' || host(client_addr)) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'hugeplan%' ORDER BY 1 LIMIT 4
"""


def _refuse_in_use(settings: Settings) -> None:
    """InputError that names who is connected. A service that was just stopped is given a moment to leave."""
    until = time.monotonic() + LEAVING_SECONDS
    with postgres_programs.connect(settings) as connection:
        connection.autocommit = True
        while found := [str(row[0]) for row in connection.execute(_IN_USE)]:
            if time.monotonic() > until:
                raise InputError(
                    f"--replace: nothing was changed: the database is in use ({', '.join(found)}); stop every replica"
                    " of the service, or add --even-if-in-use"
                )
            time.sleep(0.1)


def _replace(
    connection: psycopg.Connection[tuple[object, ...]], settings: Settings, folder: Path, given: IO[bytes]
) -> None:
    """What the file holds, whole and at the newest migration; else what was there before comes back."""
    try:
        replacement.begin(connection)
        _restore(settings, given)
    except BaseException as error:
        replacement.give_back(settings.psycopg_url(), str(error) or "it was interrupted")
        if isinstance(error, InputError):
            raise InputError(f"nothing was changed: {error}") from error
        raise
    if (why := migrate.end_replacement(settings.sqlalchemy_url(), folder)) is not None:
        raise InputError(f"nothing was changed: {why}")


def _restore(settings: Settings, rest: IO[bytes]) -> None:
    """One transaction of pg_restore, of what lies in the schema public alone: nothing else could be given back."""
    database = make_conninfo(dbname=postgres_programs.database_name(settings), application_name=replacement.RESTORING)
    # Rights are granted anew: the roles that had some may not be here.
    options = ("--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", "--schema=public")
    unread: list[OSError] = []
    out, into = os.pipe()
    feeder = threading.Thread(target=_feed, args=(rest, into, unread), daemon=True)
    feeder.start()
    try:
        with os.fdopen(out, "rb", buffering=0) as given:
            postgres_programs.run(settings, "pg_restore", *options, f"--dbname={database}", given=given)
    except InputError as error:
        if unread:
            raise unread[0] from error
        raise


def _feed(rest: IO[bytes], into: int, unread: list[OSError]) -> None:
    """Give pg_restore the first bytes, which were read already, and the rest."""
    with suppress(BrokenPipeError), os.fdopen(into, "wb", buffering=0) as pipe:
        pipe.write(MAGIC)
        try:
            shutil.copyfileobj(rest, pipe, 1 << 20)
        except BrokenPipeError:  # pg_restore has ended, and says why
            raise
        except OSError as error:
            unread.append(error)
