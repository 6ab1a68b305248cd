"""How fast a seeded fleet is read: lists, pages, previews and a fleet plan, over one keep-alive connection each."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psycopg

from bench.support.figures import Figure, figure
from bench.support.ingest import RECORDED
from bench.support.load import answer, request_bytes

WARM_UP = 20
COUNT = 240
MOST_RUNS = 50
NODES = 24
"""Different nodes that the rows of one node take in turn, so that none is the one that is in every cache."""
DATABASE = {"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "4GB"}}


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    path: str
    method: str = "GET"
    body: bytes = b""


Step = tuple[Call, ...]
"""Requests that are timed together, one after the other."""


async def timed(port: int, token: str, steps: Sequence[Step], count: int) -> list[float]:
    """Seconds of ``count`` steps, taken in turn, on one connection. RuntimeError for an answer that is no success."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    try:
        for step in islice(cycle(steps), count):
            requests = [request_bytes(port, token, call.body, call.method, call.path) for call in step]
            begun = time.perf_counter()
            for call, request in zip(step, requests, strict=True):
                writer.write(request)
                status, content = await answer(reader)
                if status not in (200, 201):
                    raise RuntimeError(f"{call.path} answered {status}: {content[:300]!r}")
            times.append(time.perf_counter() - begun)
    finally:
        writer.close()
    return times


def quantiles(port: int, token: str, name: str, steps: Sequence[Step], bar: float | None, **rest: Any) -> Figure:
    """p50 and p95 of at least 200 steps after a warm-up."""
    asyncio.run(timed(port, token, steps, max(WARM_UP, len(steps))))
    times = sorted(asyncio.run(timed(port, token, steps, COUNT)))
    p95 = times[int(0.95 * len(times))]
    return figure(f"{name}: p95", p95, bar, median_seconds=round(statistics.median(times), 6), count=COUNT, **rest)


def get_json(port: int, token: str, path: str, body: Any = None) -> Any:
    """The answer to one request outside of what is timed."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1{path}", data, headers)
    with urllib.request.urlopen(request) as opened:  # noqa: S310
        return json.load(opened)


def sizes(database_url: str) -> dict[str, int]:
    """How much is stored."""
    with psycopg.connect(database_url) as connection:
        found = {}
        for table in ("nodes", "samples", "runs", "sample_days", "sample_hours"):
            query = psycopg.sql.SQL("SELECT count(*) FROM {}").format(psycopg.sql.Identifier(table))
            (found[table],) = connection.execute(query).fetchone() or (0,)
    return found


def often_measured(database_url: str) -> list[tuple[str, str]]:
    """Ids of nodes with 50 runs, and of the newest of them."""
    query = """
        SELECT n.id::text, n.latest_run_id::text FROM nodes n JOIN runs r ON r.node_id = n.id
        GROUP BY n.id HAVING count(*) >= %s ORDER BY n.id LIMIT %s
    """
    with psycopg.connect(database_url) as connection:
        return [(node, run) for node, run in connection.execute(query, [MOST_RUNS, NODES]).fetchall()]


def lists(port: int, token: str) -> Iterator[Figure]:
    """Lists of nodes: the first page, a page from the middle, sorted by something else, and searched."""

    def calls(*paths: str) -> list[Step]:
        return [(Call(f"/api/v1{path}"),) for path in paths]

    middle = ""
    for _ in range(10):
        middle = get_json(port, token, f"/nodes?limit=500{middle and '&cursor=' + middle}")["next_cursor"] or ""
        if not middle:
            break
    after = f"&cursor={middle}" if middle else ""
    sorts = ("name", "findings", "mem_available_bytes", "last_report_at")
    for limit in (50, 500):
        yield quantiles(port, token, f"list of {limit} nodes", calls(f"/nodes?limit={limit}"), 0.050)
        yield quantiles(
            port, token, f"list of {limit} nodes from the middle", calls(f"/nodes?limit={limit}{after}"), 0.050
        )
        yield quantiles(
            port, token, f"list of {limit} nodes by {len(sorts)} columns in turn",
            calls(*(f"/nodes?limit={limit}&sort={sort}&descending=true" for sort in sorts)), 0.050,
        )  # fmt: skip
    words = ("mysql-eks", "postgresql-racks-0", "-007", "web-gke", "nothing-has-this-name")
    yield quantiles(
        port, token, f"search ({len(words)} words in turn)", calls(*(f"/nodes?q={word}&limit=50" for word in words)),
        0.050,
    )  # fmt: skip
    yield quantiles(port, token, "fleet summary", calls("/fleet/summary"), None)


def node_page(port: int, token: str, database_url: str) -> Iterator[Figure]:
    """What the page of a node asks for, of nodes with a year of samples and 50 runs: each, and all one by one."""
    year = (datetime.now(UTC) - timedelta(days=365)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = often_measured(database_url)
    if not found:
        raise RuntimeError(f"no node has {MOST_RUNS} runs: seed with most_runs={MOST_RUNS}")
    parts: dict[str, list[Call]] = {
        "the node": [Call(f"/api/v1/nodes/{node}") for node, _ in found],
        "a year of samples": [Call(f"/api/v1/nodes/{node}/history?from={year}") for node, _ in found],
        "the newest samples": [Call(f"/api/v1/nodes/{node}/samples?limit=500") for node, _ in found],
        "50 runs": [Call(f"/api/v1/nodes/{node}/runs?limit=50") for node, _ in found],
        "the newest run": [Call(f"/api/v1/runs/{run}") for _, run in found],
        "processes": [Call(f"/api/v1/nodes/{node}/processes") for node, _ in found],
    }
    together = list(zip(*parts.values(), strict=True))
    yield quantiles(port, token, f"node page: its {len(parts)} requests one after the other", together, 0.080)
    for name, calls in parts.items():
        yield quantiles(port, token, f"node page: {name}", [(call,) for call in calls], 0.080)


def recorded_node(port: int, machine: str, agent: str, database_url: str) -> str:
    """The id of a node with a real machine's report (labelled as recorded) and a week of made hours behind it."""
    document = json.loads(RECORDED.read_text(encoding="utf-8")) | {
        "report_id": str(uuid.uuid4()), "machine_id": machine, "node_name": f"recorded-{machine[:6]}",
        "created_at": datetime.now(UTC).isoformat(),
    }  # fmt: skip
    document["sample"]["taken_at"] = document["created_at"]
    node = str(get_json(port, agent, "/reports", document)["node_id"])
    memory = document["sample"]["memory"]
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            INSERT INTO sample_hours (node_id, start_at, samples, mem_total_bytes_max, mem_available_bytes_sum,
                mem_available_samples, anon_shmem_bytes_max)
            SELECT %(node)s, at, 60, %(total)s, 0, 0,
                CAST(%(used)s * (1 + 0.2 * sin(extract(epoch FROM at) / 13751)) AS bigint)
            FROM generate_series(date_trunc('hour', now() - interval '7 days'), now() - interval '2 hours',
                interval '1 hour') AS at
            """,
            {
                "node": node,
                "total": memory["mem_total_bytes"],
                "used": memory["anon_pages_bytes"] + memory["shmem_bytes"],
            },
        )
    return node


def previews(port: int, token: str, database_url: str, recorded: str) -> Iterator[Figure]:
    """Previews on nodes that are stored: different sizes in turn, so that no answer is the one before."""

    def body(node: str, gib: int) -> dict[str, Any]:
        database = DATABASE | {"settings": {"shared_buffers": f"{gib}GB"}}
        return {"node_id": node, "scenario": {"databases": [database]}}

    def call(node: str, gib: int) -> Step:
        return (Call("/api/v1/plans/preview", "POST", json.dumps(body(node, gib)).encode()),)

    fits: list[Step] = []
    does_not: list[Step] = []
    for number, (node, _) in enumerate(often_measured(database_url)):
        gib = 3 + number % 5
        feasible = get_json(port, token, "/plans/preview", body(node, gib))["plan"]["feasible"]
        (fits if feasible else does_not).append(call(node, gib))
    yield quantiles(port, token, "preview with node_id", fits, 0.025, nodes=len(fits))
    on_recorded = [call(recorded, gib) for gib in (1, 2, 3)]
    yield quantiles(port, token, "preview with node_id, a recorded node with a week of hours", on_recorded, 0.025)
    if does_not:
        yield quantiles(
            port, token, "preview with node_id that does not fit: other nodes are tried", does_not, None,
            nodes=len(does_not),
        )  # fmt: skip


FLEET_PLAN_SECONDS = 20.0
"""A plan for each of 10,000 nodes on two idle cores, less urgent than the service (docs/adr/0032)."""


def wait_for_ready_process(server_pid: int) -> None:
    """Wait for the process that the service keeps ready for a fleet plan, a minute after its start: it reads a pipe."""
    children = Path(f"/proc/{server_pid}/task/{server_pid}/children")
    used: dict[str, int] = {}
    until = time.monotonic() + 180.0
    while time.monotonic() < until:
        for child in children.read_text(encoding="ascii").split():
            fields = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
            before, used[child] = used.get(child), int(fields[11]) + int(fields[12])
            if before == used[child] > os.sysconf("SC_CLK_TCK") / 2:
                return  # its modules are read: it uses no more time
        time.sleep(1.0)
    raise RuntimeError("the service made no process ready within three minutes")


def fleet_plan(port: int, token: str, server_pid: int) -> Iterator[Figure]:
    """A fleet plan over every node, from the request to the end of its stream; and how soon another one is ended."""
    wait_for_ready_process(server_pid)
    scenario = {"databases": [DATABASE]}
    begun = time.perf_counter()
    job = get_json(port, token, "/fleet/plan", {"scenario": scenario})
    text, first = _stream(port, token, job["id"])
    seconds = time.perf_counter() - begun
    end = json.loads(text.rsplit("event: end\ndata: ", 1)[1].split("\n", 1)[0])
    yield figure(
        f"fleet plan of {end['nodes_total']} nodes",
        seconds,
        FLEET_PLAN_SECONDS,
        status=end["status"],
        progress_events=text.count("event: progress"),
        first_event_seconds=round(first - begun, 2),
    )
    job = get_json(port, token, "/fleet/plan", {"scenario": scenario})
    while get_json(port, token, f"/fleet/plans/{job['id']}")["status"] == "queued":
        time.sleep(0.02)
    begun = time.perf_counter()
    status = get_json(port, token, f"/fleet/plans/{job['id']}/cancel", {})["status"]
    yield figure("fleet plan: cancelled", time.perf_counter() - begun, None, status=status)


def _stream(port: int, token: str, job_id: str) -> tuple[str, float]:
    """The job's progress to its end, and when its first event came."""
    headers = {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{port}/api/v1/fleet/plans/{job_id}/progress"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as opened:
        first_line = opened.readline()
        first = time.perf_counter()
        return (first_line + opened.read()).decode(), first
