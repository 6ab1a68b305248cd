"""Nodes that fall silent, fleet plans that nobody works on any more, and the fleet's metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from sqlalchemy import text
from support.reports import report
from support.service import Service

from hugeplan.fleet.selector import STALE_AFTER
from hugeplan.fleet.watch import CODE, mark_stale
from hugeplan.fleet_plans import repository


async def stale_findings(viewer: httpx.AsyncClient, node_id: str) -> list[Any]:
    found = (await viewer.get(f"/api/v1/nodes/{node_id}")).json()["findings"]
    return [finding for finding in found if finding["code"] == CODE]


async def test_a_silent_node_has_a_finding_until_it_reports(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    node_id = (await agent.post("/api/v1/reports", json=report())).json()["node_id"]
    now = datetime.now(UTC)
    assert await mark_stale(service.database, now) == 0
    later = now + STALE_AFTER + timedelta(minutes=1)
    assert [await mark_stale(service.database, later) for _ in range(2)] == [1, 0]
    (finding,) = await stale_findings(viewer, node_id)
    assert finding["state"] == "attention"
    assert [n["id"] for n in (await viewer.get(f"/api/v1/nodes?finding={CODE}")).json()["items"]] == [node_id]
    assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
    assert await stale_findings(viewer, node_id) == []
    events = (await viewer.get("/api/v1/events/history", params={"code": CODE})).json()["items"]
    assert [event["kind"] for event in events] == ["finding_closed", "finding_opened"]


async def test_a_plan_in_force_closes_no_finding_that_it_does_not_concern(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """That the node is silent is found by looking, not by its report: setting a plan closed it, and it came again."""
    node_id = (await agent.post("/api/v1/reports", json=report())).json()["node_id"]
    await mark_stale(service.database, datetime.now(UTC) + STALE_AFTER + timedelta(minutes=1))
    before = (await viewer.get(f"/api/v1/nodes/{node_id}")).json()["findings"]
    for pages in (7, 8):
        pools = [{"numa_node": None, "page_bytes": 2**21, "pages": pages}]
        answer = await planner.put(f"/api/v1/nodes/{node_id}/plan-in-force", json={"pools": pools})
        assert answer.status_code == 200, answer.text
    after = (await viewer.get(f"/api/v1/nodes/{node_id}")).json()["findings"]
    assert [f for f in after if f["code"] != "plan_drift"] == before
    assert [f["code"] for f in before] == [f["code"] for f in before if f["code"] != "plan_drift"]
    kinds = [event["kind"] for event in (await viewer.get("/api/v1/events/history")).json()["items"]]
    assert "finding_closed" not in kinds


async def test_a_made_up_node_is_left_alone(service: Service, agent: httpx.AsyncClient) -> None:
    await agent.post("/api/v1/reports", json=report(synthetic=True))
    assert await mark_stale(service.database, datetime.now(UTC) + timedelta(days=1)) == 0


async def test_a_job_that_nobody_hears_of_fails(service: Service, planner: httpx.AsyncClient) -> None:
    job = (
        "INSERT INTO fleet_plans (id, name, created_at, created_by, status, cancel_requested, selector, scenario,"
        " model_version, nodes_total, nodes_done, plans_computed, heartbeat_at) VALUES (gen_random_uuid(), 'a', now(),"
        " 'a', 'running', false, '{}', '{}', '0', 1, 0, 0, now() - interval '20 minutes')"
    )
    now = datetime.now(UTC)
    async with service.database.write() as session:
        await session.execute(text(job))
        await repository.end_abandoned(session, now - timedelta(minutes=15), now)
    (found,) = (await planner.get("/api/v1/fleet/plans")).json()["items"]
    assert found["status"] == "failed"
    assert "Start it again" in found["error"]


async def test_the_fleet_is_in_the_metrics(
    service: Service, agent: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    await agent.post("/api/v1/reports", json=report())
    service.app.state.fleet_metrics._until = 0.0
    told = (await viewer.get("/metrics")).text
    assert "\nhugeplan_fleet_nodes 1.0\n" in told
    summary = (await viewer.get("/api/v1/fleet/summary")).json()
    for pool in summary["pools"]:
        line = f'hugeplan_fleet_pool_pages{{page_bytes="{pool["page_bytes"]}"}} {float(pool["nr_hugepages"])}'
        assert line in told
    for finding in summary["findings"]:
        line = (
            f'hugeplan_fleet_finding_nodes{{code="{finding["code"]}",state="{finding["state"]}"}}'
            f" {float(finding['nodes'])}"
        )
        assert line in told
    assert 'hugeplan_fleet_plan_nodes{state="none"} 1.0' in told
