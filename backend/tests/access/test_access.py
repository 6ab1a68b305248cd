"""Who may do what: 401 without a credential, 403 with the wrong one, and what makes and ends credentials."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem, fields_of

from hugeplan.access import bootstrap, gate
from hugeplan.access.schemas import Role
from hugeplan.access.service import hash_secret
from hugeplan.main import create_app
from hugeplan.settings import Settings

OPEN = {
    ("POST", "/api/v1/session"),
    ("GET", "/api/v1/login-methods"),
    ("GET", "/api/v1/oidc/login"),
    ("GET", "/api/v1/oidc/callback"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
}
READERS = {Role.VIEWER, Role.PLANNER, Role.APPROVER, Role.ADMIN}
WRITERS = {Role.PLANNER, Role.APPROVER, Role.ADMIN}
EVERYONE = set(Role)

# The whole table of rights: a route that is not here fails test_every_route_has_its_roles.
RIGHTS: dict[tuple[str, str], set[Role]] = {
    ("POST", "/api/v1/reports"): {Role.AGENT},
    ("GET", "/api/v1/nodes"): READERS,
    ("GET", "/api/v1/nodes.csv"): READERS,
    ("GET", "/api/v1/nodes/{node_id}"): READERS,
    ("GET", "/api/v1/nodes/{node_id}/scenario"): READERS,
    ("GET", "/api/v1/nodes/{node_id}/samples"): READERS,
    ("GET", "/api/v1/nodes/{node_id}/runs"): READERS,
    ("GET", "/api/v1/nodes/{node_id}/processes"): READERS,
    ("DELETE", "/api/v1/nodes/{node_id}"): {Role.ADMIN},
    ("DELETE", "/api/v1/runs/{run_id}"): WRITERS,
    ("PUT", "/api/v1/runs/{run_id}/mark"): WRITERS,
    ("GET", "/api/v1/nodes/{node_id}/history"): READERS,
    ("GET", "/api/v1/nodes/{node_id}/history.csv"): READERS,
    ("PUT", "/api/v1/nodes/{node_id}/labels"): WRITERS,
    ("PUT", "/api/v1/nodes/{node_id}/plan-in-force"): WRITERS,
    ("DELETE", "/api/v1/nodes/{node_id}/plan-in-force"): WRITERS,
    ("GET", "/api/v1/fleet/summary"): READERS,
    ("GET", "/api/v1/fleet/drift"): READERS,
    ("GET", "/api/v1/fleet/drift.csv"): READERS,
    ("GET", "/api/v1/fleet/groups"): READERS,
    ("GET", "/api/v1/fleet/groups.csv"): READERS,
    ("GET", "/api/v1/fleet/page-size-wins"): READERS,
    ("POST", "/api/v1/fleet/plan"): WRITERS,
    ("GET", "/api/v1/fleet/plans"): READERS,
    ("GET", "/api/v1/fleet/plans/{job_id}"): READERS,
    ("POST", "/api/v1/fleet/plans/{job_id}/cancel"): WRITERS,
    ("GET", "/api/v1/fleet/plans/{job_id}/progress"): READERS,
    ("GET", "/api/v1/fleet/plans/{job_id}/groups"): READERS,
    ("GET", "/api/v1/fleet/plans/{job_id}/groups/{number}"): READERS,
    ("GET", "/api/v1/fleet/plans/{job_id}/groups/{number}/files.zip"): READERS,
    ("POST", "/api/v1/engines/read-settings"): READERS,
    ("GET", "/api/v1/fleet/plans/{job_id}/nodes"): READERS,
    ("GET", "/api/v1/fleet/plans/{job_id}/nodes.csv"): READERS,
    ("GET", "/api/v1/events"): READERS,
    ("GET", "/api/v1/events/history"): READERS,
    ("GET", "/api/v1/events/history.csv"): READERS,
    ("GET", "/api/v1/webhooks"): {Role.ADMIN},
    ("POST", "/api/v1/webhooks"): {Role.ADMIN},
    ("DELETE", "/api/v1/webhooks/{webhook_id}"): {Role.ADMIN},
    ("GET", "/api/v1/runs"): READERS,
    ("GET", "/api/v1/runs.csv"): READERS,
    ("GET", "/api/v1/nodes/{node_id}/report"): READERS,
    ("GET", "/api/v1/about"): READERS,
    ("GET", "/api/v1/runs/compare"): READERS,
    ("GET", "/api/v1/runs/{run_id}"): READERS,
    ("POST", "/api/v1/plans/preview"): READERS,
    ("GET", "/api/v1/scenarios"): READERS,
    ("POST", "/api/v1/scenarios"): WRITERS,
    ("GET", "/api/v1/scenarios/{scenario_id}"): READERS,
    ("PUT", "/api/v1/scenarios/{scenario_id}"): WRITERS,
    ("DELETE", "/api/v1/scenarios/{scenario_id}"): WRITERS,
    ("POST", "/api/v1/scenarios/{scenario_id}/plans"): WRITERS,
    ("GET", "/api/v1/scenarios/{scenario_id}/plans"): READERS,
    ("GET", "/api/v1/plans"): READERS,
    ("POST", "/api/v1/plans"): WRITERS,
    ("GET", "/api/v1/plans/{plan_id}"): READERS,
    ("DELETE", "/api/v1/plans/{plan_id}"): WRITERS,
    ("GET", "/api/v1/plans/{plan_id}/document.json"): READERS,
    ("POST", "/api/v1/plans/{plan_id}/propose"): WRITERS,
    ("POST", "/api/v1/plans/{plan_id}/approve"): {Role.APPROVER, Role.ADMIN},
    ("POST", "/api/v1/plans/{plan_id}/withdraw"): WRITERS,
    ("POST", "/api/v1/plans/{plan_id}/in-force"): WRITERS,
    ("DELETE", "/api/v1/plans/{plan_id}/in-force"): WRITERS,
    ("POST", "/api/v1/fleet/plans/{job_id}/nodes/{node_id}/plan"): WRITERS,
    ("POST", "/api/v1/fleet/plans/{job_id}/decisions"): WRITERS,
    ("GET", "/api/v1/plans/{plan_id}/verification"): READERS,
    ("POST", "/api/v1/plans/{plan_id}/verification"): WRITERS,
    ("GET", "/api/v1/plans/{plan_id}/inputs"): READERS,
    ("GET", "/api/v1/plans/{plan_id}/diff"): READERS,
    ("GET", "/api/v1/scenarios/{scenario_id}/versions"): READERS,
    ("GET", "/api/v1/scenarios/{scenario_id}/document.yaml"): READERS,
    ("POST", "/api/v1/scenarios/import"): WRITERS,
    ("GET", "/api/v1/plans/{plan_id}/artifacts"): READERS,
    ("GET", "/api/v1/plans/{plan_id}/artifacts/{kind}"): READERS,
    ("GET", "/api/v1/evidence"): READERS,
    ("GET", "/api/v1/evidence/backtest"): READERS,
    ("GET", "/api/v1/evidence/model-error"): READERS,
    ("GET", "/api/v1/evidence/pool-shape"): READERS,
    ("GET", "/api/v1/evidence/validation"): READERS,
    ("GET", "/api/v1/catalogue/tlb"): READERS,
    ("GET", "/api/v1/engines"): READERS,
    ("GET", "/api/v1/session"): EVERYONE,
    ("DELETE", "/api/v1/session"): READERS,
    ("GET", "/api/v1/tokens"): {Role.ADMIN},
    ("POST", "/api/v1/tokens"): {Role.ADMIN},
    ("DELETE", "/api/v1/tokens/{token_id}"): {Role.ADMIN},
    ("POST", "/api/v1/tokens/{token_id}/rotate"): {Role.ADMIN},
    ("POST", "/api/v1/token/rotate"): EVERYONE - {Role.ENROLMENT},
    ("POST", "/api/v1/login-links"): READERS,
    ("GET", "/api/v1/sessions"): READERS,
    ("DELETE", "/api/v1/sessions/{session_id}"): READERS,
    ("POST", "/api/v1/enrolments"): {Role.ENROLMENT, Role.ADMIN},
    ("POST", "/api/v1/enrolments/approvals"): {Role.ADMIN},
    ("GET", "/api/v1/enrolments/requests"): {Role.ADMIN},
    ("POST", "/api/v1/enrolments/requests/{request_id}/decision"): {Role.ADMIN},
    ("POST", "/api/v1/lint"): READERS,
    ("GET", "/api/v1/plans/{plan_id}/artifacts-diff"): READERS,
    ("GET", "/api/v1/plans/{plan_id}/artifacts.zip"): READERS,
    ("POST", "/api/v1/imports/kubernetes"): WRITERS,
    ("POST", "/api/v1/imports/kubernetes/workloads"): READERS,
    ("POST", "/api/v1/imports/scenarios"): WRITERS,
    ("GET", "/api/v1/nodes/{node_id}/trials"): READERS,
    ("GET", "/api/v1/trials"): READERS,
    ("GET", "/api/v1/trials/{trial_id}"): READERS,
    ("POST", "/api/v1/trials"): WRITERS | {Role.AGENT},
    ("GET", "/api/v1/audit"): {Role.ADMIN},
    ("GET", "/api/v1/audit.csv"): {Role.ADMIN},
}


def _path(template: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: "sysctl" if m[1] == "kind" else str(uuid.uuid4()), template)


def _routes(service: Service) -> set[tuple[str, str]]:
    document = service.app.openapi()
    return {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}


class TestRights:
    async def test_every_route_has_its_roles(self, service: Service) -> None:
        assert _routes(service) == OPEN | set(RIGHTS)

    async def test_anonymous_is_401_everywhere(self, service: Service) -> None:
        client = service.client()
        for method, template in RIGHTS:
            answer = await client.request(method, _path(template), json={} if method in {"POST", "PUT"} else None)
            assert_problem(answer, 401, "unauthenticated")
            assert answer.headers["www-authenticate"].startswith("Bearer")

    @pytest.mark.parametrize("role", list(Role))
    async def test_role_reaches_its_routes_and_no_others(self, service: Service, role: Role) -> None:
        for (method, template), roles in RIGHTS.items():
            client = await service.client_as(role, machine_id=MACHINE_ID if role is Role.AGENT else None)
            answer = await client.request(method, _path(template), json={} if method in {"POST", "PUT"} else None)
            if role in roles and template == "/api/v1/login-links":
                # Every role may ask; those of machines learn that they cannot log in.
                assert answer.status_code in {201, 403}
            elif role in roles:
                assert answer.status_code not in {401, 403}, (method, template, answer.text)
            else:
                assert_problem(answer, 403, "forbidden")

    @pytest.mark.parametrize("path", ["/metrics"])
    async def test_metrics_need_a_reader(self, service: Service, viewer: httpx.AsyncClient, path: str) -> None:
        assert_problem(await service.client().get(path), 401, "unauthenticated")
        assert_problem(await (await service.client_as(Role.AGENT)).get(path), 403, "forbidden")
        assert (await viewer.get(path)).status_code == 200


class TestTokens:
    @pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Basic abc", "Bearer \x7f", "Bearer é", "x" * 3000])
    async def test_wrong_header_is_401(self, service: Service, header: str) -> None:
        answer = await service.client().get("/api/v1/nodes", headers={"Authorization": header.encode("latin-1")})
        assert_problem(answer, 401, "unauthenticated")

    async def test_secret_is_shown_once_and_stored_hashed(self, service: Service, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})).json()
        listed = (await admin.get("/api/v1/tokens")).json()["items"]
        assert made["id"] in {token["id"] for token in listed}
        assert all("token" not in token for token in listed)
        async with service.database.read() as session:
            query = text("SELECT secret_sha256, row_to_json(tokens)::text FROM tokens WHERE id = :id")
            stored, row = (await session.execute(query, {"id": made["id"]})).one()
        assert stored == hash_secret(made["token"])
        assert made["token"] not in row

    async def test_revoked_token_is_401(self, service: Service, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})).json()
        client = service.client(made["token"])
        assert (await client.get("/api/v1/nodes")).status_code == 200
        assert (await admin.delete(f"/api/v1/tokens/{made['id']}")).json()["status"] == "revoked"
        assert_problem(await client.get("/api/v1/nodes"), 401, "unauthenticated")
        assert_problem(await admin.delete(f"/api/v1/tokens/{made['id']}"), 404, "not-found")

    async def test_expired_token_is_401(self, service: Service) -> None:
        client = service.client(await service.token(Role.VIEWER, expires_in=timedelta(seconds=-1)))
        assert_problem(await client.get("/api/v1/nodes"), 401, "unauthenticated")

    async def test_machine_id_only_for_agents(self, admin: httpx.AsyncClient) -> None:
        body = {"name": "x", "role": "viewer", "machine_id": MACHINE_ID}
        problem = assert_problem(await admin.post("/api/v1/tokens", json=body), 422, "invalid-input")
        assert fields_of(problem) == ["machine_id"]

    async def test_tokens_are_paged_without_gaps(self, admin: httpx.AsyncClient) -> None:
        for number in range(7):
            await admin.post("/api/v1/tokens", json={"name": f"t{number}", "role": "viewer"})
        seen: list[str] = []
        cursor = None
        while True:
            params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
            page = (await admin.get("/api/v1/tokens", params=params)).json()
            seen += [token["name"] for token in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == [f"t{number}" for number in reversed(range(7))] + ["test admin"]


class TestEnrolment:
    async def test_enrolled_agent_reports_for_its_machine_only(self, service: Service) -> None:
        enroller = await service.client_as(Role.ENROLMENT)
        body = {"machine_id": MACHINE_ID, "node_name": "db-7"}
        made = (await enroller.post("/api/v1/enrolments", json=body)).json()
        assert made["role"] == "agent"
        assert made["machine_id"] == MACHINE_ID
        agent = service.client(made["token"])
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
        assert_problem(await agent.post("/api/v1/reports", json=report(machine_id="e" * 32)), 403, "forbidden")


class TestBrowserSession:
    async def _login(self, service: Service, role: Role = Role.PLANNER) -> tuple[httpx.AsyncClient, str]:
        client = service.client()
        answer = await client.post("/api/v1/session", json={"token": await service.token(role)})
        assert answer.status_code == 201
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        csrf: str = answer.json()["csrf_token"]
        return client, csrf

    async def test_login_reads_with_the_cookie(self, service: Service) -> None:
        client, csrf = await self._login(service)
        answer = (await client.get("/api/v1/session")).json()
        assert answer["role"] == "planner"
        assert answer["csrf_token"] == csrf
        assert (await client.get("/api/v1/nodes")).status_code == 200

    async def test_unsafe_request_needs_the_csrf_token(self, service: Service) -> None:
        client, csrf = await self._login(service)
        body = {"name": "s", "scenario": {"node": {"memory": "8GiB"}}}
        assert_problem(await client.post("/api/v1/scenarios", json=body), 403, "csrf")
        wrong = {"X-CSRF-Token": csrf[:-1] + ("0" if csrf[-1] != "0" else "1")}
        assert_problem(await client.post("/api/v1/scenarios", json=body, headers=wrong), 403, "csrf")
        right = {"X-CSRF-Token": csrf}
        assert (await client.post("/api/v1/scenarios", json=body, headers=right)).status_code == 201

    async def test_csrf_token_of_another_session_is_refused(self, service: Service) -> None:
        client, _ = await self._login(service)
        _, foreign = await self._login(service)
        answer = await client.delete("/api/v1/session", headers={"X-CSRF-Token": foreign})
        assert_problem(answer, 403, "csrf")

    async def test_logout_ends_the_session(self, service: Service) -> None:
        client, csrf = await self._login(service)
        stolen = dict(client.cookies)
        assert (await client.delete("/api/v1/session", headers={"X-CSRF-Token": csrf})).status_code == 204
        thief = service.client()
        thief.cookies.update(stolen)
        assert_problem(await thief.get("/api/v1/nodes"), 401, "unauthenticated")

    async def test_revoking_the_token_ends_its_sessions(self, service: Service, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "v", "role": "viewer"})).json()
        client = service.client()
        await client.post("/api/v1/session", json={"token": made["token"]})
        assert (await client.get("/api/v1/nodes")).status_code == 200
        await admin.delete(f"/api/v1/tokens/{made['id']}")
        assert_problem(await client.get("/api/v1/nodes"), 401, "unauthenticated")

    @pytest.mark.parametrize("role", [Role.AGENT, Role.ENROLMENT])
    async def test_tokens_of_machines_cannot_log_in(self, service: Service, role: Role) -> None:
        answer = await service.client().post("/api/v1/session", json={"token": await service.token(role)})
        assert_problem(answer, 403, "forbidden")

    async def test_a_session_secret_is_no_bearer_token(self, service: Service) -> None:
        client, _ = await self._login(service)
        (secret,) = dict(client.cookies).values()
        assert_problem(await service.client(secret).get("/api/v1/nodes"), 401, "unauthenticated")

    async def test_cookie_is_secure_when_told(self, settings: Settings, service: Service) -> None:
        token = await service.token(Role.VIEWER)
        app = create_app(settings.model_copy(update={"cookie_secure": True}))
        client = Service(app).client()
        answer = await client.post("/api/v1/session", json={"token": token})
        assert "Secure" in answer.headers["set-cookie"]
        await app.state.database.dispose()


class TestRateLimit:
    async def test_guessing_is_limited_and_others_go_on(self, service: Service, viewer: httpx.AsyncClient) -> None:
        client = service.client()
        statuses = [
            (await client.post("/api/v1/session", json={"token": f"guess {number}"})).status_code
            for number in range(25)
        ]
        assert statuses[:20] == [401] * 20
        assert set(statuses[20:]) == {429}
        answer = await client.post("/api/v1/session", json={"token": "guess"})
        assert_problem(answer, 429, "rate-limited")
        assert int(answer.headers["retry-after"]) >= 1
        assert (await viewer.get("/api/v1/nodes")).status_code == 200

    async def test_past_the_limit_a_right_secret_is_not_looked_up_either(
        self, settings: Settings, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else the one who guesses on learns by the answer which guess was right."""
        monkeypatch.setattr(gate, "NEWCOMERS_PER_MINUTE", 1)
        app = create_app(settings.model_copy(update={"logins_per_minute": 1}))
        client = Service(app).client()
        guesses = [await client.post("/api/v1/session", json={"token": f"guess {number}"}) for number in range(3)]
        assert [answer.status_code for answer in guesses] == [401, 429, 429]
        right = await client.post("/api/v1/session", json={"token": await service.token(Role.VIEWER)})
        assert_problem(right, 429, "rate-limited")
        await app.state.database.dispose()

    async def test_what_is_made_here_is_known_at_once(
        self, settings: Settings, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who guesses kept a new session, and a new token, out for 20 s."""
        monkeypatch.setattr(gate, "NEWCOMERS_PER_MINUTE", 1)
        app = create_app(settings.model_copy(update={"logins_per_minute": 2}))
        secret, nodes = await service.token(Role.ADMIN), "/api/v1/nodes"
        admin, browser, guess = Service(app).client(secret), Service(app).client(), Service(app).client()
        assert (await admin.get(nodes)).status_code == 200
        for number in range(4):
            guess.cookies.set("hugeplan_session", f"guess {number}")
            answers = [await guess.get(nodes), await Service(app).client(f"guess {number}").get(nodes)]
        assert {answer.status_code for answer in answers} == {429}
        assert (await browser.post("/api/v1/session", json={"token": secret})).status_code == 201
        made = (await admin.post("/api/v1/tokens", json={"name": "n", "role": "viewer"})).json()["token"]
        own = (await Service(app).client(made).post("/api/v1/token/rotate", json={})).json()["token"]
        for client in (browser, Service(app).client(made), Service(app).client(own)):
            assert (await client.get(nodes)).status_code == 200
        await app.state.database.dispose()

    async def test_guessing_bearer_tokens_is_limited_too(self, service: Service) -> None:
        client = service.client("hp_guess")
        statuses = [(await client.get("/api/v1/nodes")).status_code for _ in range(25)]
        assert statuses == [401] * 20 + [429] * 5

    async def test_ended_sessions_are_401_however_often_they_ask(self, service: Service) -> None:
        client = service.client()
        client.cookies.set("hugeplan_session", "ended")
        assert {(await client.get("/api/v1/nodes")).status_code for _ in range(30)} == {401}

    async def test_one_token_is_limited(self, settings: Settings, service: Service) -> None:
        token, other = await service.token(Role.VIEWER), await service.token(Role.VIEWER)
        app = create_app(settings.model_copy(update={"requests_per_minute": 3}))
        limited = Service(app)
        client = limited.client(token)
        statuses = [(await client.get("/api/v1/nodes")).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert (await limited.client(other).get("/api/v1/nodes")).status_code == 200
        await app.state.database.dispose()


class TestBootstrap:
    async def test_first_admin_is_made_once(self, service: Service) -> None:
        kept: list[str] = []
        assert await bootstrap.create_first_admin(service.database, kept.append)
        assert not await bootstrap.create_first_admin(service.database, kept.append)
        (secret,) = kept
        assert (await service.client(secret).get("/api/v1/tokens")).status_code == 200

    async def test_enrolment_token_of_the_settings_is_registered_once(
        self, settings: Settings, service: Service
    ) -> None:
        secret = "enrol-" + "x" * 40
        configured = Settings.model_validate(
            settings.model_dump() | {"bootstrap_enrolment_token": secret, "database_url": settings.database_url}
        )
        for _ in range(2):
            await bootstrap.register_enrolment_token(service.database, configured)
        body = {"machine_id": MACHINE_ID, "node_name": "db-7"}
        assert (await service.client(secret).post("/api/v1/enrolments", json=body)).status_code == 201
        other = "enrol-" + "y" * 40
        changed = configured.model_copy(update={"bootstrap_enrolment_token": SecretStr(other)})
        await bootstrap.register_enrolment_token(service.database, changed)
        # A replica that still has the former one starts.
        await bootstrap.register_enrolment_token(service.database, configured)
        answers = [
            await service.client(each).post("/api/v1/enrolments", json=body | {"machine_id": "f" * 32})
            for each in (secret, other)
        ]
        assert [answer.status_code for answer in answers] == [401, 201]
