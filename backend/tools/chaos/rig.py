"""What every part of `make chaos` stands on: a durable PostgreSQL, a server in a process of its own, and agents.

Everything runs on loopback and in a temporary folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import httpx
import psycopg

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.access.service import mint
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[3]
RECOVERY_SECONDS = 300.0
AGENTS = 4
# One for all threads: a client of its own for each request would load the certificates of the world each time.
CLIENT = httpx.Client(trust_env=False, verify=False)  # noqa: S501 - plain HTTP on loopback


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Server:
    """The service as a process that can be killed and started again on its port."""

    database_url: str
    log: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    command: ClassVar[tuple[str, ...]] = ("-m", "hugeplan.cli")
    """What Python runs."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it."""
        environment = {
            **os.environ,
            "HUGEPLAN_DATABASE_URL": self.database_url,
            "HUGEPLAN_PORT": str(self.port),
            "HUGEPLAN_REQUESTS_PER_MINUTE": "1000000",
            "HUGEPLAN_LOG_LEVEL": "warning",
            **self.environment,
        }
        with self.log.open("ab") as log:
            command = [sys.executable, *self.command, "serve"]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it without a word."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        assert self.process is not None
        statm = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def status_of(self, path: str) -> int | None:
        """The status of a GET; None without an answer."""
        try:
            return CLIENT.get(f"{self.url}{path}", timeout=10).status_code
        except httpx.HTTPError:
            return None

    def wait_until_ready(self) -> float:
        """Seconds until it says that it is ready."""
        begun = time.monotonic()
        while True:
            try:
                if CLIENT.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return time.monotonic() - begun
            except httpx.HTTPError:
                pass
            if self.process is not None and self.process.poll() is not None:
                raise SystemExit(f"chaos: the service ended with {self.process.returncode}; see {self.log}")
            if time.monotonic() - begun > RECOVERY_SECONDS:
                raise SystemExit(f"chaos: not ready {RECOVERY_SECONDS:g} s after a kill; see {self.log}")
            time.sleep(0.02)


class Agent(threading.Thread):
    """Sends reports one after the other, each again and again until it is acknowledged, as the real agent does."""

    def __init__(self, server: Server, token: str, machine_id: str, ending: threading.Event) -> None:
        super().__init__()
        self._server, self._token, self._machine_id, self._ending = server, token, machine_id, ending
        self.acknowledged: list[str] = []
        self.refusals: list[str] = []
        self.repeats = 0

    def run(self) -> None:
        """Send until told to stop."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        while not self._ending.is_set():
            report_id = str(uuid.uuid4())
            body = json.dumps(sample_report(self._machine_id, report_id)).encode()
            while not self._ending.is_set():
                try:
                    answer = CLIENT.post(
                        f"{self._server.url}/api/v1/reports", content=body, headers=headers, timeout=10
                    )
                except httpx.HTTPError:
                    self.repeats += 1
                    self._ending.wait(0.05)
                    continue
                if answer.status_code in {200, 201}:
                    self.acknowledged.append(report_id)
                    break
                if answer.status_code not in {503, 429}:
                    self.refusals.append(f"{answer.status_code} {answer.text[:200]}")
                    break
                self.repeats += 1
                self._ending.wait(0.1)


def sample_report(machine_id: str, report_id: str) -> dict[str, object]:
    """A small synthetic report."""
    now = datetime.now(UTC).isoformat()
    return {
        "schema_version": 1,
        "report_id": report_id,
        "agent_version": "chaos",
        "created_at": now,
        "machine_id": machine_id,
        "node_name": f"chaos-{machine_id[:4]}",
        "synthetic": True,
        "inventory": {"architecture": "x86_64", "base_page_bytes": 4096, "huge_page_sizes_bytes": [2097152]},
        "sample": {"taken_at": now, "memory": {"mem_total_bytes": 2**34, "mem_available_bytes": 2**33}},
    }


async def make_tokens(database_url: str, machine_ids: list[str]) -> list[str]:
    """An agent token for each machine."""
    database = Database(create_engine(Settings(database_url=database_url)))
    try:
        async with database.write() as session:
            made = [await mint(session, name="chaos", role=Role.AGENT, machine_id=one) for one in machine_ids]
        return [token.token for token in made]
    finally:
        await database.dispose()


def stored(database_url: str) -> dict[str, tuple[int, int]]:
    """For each report id: how often it is stored, and how many samples it has."""
    query = (
        "SELECT r.report_id::text, count(DISTINCT (r.node_id, r.received_at)),"
        " (SELECT count(*) FROM samples s WHERE s.report_id = r.report_id) FROM reports r GROUP BY r.report_id"
    )
    with psycopg.connect(database_url) as connection:
        return {row[0]: (row[1], row[2]) for row in connection.execute(query)}


@dataclass
class Outcome:
    """What a part found. ``wrong`` is empty when all is well; ``skipped`` says why nothing was tried."""

    text: str
    wrong: list[str] = field(default_factory=list)
    skipped: str | None = None


@dataclass
class World:
    """A running service under load."""

    folder: Path
    postgres: embedded.EmbeddedPostgres
    server: Server
    agents: list[Agent]
    ending: threading.Event

    def acknowledged(self) -> int:
        """Reports acknowledged so far."""
        return sum(len(agent.acknowledged) for agent in self.agents)

    def wait_for_more(self, reports: int, seconds: float = 60.0) -> bool:
        """Wait until so many more reports are acknowledged. False when that takes too long."""
        wanted = self.acknowledged() + reports
        deadline = time.monotonic() + seconds
        while self.acknowledged() < wanted:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def judge(self) -> tuple[str, list[str]]:
        """End the load, and compare what was acknowledged with what is stored."""
        self.ending.set()
        for agent in self.agents:
            agent.join()
        found = stored(self.server.database_url)
        acknowledged = [report_id for agent in self.agents for report_id in agent.acknowledged]
        lost = [f"lost: {report_id}" for report_id in acknowledged if report_id not in found]
        twice = [f"not stored once: {report_id}" for report_id, counts in found.items() if counts != (1, 1)]
        refused = [f"refused: {refusal}" for agent in self.agents for refusal in agent.refusals]
        nothing = [] if acknowledged else ["no report was acknowledged"]
        text = (
            f"{len(acknowledged)} reports acknowledged, {len(lost)} lost, {len(twice)} not once,"
            f" {len(refused)} refused, {sum(agent.repeats for agent in self.agents)} sent again"
        )
        return text, [*lost, *twice, *refused, *nothing]


@contextmanager
def world(
    folder: Path,
    *,
    agents: int = AGENTS,
    data_dir: Path | None = None,
    postgres_settings: Mapping[str, str] = MappingProxyType({}),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[World]:
    """A migrated service with agents that send, ended with the block."""
    settings = {**embedded.DEMO_SETTINGS, **postgres_settings}
    postgres = embedded.EmbeddedPostgres(data_dir or folder / "postgresql", settings)
    ending = threading.Event()
    server: Server | None = None
    made: list[Agent] = []
    try:
        postgres.start()
        postgres.ensure_database("chaos")
        server = Server(postgres.url("chaos"), folder / "server.log", environment=dict(environment))
        migrate.upgrade(Settings(database_url=server.database_url).sqlalchemy_url(), REPOSITORY / "migrations")
        machine_ids = [f"{number:032x}" for number in range(agents)]
        tokens = asyncio.run(make_tokens(server.database_url, machine_ids))
        server.start()
        server.wait_until_ready()
        made = [Agent(server, *given, ending) for given in zip(tokens, machine_ids, strict=True)]
        for agent in made:
            agent.start()
        yield World(folder, postgres, server, made, ending)
    finally:
        ending.set()
        for agent in made:
            agent.join()
        if server is not None:
            server.kill()
        postgres.close()
