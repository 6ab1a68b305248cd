"""Every route that changes something writes one audit row, and no other route does."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from support.kubernetes_objects import listing, node, postgres
from support.reports import report, run
from support.service import Service
from trials.test_trials import trial

from hugeplan.access.audit import NO_CHANGE
from hugeplan.access.schemas import Role

API = "/api/v1"
SCENARIO = {
    "node": {"numa_nodes": [{"id": 0, "memory": "64GiB"}]},
    "databases": [{"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "8GB"}}],
}
ELSEWHERE = {
    "session_create",
    "session_delete",
    "sessions_end",
    "enrolment_approvals_create",
    "enrolment_requests_decide",
    "imports_kubernetes",
    "imports_scenarios",
    "fleet_plan_rows_open",
    "fleet_plan_rows_decide",
}
"""Those that need more than one call to be reached: each has a test of its own below."""


def unsafe_operations(service: Service) -> set[str]:
    """The operation ids of all routes with an unsafe method."""
    paths = service.app.openapi()["paths"].values()
    return {
        operation["operationId"]
        for methods in paths
        for method, operation in methods.items()
        if method not in {"get", "head"}
    }


async def test_every_mutating_route_writes_its_row(service: Service, admin: httpx.AsyncClient) -> None:
    done: dict[str, httpx.Response] = {}

    async def call(name: str, method: str, path: str, client: httpx.AsyncClient = admin, **rest: Any) -> Any:
        answer = await client.request(method, f"{API}{path}", **rest)
        assert answer.is_success, (name, answer.status_code, answer.text)
        done[name] = answer
        return answer.json() if answer.content else None

    machine = f"{1:032x}"
    agent = await service.client_as(Role.AGENT, machine_id=machine)
    stored = await call("reports_create", "POST", "/reports", agent, json=report(machine_id=machine, run=run()))
    path, measured = f"/nodes/{stored['node_id']}", f"/runs/{stored['run_id']}"

    await call("trials_create", "POST", "/trials", json=trial(machine))
    made = await call("scenarios_create", "POST", "/scenarios", json={"name": "s", "scenario": SCENARIO})
    scenario = f"/scenarios/{made['id']}"
    await call(
        "scenarios_replace", "PUT", scenario, json={"name": "t", "scenario": SCENARIO}, headers={"If-Match": '"1"'}
    )
    await call("plans_preview", "POST", "/plans/preview", json={"scenario": SCENARIO})
    await call("scenario_plans_create", "POST", f"{scenario}/plans")
    document = (await admin.get(f"{API}{scenario}/document.yaml")).text
    await call("scenarios_import", "POST", "/scenarios/import", json={"name": "u", "yaml": document})
    own = {"name": "v", "node_id": stored["node_id"], "scenario": {"databases": SCENARIO["databases"]}}
    on_node = (await admin.post(f"{API}/scenarios", json=own)).json()
    plan = (await admin.post(f"{API}/scenarios/{on_node['id']}/plans")).json()
    await call("plan_verification_create", "POST", f"/plans/{plan['id']}/verification")
    await call("scenarios_delete", "DELETE", scenario, headers={"If-Match": '"2"'})
    await _decide_about_a_plan(call, {"node_id": own["node_id"], "scenario": own["scenario"]})

    await call("node_labels_replace", "PUT", f"{path}/labels", json={"labels": {"team": "a"}})
    pools = {"pools": [{"page_bytes": 2 * 1024**2, "pages": 8}]}
    await call("node_plan_in_force_replace", "PUT", f"{path}/plan-in-force", json=pools)
    await call("node_plan_in_force_delete", "DELETE", f"{path}/plan-in-force")
    await call("runs_mark", "PUT", f"{measured}/mark", json={"bad": True, "reason": "noise"})
    await call("runs_delete", "DELETE", measured)

    job = await call(
        "fleet_plans_create", "POST", "/fleet/plan", json={"scenario": {"databases": SCENARIO["databases"]}}
    )
    await call("fleet_plans_cancel", "POST", f"/fleet/plans/{job['id']}/cancel")
    await call("nodes_delete", "DELETE", path)

    hook = await call("webhooks_create", "POST", "/webhooks", json={"name": "w", "url": "http://127.0.0.1:9/hook"})
    await call("webhooks_delete", "DELETE", f"/webhooks/{hook['id']}")
    await _compute_only(call)

    token = await call("tokens_create", "POST", "/tokens", json={"name": "x", "role": "viewer"})
    await call("tokens_rotate", "POST", f"/tokens/{token['id']}/rotate", json={})
    await call("tokens_revoke", "DELETE", f"/tokens/{token['id']}")
    await call("own_token_rotate", "POST", "/token/rotate", await service.client_as(Role.VIEWER), json={})
    await call("login_links_create", "POST", "/login-links")
    await call("enrolments_create", "POST", "/enrolments", json={"machine_id": uuid.uuid4().hex, "node_name": "n"})

    rows: dict[str, int] = {}
    for event in (await admin.get(f"{API}/audit", params={"limit": 500})).json()["items"]:
        rows[event["action"]] = rows.get(event["action"], 0) + 1
    for name in done:
        assert (name in rows) is (name not in NO_CHANGE), name
    assert unsafe_operations(service) == done.keys() | ELSEWHERE
    tested = {name.removeprefix("test_").partition("_is_audited")[0] for name in vars(TestRow) if "_is_audited" in name}
    assert tested == ELSEWHERE


async def _compute_only(call: Any) -> None:
    """What reads a text of its caller and keeps nothing."""
    files = [{"name": "sysctl.conf", "text": "vm.nr_hugepages = 8"}]
    await call("files_lint", "POST", "/lint", json={"files": files})
    text = " name | setting\n shared_buffers | 128MB\n huge_pages | try\n"
    await call("engine_settings_read", "POST", "/engines/read-settings", json={"text": text})
    pods = {"headers": {"Content-Type": "application/json"}, "content": listing(node("n"), postgres("pg-0", "n", {}))}
    await call("imports_kubernetes_workloads", "POST", "/imports/kubernetes/workloads", **pods)


async def _decide_about_a_plan(call: Any, body: dict[str, Any]) -> None:
    """Each decision about a kept plan once."""
    plan = await call("plans_create", "POST", "/plans", json=body)
    for name, method, rest in (
        ("plans_propose", "POST", "/propose"),
        ("plans_approve", "POST", "/approve"),
        ("plans_put_in_force", "POST", "/in-force"),
        ("plans_end_in_force", "DELETE", "/in-force"),
        ("plans_withdraw", "POST", "/withdraw"),
        ("plans_delete", "DELETE", ""),
    ):
        await call(name, method, f"/plans/{plan['id']}{rest}", headers={"If-Match": "*"})


class TestRow:
    """One operation each: the change is there, and the one new row says who did what to what."""

    @pytest.fixture(autouse=True)
    def begun(self) -> None:
        """The log keeps the rows of other tests: nobody can delete them."""
        self.since = datetime.now(UTC)

    async def rows(self, admin: httpx.AsyncClient, action: str) -> list[dict[str, Any]]:
        """The rows of an action since the test began."""
        parameters = {"action": action, "from": self.since.isoformat()}
        found: list[dict[str, Any]] = (await admin.get(f"{API}/audit", params=parameters)).json()["items"]
        return found

    async def row(self, admin: httpx.AsyncClient, action: str) -> dict[str, Any]:
        """The only one of them."""
        (found,) = await self.rows(admin, action)
        return found

    @staticmethod
    async def browser(service: Service, role: Role) -> tuple[httpx.AsyncClient, str]:
        """A client that is logged in, and its session's id."""
        client = service.client()
        opened = await client.post(f"{API}/session", json={"token": await service.token(role)})
        assert opened.status_code == 201
        client.headers["X-CSRF-Token"] = opened.json()["csrf_token"]
        (own,) = [one for one in (await client.get(f"{API}/sessions")).json()["items"] if one["is_current"]]
        return client, own["id"]

    async def test_session_create_is_audited(self, service: Service, admin: httpx.AsyncClient) -> None:
        client, session_id = await self.browser(service, Role.VIEWER)
        assert (await client.get(f"{API}/nodes")).status_code == 200
        row = await self.row(admin, "session_create")
        assert (row["subject_kind"], row["subject_id"]) == ("session", session_id)
        assert (row["actor_name"], row["actor_role"]) == ("test viewer", "viewer")

    async def test_a_login_that_is_refused_is_not_a_change(self, service: Service, admin: httpx.AsyncClient) -> None:
        assert (await service.client().post(f"{API}/session", json={"token": "hp_wrong"})).status_code == 401
        assert await self.rows(admin, "session_create") == []

    async def test_session_delete_is_audited(self, service: Service, admin: httpx.AsyncClient) -> None:
        client, session_id = await self.browser(service, Role.PLANNER)
        secret = dict(client.cookies)
        assert (await client.delete(f"{API}/session")).status_code == 204
        client.cookies.update(secret)
        assert (await client.get(f"{API}/nodes")).status_code == 401
        row = await self.row(admin, "session_delete")
        assert (row["subject_kind"], row["subject_id"], row["actor_name"]) == ("session", session_id, "test planner")

    async def test_sessions_end_is_audited(self, service: Service, admin: httpx.AsyncClient) -> None:
        client, session_id = await self.browser(service, Role.VIEWER)
        assert (await admin.delete(f"{API}/sessions/{session_id}")).status_code == 204
        assert (await client.get(f"{API}/nodes")).status_code == 401
        row = await self.row(admin, "sessions_end")
        # Who ended it, not whose it was.
        assert (row["subject_id"], row["actor_name"]) == (session_id, "test admin")

    async def test_enrolment_requests_decide_is_audited(self, service: Service, admin: httpx.AsyncClient) -> None:
        enroller = await service.client_as(Role.ENROLMENT)
        body = {"machine_id": f"{7:032x}", "node_name": "n"}
        assert (await enroller.post(f"{API}/enrolments", json=body)).status_code == 201
        assert (await enroller.post(f"{API}/enrolments", json=body)).status_code == 409
        (asked,) = (await admin.get(f"{API}/enrolments/requests")).json()["items"]
        word = {"decision": "refused"}
        assert (await admin.post(f"{API}/enrolments/requests/{asked['id']}/decision", json=word)).status_code == 200
        row = await self.row(admin, "enrolment_requests_decide")
        assert row["subject_kind"] == "machine"
        assert row["subject_id"] == body["machine_id"]
        assert row["detail"]["decision"] == "refused"

    async def test_enrolment_approvals_create_is_audited(self, service: Service, admin: httpx.AsyncClient) -> None:
        enroller = await service.client_as(Role.ENROLMENT)
        body = {"machine_id": "c" * 32, "node_name": "n"}
        assert (await enroller.post(f"{API}/enrolments", json=body)).status_code == 201
        assert (await enroller.post(f"{API}/enrolments", json=body)).status_code == 409
        yes = await admin.post(f"{API}/enrolments/approvals", json={"machine_id": body["machine_id"]})
        assert yes.status_code == 201
        assert (await enroller.post(f"{API}/enrolments", json=body)).status_code == 201
        row = await self.row(admin, "enrolment_approvals_create")
        assert (row["subject_kind"], row["subject_id"]) == ("machine", body["machine_id"])
        assert row["actor_name"] == "test admin"

    async def test_imports_kubernetes_is_audited(self, admin: httpx.AsyncClient, planner: httpx.AsyncClient) -> None:
        cluster = listing(
            node("db-1", pools={"2Mi": "2Gi", "1Gi": "0"}),
            postgres("pg-0", "db-1", {"shared_buffers": "4GB"}, limits={"memory": "12Gi", "hugepages-2Mi": "2Gi"}),
        )
        headers = {"Content-Type": "application/json"}
        kept = await planner.post(f"{API}/imports/kubernetes?save=true", content=cluster.encode(), headers=headers)
        assert kept.status_code == 200, kept.text
        (scenario,) = (await planner.get(f"{API}/scenarios")).json()["items"]
        assert scenario["name"] == "db-1 (imported)"
        row = await self.row(admin, "imports_kubernetes")
        assert (row["actor_name"], row["actor_role"]) == ("test planner", "planner")

    async def fleet_plan(self, service: Service, admin: httpx.AsyncClient) -> tuple[str, str]:
        """Ids of a finished fleet plan and of its one node."""
        machine = f"{7:032x}"
        agent = await service.client_as(Role.AGENT, machine_id=machine)
        stored = (await agent.post(f"{API}/reports", json=report(machine_id=machine))).json()
        body = {"scenario": {"databases": SCENARIO["databases"]}}
        job = (await admin.post(f"{API}/fleet/plan", json=body)).json()
        async with admin.stream("GET", f"{API}/fleet/plans/{job['id']}/progress") as stream:
            await stream.aread()
        return job["id"], stored["node_id"]

    async def test_fleet_plan_rows_open_is_audited(
        self, service: Service, admin: httpx.AsyncClient, planner: httpx.AsyncClient
    ) -> None:
        job, node = await self.fleet_plan(service, admin)
        opened = await planner.post(f"{API}/fleet/plans/{job}/nodes/{node}/plan")
        assert opened.status_code in {201, 409}, opened.text
        if opened.status_code == 201:
            row = await self.row(admin, "fleet_plan_rows_open")
            assert (row["subject_id"], row["actor_name"]) == (opened.json()["id"], "test planner")

    async def test_fleet_plan_rows_decide_is_audited(
        self, service: Service, admin: httpx.AsyncClient, planner: httpx.AsyncClient
    ) -> None:
        job, _ = await self.fleet_plan(service, admin)
        decided = await planner.post(f"{API}/fleet/plans/{job}/decisions", json={"to": "propose"})
        assert decided.status_code == 200, decided.text
        row = await self.row(admin, "fleet_plan_rows_decide")
        assert (row["subject_id"], row["actor_name"], row["detail"]["to"]) == (job, "test planner", "propose")

    async def test_imports_scenarios_is_audited(self, admin: httpx.AsyncClient, planner: httpx.AsyncClient) -> None:
        body = {"source": "a table", "scenarios": [{"name": "w", "scenario": SCENARIO}]}
        kept = await planner.post(f"{API}/imports/scenarios", json=body)
        assert kept.status_code == 200, kept.text
        (scenario,) = (await planner.get(f"{API}/scenarios")).json()["items"]
        assert scenario["name"] == "w"
        row = await self.row(admin, "imports_scenarios")
        assert (row["actor_name"], row["actor_role"]) == ("test planner", "planner")
