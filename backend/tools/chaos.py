"""`make chaos`: kill -9 the server and PostgreSQL at random under load; no acknowledged report is lost or stored twice.

Everything runs on loopback and in a temporary folder, with a PostgreSQL that waits for the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psycopg

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.access.service import mint
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.settings import Settings

HOUSE = Path(__file__).resolve().parents[2]
RECOVERY_SECONDS = 180.0
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
        }
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "hugeplan.cli", "serve"]
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it without a word."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def wait_until_ready(self) -> float:
        """Seconds until it says that it is ready."""
        begun = time.monotonic()
        while True:
            try:
                if CLIENT.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return time.monotonic() - begun
            except httpx.HTTPError:
                pass
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


def chaos(folder: Path, server_kills: int, postgres_kills: int, seed: int) -> int:
    """Load and kill; the number of what went wrong, each said on standard error."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible order of kills
    postgres = embedded.EmbeddedPostgres(folder / "postgresql", embedded.DEMO_SETTINGS)
    postgres.start()
    postgres.ensure_database("chaos")
    server = Server(postgres.url("chaos"), folder / "server.log")
    ending = threading.Event()
    agents: list[Agent] = []
    recoveries: list[float] = []
    try:
        with embedded.supervised(postgres):
            migrate.upgrade(Settings(database_url=server.database_url).sqlalchemy_url(), HOUSE / "migrations")
            server.start()
            server.wait_until_ready()
            machine_ids = [f"{number:032x}" for number in range(AGENTS)]
            tokens = asyncio.run(make_tokens(server.database_url, machine_ids))
            agents += [Agent(server, *given, ending) for given in zip(tokens, machine_ids, strict=True)]
            for agent in agents:
                agent.start()
            victims = ["server"] * server_kills + ["postgresql"] * postgres_kills
            chance.shuffle(victims)
            for number, victim in enumerate(victims, 1):
                time.sleep(chance.uniform(0.1, 1.5))  # the moment of a kill is what chance decides here
                if victim == "server":
                    server.kill()
                    server.start()
                elif postgres.pid is not None:
                    os.kill(postgres.pid, signal.SIGKILL)
                recoveries.append(server.wait_until_ready())
                print(f"kill {number} of {len(victims)}: {victim}, ready after {recoveries[-1]:.2f} s", file=sys.stderr)
            time.sleep(1.0)
            ending.set()
            for agent in agents:
                agent.join()
            found = stored(server.database_url)
    finally:
        ending.set()
        server.kill()
        postgres.close()
    acknowledged = [report_id for agent in agents for report_id in agent.acknowledged]
    refusals = [refusal for agent in agents for refusal in agent.refusals]
    lost = [report_id for report_id in acknowledged if report_id not in found]
    twice = [report_id for report_id, counts in found.items() if counts != (1, 1)]
    for kind, wrong in (("lost", lost), ("not stored once", twice), ("refused", refusals)):
        for text in wrong[:10]:
            print(f"chaos: {kind}: {text}", file=sys.stderr)
    print(
        f"{server_kills} kills of the server, {postgres_kills} of PostgreSQL: {len(acknowledged)} reports acknowledged,"
        f" {len(lost)} lost, {len(twice)} not once, {len(refusals)} refused,"
        f" {sum(agent.repeats for agent in agents)} sent again; ready again after {max(recoveries, default=0):.2f} s"
        " at the longest"
    )
    return len(lost) + len(twice) + len(refusals) + (0 if acknowledged else 1)


def main() -> int:
    """Run; exit status 1 when something was lost, doubled or refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-kills", type=int, default=50)
    parser.add_argument("--postgres-kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hp-chaos-") as name:
        # PostgreSQL runs as another user when this is root.
        folder = Path(name)
        folder.chmod(0o711)
        wrong = chaos(folder, arguments.server_kills, arguments.postgres_kills, arguments.seed)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
