"""How fast the service takes reports in and answers, beside a yardstick on the same machine in the same run.

Prints one JSON object per line, as bench/planner.py does. Ingest: a real server over a real, durable PostgreSQL and 8
keep-alive connections; the yardstick (bench/support/yardstick.py) stores the same bytes and does nothing else. Rounds
of the two alternate, and each figure is a median: other work on the machine slows both. ``budget_seconds`` of a rate is
twice the yardstick's time per report. ``--nodes`` and ``--only`` make a run shorter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Run as a file: the packages bench and tests/support are found from here.
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests")]

from support.reports import report, run

from bench.support.load import Load, ReportMaker, answer, request_bytes, run_load
from hugeplan import embedded
from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.db import migrate
from hugeplan.db.engine import create_engine
from hugeplan.db.session import Database
from hugeplan.seed.writer import SeedOptions, seed_fleet
from hugeplan.settings import Settings

CONNECTIONS = 8
ROUNDS = 3
SECONDS = 4.0
BACKEND = Path(__file__).resolve().parents[1]
RECORDED = BACKEND.parent / "frontend" / "e2e" / "recorded" / "guest.json"


def free_port() -> int:
    """A free TCP port."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def served(command: list[str], port: int, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server process that answers, ended at the end."""
    process = subprocess.Popen(  # noqa: S603 - our own commands
        command, cwd=BACKEND, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
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


async def tokens(settings: Settings) -> tuple[list[tuple[str, str]], str]:
    """A machine and its token per connection, and a viewer's token."""
    database = Database(create_engine(settings))
    found = []
    async with database.write() as session:
        for _ in range(CONNECTIONS):
            machine = uuid.uuid4().hex
            made = await access.mint(session, name="bench", role=Role.AGENT, machine_id=machine)
            found.append((machine, made.token))
        viewer = await access.mint(session, name="bench", role=Role.VIEWER)
    await database.dispose()
    return found, viewer.token


def body_of(machine: str, kind: str) -> tuple[bytes, str]:
    """A report's bytes and the id in them: samples only (about 5.8 kB), or with the recorded quick run."""
    document = report(machine_id=machine, node_name=f"bench-{machine[:6]}")
    if kind == "samples":
        document["sample"]["processes"] = [
            {"pid": 1000 + n, "start_time_ticks": 5 + n, "name": f"postgres: worker {n}", "rss_bytes": 2**30 + n,
             "vm_pte_bytes": 8192, "shared_hugetlb_bytes": 2**28}
            for n in range(24)
        ]  # fmt: skip
    else:
        recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
        document["run"] = recorded.get("run") or run()
    document["created_at"] = document["sample"]["taken_at"] = datetime.now(UTC).isoformat()
    return json.dumps(document).encode(), document["report_id"]


def makers(port: int, machines: list[tuple[str, str]], kind: str) -> list[Any]:
    """One maker of requests per machine."""
    found = []
    for machine, token in machines:
        body, report_id = body_of(machine, kind)
        found.append(ReportMaker(port, token, body, report_id))
    return found


def figure(name: str, seconds: float, budget: float | None, **rest: Any) -> dict[str, Any]:
    """One line of the result. Wall time of both sides of a ratio is judged, so it stands for processor time too."""
    return {
        "name": name,
        "seconds": round(seconds, 6),
        "cpu_seconds": round(seconds, 6),
        "budget_seconds": None if budget is None else round(budget, 6),
        **rest,
    }


def ingest(port: int, yard_port: int, machines: list[tuple[str, str]], server_pid: int) -> Iterator[dict[str, Any]]:
    """Rates beside the yardstick, in alternating rounds."""
    for kind, bar in (("samples", 600), ("quick run", 150)):
        own: list[Load] = []
        yard: list[Load] = []
        cpu: list[float] = []
        size = len(body_of("0" * 32, kind)[0])
        for _ in range(ROUNDS):
            yard.append(asyncio.run(run_load(yard_port, makers(yard_port, machines, kind), seconds=SECONDS)))
            used = processor_seconds(server_pid)
            own.append(asyncio.run(run_load(port, makers(port, machines, kind), seconds=SECONDS)))
            cpu.append((processor_seconds(server_pid) - used) / len(own[-1].seconds))
        rate = statistics.median(load.rate for load in own)
        yard_rate = statistics.median(load.rate for load in yard)
        ratio = statistics.median(a.rate / b.rate for a, b in zip(own, yard, strict=True))
        yield figure(
            f"reports per second, {kind} ({size} bytes): time per report",
            1 / rate,
            2 / yard_rate,
            reports_per_second=round(rate, 1),
            yardstick_per_second=round(yard_rate, 1),
            ratio=round(ratio, 2),
            server_cpu_ms=round(1000 * statistics.median(cpu), 2),
            bar=f">= {bar}/s and >= 0.5 of the yardstick",
        )
        half = asyncio.run(run_load(port, makers(port, machines, kind), seconds=2 * SECONDS, rate=bar / 2))
        yield figure(f"p99 at {bar // 2} reports per second, {kind}", half.quantile(0.99), 0.150, bar="< 150 ms")


def processor_seconds(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def timed_requests(port: int, token: str, method: str, path: str, body: bytes, count: int) -> list[float]:
    """Times of the same request, one after the other, on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        writer.write(request_bytes(port, token, body, method, path))
        status, content = await answer(reader)
        times.append(time.perf_counter() - begun)
        if status not in (200, 201):
            raise RuntimeError(f"{path} answered {status}: {content[:300]!r}")
    writer.close()
    return times


def reads(port: int, token: str, count: int) -> Iterator[dict[str, Any]]:
    """p95 of lists, pages and previews over the seeded fleet."""
    with urllib.request.urlopen(
        urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/nodes?limit=1&sort=findings&descending=true",
            headers={"Authorization": f"Bearer {token}"},
        )
    ) as opened:
        node = json.load(opened)["items"][0]["id"]
    scenario = {"databases": [{"name": "a", "engine": "postgresql", "version": "17",
                               "settings": {"shared_buffers": "8GB"}}]}  # fmt: skip
    preview = json.dumps({"node_id": node, "scenario": scenario}).encode()
    year = "from=2026-01-01T00:00:00Z"
    for name, method, path, body, bar in (
        ("list of 50 nodes", "GET", "/api/v1/nodes?limit=50", b"", 0.050),
        ("list of 500 nodes", "GET", "/api/v1/nodes?limit=500", b"", 0.050),
        ("search", "GET", "/api/v1/nodes?q=mysql-eks&limit=50", b"", 0.050),
        ("node page: the node", "GET", f"/api/v1/nodes/{node}", b"", 0.080),
        ("node page: a year of samples", "GET", f"/api/v1/nodes/{node}/history?{year}", b"", 0.080),
        ("node page: 50 runs", "GET", f"/api/v1/nodes/{node}/runs?limit=50", b"", 0.080),
        ("preview with node_id", "POST", "/api/v1/plans/preview", preview, 0.025),
        ("fleet summary", "GET", "/api/v1/fleet/summary", b"", None),
    ):
        asyncio.run(timed_requests(port, token, method, path, body, 5))
        times = sorted(asyncio.run(timed_requests(port, token, method, path, body, count)))
        yield figure(
            f"{name}: p95", times[int(0.95 * len(times))], bar, median_seconds=round(statistics.median(times), 6)
        )


def fleet_plan(port: int, token: str) -> dict[str, Any]:
    """A fleet plan over every node, from the request to the end of its stream."""
    scenario = {"databases": [{"name": "a", "engine": "postgresql", "version": "17",
                               "settings": {"shared_buffers": "8GB"}}]}  # fmt: skip
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    base = f"http://127.0.0.1:{port}/api/v1/fleet"
    begun = time.perf_counter()
    request = urllib.request.Request(f"{base}/plan", json.dumps({"scenario": scenario}).encode(), headers)  # noqa: S310
    with urllib.request.urlopen(request) as opened:  # noqa: S310
        job = json.load(opened)
    stream = urllib.request.Request(f"{base}/plans/{job['id']}/progress", headers=headers)  # noqa: S310
    with urllib.request.urlopen(stream) as opened:  # noqa: S310
        text = opened.read().decode()
    seconds = time.perf_counter() - begun
    end = json.loads(text.rsplit("event: end\ndata: ", 1)[1].split("\n", 1)[0])
    return figure(
        f"fleet plan of {end['nodes_total']} nodes", seconds, 4.0, status=end["status"], summary=end["summary"]
    )


async def planner_token(settings: Settings) -> str:
    """A planner's token."""
    database = Database(create_engine(settings))
    async with database.write() as session:
        made = await access.mint(session, name="bench", role=Role.PLANNER)
    await database.dispose()
    return made.token


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Print every figure; 1 when a bar was missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=100, help="samples per node")
    parser.add_argument("--runs", type=int, default=10, help="runs per measured node")
    parser.add_argument("--only", choices=("ingest", "reads"))
    arguments = parser.parse_args()
    missed = False
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.running(
            Path(folder) / "data", embedded.DEMO_SETTINGS | {"shared_buffers": "256MB", "max_wal_size": "1GB"}
        ) as postgres,
    ):
        postgres.ensure_database("bench")
        postgres.ensure_database("yardstick")
        settings = Settings.model_validate({"database_url": postgres.url("bench")})
        migrate.upgrade(settings.sqlalchemy_url(), migrate.migrations_dir(None))
        if arguments.only != "ingest":
            seed_fleet(
                postgres.url("bench"),
                SeedOptions(
                    nodes=arguments.nodes, seed=1, samples=arguments.samples, runs=arguments.runs, history_days=365
                ),
            )
        machines, viewer = asyncio.run(tokens(settings))
        port, yard_port = free_port(), free_port()
        environment = {
            "HUGEPLAN_DATABASE_URL": postgres.url("bench"),
            "HUGEPLAN_PORT": str(port),
            "HUGEPLAN_REQUESTS_PER_MINUTE": "1000000",
            "HUGEPLAN_LOG_LEVEL": "warning",
            "HUGEPLAN_STATE_DIR": folder,
        }
        yard = {"YARDSTICK_DATABASE_URL": postgres.url("yardstick")}
        own_command = [sys.executable, "-m", "hugeplan.cli", "serve"]
        yard_command = [sys.executable, "-m", "bench.support.yardstick", str(yard_port)]
        with served(own_command, port, environment) as server, served(yard_command, yard_port, yard):
            for item in _figures(arguments, port, yard_port, machines, viewer, settings, server.pid):
                budget = item["budget_seconds"]
                missed = missed or (budget is not None and item["cpu_seconds"] > budget)
                sys.stdout.write(json.dumps(item) + "\n")
                sys.stdout.flush()
    return 1 if missed else 0


def _figures(
    arguments: argparse.Namespace,
    port: int,
    yard_port: int,
    machines: list[tuple[str, str]],
    viewer: str,
    settings: Settings,
    pid: int,
) -> Iterator[dict[str, Any]]:
    if arguments.only != "reads":
        yield from ingest(port, yard_port, machines, pid)
    if arguments.only != "ingest":
        yield from reads(port, viewer, 60)
        yield fleet_plan(port, asyncio.run(planner_token(settings)))
    yield figure("memory of the worker in MiB (as seconds)", 0.0, None, resident_mib=resident_bytes(pid) // 2**20)


if __name__ == "__main__":
    sys.exit(main())
