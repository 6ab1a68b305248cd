"""Page walks that an agent's report tells: on the node's page, and in its plan."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from support.reports import GIB, MIB, report
from support.service import Service

from hugeplan.access.schemas import Role
from hugeplan.documents.observed import WalkCounters
from hugeplan.fleet.observation import walk_share

COUNTED = {
    "counted_at": "2026-11-24T15:00:00Z",
    "status": "ok",
    "reason": None,
    "event_set": "intel-icelake-sp",
    "walk_cycles_are": "active",
    "seconds": 2.0,
    "running_fraction": 0.33,
    "overhead_fraction": 0.0004,
    "walk_fraction": 0.02,
    "cycles": 9_000_000_000,
    "walk_cycles": 180_000_000,
    "l2_hits": 10_000_000,
    "a_field_of_a_newer_agent": 1,
}


def database(**counters: Any) -> dict[str, Any]:
    """A PostgreSQL on base pages, counted."""
    return {
        "key": "postgresql@5432",
        "engine": "postgresql",
        "version": "17",
        "main_pid": 4711,
        "settings": {"shared_buffers": {"value": "16GB", "source": "postgresql.conf"}},
        "segments": [{"bytes": 17 * GIB, "backing": "base_pages", "page_bytes": 4096, "kind": "anonymous_shared"}],
        "huge_pages_status": "off",
        "counters": COUNTED | counters,
    }


async def post(service: Service, one: dict[str, Any]) -> str:
    document = report(sample={"databases": [one]})
    client = await service.client_as(Role.AGENT, machine_id=document["machine_id"])
    answer = await client.post("/api/v1/reports", json=document)
    assert answer.status_code == 201, answer.text
    node_id: str = answer.json()["node_id"]
    return node_id


async def test_the_node_says_what_was_counted(service: Service, viewer: httpx.AsyncClient) -> None:
    node_id = await post(service, database())
    (walks,) = (await viewer.get(f"/api/v1/nodes/{node_id}/processes")).json()["walks"]
    assert (walks["key"], walks["engine"], walks["pid"]) == ("postgresql@5432", "postgresql", 4711)
    assert walks["counters"]["walk_fraction"] == 0.02
    assert walks["counters"]["data_walks"] is None
    await post(service, database(walk_fraction=0.118))
    (walks,) = (await viewer.get(f"/api/v1/nodes/{node_id}/processes")).json()["walks"]
    assert walks["counters"]["walk_fraction"] == 0.118, "of the newest report"


async def test_the_plan_takes_the_share_as_its_bound(service: Service, planner: httpx.AsyncClient) -> None:
    node_id = await post(service, database())
    wanted = {
        "name": "main",
        "engine": "postgresql",
        "version": "17",
        "settings": {"shared_buffers": "16GB"},
        "page_size": "2M",
        "workload": {"row_bytes": 128, "working_set": "16GiB", "active_connections": 8},
    }
    body = {"node_id": node_id, "scenario": {"databases": [wanted]}}
    made = (await planner.post("/api/v1/plans/preview", json=body)).json()["plan"]
    gain = next(gain for gain in made["gains"] if gain["page_bytes"] == 2 * MIB and gain["backing_kind"] == "hugetlb")
    most = 1 / (1 - (0.02 + 9 * 10_000_000 / 9_000_000_000))
    assert gain["speedup"]["high"] <= most + 1e-9
    assert "2.0 % of its cycles with a page walk" in gain["statement"]
    assert [f["state"] for f in made["findings"] if f["code"] == "walk_share"] == ["ok"]


@pytest.mark.parametrize(
    "change",
    [{"walk_fraction": None}, {"walk_cycles_are": "stall"}, {"walk_cycles_are": None}],
    ids=["not counted", "stalls are no bound", "not said what it is"],
)
def test_what_bounds_nothing(change: dict[str, Any]) -> None:
    assert walk_share(WalkCounters.model_validate(COUNTED | change)) is None
    assert walk_share(None) is None


def test_hits_add_to_the_bound_where_they_were_counted() -> None:
    found = walk_share(WalkCounters.model_validate(COUNTED))
    assert found is not None
    assert (found.fraction, found.bound_fraction) == (0.02, pytest.approx(0.03))
    alone = walk_share(WalkCounters.model_validate(COUNTED | {"l2_hits": None}))
    assert alone is not None
    assert alone.bound_fraction == 0.02
