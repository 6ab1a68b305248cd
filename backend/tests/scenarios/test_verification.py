"""A saved plan against the newest report of its node, over REST."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import time
import uuid
from typing import Any

import httpx
import pytest
from conftest import REPOSITORY
from sqlalchemy.pool import QueuePool
from support.service import Service

from hugeplan.api import beside
from hugeplan.fleet import service as fleet
from hugeplan.scenarios import plan_answers, plan_content

EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))


async def test_a_plan_is_verified_with_the_newest_report(planner: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    posted = await agent.post("/api/v1/reports", json=EXAMPLE)
    assert posted.status_code in {200, 201}, posted.text
    node_id = posted.json()["node_id"]
    database = {
        "name": "main", "engine": "postgresql", "version": "17", "page_size": "2MiB",
        "runs_as": EXAMPLE["sample"]["databases"][0]["key"],
        "settings": {"shared_buffers": "16GB", "max_connections": "200", "huge_pages": "try"},
    }  # fmt: skip
    scenario = {"databases": [database], "policy": {"slack": 0, "slack_min_pages": 0}}
    body = {"name": "verified", "node_id": node_id, "scenario": scenario}
    made = await planner.post("/api/v1/scenarios", json=body)
    assert made.status_code == 201, made.text
    saved = (await planner.post(f"/api/v1/scenarios/{made.json()['id']}/plans")).json()
    answer = await planner.get(f"/api/v1/plans/{saved['id']}/verification")
    assert answer.status_code == 200, answer.text
    verdict = answer.json()
    states = {f["code"]: f["state"] for f in verdict["findings"]}
    assert verdict["node_id"] == node_id
    # The report has the pool of the plan's node and a PostgreSQL on 2M pages, so nothing essential is unknown.
    assert verdict["outcome"] in {"in_force", "not_in_force"}
    assert states["verify_engine"] in {"ok", "attention"}
    assert states["verify_pool"] in {"ok", "attention", "wrong"}
    assert states["verify_next_boot"] in {"ok", "attention"}

    # The same server by all else, of another user: nobody knows that it is the planned one.
    other = copy.deepcopy(EXAMPLE) | {"report_id": str(uuid.uuid4()), "created_at": "2026-11-22T08:01:00Z"}
    other["sample"]["taken_at"] = other["created_at"]
    assert other["sample"]["databases"][0].get("owner_uid") == saved["plan"]["instances"][0]["owner_uid"] == 999
    other["sample"]["databases"][0]["owner_uid"] = 1001
    assert (await agent.post("/api/v1/reports", json=other)).status_code == 201
    verdict = (await planner.get(f"/api/v1/plans/{saved['id']}/verification")).json()
    found = next(f for f in verdict["findings"] if f["code"] == "verify_engine")
    assert (found["state"], found["title"]) == ("unknown", "PostgreSQL on port 5432 is not running")
    assert "PostgreSQL on port 5432 (PID 4711) of uid 1001: a user" in found["reason"]
    assert "The planned server ran as uid 999." in found["reason"]


async def test_a_plan_of_no_node_cannot_be_verified(planner: httpx.AsyncClient) -> None:
    scenario = {
        "node": {"numa_nodes": [{"id": 0, "memory": "64GiB"}]},
        "databases": [{"name": "main", "engine": "postgresql", "settings": {"shared_buffers": "8GB"}}],
    }
    made = (await planner.post("/api/v1/scenarios", json={"name": "no node", "scenario": scenario})).json()
    saved = (await planner.post(f"/api/v1/scenarios/{made['id']}/plans")).json()
    answer = await planner.get(f"/api/v1/plans/{saved['id']}/verification")
    assert answer.status_code == 409
    assert "no observed node" in answer.json()["detail"]


async def test_verifications_are_worked_out_one_after_the_other_beside_everybody_else(
    service: Service, planner: httpx.AsyncClient, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A viewer's eight at a time, of a large plan and report, held everybody up for 5 s: each was 0.3 s of the loop."""
    node_id = (await agent.post("/api/v1/reports", json=EXAMPLE)).json()["node_id"]
    body = {"node_id": node_id, "scenario": {"databases": [{"name": "main", "engine": "postgresql"}]}}
    kept = (await planner.post("/api/v1/plans", json=body)).json()["id"]
    at_work: list[int] = []
    seen: list[tuple[str, int, bool]] = []
    connections: list[int] = []

    def noted(name: str, real: Any) -> Any:
        def work(*given: Any) -> Any:
            at_work.append(1)
            pool = service.database.engine.pool
            assert isinstance(pool, QueuePool)
            connections.append(pool.checkedout())
            seen.append((name, len(at_work), threading.current_thread() is threading.main_thread()))
            time.sleep(0.01)
            at_work.pop()
            return real(*given)

        return work

    monkeypatch.setattr(plan_answers, "verify", noted("verify", plan_answers.verify))
    monkeypatch.setattr(plan_content, "read_plan", noted("read_plan", plan_content.read_plan))
    monkeypatch.setattr(fleet, "newest_of", noted("newest_of", fleet.newest_of))
    url = f"/api/v1/plans/{kept}/verification"
    answers = await asyncio.gather(*(planner.get(url) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert sorted(seen) == [(name, 1, False) for name in ("newest_of", "read_plan", "verify") for _ in range(4)]
    assert min(connections[1:]) == 0  # those that wait for the thread hold none, once they have read


ANSWERS = (
    ("get", ""),
    ("get", "/document.json"),
    ("get", "/inputs"),
    ("get", "/artifacts"),
    ("get", "/artifacts.zip"),
    ("get", "/diff?against={0}"),
    ("get", "/artifacts-diff?against={0}"),
    ("get", "/verification"),
    ("post", "/verification"),
)


@pytest.mark.parametrize(("method", "path"), ANSWERS)
async def test_work_on_kept_plans_holds_no_connection_and_makes_nobody_wait_for_all_of_another(
    service: Service,
    planner: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    agent: httpx.AsyncClient,
    *,
    method: str,
    path: str,
) -> None:
    """Eight viewers' differences had all connections, four viewers' plans held the event loop for seconds."""
    node_id = (await agent.post("/api/v1/reports", json=EXAMPLE)).json()["node_id"]
    kept = []
    for number in range(2):
        scenario = {"databases": [{"name": f"db{number}", "engine": "postgresql"}]}
        made = await planner.post("/api/v1/plans", json={"node_id": node_id, "scenario": scenario})
        kept.append(made.json()["id"])
    pool, ends = service.database.engine.pool, threading.Event()
    assert isinstance(pool, QueuePool)
    url, done = f"/api/v1/plans/{kept[0]}{path.format(kept[1])}", []
    beside._THREAD.submit(ends.wait, 60)

    async def ask(client: httpx.AsyncClient, name: str) -> int:
        answer = await client.request(method, url)
        done.append(name)
        return answer.status_code

    asked = [asyncio.create_task(ask(planner, "first")) for _ in range(6)]
    try:
        async with asyncio.timeout(60):
            while beside._THREAD._work_queue.qsize() < 1:
                await asyncio.sleep(0.01)
            asked.append(asyncio.create_task(ask(admin, "second")))
            while len(beside._IN_LINE._rooms) < 2:
                await asyncio.sleep(0.01)
            while pool.checkedout():
                await asyncio.sleep(0.01)
    finally:
        ends.set()
    assert await asyncio.gather(*asked) == [200] * 7
    assert done.index("second") < 4
