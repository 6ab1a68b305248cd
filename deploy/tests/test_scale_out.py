"""Two replicas of the service behind a balancer, a PostgreSQL with a streaming replica; each is killed in turn.

All of it runs on loopback: haproxy from Debian (SKIP where it is not installed) and the PostgreSQL of the demo's wheel.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.reports import report

from hugeplan.db.locks import AdvisoryLock
from hugeplan.embedded.postgres import TEST_SETTINGS, EmbeddedPostgres, EmbeddedPostgresError, programs_dir

AGENTS = 4
PAUSE_SECONDS = 0.2
HAPROXY = """
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout check 10s
    option redispatch
    retries 2
frontend all
    bind 127.0.0.1:{port}
    default_backend replicas
backend replicas
    balance roundrobin
    option httpchk GET /readyz
    http-response set-header X-Replica %s
    server a 127.0.0.1:{a} check inter 200ms fall 1 rise 1
    server b 127.0.0.1:{b} check inter 200ms fall 1 rise 1
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(is_true: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} s"
        time.sleep(0.05)


@dataclass
class Cluster:
    """Everything that runs; ``url`` is the balancer's."""

    folder: Path
    primary: EmbeddedPostgres
    standby: EmbeddedPostgres
    ports: dict[str, int]
    replicas: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    admin: str = ""

    @property
    def database_url(self) -> str:
        """Both servers; libpq takes the one that accepts writes."""
        ports = f"{self.ports['primary']},{self.ports['standby']}"
        both = f"host=127.0.0.1,127.0.0.1&port={ports}&target_session_attrs=read-write"
        return f"postgresql://hugeplan@/hugeplan?{both}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['balancer']}"

    def environment(self, port: int = 8000) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("HUGEPLAN_")}
        settings = {"DATABASE_URL": self.database_url, "PORT": str(port), "LOG_LEVEL": "warning"}
        limits = {"REQUESTS_PER_MINUTE": "1000000", "STATE_DIR": str(self.folder / "state")}
        return own | {f"HUGEPLAN_{name}": value for name, value in {**settings, **limits}.items()}

    def hugeplan(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hugeplan.cli", *words]
        return subprocess.Popen(
            command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def agent_token(self, name: str) -> str:
        """A new token for one machine, from whichever replica answers."""
        body = {"role": "agent", "name": name}
        status, answer, _ = call(
            "POST", f"{self.url}/api/v1/tokens", body, Authorization=f"Bearer {self.admin}", Origin=self.url
        )
        assert status == 201, answer
        return str(answer["token"])

    def start(self, *names: str) -> None:
        """Start replicas side by side and wait until each answers."""
        for name in names:
            self._spawn(name)
        for name in names:
            self._wait_for(name)

    def _wait_for(self, name: str) -> None:
        address = f"http://127.0.0.1:{self.ports[name]}/readyz"
        until(lambda: answers(address), f"replica {name}: {(self.folder / f'{name}.log').read_text()[-500:]}", 120)

    def _spawn(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.replicas[name] = subprocess.Popen(
                [sys.executable, "-m", "hugeplan.cli", "serve"],
                env=self.environment(self.ports[name]), stdout=log, stderr=log,
            )  # fmt: skip

    def sql(self, statement: str, server: str = "primary") -> Any:
        with psycopg.connect(f"postgresql://hugeplan@127.0.0.1:{self.ports[server]}/hugeplan") as connection:
            row = connection.execute(statement).fetchone()
            return None if row is None else row[0]


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, HTTPException):
        return False


def lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def call(method: str, address: str, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
    """Status, decoded body, headers. OSError and HTTPException where no answer came."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response), lower(response.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), lower(error.headers)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        pytest.skip("SKIP: haproxy is not installed (Debian package haproxy)")
    folder = tmp_path_factory.mktemp("scale-out")
    ports = {name: free_port() for name in ("primary", "standby", "a", "b", "balancer")}
    # synchronous_commit: an answer to an agent waits for the standby, once one is named as synchronous.
    durable = {"synchronous_commit": "on", "wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}
    streaming = TEST_SETTINGS | durable
    try:
        programs_dir()
    except EmbeddedPostgresError as error:
        pytest.skip(f"SKIP: {error}")
    servers = {
        name: EmbeddedPostgres(
            folder / name / "data", streaming | {"listen_addresses": "127.0.0.1", "port": str(ports[name])}
        )
        for name in ("primary", "standby")
    }
    made = Cluster(folder, servers["primary"], servers["standby"], ports)
    with contextlib.ExitStack() as ending:
        ending.callback(made.standby.close)
        ending.callback(made.primary.close)
        start_pair(made)
        migrations = [made.hugeplan("migrate") for _ in range(2)]  # two at once, as two pods start at once
        outputs = [migration.communicate(timeout=120)[0] for migration in migrations]
        assert [migration.returncode for migration in migrations] == [0, 0], outputs
        token = made.hugeplan("token", "create", "--role", "admin", "--name", "scale-out")

        def end_replicas() -> None:
            for process in made.replicas.values():  # their event streams are still open: nothing to wait for
                process.kill()
                process.wait()

        ending.callback(end_replicas)
        made.start("a", "b")
        made.admin = token.communicate(timeout=120)[0].split()[-1]
        (folder / "haproxy.cfg").write_text(HAPROXY.format(port=ports["balancer"], a=ports["a"], b=ports["b"]))
        balancer = subprocess.Popen([program, "-f", str(folder / "haproxy.cfg"), "-db", "-q"])
        ending.callback(lambda: end(balancer))
        until(lambda: answers(f"{made.url}/readyz"), "the balancer")
        yield made


def start_pair(made: Cluster) -> None:
    """The primary, and a standby that pg_basebackup copied from it and that streams from then on."""
    made.primary.start()
    with psycopg.connect(f"postgresql://hugeplan@127.0.0.1:{made.ports['primary']}/postgres", autocommit=True) as first:
        first.execute("CREATE DATABASE hugeplan ENCODING 'UTF8' TEMPLATE template0")
    data = made.folder / "standby" / "data"
    data.mkdir(parents=True, mode=0o700)
    # As ourselves: whose server it is from now on is given to that at its start.
    source = ["-h", "127.0.0.1", "-p", str(made.ports["primary"]), "-U", "hugeplan"]
    program = str(made.primary._programs / "pg_basebackup")
    copy = (program, *source, "-D", str(data), "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast")
    copied = subprocess.run(copy, capture_output=True, text=True, check=False)
    assert copied.returncode == 0, copied.stderr
    made.standby.start()


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=30)


def signed_in(cluster: Cluster) -> str:
    """The cookie of a new session, made through the balancer."""
    status, _, headers = call("POST", f"{cluster.url}/api/v1/session", {"token": cluster.admin}, Origin=cluster.url)
    assert status == 201
    return headers["set-cookie"].partition(";")[0]


class Listener:
    """A browser's event stream from one replica; ``lines`` holds what has come."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        address = f"http://127.0.0.1:{cluster.ports[name]}/api/v1/events"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {cluster.admin}"})
        self.lines: list[str] = []
        self._stream = urllib.request.urlopen(request, timeout=60)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError, HTTPException):
            for line in self._stream:
                self.lines.append(line.decode())

    @property
    def events(self) -> int:
        return sum("data:" in line for line in self.lines)


def test_a_session_of_one_replica_holds_on_the_other(cluster: Cluster) -> None:
    cookie = signed_in(cluster)
    seen = set()

    def both_answered() -> bool:
        status, _, headers = call("GET", f"{cluster.url}/api/v1/nodes", Cookie=cookie)
        assert status == 200
        seen.add(headers["x-replica"])
        return seen == {"a", "b"}

    until(both_answered, "an answer of each replica")


def test_an_event_reaches_the_browsers_of_both_replicas(cluster: Cluster) -> None:
    heard = [Listener(cluster, name) for name in ("a", "b")]
    post_node(cluster, cluster.agent_token("events"), "event-node")
    until(lambda: all(one.events for one in heard), f"events on both: {[one.lines for one in heard]}")


def post_node(cluster: Cluster, token: str, name: str) -> None:
    """A report of a node that the service has not seen, through the balancer: a new node is an event."""
    body = report(machine_id=uuid.uuid4().hex, node_name=name, synthetic=True)
    status, answer, _ = call("POST", f"{cluster.url}/api/v1/reports", body, Authorization=f"Bearer {token}")
    assert status == 201, answer


def test_one_replica_at_a_time_does_the_maintenance(cluster: Cluster) -> None:
    """Both ask for one lock; while it is held elsewhere neither waits for it nor fails."""
    with psycopg.connect(f"postgresql://hugeplan@127.0.0.1:{cluster.ports['primary']}/hugeplan") as holder:
        holder.execute("SELECT pg_advisory_xact_lock(%s)", (int(AdvisoryLock.MAINTENANCE),))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        assert holder.execute(waiting).fetchone() == (0,)
        assert answers(f"http://127.0.0.1:{cluster.ports['a']}/readyz")
        assert answers(f"http://127.0.0.1:{cluster.ports['b']}/readyz")
    partitions = cluster.sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'samples'::regclass")
    assert partitions > 1, "a replica has made the partitions of the days to come"


class Load:
    """Agents that send report after report, each again until the service has it, as hugeplan-agent does."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.stored: dict[str, list[str]] = {}
        self.failures: list[str] = []
        self._stop = threading.Event()
        tokens = [cluster.agent_token(f"load {number}") for number in range(AGENTS)]
        self._threads = [
            threading.Thread(target=self._send, args=(uuid.uuid4().hex, token), daemon=True) for token in tokens
        ]

    def _send(self, machine: str, token: str) -> None:
        mine = self.stored.setdefault(machine, [])
        while not self._stop.is_set():
            now = datetime.now(UTC).isoformat()
            body = report(machine_id=machine, node_name=f"load-{machine[:6]}", synthetic=True, created_at=now)
            while True:
                try:
                    status, answer, _ = call(
                        "POST", f"{self.cluster.url}/api/v1/reports", body, Authorization=f"Bearer {token}"
                    )
                except (OSError, HTTPException) as error:
                    self.failures.append(type(error).__name__)
                    time.sleep(0.1)
                    continue
                if status in {200, 201}:
                    mine.append(body["report_id"])
                    break
                assert status >= 500, answer
                self.failures.append(str(status))
                time.sleep(0.1)
            # As fast as they can, four agents take both cores from the replica that is to start.
            time.sleep(PAUSE_SECONDS)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        self.more(AGENTS * 5)
        return self

    def more(self, count: int) -> None:
        """Wait until so many further reports have been taken."""
        before = self.count
        until(lambda: self.count >= before + count, f"{count} more reports after {self.failures[-5:]}", 90)

    @property
    def count(self) -> int:
        return sum(map(len, self.stored.values()))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


def lost(load: Load, server: str) -> set[str]:
    """Reports that were acknowledged and are not there; and none is there twice."""
    with psycopg.connect(f"postgresql://hugeplan@127.0.0.1:{load.cluster.ports[server]}/hugeplan") as connection:
        rows = connection.execute("SELECT report_id::text, count(*) FROM reports GROUP BY report_id").fetchall()
    assert all(count == 1 for _, count in rows)
    return {one for sent in load.stored.values() for one in sent} - {one for one, _ in rows}


def test_a_replica_killed_under_load_loses_nothing(cluster: Cluster) -> None:
    """SIGKILL of one: no acknowledged report is lost, and sessions and events go on at the other."""
    cookie = signed_in(cluster)
    token = cluster.agent_token("after the kill")
    with Load(cluster) as load:
        browser = Listener(cluster, "b")
        cluster.replicas["a"].send_signal(signal.SIGKILL)
        cluster.replicas["a"].wait()
        load.more(AGENTS * 5)
        status, _, headers = call("GET", f"{cluster.url}/api/v1/nodes", Cookie=cookie)
        assert (status, headers["x-replica"]) == (200, "b")
        heard = browser.events
        post_node(cluster, token, "after-the-kill")
        until(lambda: browser.events > heard, "an event at the other")
        cluster.start("a")
        load.more(AGENTS * 5)
    print(f"{load.count} reports, {len(load.failures)} attempts failed and were made again")
    assert lost(load, "primary") == set()


def test_the_standby_has_everything_and_refuses_writes(cluster: Cluster) -> None:
    count = cluster.sql("SELECT count(*) FROM reports")
    assert count > 0
    until(lambda: cluster.sql("SELECT count(*) FROM reports", "standby") == count, "the same reports on the standby")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        cluster.sql("DELETE FROM reports RETURNING 1", "standby")


def test_the_service_returns_by_itself_when_the_standby_is_promoted(cluster: Cluster) -> None:
    """SIGKILL of the primary under load, then pg_promote: no replica is restarted, its URL names both servers.

    The standby is synchronous, so what was acknowledged is on it; an asynchronous one may lack the last moments.
    """
    cookie = signed_in(cluster)
    with psycopg.connect(
        f"postgresql://hugeplan@127.0.0.1:{cluster.ports['primary']}/postgres", autocommit=True
    ) as first:
        first.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        first.execute("SELECT pg_reload_conf()")
    is_sync = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
    until(lambda: bool(cluster.sql(is_sync)), "a synchronous standby")
    before = {name: process.pid for name, process in cluster.replicas.items()}
    with Load(cluster) as load:
        kill_server(cluster.primary)
        died = time.monotonic()
        until(lambda: not answers(f"{cluster.url}/readyz"), "readyz without a database to write to")
        assert cluster.sql("SELECT pg_promote(true, 60)", "standby") is True
        load.more(1)
        print(f"the first report was taken {time.monotonic() - died:.1f} s after the primary died")
        load.more(AGENTS * 5)
        until(lambda: answers(f"{cluster.url}/readyz"), "ready again")
        browsers = [Listener(cluster, name) for name in ("a", "b")]
        post_node(cluster, cluster.agent_token("after the failover"), "after-the-failover")
        until(lambda: all(one.events for one in browsers), f"events on both: {[one.lines for one in browsers]}")
    assert lost(load, "standby") == set()
    assert {name: process.pid for name, process in cluster.replicas.items()} == before
    assert all(process.poll() is None for process in cluster.replicas.values())
    for path in ("nodes", "fleet/summary"):
        status, answer, _ = call("GET", f"{cluster.url}/api/v1/{path}", Cookie=cookie)
        assert status == 200, answer


def kill_server(server: EmbeddedPostgres) -> None:
    """SIGKILL of the postmaster and its backends: nothing is flushed, nobody is told."""
    postmaster = int((server._data_dir / "postmaster.pid").read_text().split()[0])
    backends = [int(pid) for pid in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()]
    for pid in (postmaster, *backends):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
