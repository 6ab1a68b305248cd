"""An approval that a later decision ended does not come back, by whatever way its plan comes and goes."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from conftest import REPOSITORY

API = "/api/v1"
EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))
DATABASE = {
    "name": "main", "engine": "postgresql", "version": "17", "page_size": "2MiB",
    "settings": {"shared_buffers": "16GB", "max_connections": "200", "huge_pages": "on"},
}  # fmt: skip
SCENARIO = {"databases": [DATABASE], "policy": {"slack": 0, "slack_min_pages": 0}}


class Decisions:
    """A node and its plans ``A`` and ``B``, with who decides about them."""

    def __init__(self, agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
        self.agent, self.planner, self.admin = agent, planner, admin
        self.node_id = ""
        self.plans: dict[str, str] = {}

    async def report(self, plan: str | None = None) -> None:
        """The node's agent reports, with the label of a plan where one is named; no plan's pools are there."""
        now = datetime.now(UTC).isoformat()
        document: dict[str, Any] = json.loads(json.dumps(EXAMPLE))
        document |= {"report_id": str(uuid.uuid4()), "created_at": now}
        document["sample"]["taken_at"] = now
        for pool in [*document["sample"]["pools"], *document["sample"]["global_pools"]]:
            pool |= {"nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0}
        if plan is not None:
            document["labels"] = {"hugeplan.dev/plan": self.plans[plan]}
        sent = await self.agent.post(f"{API}/reports", json=document)
        assert sent.status_code == 201, sent.text
        self.node_id = str(sent.json()["node_id"])

    async def keep(self, *names: str) -> None:
        await self.report()
        for name in names:
            made = await self.planner.post(f"{API}/plans", json={"node_id": self.node_id, "scenario": SCENARIO})
            assert made.status_code == 201, made.text
            self.plans[name] = made.json()["id"]

    async def do(self, name: str, step: str) -> int:
        """A decision about a plan; its HTTP status."""
        method = "DELETE" if step == "take back" else "POST"
        who = self.admin if step in {"approve", "withdraw"} else self.planner
        path = f"{API}/plans/{self.plans[name]}/{'in-force' if step == 'take back' else step}"
        return (await who.request(method, path, headers={"If-Match": "*"})).status_code

    async def approve(self, name: str) -> None:
        assert [await self.do(name, step) for step in ("propose", "approve")] == [200, 200]

    async def by_hand(self, name: str) -> int:
        url = f"{API}/nodes/{self.node_id}/plan-in-force"
        return (await self.planner.put(url, json={"plan_id": self.plans[name]})).status_code

    async def end(self) -> None:
        assert (await self.planner.delete(f"{API}/nodes/{self.node_id}/plan-in-force")).status_code == 204

    async def states(self) -> dict[str, str]:
        found = {name: (await self.planner.get(f"{API}/plans/{one}")).json() for name, one in self.plans.items()}
        return {name: plan["state"] for name, plan in found.items()}

    async def events(self) -> list[str]:
        query = {"node_id": self.node_id, "kind": "plan_in_force_set"}
        found = await self.planner.get(f"{API}/events/history", params=query)
        return [event["text"] for event in found.json()["items"]]


@pytest.fixture
async def decisions(agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient) -> Decisions:
    """Two plans of one node, the first approved."""
    made = Decisions(agent, planner, admin)
    await made.keep("A", "B")
    await made.approve("A")
    return made


async def test_not_by_the_nodes_label(decisions: Decisions) -> None:
    await decisions.approve("B")
    await decisions.report("A")
    assert await decisions.states() == {"A": "in_force", "B": "approved"}, "what a node says runs there is shown"
    assert (await decisions.events())[0].endswith("; a later decision ended its approval.")
    assert (await decisions.by_hand("A"), await decisions.do("A", "in-force")) == (409, 409)
    assert await decisions.do("A", "take back") == 200
    assert await decisions.states() == {"A": "superseded", "B": "approved"}
    assert (await decisions.by_hand("A"), await decisions.do("A", "in-force")) == (409, 409)
    await decisions.report("A")
    await decisions.end()
    assert await decisions.states() == {"A": "superseded", "B": "approved"}


async def test_not_by_taking_another_back_that_replaced_a_label(decisions: Decisions) -> None:
    await decisions.approve("B")
    await decisions.report("A")
    assert await decisions.by_hand("B") == 200
    assert await decisions.do("B", "take back") == 200
    assert await decisions.states() == {"A": "superseded", "B": "approved"}
    assert await decisions.by_hand("B") == 200


@pytest.mark.parametrize("way", ["end", "take back"])
async def test_not_by_ending_what_is_in_force_beside_a_later_approval(decisions: Decisions, way: str) -> None:
    assert await decisions.by_hand("A") == 200
    await decisions.approve("B")
    if way == "end":
        await decisions.end()
    else:
        assert await decisions.do("A", "take back") == 200
    assert await decisions.states() == {"A": "superseded", "B": "approved"}
    assert (await decisions.by_hand("A"), await decisions.by_hand("B")) == (409, 200)


async def test_not_after_another_was_in_force(decisions: Decisions) -> None:
    assert await decisions.by_hand("A") == 200
    await decisions.report("B")
    await decisions.report("A")
    assert (await decisions.events())[0].endswith("; a later decision ended its approval.")
    await decisions.end()
    assert await decisions.states() == {"A": "superseded", "B": "superseded"}
    assert await decisions.by_hand("A") == 409


async def test_what_is_taken_back_is_approved_where_no_later_approval_stands(decisions: Decisions) -> None:
    """Taking back undoes one step: what was in force before is again, by the approval that it had."""
    assert await decisions.by_hand("A") == 200
    await decisions.approve("B")
    assert await decisions.by_hand("B") == 200
    assert await decisions.do("B", "take back") == 200
    assert await decisions.states() == {"A": "in_force", "B": "approved"}
    assert await decisions.do("B", "withdraw") == 200
    await decisions.end()
    assert await decisions.states() == {"A": "approved", "B": "draft"}
    assert await decisions.by_hand("A") == 200
    assert not [text for text in await decisions.events() if "ended its approval" in text]


async def test_two_are_never_approved_at_once(decisions: Decisions) -> None:
    await decisions.keep("C")
    assert await decisions.by_hand("A") == 200
    await decisions.approve("B")
    assert await decisions.by_hand("B") == 200
    await decisions.approve("C")
    assert await decisions.do("B", "take back") == 200
    assert await decisions.states() == {"A": "superseded", "B": "superseded", "C": "approved"}
    assert (await decisions.by_hand("A"), await decisions.by_hand("C")) == (409, 200)


@pytest.mark.parametrize("in_force_by", ["hand", "label"])
async def test_not_by_taking_another_back_after_a_later_approval(decisions: Decisions, in_force_by: str) -> None:
    """Whatever became of that later one: who approved it decided anew."""
    await decisions.keep("C", "D")
    assert await decisions.by_hand("A") == 200
    if in_force_by == "hand":
        await decisions.approve("B")
        assert await decisions.by_hand("B") == 200
    else:
        await decisions.report("B")
    await decisions.approve("C")
    await decisions.approve("D")
    assert await decisions.do("D", "withdraw") == 200
    assert await decisions.do("B", "take back") == 200
    assert (await decisions.states())["A"] == "superseded"
    assert await decisions.by_hand("A") == 409
