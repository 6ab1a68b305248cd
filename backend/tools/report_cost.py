"""What one report costs the service and PostgreSQL: processor time, bytes sent, bytes stored.

::

    hugeplan-agent observe > report.json
    python tools/report_cost.py report.json --reports 200

A server of its own on loopback with the demo's PostgreSQL, which waits for the disk; the report is sent again and again
under new ids, a minute apart by its own clock, as gzip over one connection.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from hugeplan import embedded

WARM_UP = 20
START_SECONDS = 120.0


def main() -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description="what one report costs")
    parser.add_argument("report", type=Path, help="what hugeplan-agent observe printed")
    parser.add_argument("--reports", type=int, default=200)
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text())
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with embedded.running(Path(folder) / "postgresql", embedded.DEMO_SETTINGS) as server:
            server.ensure_database("hugeplan")
            print(json.dumps(measured(server, report, arguments.reports)))
    return 0


def measured(server: embedded.EmbeddedPostgres, report: dict[str, Any], count: int) -> dict[str, float]:
    """Costs of one report, means over ``count``."""
    url = server.url("hugeplan")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"DATABASE_URL": url, "PORT": str(port), "REQUESTS_PER_MINUTE": "1000000", "LOG_LEVEL": "warning"}
    environment = {**os.environ, **{f"HUGEPLAN_{name}": value for name, value in settings.items()}}

    def hugeplan(*words: str) -> list[str]:
        return [sys.executable, "-m", "hugeplan.cli", *words]

    subprocess.run(hugeplan("migrate"), env=environment, check=True, stdout=subprocess.DEVNULL)
    made = hugeplan("token", "create", "--role", "agent", "--name", "report cost")
    token = subprocess.run(made, env=environment, check=True, capture_output=True, text=True).stdout.split()[-1]
    service = subprocess.Popen(hugeplan("serve"), env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/readyz", service)
        sent = Sender(port, token, report, count + WARM_UP)
        for _ in range(WARM_UP):
            sent.one()
        before = _state(url, service.pid, server)
        for _ in range(count):
            sent.one()
        after = _state(url, service.pid, server)
    finally:
        service.terminate()
        service.wait(60)
    names = ("service_cpu_seconds", "postgresql_cpu_seconds", "stored_bytes", "wal_bytes")
    costs = {name: round((b - a) / count, 6) for name, a, b in zip(names, before, after, strict=True)}
    return {"reports": count, "sent_bytes": sent.size_bytes, "document_bytes": sent.document_bytes, **costs}


class Sender:
    """One connection that sends the report as if a minute had passed each time."""

    def __init__(self, port: int, token: str, report: dict[str, Any], count: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Content-Encoding": "gzip"}
        self._headers = headers
        self._report = report
        self._moment = datetime.now(UTC) - timedelta(minutes=count)
        self.size_bytes = self.document_bytes = 0

    def one(self) -> None:
        """Send it once; AssertionError where it is refused."""
        self._moment += timedelta(minutes=1)
        now = self._moment.isoformat()
        self._report |= {"report_id": str(uuid.uuid4()), "created_at": now}
        self._report["sample"]["taken_at"] = now
        document = json.dumps(self._report, separators=(",", ":")).encode()
        body = gzip.compress(document, 6)
        self.size_bytes, self.document_bytes = len(body), len(document)
        self._connection.request("POST", "/api/v1/reports", body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == http.client.CREATED, text


def _wait(address: str, service: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if service.poll() is not None:
            break
        try:
            urllib.request.urlopen(address, timeout=5).close()  # noqa: S310 - our own server
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("report_cost: the service does not answer")


def _state(url: str, service: int, server: embedded.EmbeddedPostgres) -> tuple[float, float, float, float]:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT pg_database_size(current_database()), (pg_current_wal_lsn() - '0/0')::float8"
        ).fetchone()
    if row is None or server.pid is None:
        raise SystemExit("report_cost: PostgreSQL does not answer")
    return _cpu_seconds(service), _cpu_seconds(server.pid, with_children=True), float(row[0]), float(row[1])


def _cpu_seconds(pid: int, *, with_children: bool = False) -> float:
    """Processor time of a process; with its children, those that ended and those that run."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if with_children else []
    ticks = 0
    # The process last: the time of a child that has ended meanwhile is in its own by then.
    for one in (*map(int, children), pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it ended, before the file was opened or after
            continue
        ticks += sum(int(field) for field in fields[11 : 15 if with_children else 13])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
