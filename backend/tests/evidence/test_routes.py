"""Published results and the backtest, as the API answers them."""

from __future__ import annotations

import httpx


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
