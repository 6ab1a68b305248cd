"""Published results and the backtest, as the API answers them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from hugeplan.planner.demand.model_error import error_of_clients, error_of_rows
from hugeplan.planner.model import GIB
from validate import runs_table

RESULTS = Path(__file__).parents[3] / "docs/model-results.md"


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


async def test_a_pool_stands_on_the_published_shape_where_its_working_set_is_given(viewer: httpx.AsyncClient) -> None:
    address = "/api/v1/evidence/pool-shape"
    alone = (await viewer.get(address)).json()
    assert alone["series"] >= 4
    assert alone["here"] is alone["one_more_gib"] is None
    reached = [point["reached"]["likely"] for point in alone["band"]]
    assert reached[0] < 0.5
    assert reached[-1] > 0.95
    placed = (await viewer.get(address, params={"pool_bytes": 20 * GIB, "working_set_bytes": 40 * GIB})).json()
    assert 0 < placed["here"]["low"] <= placed["here"]["likely"] <= placed["here"]["high"] <= 1
    assert placed["one_more_gib"]["high"] < 0.1
    wrong = await viewer.get(address, params={"pool_bytes": 0})
    assert wrong.status_code == 422


async def test_own_validation_runs_say_what_their_figures_say(viewer: httpx.AsyncClient) -> None:
    items = (await viewer.get("/api/v1/evidence/validation")).json()["items"]
    assert {item["verdict"] for item in items} == {"inside", "within_noise", "outside"}
    for item in items:
        rounds, predicted, noise = (
            item["measured_rounds_percent"],
            item["predicted_percent"],
            item["noise_range_percent"],
        )
        mean = item["measured_percent"] if item["measured_percent"] is not None else sum(rounds) / len(rounds)
        inside = predicted["low"] <= mean <= predicted["high"]
        within = noise is not None and noise["low"] <= mean <= noise["high"]
        assert item["verdict"] == ("inside" if inside else "within_noise" if within else "outside"), item


def test_own_validation_runs_are_those_of_the_results_page() -> None:
    page = RESULTS.read_text(encoding="utf-8")
    shown = page.split("<!-- runs -->\n")[1].split("<!-- end of runs -->")[0]
    assert shown == runs_table.table(), "run: python -m validate.runs_table, and put it between the marks"


async def test_the_models_error_is_what_the_planner_reads(viewer: httpx.AsyncClient) -> None:
    found = (await viewer.get("/api/v1/evidence/model-error")).json()
    by_name = {row["name"]: row for row in found["classes"]}
    for name, error in (("clients", error_of_clients()), ("rows_inline", error_of_rows(inline=True, clients=8))):
        row = by_name[name]
        assert row["gained_points"]["low"] == pytest.approx(100 * error.gained[0])
        assert row["one_measurement_points"]["high"] == pytest.approx(100 * error.one_measurement[1])
        assert row["inside"] <= row["cells"]
        judged = [one for one in row["leave_one_machine_out"] if one["inside"] is not None]
        share = sum(one["inside"] for one in judged) / sum(one["cells"] for one in judged)
        assert (row["coverage"] == "shown") is (share >= 0.9), "what is printed is what was counted"
