"""``hugeplan demo``: the service with a PostgreSQL of its own, in one folder, until Ctrl-C.

Everything lives in HUGEPLAN_STATE_DIR: the database, ``admin.token``, which makes login links, and ``agent.token`` for
the agent of this machine. The folder and its files are for their owner only. A login link works once and for a short
time; it is printed to a terminal, and to nothing that keeps it.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from pydantic import SecretStr

from hugeplan import embedded
from hugeplan.access import bootstrap
from hugeplan.access.schemas import Role
from hugeplan.cli import InputError
from hugeplan.cli.files import make_private
from hugeplan.cli.secrets import write_secret
from hugeplan.cli.service_settings import load_settings
from hugeplan.cli.serving import bind, serve
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings
from hugeplan.signals import handled, ignore

DATABASE = "hugeplan"
ADMIN_TOKEN_FILE = "admin.token"  # noqa: S105 - names of files
AGENT_TOKEN_FILE = "agent.token"  # noqa: S105
PRIVATE_UMASK = 0o077


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``; they win over HUGEPLAN_STATE_DIR and HUGEPLAN_PORT."""
    parser.add_argument("--state-dir", metavar="DIR", help="folder of the database and the token files")
    parser.add_argument("--port", metavar="N", help="TCP port to listen on")
    parser.add_argument(
        "--print-login-link", action="store_true", help="print the link also where the output is no terminal"
    )


def _hang_up(_signal: int, _frame: FrameType | None) -> None:
    # The server ends gracefully on SIGTERM and does not know SIGHUP.
    os.kill(os.getpid(), signal.SIGTERM)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


async def prepare_tokens(settings: Settings) -> str:
    """Write both token files and answer the secret of a new login link."""
    database = Database(create_engine(settings))
    try:
        for name, role in {ADMIN_TOKEN_FILE: Role.ADMIN, AGENT_TOKEN_FILE: Role.AGENT}.items():
            path = settings.state_dir / name
            secret = _read(path)
            # The agent's token is new at each start: it binds to the machine that uses it first, and the state
            # folder may have moved to another machine.
            if role is Role.AGENT or secret is None or not await bootstrap.is_usable(database, secret, role):
                secret = await bootstrap.replace_token(database, f"demo {role}", role)
            write_secret(path, secret)
        return await bootstrap.create_login_link(database, _read(settings.state_dir / ADMIN_TOKEN_FILE) or "")
    finally:
        await database.dispose()


def run(arguments: argparse.Namespace) -> int:
    """Start PostgreSQL, migrate, serve; stop PostgreSQL again however it ends."""
    started = time.monotonic()
    given = {"state_dir": arguments.state_dir, "port": arguments.port}
    settings = load_settings(**{name: value for name, value in given.items() if value is not None})
    listening = bind(settings.host, settings.port)
    umask = os.umask(PRIVATE_UMASK)
    try:
        with handled(signal.default_int_handler, (signal.SIGTERM, signal.SIGINT)), handled(_hang_up, (signal.SIGHUP,)):
            make_private(settings.state_dir)
            is_shown = arguments.print_login_link or sys.stdout.isatty()
            with _lock(settings.state_dir), _postgres(settings) as server:
                server.ensure_database(DATABASE)
                with_database = settings.model_copy(update={"database_url": SecretStr(server.url(DATABASE))})
                _serve(with_database, listening, started, is_shown=is_shown)
    except (embedded.EmbeddedPostgresError, migrate.MigrationsMissingError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"HUGEPLAN_STATE_DIR: {error.filename}: {error.strerror}") from error
    except KeyboardInterrupt:
        return 0
    finally:
        os.umask(umask)
        listening.close()
    return 0


@contextmanager
def _postgres(settings: Settings) -> Iterator[embedded.EmbeddedPostgres]:
    """The running database. A second Ctrl-C does not interrupt its shutdown."""
    with embedded.running(settings.state_dir / "postgresql", embedded.DEMO_SETTINGS) as server:
        try:
            with embedded.supervised(server):
                yield server
        finally:
            ignore()


def _lock(state_dir: Path) -> IO[str]:
    """Hold the folder: two servers on one data folder would be one too many. Released when this process ends."""
    held = (state_dir / "demo.lock").open("a+")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held.close()
        raise InputError(
            f"another demo uses {state_dir}; stop it, or set HUGEPLAN_STATE_DIR to another folder"
        ) from error
    return held


def _serve(settings: Settings, listening: socket.socket, started: float, *, is_shown: bool) -> None:
    migrate.upgrade(settings.sqlalchemy_url(), migrate.migrations_dir(settings.migrations_dir))

    # Before the first answer: whoever waits for /readyz finds the token files written.
    secret = asyncio.run(prepare_tokens(settings))
    address = settings.local_url()

    def when_ready() -> None:
        print(f"ready {address} after {time.monotonic() - started:.1f} s", flush=True)
        if is_shown:
            minutes = bootstrap.LOGIN_LINK_SECONDS // 60
            print(f"log in: {address}/login#token={secret}")
            print(f"It works once, within {minutes} minutes.", flush=True)

    serve(settings, listening, when_ready)
