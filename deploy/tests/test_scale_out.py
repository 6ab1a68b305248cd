"""Two replicas of the service behind a balancer, a PostgreSQL with a streaming replica; each is ended in turn.

All of it runs on loopback: haproxy from Debian (SKIP where it is not installed) and the PostgreSQL of the demo's wheel.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.reports import report

from hugeplan.db.maintenance import ADVISORY_LOCK
from hugeplan.embedded.postgres import TEST_SETTINGS, EmbeddedPostgres, EmbeddedPostgresError, programs_dir

AGENTS = 4
HAPROXY = """
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
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

    def token(self, role: str, name: str) -> str:
        output, _ = self.hugeplan("token", "create", "--role", role, "--name", name).communicate(timeout=60)
        return output.split()[-1]

    def start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.replicas[name] = subprocess.Popen(
                [sys.executable, "-m", "hugeplan.cli", "serve"],
                env=self.environment(self.ports[name]), stdout=log, stderr=log,
            )  # fmt: skip
        address = f"http://127.0.0.1:{self.ports[name]}/readyz"
        until(lambda: answers(address), f"replica {name}: {(self.folder / f'{name}.log').read_text()[-500:]}")

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
    streaming = TEST_SETTINGS | {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}
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
        made.admin = made.token("admin", "scale-out")

        def end_replicas() -> None:
            for process in made.replicas.values():
                end(process)

        ending.callback(end_replicas)
        for name in ("a", "b"):
            made.start(name)
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
    made.standby._own(data)
    source = ["-h", "127.0.0.1", "-p", str(made.ports["primary"]), "-U", "hugeplan"]
    copy = made.standby._command(
        "pg_basebackup", *source, "-D", str(data), "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"
    )
    copied = subprocess.run(copy, capture_output=True, text=True, check=False)
    assert copied.returncode == 0, copied.stderr
    made.standby.start()


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=30)


def test_a_session_of_one_replica_holds_on_the_other(cluster: Cluster) -> None:
    status, _, headers = call("POST", f"{cluster.url}/api/v1/session", {"token": cluster.admin}, Origin=cluster.url)
    assert status == 201
    cookie = (
        headers["set-cookie"].partition(";")[0] if "set-cookie" in headers else headers["Set-Cookie"].partition(";")[0]
    )
    seen = set()
    for _ in range(6):
        status, _, headers = call("GET", f"{cluster.url}/api/v1/nodes", Cookie=cookie)
        assert status == 200
        seen.add(headers["x-replica"])
    assert seen == {"a", "b"}


def test_an_event_reaches_the_browsers_of_both_replicas(cluster: Cluster) -> None:
    heard: dict[str, list[str]] = {"a": [], "b": []}
    streams = {}
    for name in heard:
        address = f"http://127.0.0.1:{cluster.ports[name]}/api/v1/events"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {cluster.admin}"})
        streams[name] = urllib.request.urlopen(request, timeout=60)

    def listen(name: str) -> None:
        with contextlib.suppress(OSError, ValueError, HTTPException):
            for line in streams[name]:
                heard[name].append(line.decode())

    threads = [threading.Thread(target=listen, args=(name,), daemon=True) for name in heard]
    for thread in threads:
        thread.start()
    agent = cluster.token("agent", "events")
    body = report(machine_id="e" * 32, node_name="event-node", synthetic=True)
    status, _, _ = call("POST", f"{cluster.url}/api/v1/reports", body, Authorization=f"Bearer {agent}")
    assert status == 201
    until(lambda: all(any("data:" in line for line in lines) for lines in heard.values()), f"events on both: {heard}")


def test_one_replica_at_a_time_does_the_maintenance(cluster: Cluster) -> None:
    """Both ask for one lock; while it is held elsewhere neither waits for it nor fails."""
    with psycopg.connect(f"postgresql://hugeplan@127.0.0.1:{cluster.ports['primary']}/hugeplan") as holder:
        holder.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        assert holder.execute(waiting).fetchone() == (0,)
        assert answers(f"http://127.0.0.1:{cluster.ports['a']}/readyz")
        assert answers(f"http://127.0.0.1:{cluster.ports['b']}/readyz")
    partitions = cluster.sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'samples'::regclass")
    assert partitions > 1, "a replica has made the partitions of the days to come"


def test_the_standby_has_everything(cluster: Cluster) -> None:
    count = cluster.sql("SELECT count(*) FROM reports")
    assert count > 0
    until(lambda: cluster.sql("SELECT count(*) FROM reports", "standby") == count, "the same reports on the standby")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        cluster.sql("DELETE FROM reports RETURNING 1", "standby")
