"""The synthetic fleet: reproducible, labelled, and read by the service like any other."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import httpx
import psycopg
from support.service import Service

from hugeplan.settings import Settings
from tools.seed.fleet import nodes
from tools.seed.keep import report_again
from tools.seed.writer import SeedOptions, seed_fleet

NOW = "2026-11-20T12:00:00+00:00"


def test_the_same_seed_makes_the_same_fleet() -> None:
    assert list(nodes(50, 7, NOW)) == list(islice(nodes(400, 7, NOW), 50))
    assert list(nodes(50, 7, NOW)) != list(nodes(50, 8, NOW))


async def test_it_fills_the_service(service: Service, viewer: httpx.AsyncClient, settings: Settings) -> None:
    assert service.app is not None
    options = SeedOptions(nodes=120, seed=3, samples=2, runs=2, history_days=40)
    for _ in range(2):  # a second time replaces the first
        assert await asyncio.to_thread(seed_fleet, settings.psycopg_url(), options) == 120
    summary = (await viewer.get("/api/v1/fleet/summary")).json()
    assert summary["nodes"] == summary["nodes_synthetic"] == 120
    assert 60 < summary["nodes_measured"] <= 120
    assert summary["memory"]["pool_bytes"] > 0
    wins = (await viewer.get("/api/v1/fleet/page-size-wins")).json()
    assert wins["cases"] == 7 * summary["nodes_measured"]
    (first,) = (await viewer.get("/api/v1/nodes", params={"limit": 1})).json()["items"]
    detail = (await viewer.get(f"/api/v1/nodes/{first['id']}")).json()
    assert detail["synthetic"] is True
    assert detail["facts"] is not None
    year = {"from": "2026-01-01T00:00:00Z"}
    history = (await viewer.get(f"/api/v1/nodes/{first['id']}/history", params=year)).json()
    assert 40 <= len(history["points"]) <= 42


async def test_a_longer_span_shows_more_and_never_a_higher_minimum(
    service: Service, viewer: httpx.AsyncClient, settings: Settings
) -> None:
    """Hours reach back a week here and days forty: a month is not a week of hours."""
    assert service.app is not None
    options = SeedOptions(nodes=40, seed=41, samples=30, runs=0, history_days=40)
    await asyncio.to_thread(seed_fleet, settings.psycopg_url(), options)
    now = datetime.now(UTC)
    for node in (await viewer.get("/api/v1/nodes", params={"limit": 40})).json()["items"]:
        lowest, first = [], []
        for days in (1, 7, 30, 400):
            asked = {"from": (now - timedelta(days=days)).isoformat(), "points": 300}
            history = (await viewer.get(f"/api/v1/nodes/{node['id']}/history", params=asked)).json()
            points = history["points"]
            assert points == sorted(points, key=lambda point: point["start_at"])
            assert len({point["start_at"] for point in points}) == len(points)
            assert not [gap for gap in history["gaps"] if gap["end_at"] < now.isoformat()[:10]]
            lowest.append(min(point["mem_available_bytes_min"] for point in points))
            first.append(datetime.fromisoformat(points[0]["start_at"]))
        assert lowest == sorted(lowest, reverse=True), node["name"]
        assert now - first[2] > timedelta(days=28)


# What ingest keeps of a sample, by the samples themselves: a roll-up that knows less is one that no agent makes.
_TOLD = """
SELECT count(*), count(*) FILTER (WHERE t.anon_shmem_bytes_max >= x.used AND t.mem_available_bytes_min <= x.low)
FROM (SELECT node_id, date_trunc('{width}', taken_at, 'UTC') AS start_at, min(mem_available_bytes) AS low,
    max((memory ->> 'anon_pages_bytes')::bigint + (memory ->> 'shmem_bytes')::bigint) AS used
    FROM samples GROUP BY 1, 2) AS x JOIN sample_{width}s t USING (node_id, start_at)
"""


async def test_a_synthetic_node_has_the_history_that_a_running_agent_leaves(
    service: Service, planner: httpx.AsyncClient, settings: Settings
) -> None:
    """The shortage of its plan is said by a week of hours; a kept fleet adds to hours, days and samples alike."""
    assert service.app is not None
    url = settings.psycopg_url()
    await asyncio.to_thread(seed_fleet, url, SeedOptions(nodes=40, seed=43, samples=3, runs=0))
    later = datetime.now(UTC) + timedelta(minutes=2)
    assert await asyncio.to_thread(report_again, url, later) > 30
    with psycopg.connect(url) as connection:
        for width in ("hour", "day"):
            told = connection.execute(_TOLD.format(width=width)).fetchone()
            assert told is not None
            assert told[0] == told[1] > 30
            # Rows of nodes that earlier tests deleted stay until retention: only this fleet's count.
            asked = (
                f"SELECT count(*) FROM sample_{width}s s JOIN nodes n ON n.id = s.node_id "
                "WHERE s.anon_shmem_bytes_max IS NULL"
            )
            assert connection.execute(asked).fetchone() == (0,)
    within = 0
    for node in (await planner.get("/api/v1/nodes", params={"limit": 40, "stale": False})).json()["items"]:
        preview = await planner.post("/api/v1/plans/preview", json={"node_id": node["id"], "scenario": {}})
        assert preview.status_code == 200, preview.text
        assert "one sample" not in preview.text, node["name"]
        plan = preview.json()["plan"]
        within += plan["risk"]["meets_policy"] is True
        # Its parts sum to its memory without a gap: what is left over in a sample is the planner's kernel.
        kernel = sum(part["bytes"] for part in plan["ledger"]["parts"] if part["kind"] == "kernel")
        assert 0 < kernel < plan["ledger"]["mem_total_bytes"] / 50, node["name"]
    assert within > 10


async def test_a_fleet_that_is_kept_reports_again_but_for_those_made_silent(
    service: Service, viewer: httpx.AsyncClient, settings: Settings
) -> None:
    assert service.app is not None
    await asyncio.to_thread(seed_fleet, settings.psycopg_url(), SeedOptions(nodes=200, seed=42, samples=1, runs=0))
    silent = (await viewer.get("/api/v1/fleet/summary")).json()["nodes_stale"]
    assert silent > 0
    later = datetime.now(UTC) + timedelta(minutes=20)
    assert await asyncio.to_thread(report_again, settings.psycopg_url(), later) == 200 - silent
    for minute in (1, 2):
        again = later + timedelta(minutes=minute)
        assert await asyncio.to_thread(report_again, settings.psycopg_url(), again) == 200 - silent
    (node,) = (await viewer.get("/api/v1/nodes", params={"limit": 1, "stale": False})).json()["items"]
    assert datetime.fromisoformat(node["last_report_at"]) == later + timedelta(minutes=2)
    detail = (await viewer.get(f"/api/v1/nodes/{node['id']}")).json()
    assert datetime.fromisoformat(detail["sample"]["taken_at"]) == later + timedelta(minutes=2)
    samples = (await viewer.get(f"/api/v1/nodes/{node['id']}/samples")).json()["items"]
    assert [datetime.fromisoformat(sample["taken_at"]) for sample in samples[:3]] == [
        later + timedelta(minutes=minute) for minute in (2, 1, 0)
    ]


def test_the_program_makes_a_fleet_once_and_lets_it_report_until_it_is_ended(
    service: Service, settings: Settings
) -> None:
    """As a container: started again with its machine, it replaces nothing, and SIGTERM ends it."""
    assert service.app is not None
    url = settings.psycopg_url()
    words = [sys.executable, "-m", "tools.seed", "--keep", "--every", "1", "--nodes", "3", "--samples", "2"]
    environment = {**os.environ, "HUGEPLAN_DATABASE_URL": url}
    known: set[tuple[object, ...]] = set()
    for _ in range(2):
        begun = datetime.now(UTC)
        program = subprocess.Popen(words, env=environment, cwd=Path(__file__).resolve().parents[2])
        try:
            _until(lambda begun=begun: _last_reports(url, after=begun) == 3)  # type: ignore[misc]
            first = datetime.now(UTC)
            _until(lambda first=first: _last_reports(url, after=first) > 0)  # type: ignore[misc]
        finally:
            program.send_signal(signal.SIGTERM)
            assert program.wait(30) == 0
        with psycopg.connect(url) as connection:
            ids = set(connection.execute("SELECT id FROM nodes WHERE synthetic").fetchall())
        assert len(ids) == 3
        assert known in (set(), ids)
        known = ids


def _last_reports(url: str, after: datetime) -> int:
    with psycopg.connect(url) as connection:
        asked = "SELECT count(*) FROM nodes WHERE synthetic AND last_report_at > %s"
        row = connection.execute(asked, [after]).fetchone()
    return 0 if row is None else int(row[0])


def _until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
