"""Plans in force: verified with each report, set by a GitOps label and by verifying."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from conftest import REPOSITORY
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.fleet import repository
from hugeplan.scenarios import plan_answers
from hugeplan.scenarios.schemas import PlanVerification

EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))
LABEL = "hugeplan.dev/plan"


def example(*, missing_pages: int = 0, **changes: Any) -> dict[str, Any]:
    """The documented report with an id and a time of its own, and so many pages fewer."""
    now = datetime.now(UTC).isoformat()
    document: dict[str, Any] = json.loads(json.dumps(EXAMPLE)) | {"report_id": str(uuid.uuid4()), "created_at": now}
    document["sample"]["taken_at"] = now
    for pools in (document["sample"]["pools"], document["sample"]["global_pools"]):
        for pool in pools:
            pool["nr_hugepages"] = max(0, pool["nr_hugepages"] - missing_pages)
    return document | changes


async def node_with_plan(agent: httpx.AsyncClient, planner: httpx.AsyncClient) -> tuple[str, str]:
    """Ids of a node and of a plan for it, a draft."""
    posted = await agent.post("/api/v1/reports", json=example())
    assert posted.status_code == 201, posted.text
    node_id = posted.json()["node_id"]
    database = {
        "name": "main", "engine": "postgresql", "version": "17", "page_size": "2MiB",
        "settings": {"shared_buffers": "16GB", "max_connections": "200", "huge_pages": "try"},
    }  # fmt: skip
    scenario = {"databases": [database], "policy": {"slack": 0, "slack_min_pages": 0}}
    made = await planner.post("/api/v1/scenarios", json={"name": "p", "node_id": node_id, "scenario": scenario})
    plan_id = (await planner.post(f"/api/v1/scenarios/{made.json()['id']}/plans")).json()["id"]
    return node_id, plan_id


async def approve(client: httpx.AsyncClient, plan_id: str) -> None:
    """Propose and approve a plan."""
    for step in ("propose", "approve"):
        done = await client.post(f"/api/v1/plans/{plan_id}/{step}", headers={"If-Match": "*"})
        assert done.status_code == 200, done.text


async def in_force(planner: httpx.AsyncClient, node_id: str) -> Any:
    return (await planner.get(f"/api/v1/nodes/{node_id}")).json()["plan_in_force"]


async def verified_events(planner: httpx.AsyncClient, node_id: str) -> list[str]:
    found = await planner.get("/api/v1/events/history", params={"node_id": node_id, "kind": "plan_verified"})
    return [event["text"] for event in found.json()["items"]]


async def test_each_report_is_verified(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node_id, plan_id = await node_with_plan(agent, planner)
    refused = await planner.put(f"/api/v1/nodes/{node_id}/plan-in-force", json={"plan_id": plan_id})
    assert refused.status_code == 409, refused.text
    assert "approved" in refused.json()["detail"]
    await approve(admin, plan_id)
    assert (await planner.get(f"/api/v1/plans/{plan_id}")).json()["plan"]["pools"]
    put = await planner.put(f"/api/v1/nodes/{node_id}/plan-in-force", json={"plan_id": plan_id})
    assert put.json()["plan_in_force"]["outcome"] is None
    for pages, expected in ((0, None), (0, None), (10**9, "not_in_force")):
        assert (await agent.post("/api/v1/reports", json=example(missing_pages=pages))).status_code == 201
        kept = await in_force(planner, node_id)
        fresh = (await planner.get(f"/api/v1/plans/{plan_id}/verification")).json()
        assert kept["outcome"] == fresh["outcome"] == (expected or fresh["outcome"])
        assert {(c["code"], c["subject"], c["state"]) for c in kept["checks"]} == {
            (c["code"], c["subject"], c["state"]) for c in fresh["findings"]
        }
        assert kept["verified_at"] is not None
    # An event per change of the outcome, not per report.
    texts = await verified_events(planner, node_id)
    assert len(texts) in {1, 2}
    assert "is not in force" in texts[0]


async def drift(planner: httpx.AsyncClient, node_id: str) -> set[tuple[str, str]]:
    found = (await planner.get(f"/api/v1/nodes/{node_id}")).json()["findings"]
    return {(f["state"], f["title"]) for f in found if f["code"] == "plan_drift"}


async def test_what_no_report_has_seen_is_to_be_installed_and_no_fault(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node_id, plan_id = await node_with_plan(agent, planner)
    await approve(admin, plan_id)
    assert (await agent.post("/api/v1/reports", json=example(missing_pages=10**9))).status_code == 201
    put = await planner.put(f"/api/v1/nodes/{node_id}/plan-in-force", json={"plan_id": plan_id})
    assert put.status_code == 200, put.text
    assert await drift(planner, node_id) == {("attention", "The plan is to be installed")}
    assert (await agent.post("/api/v1/reports", json=example(missing_pages=10**9))).status_code == 201
    assert await drift(planner, node_id) == {("wrong", "Pages of the plan are missing")}


async def test_a_label_puts_a_plan_in_force(agent: httpx.AsyncClient, planner: httpx.AsyncClient) -> None:
    node_id, plan_id = await node_with_plan(agent, planner)
    for _ in range(2):
        sent = await agent.post("/api/v1/reports", json=example(labels={LABEL: plan_id}))
        assert sent.status_code == 201, sent.text
    kept = await in_force(planner, node_id)
    assert (kept["plan_id"], kept["source"]) == (plan_id, "label")
    assert kept["outcome"] is not None
    since = kept["since"]
    by_hand = await planner.put(f"/api/v1/nodes/{node_id}/plan-in-force", json={"plan_id": plan_id})
    assert_problem(by_hand, 409, "conflict")
    assert (await in_force(planner, node_id))["source"] == "label", "a planner's word is no approval of it"
    told = await planner.get("/api/v1/events/history", params={"node_id": node_id, "kind": "plan_in_force_set"})
    assert [event["text"].endswith("nobody approved it.") for event in told.json()["items"]] == [True]
    # Neither a label that names nothing nor a deleted scenario changes what is in force, or is in the way of a report.
    (scenario,) = (await planner.get("/api/v1/scenarios")).json()["items"]
    for label in ("", "no plan", str(uuid.uuid4())):
        assert (await agent.post("/api/v1/reports", json=example(labels={LABEL: label}))).status_code == 201
    assert (await in_force(planner, node_id))["since"] == since
    deleted = await planner.delete(f"/api/v1/scenarios/{scenario['id']}", headers={"If-Match": "*"})
    assert deleted.status_code == 204
    assert (await agent.post("/api/v1/reports", json=example(labels={LABEL: plan_id}))).status_code == 201
    kept = await in_force(planner, node_id)
    assert (kept["plan_id"], kept["since"]) == (plan_id, since)
    assert kept["pools"]


async def test_verifying_is_no_approval(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands on the node already is said to be the plan, and still nobody said yes to it."""
    node_id, plan_id = await node_with_plan(agent, planner)
    verify_plan = plan_answers.verify_plan

    async def it_stands(*given: Any) -> PlanVerification:
        return (await verify_plan(*given)).model_copy(update={"outcome": "in_force"})

    monkeypatch.setattr(plan_answers, "verify_plan", it_stands)
    found = await planner.post(f"/api/v1/plans/{plan_id}/verification")
    assert found.status_code == 409, found.text
    assert "Nobody approved this plan" in found.json()["detail"]
    assert await in_force(planner, node_id) is None
    await approve(admin, plan_id)
    assert (await planner.post(f"/api/v1/plans/{plan_id}/verification")).status_code == 200
    assert (await in_force(planner, node_id))["source"] == "verify"


async def test_verifying_puts_a_plan_in_force_only_when_it_is(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node_id, plan_id = await node_with_plan(agent, planner)
    await approve(admin, plan_id)
    found = await planner.post(f"/api/v1/plans/{plan_id}/verification")
    assert found.status_code == 200, found.text
    kept = await in_force(planner, node_id)
    assert (kept is not None) == (found.json()["outcome"] == "in_force")
    await agent.post("/api/v1/reports", json=example(missing_pages=10**9))
    await planner.delete(f"/api/v1/nodes/{node_id}/plan-in-force")
    assert (await planner.post(f"/api/v1/plans/{plan_id}/verification")).json()["outcome"] == "not_in_force"
    assert await in_force(planner, node_id) is None


async def test_a_label_that_a_person_writes_puts_no_plan_in_force(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    """A node's own label says what runs on it. One that a planner writes would be an approval of the planner's own."""
    node_id, plan_id = await node_with_plan(agent, planner)
    refused = await planner.put(f"/api/v1/nodes/{node_id}/labels", json={"labels": {LABEL: plan_id}})
    assert_problem(refused, 422, "invalid-input")
    assert refused.json()["errors"][0]["field"] == f"labels.{LABEL}"
    # One of a release that took it.
    async with service.database.engine.begin() as connection:
        await connection.execute(
            text("UPDATE nodes SET labels_set = jsonb_build_object(CAST(:label AS text), CAST(:plan AS text))"),
            {"label": LABEL, "plan": plan_id},
        )
    assert (await agent.post("/api/v1/reports", json=example())).status_code == 201
    assert (await planner.get(f"/api/v1/nodes/{node_id}")).json()["labels"][LABEL] == plan_id
    assert await in_force(planner, node_id) is None


async def test_pools_by_hand_are_said_to_be_by_hand_and_need_no_second_person_only_where_none_is_asked_for(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    node_id = (await agent.post("/api/v1/reports", json=example())).json()["node_id"]
    url, pools = f"/api/v1/nodes/{node_id}/plan-in-force", [{"page_bytes": 2 << 20, "pages": 8}]
    for source in ("verify", "label"):
        assert_problem(await planner.put(url, json={"pools": pools, "source": source}), 422, "invalid-input")
    state = service.app.state
    before = state.settings
    state.settings = before.model_copy(update={"approval_by_second_person": True})
    try:
        assert_problem(await planner.put(url, json={"pools": pools}), 409, "conflict")
        assert await in_force(planner, node_id) is None
    finally:
        state.settings = before
    assert (await planner.put(url, json={"pools": pools})).status_code == 200
    assert (await in_force(planner, node_id))["source"] == "hand"


async def test_an_approval_is_for_its_node_and_as_long_as_it_holds(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    """Approved for one node is approved for no other, and what a newer approval replaced is approved no more."""
    node_id, plan_id = await node_with_plan(agent, planner)
    await approve(admin, plan_id)
    other = await service.client_as(Role.AGENT)
    other_id = (await other.post("/api/v1/reports", json=example(machine_id="e" * 32))).json()["node_id"]
    refused = await planner.put(f"/api/v1/nodes/{other_id}/plan-in-force", json={"plan_id": plan_id})
    assert_problem(refused, 409, "conflict")
    assert "for this node" in refused.json()["detail"]
    _, newer = await node_with_plan(agent, planner)
    await approve(admin, newer)
    url = f"/api/v1/nodes/{node_id}/plan-in-force"
    assert_problem(await planner.put(url, json={"plan_id": plan_id}), 409, "conflict")
    assert (await planner.put(url, json={"plan_id": newer})).status_code == 200
    assert (await in_force(planner, node_id))["plan_id"] == newer


async def test_a_label_puts_no_plan_of_another_node_in_force(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    """An agent says what stands on its own node. It ends no other node's proposal, and approves nothing."""
    node_id, plan_id = await node_with_plan(agent, planner)
    url = f"/api/v1/nodes/{node_id}/plan-in-force"
    proposed = await planner.post(f"/api/v1/plans/{plan_id}/propose", headers={"If-Match": "*"})
    assert proposed.status_code == 200, proposed.text
    other = await service.client_as(Role.AGENT)
    sent = await other.post("/api/v1/reports", json=example(machine_id="e" * 32, labels={LABEL: plan_id}))
    assert sent.status_code == 201
    assert (await planner.get(f"/api/v1/plans/{plan_id}")).json()["state"] == "proposed"
    assert await in_force(planner, sent.json()["node_id"]) is None
    assert_problem(await planner.put(url, json={"plan_id": plan_id}), 409, "conflict")
    done = await admin.post(f"/api/v1/plans/{plan_id}/approve", headers={"If-Match": "*"})
    assert done.status_code == 200, done.text
    assert (await planner.put(url, json={"plan_id": plan_id})).status_code == 200


async def test_a_plan_of_no_observed_node_is_in_force_on_none(
    agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    """It says what a node of some size would need. In force on many nodes, its end would lock them all."""
    node_id, _ = await node_with_plan(agent, planner)
    database = {"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "1GB"}}
    scenario = {"node": {"name": "n", "memory": "64GiB"}, "databases": [database]}
    plan_id = (await planner.post("/api/v1/plans", json={"scenario": scenario})).json()["id"]
    for step in ("propose", "approve?accept_unknown_fit=true"):
        done = await admin.post(f"/api/v1/plans/{plan_id}/{step}", headers={"If-Match": "*"})
        assert done.status_code == 200, done.text
    refused = await planner.put(f"/api/v1/nodes/{node_id}/plan-in-force", json={"plan_id": plan_id})
    assert_problem(refused, 409, "conflict")
    assert (await agent.post("/api/v1/reports", json=example(labels={LABEL: plan_id}))).status_code == 201
    assert await in_force(planner, node_id) is None


async def test_nobody_withdraws_an_approval_while_the_plan_comes_in_force(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node_id, plan_id = await node_with_plan(agent, planner)
    await approve(admin, plan_id)

    async def withdraw_at_once() -> None:
        async with service.database.write() as session:
            await session.execute(text("SELECT 1 FROM plans WHERE id = :id FOR UPDATE NOWAIT"), {"id": plan_id})

    async with service.database.write() as session:
        assert await repository.is_approved(session, uuid.UUID(plan_id), uuid.UUID(node_id))
        with pytest.raises(DBAPIError, match="could not obtain lock"):
            await asyncio.create_task(withdraw_at_once())
    await withdraw_at_once()
