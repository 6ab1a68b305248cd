"""What the service's benchmark stands on: a durable PostgreSQL, a seeded database that may be kept, and servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import psycopg

from hugeplan import embedded
from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings
from tools.seed.writer import SeedOptions, seed_fleet

BACKEND = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0
POSTGRES_SETTINGS = embedded.DEMO_SETTINGS | {"shared_buffers": "256MB", "max_wal_size": "2GB"}


@contextmanager
def postgres_in(state: Path | None) -> Iterator[embedded.EmbeddedPostgres]:
    """A durable PostgreSQL whose data stays in ``state``; None: in a temporary folder."""
    with ExitStack() as stack:
        folder = state or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hp-bench-")))
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)  # PostgreSQL runs as another user when this is root
        yield stack.enter_context(embedded.running(folder / "postgresql", POSTGRES_SETTINGS))


def migrated(postgres: embedded.EmbeddedPostgres, database: str) -> Settings:
    """A database at the newest migration."""
    postgres.ensure_database(database)
    settings = Settings.model_validate({"database_url": postgres.url(database)})
    migrate.upgrade(settings.sqlalchemy_url(), migrate.migrations_dir(None))
    return settings


def fresh(postgres: embedded.EmbeddedPostgres, database: str) -> Settings:
    """A migrated database with nothing in it."""
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("DROP DATABASE IF EXISTS {}").format(psycopg.sql.Identifier(database)))
    return migrated(postgres, database)


def seeded(postgres: embedded.EmbeddedPostgres, database: str, options: SeedOptions) -> tuple[Settings, float]:
    """A database with this fleet, and the seconds that seeding took: 0 where it was there."""
    settings = migrated(postgres, database)
    spelled = json.dumps(asdict(options))
    with psycopg.connect(postgres.url(database), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bench_seed (options text)")
        if connection.execute("SELECT options FROM bench_seed").fetchone() == (spelled,):
            return settings, 0.0
        begun = time.perf_counter()
        seed_fleet(postgres.url(database), options, say=lambda line: print(line, file=sys.stderr, flush=True))
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("TRUNCATE bench_seed")
        connection.execute("INSERT INTO bench_seed VALUES (%s)", [spelled])
        connection.execute("CHECKPOINT")
    return settings, time.perf_counter() - begun


def free_port() -> int:
    """A free TCP port."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def service(url: str, state: Path, **more: str) -> Iterator[tuple[int, int]]:
    """Port and process id of the service over a database."""
    port = free_port()
    environment = {
        "HUGEPLAN_DATABASE_URL": url,
        "HUGEPLAN_PORT": str(port),
        "HUGEPLAN_REQUESTS_PER_MINUTE": "1000000",
        "HUGEPLAN_LOG_LEVEL": "warning",
        # A fleet that was kept since yesterday would be sealed while it is measured.
        "HUGEPLAN_SEAL_AFTER_SECONDS": "0",
        "HUGEPLAN_STATE_DIR": str(state),
        **more,
    }
    with served([sys.executable, "-m", "hugeplan.cli", "serve"], port, environment) as process:
        yield port, process.pid


@contextmanager
def yardstick(url: str) -> Iterator[int]:
    """Port of the yardstick over a database."""
    port = free_port()
    command = [sys.executable, "-m", "bench.support.yardstick", str(port)]
    with served(command, port, {"YARDSTICK_DATABASE_URL": url}):
        yield port


@contextmanager
def served(command: list[str], port: int, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server process that answers, ended at the end."""
    process = subprocess.Popen(  # noqa: S603 - our own commands
        command, cwd=BACKEND, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def tokens(settings: Settings, role: Role, machines: list[str | None]) -> list[str]:
    """A token of this role for each machine; None: bound to none."""
    database = Database(create_engine(settings))
    async with database.write() as session:
        made = [await access.mint(session, name="bench", role=role, machine_id=machine) for machine in machines]
    await database.dispose()
    return [token.token for token in made]
