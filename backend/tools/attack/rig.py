"""What every attack stands on: the service over a PostgreSQL of its own, a credential of each role, and a fleet.

Everything is on loopback, in a temporary folder, and bounded in number and time.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import psycopg

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.access.service import mint
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings
from tools.chaos.rig import REPOSITORY, Server
from tools.seed.writer import SeedOptions, seed_fleet

ROLES = (Role.VIEWER, Role.PLANNER, Role.ADMIN, Role.AGENT)
MACHINE_ID = "a" * 32
FLEET = 60
TIMEOUT_SECONDS = 60.0
FLEET_PLANS = "hugeplan.fleet_plans.worker"
JOB_CPU_SECONDS = 2.0
BEHIND_A_PROXY: Mapping[str, str] = MappingProxyType(
    {"HUGEPLAN_TRUSTED_PROXIES": '["127.0.0.1/32"]', "HUGEPLAN_FLEET_PLAN_CPU_SECONDS": str(JOB_CPU_SECONDS)}
)
STOP_SECONDS = 15.0
# No certificates are needed on loopback, and loading those of the world takes a while.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class WrongAnswerError(AssertionError):
    """The service did not do what the attack's row says it does."""


@dataclass
class Target:
    """A running service and how to talk to it."""

    folder: Path
    postgres: embedded.EmbeddedPostgres
    server: Server
    twin: Server
    """Another one over the same database, which nobody attacks."""
    tokens: Mapping[Role, str]
    neighbour_token: str
    neighbour: subprocess.Popen[str] | None = None
    """The other client's process, which rests between passes."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What one attack leaves for the next pass of itself, such as the id of a plan."""

    @property
    def pid(self) -> int:
        """The process of the service."""
        assert self.server.process is not None
        return self.server.process.pid

    @property
    def families(self) -> list[int]:
        """The first processes of the service and of its database."""
        return [self.pid, *([] if self.postgres.pid is None else [self.postgres.pid])]

    def neighbours(self) -> subprocess.Popen[str]:
        """The other client's process, started anew where the service has another process now."""
        assert self.twin.process is not None
        asked = (self.server.port, self.pid, self.twin.port, self.twin.process.pid)
        command = [sys.executable, "-m", "tools.attack.neighbour", self.neighbour_token, *map(str, asked)]
        if self.neighbour is None or self.neighbour.args != command or self.neighbour.poll() is not None:
            self.end_neighbour()
            self.neighbour = subprocess.Popen(
                command, cwd=REPOSITORY / "backend", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        return self.neighbour

    def end_neighbour(self) -> None:
        """End the other client's process."""
        if self.neighbour is not None:
            self.neighbour.kill()
            self.neighbour.communicate()
            self.neighbour = None

    def headers(self, role: Role | None) -> dict[str, str]:
        """The credential of a role; nothing for a stranger."""
        return {} if role is None else {"Authorization": f"Bearer {self.tokens[role]}"}

    def client(self, role: Role | None, timeout_seconds: float = TIMEOUT_SECONDS) -> httpx.Client:
        """A client with the credential of a role."""
        return httpx.Client(
            base_url=self.server.url,
            headers=self.headers(role),
            timeout=timeout_seconds,
            trust_env=False,
            verify=_NO_TLS,
        )

    def ask(self, role: Role | None, method: str, path: str, **more: Any) -> httpx.Response:
        """One request below /api/v1, on a connection of its own."""
        with self.client(role, more.pop("timeout_seconds", TIMEOUT_SECONDS)) as client:
            return client.request(method, f"/api/v1{path}", **more)

    def execute(self, statement: str, **values: Any) -> None:
        """One statement of SQL: what many requests before would have left."""
        with psycopg.connect(self.server.database_url) as connection:
            connection.execute(statement, values)  # type: ignore[arg-type]

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        """A plain connection; one that takes no more than ``receive_bytes`` before it is read."""
        opened = socket.socket()
        if receive_bytes is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        opened.settimeout(TIMEOUT_SECONDS)
        opened.connect(("127.0.0.1", self.server.port))
        return opened


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. ``run`` makes it once and says in a word how it was answered, or raises WrongAnswerError.

    ``requests``: how many it makes, each of which may cost as much as the budget says. ``prepare`` and ``undo``, which
    takes away what it would leave to others, are not measured.
    ``at_once``: its requests are made together, and may hold nobody up for longer than one of them. ``in_tests``:
    whether the test suite runs it; one that waits for a time limit of many seconds may say no. ``apart``: words of the
    commands of processes whose cost is bounded by limits of their own.
    """

    name: str
    run: Callable[[Target], str]
    requests: int = 1
    prepare: Callable[[Target], object] | None = None
    undo: Callable[[Target], object] | None = None
    in_tests: bool = True
    at_once: bool = False
    apart: tuple[str, ...] = ()


def expect(answer: httpx.Response, *statuses: int) -> str:
    """The status, in a word; WrongAnswerError when it is another, or when an error is no problem document."""
    if answer.status_code not in statuses:
        raise WrongAnswerError(f"answered {answer.status_code}, expected {statuses}: {answer.text[:300]}")
    if answer.status_code >= 400 and answer.headers.get("content-type") != "application/problem+json":
        raise WrongAnswerError(f"{answer.status_code} without a problem document: {answer.text[:300]}")
    return str(answer.status_code)


async def _make_tokens(database_url: str) -> tuple[dict[Role, str], str]:
    database = Database(create_engine(Settings(database_url=database_url)))
    try:
        async with database.write() as session:
            made = {
                role: await mint(
                    session, name=f"attack {role}", role=role, machine_id=MACHINE_ID if role is Role.AGENT else None
                )
                for role in ROLES
            }
            neighbour = await mint(session, name="neighbour", role=Role.VIEWER)
        return {role: one.token for role, one in made.items()}, neighbour.token
    finally:
        await database.dispose()


@contextmanager
def target(folder: Path, environment: Mapping[str, str] = BEHIND_A_PROXY) -> Iterator[Target]:
    """A migrated service with a small synthetic fleet, ended with the block."""
    # In a folder of its own that every user may enter: pytest's is closed again by a pytest that begins beside it,
    # and PostgreSQL, which runs as another user, would end at its next checkpoint.
    of_postgres = tempfile.TemporaryDirectory(prefix="hp-attack-pg-", ignore_cleanup_errors=True)
    Path(of_postgres.name).chmod(0o711)
    postgres = embedded.EmbeddedPostgres(Path(of_postgres.name) / "postgresql", embedded.TEST_SETTINGS)
    servers: list[Server] = []
    try:
        postgres.start()
        postgres.ensure_database("attack")
        servers += [
            Server(postgres.url("attack"), folder / f"{name}.log", environment=dict(environment))
            for name in ("server", "twin")
        ]
        server, twin = servers
        migrate.upgrade(Settings(database_url=server.database_url).sqlalchemy_url(), REPOSITORY / "migrations")
        seed_fleet(server.database_url, SeedOptions(nodes=FLEET, seed=1, history_days=2))
        tokens, neighbour = asyncio.run(_make_tokens(server.database_url))
        for each in servers:
            each.start()
            each.wait_until_ready()
        made = Target(folder, postgres, server, twin, tokens, neighbour)
        try:
            yield made
        finally:
            made.end_neighbour()
    finally:
        for each in servers:
            each.kill()
        postgres.close()
        of_postgres.cleanup()


def stop_seconds(running: Target) -> float:
    """How long the service takes to end after SIGTERM. WrongAnswerError when it does not."""
    process = running.server.process
    assert process is not None
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise WrongAnswerError(f"the service still runs {STOP_SECONDS:g} s after SIGTERM") from error
    return time.monotonic() - begun
