"""Every route that changes something writes one audit row, and no other route does."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from support.reports import report, run
from support.service import Service

from hugeplan.access.audit import NO_CHANGE
from hugeplan.access.schemas import Role

API = "/api/v1"
SCENARIO = {
    "node": {"numa_nodes": [{"id": 0, "memory": "64GiB"}]},
    "databases": [{"name": "a", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "8GB"}}],
}
NO_ROW = NO_CHANGE | {
    "session_create",  # a login: no change by somebody who is known yet; tests/access/test_oidc.py has the provider's
}


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
    node, measured = f"/nodes/{stored['node_id']}", f"/runs/{stored['run_id']}"

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

    await call("node_labels_replace", "PUT", f"{node}/labels", json={"labels": {"team": "a"}})
    pools = {"pools": [{"page_bytes": 2 * 1024**2, "pages": 8}]}
    await call("node_plan_in_force_replace", "PUT", f"{node}/plan-in-force", json=pools)
    await call("node_plan_in_force_delete", "DELETE", f"{node}/plan-in-force")
    await call("runs_mark", "PUT", f"{measured}/mark", json={"bad": True, "reason": "noise"})
    await call("runs_delete", "DELETE", measured)

    job = await call(
        "fleet_plans_create", "POST", "/fleet/plan", json={"scenario": {"databases": SCENARIO["databases"]}}
    )
    await call("fleet_plans_cancel", "POST", f"/fleet/plans/{job['id']}/cancel")
    await call("nodes_delete", "DELETE", node)

    hook = await call("webhooks_create", "POST", "/webhooks", json={"name": "w", "url": "http://127.0.0.1:9/hook"})
    await call("webhooks_delete", "DELETE", f"/webhooks/{hook['id']}")
    kubernetes = {"apiVersion": "v1", "kind": "List", "items": []}
    found = await admin.post(f"{API}/imports/kubernetes", json=kubernetes)
    assert found.status_code in {200, 422}
    await call("files_lint", "POST", "/lint", json={"files": [{"name": "sysctl.conf", "text": "vm.nr_hugepages = 8"}]})

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
        assert (name in rows) is (name not in NO_ROW), name
    # Those that need more than one call to be reached are listed, so that a new route is noticed.
    elsewhere = {
        "session_create", "session_delete", "sessions_end",  # test_browser_sessions.py
        "enrolment_approvals_create",  # test_machines.py
        "imports_kubernetes", "imports_scenarios",  # tests/imports
    }  # fmt: skip
    assert unsafe_operations(service) == done.keys() | elsewhere
