"""``hugeplan serve``: the service over the database of HUGEPLAN_DATABASE_URL."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from hugeplan.access import bootstrap
from hugeplan.cli import InputError, postgres_programs
from hugeplan.cli.secrets import write_secret
from hugeplan.cli.service_settings import load_settings
from hugeplan.cli.serving import bind, serve
from hugeplan.db import server_release
from hugeplan.db.alone import is_unavailable
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings

MAX_WORKERS = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``serve`` takes its settings from the environment (docs/settings.md)."""
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that serve (default: 1)")
    parser.add_argument(
        "--first-admin-file",
        type=Path,
        metavar="FILE",
        help="where the first administrator's token is written, mode 0600 (default: shown on a terminal alone)",
    )


async def show_first_admin(settings: Settings, file: Path | None) -> None:
    """Make the first admin token where there is none yet and somebody will see it; say what to do otherwise.

    It goes to ``file``, or to a terminal. A log is kept, copied and searched: no credential is written there.
    The service serves anyway.
    """
    if file is None and not sys.stdout.isatty():
        print("For a login that works once: hugeplan token login-link", flush=True)
        return

    def keep(secret: str) -> None:
        if file is None:
            print(f"First admin token, shown only now: {secret}", flush=True)
        else:
            write_secret(file, secret)

    database = Database(create_engine(settings))
    try:
        if await bootstrap.create_first_admin(database, keep) and file is not None:
            print(f"The first admin token is in {file}; remove it when you have read it.", flush=True)
    except (SQLAlchemyError, OSError) as error:
        cause = "cannot be reached yet" if is_unavailable(error) else "is not migrated; run: hugeplan migrate"
        print(f"The database {cause}. For a token later: hugeplan token create --role admin --name NAME", flush=True)
    finally:
        await database.dispose()


def refuse_old_server(settings: Settings) -> None:
    """InputError for a server that is too old. One that is away is waited for by the requests, not here."""
    try:
        with postgres_programs.connect(settings) as connection:
            remark = server_release.require_supported(connection.info.server_version)
    except InputError:
        return
    except server_release.ServerReleaseError as error:
        raise InputError(f"HUGEPLAN_DATABASE_URL: {error}") from error
    if remark is not None:
        print(remark, flush=True)


def tell_service_manager() -> None:
    """Tell systemd that the service answers (``Type=notify``, sd_notify(3)); nothing elsewhere."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
            channel.sendall(b"READY=1")


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    if not 1 <= arguments.workers <= MAX_WORKERS:
        raise InputError(f"--workers: {arguments.workers} is not valid; expected 1 to {MAX_WORKERS}")
    settings = load_settings()
    refuse_old_server(settings)
    listening = bind(settings.host, settings.port)

    asyncio.run(show_first_admin(settings, arguments.first_admin_file))

    def when_ready() -> None:
        print(f"hugeplan answers on http://{settings.host}:{settings.port}", flush=True)
        tell_service_manager()

    serve(settings, listening, when_ready, arguments.workers)
    return 0
