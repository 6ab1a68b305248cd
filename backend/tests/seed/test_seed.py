"""The synthetic fleet: reproducible, labelled, and read by the service like any other."""

from __future__ import annotations

import asyncio
from itertools import islice

import httpx
from support.service import Service

from hugeplan.settings import Settings
from tools.seed.fleet import nodes
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
