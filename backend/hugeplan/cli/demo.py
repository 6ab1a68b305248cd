"""``hugeplan demo``: the service with a PostgreSQL of its own, in one folder, until Ctrl-C.

Everything lives in HUGEPLAN_STATE_DIR: the database, ``admin.token`` for the login link and ``agent.token`` for
the agent of this machine, and ``login-link``. These files are readable by their owner only.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from pydantic import SecretStr

from hugeplan.access import bootstrap
from hugeplan.access.schemas import Role
from hugeplan.cli import InputError
from hugeplan.cli.service_settings import load_settings
from hugeplan.cli.serving import bind, serve
from hugeplan.db import embedded, migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings

DATABASE = "hugeplan"
ADMIN_TOKEN_FILE = "admin.token"  # noqa: S105 - names of files
AGENT_TOKEN_FILE = "agent.token"  # noqa: S105
LOGIN_LINK_FILE = "login-link"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``; they win over HUGEPLAN_STATE_DIR and HUGEPLAN_PORT."""
    parser.add_argument("--state-dir", metavar="DIR", help="folder of the database and the token files")
    parser.add_argument("--port", metavar="N", help="TCP port to listen on")


class Stopped(BaseException):
    """A signal asked the demo to end."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise Stopped


def _hang_up(_signal: int, _frame: FrameType | None) -> None:
    # The server ends gracefully on SIGTERM and does not know SIGHUP.
    os.kill(os.getpid(), signal.SIGTERM)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, never showing it otherwise in between."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    fresh.replace(path)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


async def prepare_tokens(settings: Settings) -> str:
    """Write both token files and return the admin's secret. A usable one is kept, so that old links work."""
    database = Database(create_engine(settings))
    roles = {ADMIN_TOKEN_FILE: Role.ADMIN, AGENT_TOKEN_FILE: Role.AGENT}
    secrets = {}
    try:
        for name, role in roles.items():
            path = settings.state_dir / name
            secret = _read(path)
            # The agent's token is new at each start: it binds to the machine that uses it first, and the state
            # folder may have moved to another machine.
            if role is Role.AGENT or secret is None or not await bootstrap.is_usable(database, secret, role):
                secret = await bootstrap.replace_token(database, f"demo {role}", role)
            write_private(path, secret)
            secrets[role] = secret
    finally:
        await database.dispose()
    return secrets[Role.ADMIN]


def browser_host(host: str) -> str:
    """The address a browser on this machine uses for a listening address."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _settings_of(arguments: argparse.Namespace) -> Settings:
    given = {"state_dir": arguments.state_dir, "port": arguments.port}
    return load_settings(**{name: value for name, value in given.items() if value is not None})


def run(arguments: argparse.Namespace) -> int:
    """Start PostgreSQL, migrate, serve; stop PostgreSQL again however it ends."""
    started = time.monotonic()
    settings = _settings_of(arguments)
    listening = bind(settings.host, settings.port)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGHUP, _hang_up)
    try:
        settings.state_dir.mkdir(parents=True, exist_ok=True)
        with _lock(settings.state_dir), _postgres(settings) as server:
            _serve(settings.model_copy(update={"database_url": _database_of(server)}), listening, started)
    except (embedded.EmbeddedPostgresError, migrate.MigrationsMissingError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"HUGEPLAN_STATE_DIR: {error.filename}: {error.strerror}") from error
    except Stopped:
        return 0
    finally:
        listening.close()
    return 0


@contextmanager
def _postgres(settings: Settings) -> Iterator[embedded.EmbeddedPostgres]:
    """The running database. A second Ctrl-C does not interrupt its shutdown."""
    with embedded.running(settings.state_dir / "postgresql", embedded.DEMO_SETTINGS) as server:
        try:
            yield server
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)


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


def _database_of(server: embedded.EmbeddedPostgres) -> SecretStr:
    server.ensure_database(DATABASE)
    return SecretStr(server.url(DATABASE))


def _serve(settings: Settings, listening: socket.socket, started: float) -> None:
    migrate.upgrade(settings.sqlalchemy_url(), migrate.migrations_dir(settings.migrations_dir))

    # Before the first answer: whoever waits for /readyz finds the token files written.
    secret = asyncio.run(prepare_tokens(settings))

    address = f"http://{browser_host(settings.host)}:{settings.port}"
    link = f"{address}/login#token={secret}"

    async def when_ready() -> None:
        write_private(settings.state_dir / LOGIN_LINK_FILE, link)
        print(f"ready {address} after {time.monotonic() - started:.1f} s")
        print(f"log in: {link}", flush=True)

    serve(settings, listening, when_ready)
