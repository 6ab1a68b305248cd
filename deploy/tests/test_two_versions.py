"""An earlier release and today's, side by side on one PostgreSQL and under load, as during a rolling upgrade.

The earlier one is taken from this repository's history. Where the history is not there (a source archive, a clone
of depth 1), there is nothing to start: the test skips and says so.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path

import psycopg
import pytest
from support.reports import report, run
from test_scale_out import answers, call, free_port, until

from hugeplan.embedded.postgres import TEST_SETTINGS, EmbeddedPostgres, EmbeddedPostgresError, programs_dir

REPOSITORY = Path(__file__).resolve().parents[2]
EARLIER = "0ac26f94545878d87d5696b009347dadf9d543eb"
"""Two migrations behind: a report is whole there, not what changed since another. docs/releasing.md: moved on."""
AGENTS = 4
PAUSE_SECONDS = 0.1
REPORTS_OF_EACH = 40
READS_OF_EACH = 20
LISTS = ("nodes", "runs", "fleet/summary", "fleet/groups", "fleet/page-size-wins", "events/history", "plans", "audit")
WINS = "SELECT to_jsonb(run_wins)::text FROM run_wins ORDER BY 1"


@dataclass
class Release:
    """One release: its code, and one replica of its service."""

    name: str
    backend: Path
    database_url: str
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("HUGEPLAN_")}
        settings = {
            "DATABASE_URL": self.database_url, "PORT": str(self.port), "LOG_LEVEL": "warning",
            "REQUESTS_PER_MINUTE": "1000000", "STATE_DIR": str(self.folder / f"state-{self.name}"),
        }  # fmt: skip
        return own | {f"HUGEPLAN_{name}": value for name, value in settings.items()} | {"PYTHONPATH": str(self.backend)}

    def says(self, *words: str) -> str:
        """What a command of this release prints; it must succeed."""
        command = [sys.executable, *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{self.name}: {words}: {done.stdout}{done.stderr}"
        return done.stdout

    def command(self, *words: str) -> str:
        return self.says("-m", "hugeplan.cli", *words)

    def start(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hugeplan.cli", "serve"],
                cwd=self.folder, env=self.environment(), stdout=log, stderr=log,
            )  # fmt: skip
        until(lambda: answers(f"{self.url}/readyz"), f"{self.name}: see {log.name}", 120)

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def earlier_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The earlier release's code from the history of this checkout."""
    if shutil.which("git") is None:
        pytest.skip("SKIP: git is not installed, which holds the earlier release")
    command = ["git", "-C", str(REPOSITORY), "archive", EARLIER, "backend/hugeplan", "migrations"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        said = archive.stderr.decode().strip()
        pytest.skip(f"SKIP: the earlier release {EARLIER[:9]} is not in this checkout's history: {said}")
    folder = tmp_path_factory.mktemp("earlier-release")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "backend"


@pytest.fixture(scope="module")
def releases(earlier_code: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Release, Release]]:
    """The earlier release serves; today's has not begun."""
    try:
        programs_dir()
    except EmbeddedPostgresError as error:
        pytest.skip(f"SKIP: {error}")
    folder = tmp_path_factory.mktemp("two-versions")
    server = EmbeddedPostgres(folder / "postgresql" / "data", dict(TEST_SETTINGS))
    with contextlib.ExitStack() as ending:
        ending.callback(server.close)
        server.start()
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE hugeplan ENCODING 'UTF8' TEMPLATE template0")
        url = server.url("hugeplan")
        earlier = Release("earlier", earlier_code, url, folder)
        today = Release("today", REPOSITORY / "backend", url, folder)
        for one in (earlier, today):
            where = one.says("-c", "import hugeplan; print(hugeplan.__file__)").strip()
            assert Path(where) == one.backend / "hugeplan" / "__init__.py", "each runs its own code"
            ending.callback(one.end)
        earlier.command("migrate")
        earlier.start()
        yield earlier, today


class Agent:
    """Sends report after report of one node, each to a release drawn by chance, again until one of them has it."""

    def __init__(self, releases: list[Release], admin: str, number: int) -> None:
        self.releases = releases
        self.sent: dict[str, bytes] = {}
        self.taken_by: Counter[str] = Counter()
        self.put_off: list[tuple[str, int, str]] = []
        self._chance = random.Random(number)  # noqa: S311 - which release is next
        self._machine = uuid.uuid4().hex
        status, answer, _ = call(
            "POST", f"{releases[0].url}/api/v1/tokens", {"role": "agent", "name": f"agent {number}"},
            Authorization=f"Bearer {admin}", Origin=releases[0].url,
        )  # fmt: skip
        assert status == 201, answer
        self._token = str(answer["token"])
        self._number = number

    def send(self) -> None:
        """One report; every fifth with a run."""
        measured = run(started_at=datetime.now(UTC).isoformat()) if len(self.sent) % 5 == 0 else None
        body = report(
            machine_id=self._machine, node_name=f"both-{self._number}", synthetic=True,
            created_at=datetime.now(UTC).isoformat(), run=measured,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, f"no release took a report: {self.put_off[-3:]}"
            to = self._chance.choice(self.releases)
            try:
                status, answer, _ = call(
                    "POST", f"{to.url}/api/v1/reports", body, Authorization=f"Bearer {self._token}"
                )
            except (OSError, HTTPException) as error:
                status, answer = 0, repr(error)
            if status in {200, 201}:
                self.sent[body["report_id"]] = json.dumps(body).encode()
                self.taken_by[to.name] += 1
                return
            self.put_off.append((to.name, status, repr(answer)))
            time.sleep(PAUSE_SECONDS)


class Load:
    """All agents at once, and somebody who reads the lists of each release that serves, until left."""

    def __init__(self, agents: list[Agent], admin: str) -> None:
        self.agents = agents
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(one,), daemon=True) for one in agents]
        self._threads.append(threading.Thread(target=self._read, args=(agents[0].releases, admin), daemon=True))
        self.broken: list[str] = []
        self.read_by: Counter[str] = Counter()

    def _work(self, agent: Agent) -> None:
        try:
            while not self._stop.wait(PAUSE_SECONDS):
                agent.send()
        except AssertionError as error:
            self.broken.append(str(error))

    def _read(self, releases: list[Release], admin: str) -> None:
        """What the other release stored is read as well; 503 is a release that ends, or waits for the database."""
        for path in itertools.cycle(LISTS):
            for one in tuple(releases):
                try:
                    status, answer, _ = call(
                        "GET", f"{one.url}/api/v1/{path}", Authorization=f"Bearer {admin}", Origin=one.url
                    )
                except (OSError, HTTPException):
                    continue  # it ends
                if status not in {200, 503}:
                    self.broken.append(f"{one.name}: {path}: {status} {answer!r}")
                self.read_by[one.name] += status == 200
            if self._stop.wait(PAUSE_SECONDS):
                return

    def until_read(self, release: Release, count: int) -> None:
        until(lambda: bool(self.broken) or self.read_by[release.name] >= count, f"{count} reads of {release.name}", 90)
        assert not self.broken

    def taken_by(self, release: Release) -> int:
        return sum(one.taken_by[release.name] for one in self.agents)

    def until_taken(self, release: Release, count: int) -> None:
        until(lambda: bool(self.broken) or self.taken_by(release) >= count, f"{count} reports at {release.name}", 90)
        assert not self.broken

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(70)


def read(address: str, admin: str) -> bytes:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {admin}"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return bytes(response.read())


def test_an_upgrade_under_load_loses_nothing_and_reads_what_the_earlier_stored(
    releases: tuple[Release, Release],
) -> None:
    """Agents send all the while: to the earlier release alone, during the migration, then to both at random.

    Somebody reads the lists of both meanwhile, with what the other one stored.
    Afterwards each acknowledged report is stored once and read byte for byte by today's release, which also reads every
    run again with its own parsers.
    """
    earlier, today = releases
    admin = earlier.command("token", "create", "--role", "admin", "--name", "both").split()[-1]
    serving = [earlier]
    agents = [Agent(serving, admin, number) for number in range(AGENTS)]
    with Load(agents, admin) as load:
        load.until_taken(earlier, REPORTS_OF_EACH)
        today.command("migrate")
        assert not answers(f"{earlier.url}/readyz"), "a balancer sends the earlier one nothing more"
        today.start()
        serving.append(today)
        before, reads = load.taken_by(earlier), load.read_by[earlier.name]
        load.until_taken(today, REPORTS_OF_EACH)
        load.until_taken(earlier, before + REPORTS_OF_EACH)
        load.until_read(today, READS_OF_EACH)
        load.until_read(earlier, reads + READS_OF_EACH)
        assert earlier.process
        earlier.process.send_signal(signal.SIGTERM)
        serving.remove(earlier)
        count = load.taken_by(today)
        load.until_taken(today, count + REPORTS_OF_EACH // 2)
        earlier.process.wait(timeout=60)
    assert not load.broken
    sent = {identity: body for one in agents for identity, body in one.sent.items()}
    with psycopg.connect(today.database_url) as connection:
        stored = connection.execute("SELECT report_id::text, count(*), min(node_id::text) FROM reports GROUP BY 1")
        rows = {identity: (count, node) for identity, count, node in stored.fetchall()}
        runs = connection.execute("SELECT count(*) FROM runs").fetchone()
        wins = connection.execute(WINS).fetchall()
        connection.execute("DELETE FROM run_wins")
    assert {identity for identity in sent if rows.get(identity, (0,))[0] != 1} == set(), "lost, or stored twice"
    for identity, body in sent.items():
        address = f"{today.url}/api/v1/nodes/{rows[identity][1]}/report?report_id={identity}"
        assert read(address, admin) == body, f"{identity} is not what its agent sent"
    assert runs
    words = today.command("reparse").strip()
    assert words.startswith(f"{runs[0]} runs of {AGENTS} nodes read again"), words
    assert words.endswith(" 0 not readable"), words
    with psycopg.connect(today.database_url) as connection:
        assert connection.execute(WINS).fetchall() == wins
    assert len(wins) >= runs[0], "each run has its wins again, whichever release stored it"
    nodes = json.loads(read(f"{today.url}/api/v1/nodes", admin))["items"]
    assert len(nodes) == AGENTS
    print(f"{dict(load.read_by)} lists read")
    print(f"{load.taken_by(earlier)} reports by the earlier, {load.taken_by(today)} by today's, {runs[0]} runs")
    assert [one for agent in agents for one in agent.put_off if 400 <= one[1] < 500] == [], "refused, not only put off"
