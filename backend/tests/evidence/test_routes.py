"""The facts that ship with the service, as the API answers them."""

from __future__ import annotations

import httpx

from hugeplan.planner.demand import ENGINES


async def test_evidence_has_every_published_result(viewer: httpx.AsyncClient) -> None:
    answer = (await viewer.get("/api/v1/evidence")).json()
    assert len(answer["items"]) == 108
    assert len({item["id"] for item in answer["items"]}) == 108
    assert all(item["source"] for item in answer["items"])


async def test_backtest_has_a_row_for_every_result(viewer: httpx.AsyncClient) -> None:
    evidence = (await viewer.get("/api/v1/evidence")).json()
    backtest = (await viewer.get("/api/v1/evidence/backtest")).json()
    assert [row["id"] for row in backtest["items"]] == [item["id"] for item in evidence["items"]]
    assert sum(backtest["counts"].values()) == len(backtest["items"])
    for row in backtest["items"]:
        assert (row["predicted_percent"] is None) == (row["status"] in {"no_inputs"}) or row["reason"]


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
