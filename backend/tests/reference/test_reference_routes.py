"""Processors and engines, as the API answers them."""

from __future__ import annotations

import httpx

from hugeplan.planner.demand import ENGINES


async def test_catalogue_names_its_sources(viewer: httpx.AsyncClient) -> None:
    items = (await viewer.get("/api/v1/catalogue/tlb")).json()["items"]
    assert len(items) >= 28
    assert all(item["sources"] for item in items)
    assert any(level["ways_max"] for item in items for level in item["levels"])


async def test_every_engine_is_listed_with_its_settings(viewer: httpx.AsyncClient) -> None:
    items = {item["name"]: item for item in (await viewer.get("/api/v1/engines")).json()["items"]}
    assert items.keys() == ENGINES.keys()
    assert "shared_buffers" in {setting["name"] for setting in items["postgresql"]["settings"]}
    assert items["postgresql"]["wants_pool"] is True
