"""What the node's page, its plan and its row in a fleet plan say of one node is one story, for the whole demo fleet."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest_asyncio
from support.service import Service

from hugeplan.access.schemas import Role
from tools.seed.fleet import nodes

API = "/api/v1"
ROOT = Path(__file__).parents[3]
RECORDED = (
    ROOT / "docs/report.example.json",
    ROOT / "frontend/e2e/recorded/guest.json",
    ROOT / "frontend/e2e/recorded/two-numa-nodes.json",
)
#: What speaks of the plan itself, and not of the node as it runs.
OF_THE_PLAN = {"memory_fit", "risk_above_policy", "pool_short"}


def reports() -> list[dict[str, Any]]:
    now = datetime.now(UTC).isoformat()
    found = [node.report for node in nodes(70, 1, now)]
    for number, path in enumerate(RECORDED):
        document = json.loads(path.read_text())
        document |= {"machine_id": f"{number + 1:032x}", "created_at": now}
        document["sample"]["taken_at"] = now
        found.append(document)
    return found


@pytest_asyncio.fixture
async def pages(service: Service, planner: httpx.AsyncClient) -> AsyncIterator[list[dict[str, Any]]]:
    """Of each node: its page's document, its row in a fleet plan as it runs, and the plan that the row opens."""
    for document in reports():
        agent = await service.client_as(Role.AGENT, machine_id=document["machine_id"])
        answer = await agent.post(f"{API}/reports", json=document)
        assert answer.status_code == 201, answer.text
    begun = await planner.post(f"{API}/fleet/plan", json={"name": "as it runs"})
    url = f"{API}/fleet/plans/{begun.json()['id']}"
    async with planner.stream("GET", f"{url}/progress") as stream:
        await stream.aread()
    rows = (await planner.get(f"{url}/nodes", params={"limit": 200})).json()["items"]
    assert len(rows) == len(reports())
    found = []
    for row in rows:
        node = (await planner.get(f"{API}/nodes/{row['node_id']}")).json()
        kept = await planner.post(f"{url}/nodes/{row['node_id']}/plan")
        if kept.is_success:
            found.append({"row": row, "node": node, "kept": kept.json()})
    assert len(found) > 60
    yield found
    await service.app.state.fleet_plan_runner.close()


def page_tables(plan: dict[str, Any]) -> int:
    """How much smaller the page tables in the ledger get."""
    return sum(
        change["now_bytes"] - change["planned_bytes"]
        for change in plan["difference"]["memory"]
        if change["kind"] == "page_tables"
    )


async def test_one_story_of_each_node(pages: list[dict[str, Any]]) -> None:
    seen = dict.fromkeys(("wrong in the plan", "row is wrong", "idle pool", "page tables", "does not fit"), 0)
    for page in pages:
        name, node, row = page["node"]["name"], page["node"], page["row"]
        plan, verdict = page["kept"]["plan"], page["kept"]["verdict"]
        said = " ".join([verdict["reason"], *verdict["costs"], *verdict["gains"]])

        # What a plan calls wrong with the node as it runs is found on the node's page too, with the same weight.
        there = {finding["subject"]: finding["state"] for finding in node["findings"]}
        running = {match["instance"]: match["key"] for match in (plan["now"] or {"matches": []})["matches"]}
        for finding in plan["findings"]:
            if finding["code"] == "fallback_to_base_pages" and finding["state"] in ("wrong", "attention"):
                seen["wrong in the plan"] += 1
                assert there.get(running[finding["subject"]]) == finding["state"], (name, finding, node["findings"])
            elif finding["state"] == "wrong" and finding["code"] not in OF_THE_PLAN:
                assert node["findings"], (name, finding)

        # A row is not red beside "Do it".
        if row["severity"] == "wrong":
            seen["row is wrong"] += 1
            assert verdict["answer"] != "do_it", (name, row["exceptions"])

        # Where the page says "release", the plan does not say that there is nothing to change.
        idle = sum(p["nr_hugepages"] for p in node["sample"]["pools"] if p["free_hugepages"] == p["nr_hugepages"])
        if idle and all(pool["free_hugepages"] == pool["nr_hugepages"] for pool in node["sample"]["pools"]):
            seen["idle pool"] += 1
            assert "nothing to change" not in said, (name, said)

        # Page tables that come back are those that the ledger loses.
        if plan["difference"] is not None:
            claims = any("page tables come back" in line for line in verdict["costs"])
            seen["page tables"] += claims
            assert claims == (page_tables(plan) > 0 and plan["fits"] is not False), (name, page_tables(plan), said)

        # A plan that does not fit buys nothing.
        if plan["fits"] is False:
            seen["does not fit"] += 1
            assert (row["severity"], verdict["answer"]) == ("wrong", "dont")
            assert "come back" not in said
            assert "throughput" not in said
    assert all(count for name, count in seen.items() if name not in ("does not fit", "row is wrong")), seen
