"""Processors and engines, as the API answers them."""

from __future__ import annotations

import httpx

from hugeplan import __version__
from hugeplan.planner.demand import ENGINES
from hugeplan.settings import Settings


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


async def test_about_names_the_version_and_every_retention(viewer: httpx.AsyncClient) -> None:
    about = (await viewer.get("/api/v1/about")).json()
    assert about["version"] == __version__
    kept = {item["setting"]: item["days"] for item in about["retention"]}
    assert kept["HUGEPLAN_SAMPLE_RETENTION_DAYS"] == 30
    # Zero days is the setting's word for never.
    assert kept["HUGEPLAN_SILENT_NODE_RETENTION_DAYS"] is None
    assert len(kept) == sum(name.endswith("_retention_days") for name in Settings.model_fields)
