"""A plan names its node as it was called when it was made; once that name is no more the node's, it names nobody."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sqlalchemy import text
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.access.schemas import Role
from hugeplan.plans.watch import check_plans
from hugeplan.scenarios import plan_answers
from hugeplan.scenarios.schemas import PlanVerification

API = "/api/v1"
ANY = {"If-Match": "*"}
SCENARIO = {
    "databases": [{"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "8GB"}}]
}
FILES = ["artifacts", "artifacts?force=true", "artifacts/ansible_playbook", "artifacts.zip", "artifacts.zip?force=true"]


@dataclass
class Machines:
    """Agents by the number of their machine, and who plans and decides."""

    service: Service
    admin: httpx.AsyncClient

    async def say(self, number: int, name: str) -> str:
        """A machine reports under this name; the id of its node."""
        agent = await self.service.client_as(Role.AGENT, machine_id=f"{number:032x}")
        sent = await agent.post(f"{API}/reports", json=report(machine_id=f"{number:032x}", node_name=name))
        assert sent.status_code == 201, sent.text
        return str(sent.json()["node_id"])

    async def keep(self, node_id: str, *steps: str) -> str:
        """A plan of a node, kept and decided about."""
        made = await self.admin.post(f"{API}/plans", json={"node_id": node_id, "scenario": SCENARIO})
        assert made.status_code == 201, made.text
        assert made.json()["artifacts"]
        for step in steps:
            assert (await self.do(made.json()["id"], step)).status_code == 200
        return str(made.json()["id"])

    async def do(self, plan_id: str, step: str, method: str = "POST") -> httpx.Response:
        return await self.admin.request(method, f"{API}/plans/{plan_id}/{step}", headers=ANY)

    async def get(self, address: str) -> Any:
        return (await self.admin.get(f"{API}/{address}")).json()

    async def names(self) -> list[str]:
        return sorted(node["name"] for node in (await self.get("nodes"))["items"])

    async def taken(self) -> str:
        """The plan of a machine that gave its name up, approved before; another machine has the name."""
        plan_id = await self.keep(await self.say(1, "db-1"), "propose", "approve")
        await self.say(1, "gone-away")
        await self.say(2, "db-1")
        assert await self.names() == ["db-1", "gone-away"]
        return plan_id


@pytest_asyncio.fixture
async def machines(service: Service, admin: httpx.AsyncClient) -> AsyncIterator[Machines]:
    yield Machines(service, admin)
    await service.app.state.fleet_plan_runner.close()


async def test_no_file_is_handed_out_under_a_name_that_is_another_machines(machines: Machines) -> None:
    plan_id = await machines.taken()
    url = f"{API}/plans/{plan_id}"
    document = (await machines.admin.get(f"{url}/document.json")).content
    newer = await machines.keep(await machines.say(2, "db-1"))
    for address in [*FILES, f"artifacts-diff?against={newer}"]:
        problem = assert_problem(await machines.admin.get(f"{url}/{address}"), 409, "conflict")
        assert "was called db-1, and its name is gone-away now" in problem["detail"]
    found = await machines.get(f"plans/{plan_id}")
    assert (found["artifacts"], "its name is gone-away now" in found["artifacts_withheld"]) == ([], True)
    # What goes away is shown beside what comes: that is no file to apply.
    assert (await machines.admin.get(f"{API}/plans/{newer}/artifacts-diff?against={plan_id}")).status_code == 200

    await machines.say(2, "db-2")
    assert (await machines.admin.get(f"{url}/artifacts.zip")).status_code == 409, "the machine gave its name up"
    await machines.say(1, "db-1")
    assert [(await machines.admin.get(f"{url}/{address}")).status_code for address in FILES] == [200] * len(FILES)
    found = await machines.get(f"plans/{plan_id}")
    assert (bool(found["artifacts"]), found["artifacts_withheld"]) == (True, None)
    assert (await machines.admin.get(f"{url}/document.json")).content == document, "it is a record"


@pytest.mark.parametrize(("steps", "refused"), [((), "propose"), (("propose",), "approve")])
async def test_nothing_is_decided_about_a_name_that_is_another_machines(
    machines: Machines, steps: tuple[str, ...], refused: str
) -> None:
    """Before anybody has looked at the plan beside a newer report."""
    plan_id = await machines.keep(await machines.say(1, "db-1"), *steps)
    await machines.say(1, "gone-away")
    await machines.say(2, "db-1")
    problem = assert_problem(await machines.do(plan_id, refused), 409, "conflict")
    assert "gone-away" in problem["detail"]
    assert (await machines.get(f"plans/{plan_id}"))["state"] == (steps[-1] + "d" if steps else "draft")


async def test_no_plan_is_put_in_force_under_a_name_that_is_another_machines(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id = await machines.taken()
    node_id = (await machines.get(f"plans/{plan_id}"))["node_id"]
    verify_plan = plan_answers.verify_plan

    async def it_stands(*given: Any) -> PlanVerification:
        return (await verify_plan(*given)).model_copy(update={"outcome": "in_force"})

    monkeypatch.setattr(plan_answers, "verify_plan", it_stands)
    body = {"plan_id": plan_id}
    for answer in (
        await machines.do(plan_id, "in-force"),
        await machines.do(plan_id, "verification"),
        await machines.admin.put(f"{API}/nodes/{node_id}/plan-in-force", json=body),
    ):
        assert "gone-away" in assert_problem(answer, 409, "conflict")["detail"]
    assert (await machines.get(f"nodes/{node_id}"))["plan_in_force"] is None


async def test_taking_a_plan_back_puts_none_in_force_under_a_name_that_is_another_machines(machines: Machines) -> None:
    old = await machines.keep(await machines.say(1, "db-1"), "propose", "approve", "in-force")
    new = await machines.keep(await machines.say(1, "gone-away"), "propose", "approve", "in-force")
    assert (await machines.get(f"plans/{new}"))["replaces"] == old
    assert (await machines.do(new, "in-force", "DELETE")).status_code == 200
    assert [(await machines.get(f"plans/{one}"))["state"] for one in (old, new)] == ["superseded", "approved"]


@pytest.mark.parametrize("steps", [("propose",), ("propose", "approve")])
@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_plan_whose_node_has_another_name_becomes_stale(
    machines: Machines, steps: tuple[str, ...], *, is_silent: bool
) -> None:
    """Also where its machine says nothing any more: it is told apart from the one that says its name."""
    plan_id = await machines.keep(await machines.say(1, "db-1"), *steps)
    now = "gone-away"
    if is_silent:
        now = "db-1 (machine 00000000)"
        async with machines.service.database.write() as session:
            await session.execute(text("UPDATE nodes SET last_report_at = last_report_at - interval '2 days'"))
            await session.execute(text("UPDATE tokens SET last_used_at = last_used_at - interval '2 days'"))
        await machines.service.listens(hours=48)
    else:
        await machines.say(1, now)
    await machines.say(2, "db-1")
    assert await machines.names() == ["db-1", now]
    looked = [await check_plans(machines.service.database, machines.service.app.state.sandbox) for _ in range(3)]
    assert looked == [1, 0, 0]
    found = await machines.get(f"plans/{plan_id}")
    assert found["stale"] == [{"what": "name", "was": "db-1", "now": now}]
    (said,) = (await machines.get("events/history?kind=plan_stale"))["items"]
    assert f"name was db-1, is {now}" in said["text"]
    if not is_silent:
        await machines.say(2, "db-2")
        await machines.say(1, "db-1")
        assert await check_plans(machines.service.database, machines.service.app.state.sandbox) == 1
        assert (await machines.get(f"plans/{plan_id}"))["stale"] is None


@pytest.mark.parametrize(("taken_as", "is_refused"), [("db-2", False), ("DB-1.example.com", True)])
async def test_the_name_of_a_deleted_node_may_be_anothers(
    machines: Machines, taken_as: str, *, is_refused: bool
) -> None:
    node_id = await machines.say(1, "db-1")
    draft, proposed = await machines.keep(node_id), await machines.keep(node_id, "propose")
    assert (await machines.admin.delete(f"{API}/nodes/{node_id}")).status_code == 204
    await machines.say(2, taken_as)
    files = [await machines.admin.get(f"{API}/plans/{draft}/{address}") for address in FILES]
    decided = [await machines.do(draft, "propose"), await machines.do(proposed, "approve")]
    assert {answer.status_code for answer in files + decided} == {409 if is_refused else 200}
    assert not is_refused or "another machine's" in files[0].json()["detail"]


async def test_a_plan_of_no_node_has_the_name_that_its_scenario_says(machines: Machines) -> None:
    await machines.say(1, "db-1")
    node = {"name": "db-1", "memory": "64GiB"}
    made = await machines.admin.post(f"{API}/plans", json={"node_id": None, "scenario": SCENARIO | {"node": node}})
    assert made.status_code == 201, made.text
    assert made.json()["node_name"] == "db-1"
    for address in FILES:
        assert (await machines.admin.get(f"{API}/plans/{made.json()['id']}/{address}")).status_code == 200
    for step in ("propose", "approve"):
        assert (await machines.do(made.json()["id"], step)).status_code == 200


async def fleet_plan(machines: Machines) -> str:
    begun = await machines.admin.post(f"{API}/fleet/plan", json={"scenario": SCENARIO})
    url = f"fleet/plans/{begun.json()['id']}"
    async with machines.admin.stream("GET", f"{API}/{url}/progress") as stream:
        await stream.aread()
    return url


def unpacked(answer: httpx.Response) -> tuple[list[str], str]:
    """The hosts that a bundle names, and its README on one line."""
    assert answer.status_code == 200, answer.text
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    return archive.read("nodes.txt").decode().split(), " ".join(archive.read("README.md").decode().split())


async def test_a_group_of_a_fleet_plan_names_no_other_machine(machines: Machines) -> None:
    """Neither in the zip, nor in lists of which somebody makes an inventory."""
    ids = [await machines.say(number, f"db-{number}") for number in (1, 2, 3, 4)]
    url = await fleet_plan(machines)
    address = f"{API}/{url}/groups/0/files.zip"
    assert unpacked(await machines.admin.get(address))[0] == ["db-1", "db-2", "db-3", "db-4"]
    await machines.say(1, "gone-away")
    await machines.say(5, "db-1")
    assert (await machines.admin.delete(f"{API}/nodes/{ids[3]}")).status_code == 204
    await machines.say(6, "db-4")
    hosts, readme = unpacked(await machines.admin.get(address))
    assert hosts == ["db-2", "db-3"]
    assert "db-1 (now gone-away)" in readme
    assert "db-4 (gone)" in readme
    listed = [row["name"] for row in (await machines.get(f"{url}/nodes"))["items"]]
    assert sorted(listed) == ["db-1 (now gone-away)", "db-2", "db-3", "db-4 (gone)"]
    lines = (await machines.admin.get(f"{API}/{url}/nodes.csv")).text.splitlines()
    assert sorted(line.split(",")[1] for line in lines[1:]) == sorted(listed)

    # A row's own plan would be one of another name.
    opened = await machines.admin.post(f"{API}/{url}/nodes/{ids[0]}/plan")
    assert "gone-away" in assert_problem(opened, 409, "conflict")["detail"]
    done, after = [], None
    while not done or after is not None:
        done.append(
            (await machines.admin.post(f"{API}/{url}/decisions", json={"to": "propose", "after": after})).json()
        )
        after = done[-1]["next"]
    reasons = {row["node_name"]: row["reason"] for part in done for row in part["skipped"]}
    assert reasons.keys() == {"db-1", "db-4"}
    assert "gone-away" in reasons["db-1"]


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_group_of_renamed_nodes_has_no_files(machines: Machines, *, is_kept: bool) -> None:
    node_id = await machines.say(1, "db-1")
    url = await fleet_plan(machines)
    if is_kept:
        assert (await machines.admin.post(f"{API}/{url}/nodes/{node_id}/plan")).status_code == 201
    assert (await machines.admin.get(f"{API}/{url}/groups/0/files.zip")).status_code == 200
    await machines.say(1, "gone-away")
    await machines.say(2, "db-1")
    problem = assert_problem(await machines.admin.get(f"{API}/{url}/groups/0/files.zip"), 409, "conflict")
    assert "gone-away" in problem["detail"]


@pytest.mark.parametrize("to", ["approve", "in_force"])
async def test_rows_that_were_kept_are_not_decided_about_under_another_name(machines: Machines, to: str) -> None:
    await machines.say(1, "db-1")
    url = f"{API}/{await fleet_plan(machines)}/decisions"
    for before in ("propose", "approve")[: 1 if to == "approve" else 2]:
        assert (await machines.admin.post(url, json={"to": before})).json()["done"] == 1
    await machines.say(1, "gone-away")
    await machines.say(2, "db-1")
    found = (await machines.admin.post(url, json={"to": to})).json()
    assert (found["done"], len(found["skipped"])) == (0, 1)
    assert "gone-away" in found["skipped"][0]["reason"]


async def test_a_kept_plan_of_a_deleted_node_stands_for_no_group_whose_name_is_anothers(machines: Machines) -> None:
    node_id = await machines.say(1, "db-1")
    url = await fleet_plan(machines)
    assert (await machines.admin.post(f"{API}/{url}/nodes/{node_id}/plan")).status_code == 201
    assert (await machines.admin.delete(f"{API}/nodes/{node_id}")).status_code == 204
    assert unpacked(await machines.admin.get(f"{API}/{url}/groups/0/files.zip"))[0] == []
    await machines.say(2, "db-1")
    problem = assert_problem(await machines.admin.get(f"{API}/{url}/groups/0/files.zip"), 409, "conflict")
    assert "another machine's" in problem["detail"]
