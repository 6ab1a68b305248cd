"""``hugeplan wait COMMAND...``: another command of hugeplan, as soon as its database is there.

Containers start in any order: an engine may know no order (podman before 4.6 knows no "healthy"), and after a restart
of the machine none keeps to it. So a step waits by itself, and says once what it waits for.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import psycopg

from hugeplan.cli import EXIT_FAILED, InputError, postgres_programs
from hugeplan.cli.service_settings import load_settings
from hugeplan.db import migrate
from hugeplan.settings import Settings
from hugeplan.unprivileged import own_path

_PAUSE_SECONDS = 0.5
_ANSWERS_IN_A_ROW = 6
_MOST_SECONDS = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``wait``."""
    parser.add_argument("--seconds", type=int, default=300, metavar="N", help="give up after so long (default: 300)")
    parser.add_argument("--migrated", action="store_true", help="wait for the newest migration, too")
    parser.add_argument("--role", metavar="NAME", help="wait for this role of the database, too")
    parser.add_argument("then", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run then, such as: migrate")


def run(arguments: argparse.Namespace) -> int:
    """Wait, then become the command."""
    if not 0 <= arguments.seconds <= _MOST_SECONDS:
        raise InputError(f"--seconds: {arguments.seconds} is not valid; expected 0 to {_MOST_SECONDS}")
    settings = load_settings()
    deadline = time.monotonic() + arguments.seconds
    said: str | None = None
    answers = 0
    address: str | None = None
    # Without a wait the first answer is enough. After one it must last: while other containers start, podman's name
    # server knows a name, loses it for a moment and knows it again.
    while answers < (_ANSWERS_IN_A_ROW if said else 1):
        reason, address = missing(settings, migrated=arguments.migrated, role=arguments.role)
        answers = 0 if reason else answers + 1
        if reason is None:
            time.sleep(_PAUSE_SECONDS if said else 0)
            continue
        if time.monotonic() >= deadline:
            sys.stderr.write(f"hugeplan wait: after {arguments.seconds} s {reason}\n")
            return EXIT_FAILED
        if reason != said:
            sys.stderr.write(f"waiting: {reason}\n")  # what the command then prints may be a backup
            said = reason
        time.sleep(_PAUSE_SECONDS)
    if arguments.then:
        if address is not None and arguments.then[0] != "serve":
            # What was found is used: a name server that loses a question now and then ends no backup. A service lasts
            # longer than an address does, and asks again by itself.
            os.environ["PGHOSTADDR"] = address
        os.environ.update(own_path())
        os.execv(sys.executable, [sys.executable, "-m", "hugeplan.cli", *arguments.then])  # noqa: S606 - our own command
    return 0


def missing(settings: Settings, *, migrated: bool, role: str | None = None) -> tuple[str | None, str | None]:
    """What is not there yet, in half a sentence, or None when everything is; and the database's address where known."""
    address = None
    try:
        with postgres_programs.connect(settings, is_patient=False) as connection:
            address = postgres_programs.address_of(connection)
            if role and connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).rowcount == 0:
                return f"the database has no role {role}", address
            if not migrated:
                return None, address
            return migrate.behind(connection, migrate.migrations_dir(settings.migrations_dir)), address
    except InputError as error:
        return str(error), None
    except psycopg.errors.InsufficientPrivilege:
        return "the service's role may not read the database before hugeplan migrate has granted it", address
