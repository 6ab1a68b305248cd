"""A kept plan: frozen with a digest, proposed, approved, in force, superseded, stale; each step once, with its ETag."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from conftest import REPOSITORY
from sqlalchemy import event, text
from support.service import Service, assert_problem, somebody_waits

from hugeplan.access.schemas import Role
from hugeplan.db.maintenance import remove_gone
from hugeplan.documents.plans import kept_fit
from hugeplan.plans.watch import check_plans
from hugeplan.scenarios import plan_answers, repository
from hugeplan.scenarios.schemas import PlanFilter

API = "/api/v1"
EXAMPLE = json.loads((REPOSITORY / "docs" / "report.example.json").read_text(encoding="utf-8"))
DATABASE = {
    "name": "main", "engine": "postgresql", "version": "17", "page_size": "2MiB",
    "settings": {"shared_buffers": "16GB", "max_connections": "200", "huge_pages": "on"},
}  # fmt: skip
SCENARIO = {"databases": [DATABASE], "policy": {"slack": 0, "slack_min_pages": 0}}


def example(*, less_gib: int = 0, pages: int | None = None) -> dict[str, Any]:
    """The documented report with an id and a time of its own, less memory, or other pools of 2 MiB."""
    now = datetime.now(UTC).isoformat()
    document: dict[str, Any] = json.loads(json.dumps(EXAMPLE)) | {"report_id": str(uuid.uuid4()), "created_at": now}
    document["sample"]["taken_at"] = now
    sizes = document["sample"]["memory"]
    for name in ("mem_total_bytes", "mem_free_bytes", "mem_available_bytes"):
        sizes[name] -= less_gib * 2**30
    for pool in [*document["sample"]["pools"], *document["sample"]["global_pools"]]:
        if pages is not None and pool["page_bytes"] == 2 * 1024**2:
            pool |= {"nr_hugepages": pages, "free_hugepages": pages, "resv_hugepages": 0}
    return document


async def report(agent: httpx.AsyncClient, **changes: Any) -> str:
    """Send a report; the node's id."""
    sent = await agent.post(f"{API}/reports", json=example(**changes))
    assert sent.status_code == 201, sent.text
    return str(sent.json()["node_id"])


async def kept(client: httpx.AsyncClient, node_id: str, shared_buffers: str = "16GB") -> dict[str, Any]:
    """A plan of the scenario on a node, kept."""
    database = DATABASE | {"settings": {"shared_buffers": shared_buffers, "huge_pages": "on"}}
    body = {"node_id": node_id, "scenario": SCENARIO | {"databases": [database]}}
    made = await client.post(f"{API}/plans", json=body)
    assert made.status_code == 201, made.text
    plan: dict[str, Any] = made.json()
    assert made.headers["ETag"] == f'"{plan["version"]}"'
    return plan


async def step(client: httpx.AsyncClient, plan: dict[str, Any], name: str, method: str = "POST") -> dict[str, Any]:
    """One decision with the version that was read last."""
    headers = {"If-Match": f'"{plan["version"]}"'}
    done = await client.request(method, f"{API}/plans/{plan['id']}/{name}", headers=headers)
    assert done.status_code == 200, done.text
    found: dict[str, Any] = done.json()
    assert done.headers["ETag"] == f'"{found["version"]}"'
    return found


async def test_a_kept_plan_never_changes(agent: httpx.AsyncClient, planner: httpx.AsyncClient) -> None:
    node_id = await report(agent)
    plan = await kept(planner, node_id)
    url = f"{API}/plans/{plan['id']}"
    before = (await planner.get(f"{url}/document.json")).content
    zipped = (await planner.get(f"{url}/artifacts.zip")).content
    await report(agent, less_gib=4)
    await step(planner, plan, "propose")
    assert (await planner.get(f"{url}/document.json")).content == before
    assert (await planner.get(f"{url}/artifacts.zip")).content == zipped
    # The digest is of everything but itself, by a rule that needs no code of this service.
    document = json.loads(before)
    digest = document.pop("digest")
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == digest == plan["digest"]
    # 64 bits: nobody makes another plan that reads the same where people compare.
    assert plan["short_digest"] == f"{digest[:4]}-{digest[4:8]}-{digest[8:12]}-{digest[12:16]}"
    assert document["sampled_at"] == plan["sampled_at"].replace("Z", "+00:00")
    assert document["request"]["node"]["name"] == plan["node_name"]


@pytest.mark.parametrize("way", ["in-force", "plan-in-force"])
async def test_a_decision_holds_no_plan_while_it_waits_for_its_node(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient, way: str
) -> None:
    """A report holds its node and then, where a label names one, the plan: the other order ended in a deadlock."""
    plan = await step(admin, await step(planner, await kept(planner, await report(agent)), "propose"), "approve")
    async with service.database.write() as reports:
        await reports.execute(text("SELECT FROM nodes FOR UPDATE"))
        address, body = f"{API}/nodes/{plan['node_id']}/plan-in-force", {"plan_id": plan["id"]}
        decision = step(admin, plan, way) if way == "in-force" else admin.put(address, json=body)
        decided = asyncio.create_task(decision)
        await somebody_waits(reports)
        await reports.execute(text("SELECT FROM plans FOR UPDATE NOWAIT"))
    await decided


async def test_every_file_begins_with_its_plan(agent: httpx.AsyncClient, planner: httpx.AsyncClient) -> None:
    plan = await kept(planner, await report(agent))
    name = f"hugeplan plan {plan['short_digest']} of {plan['node_name']}, kept "
    assert len(plan["artifacts"]) > 5
    for artifact in plan["artifacts"]:
        assert name in "\n".join(artifact["content"].splitlines()[:3]), artifact["kind"]
        if artifact["media_type"] == "application/json":
            json.loads(artifact["content"])
        if artifact["content"].startswith("#!") or artifact["kind"] == "cloud_config":
            assert name not in artifact["content"].splitlines()[0]
    bundle = await planner.get(f"{API}/plans/{plan['id']}/artifacts.zip")
    assert plan["short_digest"] in bundle.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(bundle.content)) as archive:
        for script in ("README.md", "verify.sh", "roll-back.sh"):
            assert name in "\n".join(archive.read(script).decode().splitlines()[:6])


async def test_from_draft_to_in_force_and_back(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    approver = await service.client_as(Role.APPROVER)
    node_id = await report(agent, pages=0)
    plan = await kept(planner, node_id)
    draft = plan
    plan = await step(planner, plan, "propose")
    assert (plan["state"], plan["proposed_by"]) == ("proposed", "test planner")
    stale_version = await planner.post(
        f"{API}/plans/{plan['id']}/propose", headers={"If-Match": f'"{draft["version"]}"'}
    )
    assert_problem(stale_version, 412, "precondition-failed")
    assert_problem(await planner.post(f"{API}/plans/{plan['id']}/propose"), 428, "precondition-required")
    forbidden = await planner.post(f"{API}/plans/{plan['id']}/approve", headers={"If-Match": "*"})
    assert_problem(forbidden, 403, "forbidden")
    early = await planner.post(f"{API}/plans/{plan['id']}/in-force", headers={"If-Match": "*"})
    assert_problem(early, 409, "conflict")
    plan = await step(approver, plan, "approve")
    assert (plan["state"], plan["approved_by"]) == ("approved", "test approver")
    # A planner cannot take an approval back; the approver can.
    refused = await planner.post(f"{API}/plans/{plan['id']}/withdraw", headers={"If-Match": "*"})
    assert_problem(refused, 403, "forbidden")
    plan = await step(planner, plan, "in-force")
    (on_node,) = plan["in_force"]
    assert (plan["state"], on_node["node_id"], on_node["answer"]) == ("in_force", node_id, "no")
    node = (await planner.get(f"{API}/nodes/{node_id}")).json()
    assert node["plan_in_force"]["short_digest"] == plan["short_digest"]
    drift = (await planner.get(f"{API}/fleet/drift")).json()["items"]
    assert [item["plan_in_force"]["digest"] for item in drift] == [plan["digest"]]
    # Nothing happened on the node yet: it can be taken back, and the approval with it.
    plan = await step(planner, plan, "in-force", "DELETE")
    assert (plan["state"], plan["in_force"]) == ("approved", [])
    plan = await step(approver, plan, "withdraw")
    assert (plan["state"], plan["approved_by"], plan["proposed_by"]) == ("draft", None, None)
    kinds = [
        e["kind"] for e in (await planner.get(f"{API}/events/history", params={"node_id": node_id})).json()["items"]
    ]
    wanted = ["plan_withdrawn", "plan_in_force_ended", "plan_in_force_set", "plan_approved", "plan_proposed"]
    assert [kind for kind in kinds if kind in wanted] == wanted
    entries = (await admin.get(f"{API}/audit", params={"subject": plan["id"]})).json()["items"]
    assert {entry["detail"].get("digest") for entry in entries} == {plan["digest"]}
    assert {"plans_create", "plans_propose", "plans_approve", "plans_put_in_force"} <= {e["action"] for e in entries}


async def test_a_later_plan_supersedes_the_one_in_force(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    node_id = await report(agent, pages=0)
    plans = [await kept(admin, node_id) for _ in range(2)]
    for plan in plans:
        for name in ("propose", "approve", "in-force"):
            plan.update(await step(admin, plan, name))
    first, second = [(await admin.get(f"{API}/plans/{plan['id']}")).json() for plan in plans]
    assert (first["state"], first["superseded_by"]) == ("superseded", second["id"])
    assert (second["state"], second["replaces"]) == ("in_force", first["id"])
    # Taking the second back puts the first in force again.
    second = await step(admin, second, "in-force", "DELETE")
    first = (await admin.get(f"{API}/plans/{first['id']}")).json()
    assert (first["state"], second["state"]) == ("in_force", "approved")
    listed = (await admin.get(f"{API}/plans", params={"node_id": node_id, "state": "in_force"})).json()["items"]
    assert [item["id"] for item in listed] == [first["id"]]


@pytest.mark.parametrize("is_withdrawn", [True, False])
async def test_what_was_taken_back_does_not_come_back_by_itself(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient, is_withdrawn: bool
) -> None:
    """Its approval may have been withdrawn since; and even where it stands, nobody put it in force again."""
    node_id = await report(agent, pages=0)
    first, second = [await kept(admin, node_id) for _ in range(2)]
    for plan in (first, second):
        for name in ("propose", "approve", "in-force"):
            plan.update(await step(admin, plan, name))
    second.update(await step(admin, second, "in-force", "DELETE"))
    if is_withdrawn:
        await step(admin, second, "withdraw")
    first = (await admin.get(f"{API}/plans/{first['id']}")).json()
    assert first["state"] == "in_force"
    await step(admin, first, "in-force", "DELETE")
    second = (await admin.get(f"{API}/plans/{second['id']}")).json()
    assert second["state"] == ("draft" if is_withdrawn else "approved")
    assert (await admin.get(f"{API}/nodes/{node_id}")).json()["plan_in_force"] is None


async def test_reports_say_partly_and_yes(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    node_id = await report(agent)
    plan = await kept(admin, node_id)
    for name in ("propose", "approve", "in-force"):
        plan.update(await step(admin, plan, name))
    verdict = (await admin.get(f"{API}/plans/{plan['id']}/verification")).json()
    assert verdict["digest"] == plan["digest"]
    (on_node,) = plan["in_force"]
    pools_stand = any(c["code"] == "verify_pool" and c["state"] == "ok" for c in verdict["findings"])
    expected = {"in_force": "yes", "not_in_force": "partly" if pools_stand else "no", "undecided": "partly"}
    assert on_node["answer"] == expected[verdict["outcome"]]
    await report(agent, pages=0)
    (on_node,) = (await admin.get(f"{API}/plans/{plan['id']}")).json()["in_force"]
    assert on_node["answer"] in {"no", "partly"}
    assert on_node["wrong"]
    assert on_node["verified_at"] is not None


@pytest.fixture
def two_people(service: Service) -> Iterator[None]:
    """The setting that asks for a second person, for one test."""
    state = service.app.state
    before = state.settings
    state.settings = before.model_copy(update={"approval_by_second_person": True})
    yield
    state.settings = before


@pytest.mark.usefixtures("two_people")
async def test_a_second_person_approves_where_it_is_asked_for(service: Service, agent: httpx.AsyncClient) -> None:
    first, second = await service.client_as(Role.APPROVER), await service.client_as(Role.ADMIN)
    plan = await step(first, await kept(first, await report(agent)), "propose")
    own = await first.post(f"{API}/plans/{plan['id']}/approve", headers={"If-Match": "*"})
    assert "Somebody else" in assert_problem(own, 403, "forbidden")["detail"]
    assert (await step(second, plan, "approve"))["state"] == "approved"


async def test_a_changed_node_makes_a_proposal_stale(
    service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    node_id = await report(agent)
    plan = await step(admin, await kept(admin, node_id, "48GB"), "propose")
    # A newer sample that leaves the decision as it is makes nothing stale.
    await report(agent)
    while await check_plans(service.database, service.app.state.sandbox):
        pass
    assert (await admin.get(f"{API}/plans/{plan['id']}")).json()["stale"] is None
    await report(agent, less_gib=58)
    while await check_plans(service.database, service.app.state.sandbox):
        pass
    found = (await admin.get(f"{API}/plans/{plan['id']}")).json()
    assert any("memory" in fact["what"] and fact["was"] != fact["now"] for fact in found["stale"]), found["stale"]
    assert found["version"] == plan["version"]
    refused = await admin.post(f"{API}/plans/{plan['id']}/approve", headers={"If-Match": "*"})
    problem = assert_problem(refused, 409, "conflict")
    assert "changed" in problem["detail"]
    events = (await admin.get(f"{API}/events/history", params={"kind": "plan_stale"})).json()["items"]
    assert [event["subject"] for event in events] == [plan["id"]]


async def test_a_proposal_of_a_node_that_is_too_dear_to_plan_now_is_stale(
    service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    """Each newer report would cost all that a plan may take, for every plan of the node that was kept."""
    plan = await step(admin, await kept(admin, await report(agent)), "propose")
    wide = example()
    numa = [{"id": at, "mem_total_bytes": 2**28} for at in range(512)]
    wide["inventory"]["numa_nodes"] = wide["sample"]["numa"] = numa
    assert (await agent.post(f"{API}/reports", json=wide)).status_code == 201
    while await check_plans(service.database, service.app.state.sandbox):
        pass
    stale = (await admin.get(f"{API}/plans/{plan['id']}")).json()["stale"]
    assert "NUMA nodes times workloads and databases of at most 2000" in stale[0]["now"]


async def test_plans_are_counted_by_author_and_listed_by_state_without_reading_all(service: Service) -> None:
    seen: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        seen.append((statement, parameters))

    engine = service.database.engine
    async with service.database.read() as session:
        event.listen(engine.sync_engine, "before_cursor_execute", note)
        await repository.count_open_plans(session, uuid.uuid4())
        await repository.list_plans(session, PlanFilter(state="superseded"), after=None, limit=9)
        event.remove(engine.sync_engine, "before_cursor_execute", note)
    async with engine.connect() as connection:
        await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        for (statement, given), index in zip(seen, ("author_id", "state_created_at_id"), strict=True):
            plan = await connection.exec_driver_sql(f"EXPLAIN {statement}", given)
            assert f" ix_plans_{index} " in str([*plan]), statement


@pytest.mark.parametrize("copies", [0, 50])
async def test_what_was_proposed_outlives_its_scenario(
    service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient, copies: int
) -> None:
    """Of what else was made of it a request removes a part: 1,500 wide drafts took 15 s, and were there for good."""
    node_id = await report(agent)
    made = await admin.post(f"{API}/scenarios", json={"name": "s", "node_id": node_id, "scenario": SCENARIO})
    plans = [(await admin.post(f"{API}/scenarios/{made.json()['id']}/plans")).json() for _ in range(2)]
    await step(admin, plans[0], "propose")
    assert (await admin.delete(f"{API}/plans/{plans[0]['id']}", headers={"If-Match": "*"})).status_code == 409
    counts = """SELECT (SELECT count(*) FROM scenarios), (SELECT count(*) FROM scenario_versions),
        count(*) FILTER (WHERE state = 'draft'), count(scenario_id) FROM plans"""
    left = []
    async with service.database.write() as session:
        for table, changes in (("plans", "'id', gen_random_uuid()"), ("scenario_versions", "'version', 1 + i")):
            copied = f"SELECT (jsonb_populate_record(r, jsonb_build_object({changes}))).* FROM {table} r"
            await session.execute(text(f"INSERT INTO {table} {copied}, generate_series(1, {copies}) i"))
        left.append(tuple((await session.execute(text(counts))).one()))
    address = f"{API}/scenarios/{made.json()['id']}"
    assert (await admin.delete(address, headers={"If-Match": "*"})).status_code == 204
    async with service.database.read() as session:
        left.append(tuple((await session.execute(text(counts))).one()))
    assert {(await admin.get(f"{address}{of}")).status_code for of in ("", "/versions")} == {404}
    assert (await admin.get(f"{API}/scenarios")).json()["items"] == []
    await remove_gone(service.database)
    async with service.database.read() as session:
        left.append(tuple((await session.execute(text(counts))).one()))
    done = (0, 0, 0, 0)
    assert left == [(1, copies + 1, copies + 1, 2 * copies + 2), (1, 31, 31, 62) if copies else done, done]
    assert (await admin.get(f"{API}/plans/{plans[0]['id']}")).json()["scenario_id"] is None


async def test_a_plan_that_does_not_fit_is_not_proposed(agent: httpx.AsyncClient, planner: httpx.AsyncClient) -> None:
    database = DATABASE | {"settings": {"shared_buffers": "4000GB", "huge_pages": "on"}}
    body = {"node_id": await report(agent), "scenario": {"databases": [database]}}
    plan = (await planner.post(f"{API}/plans", json=body)).json()
    refused = await planner.post(f"{API}/plans/{plan['id']}/propose", headers={"If-Match": "*"})
    assert refused.status_code == 409, refused.text


async def test_a_fit_that_is_not_known_is_approved_only_by_who_says_so(
    service: Service, agent: httpx.AsyncClient, planner: httpx.AsyncClient
) -> None:
    approver = await service.client_as(Role.APPROVER)
    database = {"name": "core", "engine": "oracle", "unread_settings": ["sga_target"]}
    body = {"node_id": await report(agent), "scenario": {"databases": [DATABASE, database]}}
    made = await planner.post(f"{API}/plans", json=body)
    assert made.status_code == 201, made.text
    plan = made.json()
    assert (plan["plan"]["fits"], plan["plan"]["feasible"]) == (None, True)
    assert "sga_target of core was not read" in plan["headline"]
    assert all("WARNING" in "\n".join(a["content"].splitlines()[:6]) for a in plan["artifacts"] if a["recommended"])
    plan = await step(planner, plan, "propose")
    refused = await approver.post(f"{API}/plans/{plan['id']}/approve", headers={"If-Match": "*"})
    assert "sga_target" in assert_problem(refused, 409, "plan-fit-unknown")["detail"]
    assert (await approver.get(f"{API}/plans/{plan['id']}")).json()["state"] == "proposed"
    plan = await step(approver, plan, "approve?accept_unknown_fit=true")
    plan = await step(planner, plan, "in-force")
    events = (await planner.get(f"{API}/events/history", params={"kind": "plan_approved"})).json()["items"]
    assert [event["text"] for event in events if "accepts that it is not known" in event["text"]]


async def test_a_fit_that_is_known_needs_no_such_word(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    plan = await kept(admin, await report(agent))
    assert plan["plan"]["fits"] is True
    for name in ("propose", "approve"):
        plan = await step(admin, plan, name)
    assert plan["state"] == "approved"


@pytest.mark.parametrize(
    ("state", "feasible", "fits"), [("unknown", True, None), ("ok", True, True), ("wrong", False, False)]
)
def test_a_plan_of_before_says_whether_it_fits_by_its_findings(state: str, feasible: bool, fits: bool | None) -> None:
    assert kept_fit({"feasible": feasible, "findings": [{"code": "memory_fit", "state": state}]}) is fits


@pytest.mark.parametrize("path", ["in-force", "verification"])
async def test_a_report_that_comes_after_the_verification_is_not_overwritten(
    agent: httpx.AsyncClient,
    planner: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    """What an older report said of the plan was kept beside a newer one, until the node reported again."""
    node_id = await report(agent)
    plan = await step(admin, await step(planner, await kept(planner, node_id), "propose"), "approve")
    verify_plan = plan_answers.verify_plan

    async def verified_then_reported(*given: Any) -> Any:
        found = await verify_plan(*given)
        await report(agent, pages=3)
        return found.model_copy(update={"outcome": "in_force"})

    monkeypatch.setattr(plan_answers, "verify_plan", verified_then_reported)
    answer = await planner.post(f"{API}/plans/{plan['id']}/{path}", headers={"If-Match": "*"})
    assert "reported again" in assert_problem(answer, 409, "conflict")["detail"]
    monkeypatch.undo()
    assert (await planner.get(f"{API}/nodes/{node_id}")).json()["plan_in_force"] is None
    assert (await planner.post(f"{API}/plans/{plan['id']}/in-force", headers={"If-Match": "*"})).status_code == 200
