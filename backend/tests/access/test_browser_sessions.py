"""Login links, sessions, rotation, and the audit log."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem

from hugeplan.access import logins
from hugeplan.access.schemas import Role
from hugeplan.db.maintenance import maintain
from hugeplan.settings import Settings


async def browser(service: Service, token: str) -> httpx.AsyncClient:
    """A client that is logged in."""
    client = service.client()
    answer = await client.post("/api/v1/session", json={"token": token}, headers={"User-Agent": "Test/1"})
    assert answer.status_code == 201
    client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return client


class TestLoginLinks:
    async def test_works_once(self, service: Service, planner: httpx.AsyncClient) -> None:
        link = (await planner.post("/api/v1/login-links")).json()
        client = await browser(service, link["token"])
        assert (await client.get("/api/v1/session")).json()["role"] == "planner"
        again = await service.client().post("/api/v1/session", json={"token": link["token"]})
        assert_problem(again, 401, "unauthenticated")

    async def test_is_short_lived(self, service: Service, planner: httpx.AsyncClient) -> None:
        link = (await planner.post("/api/v1/login-links")).json()
        left = datetime.fromisoformat(link["expires_at"]) - datetime.now(UTC)
        assert timedelta(0) < left <= timedelta(seconds=logins.LOGIN_LINK_SECONDS)
        async with service.database.write() as session:
            await session.execute(text("UPDATE login_links SET expires_at = now()"))
        answer = await service.client().post("/api/v1/session", json={"token": link["token"]})
        assert_problem(answer, 401, "unauthenticated")

    async def test_is_no_bearer_token(self, service: Service, admin: httpx.AsyncClient) -> None:
        link = (await admin.post("/api/v1/login-links")).json()
        assert_problem(await service.client(link["token"]).get("/api/v1/nodes"), 401, "unauthenticated")

    async def test_ends_with_its_token(self, service: Service, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "v", "role": "viewer"})).json()
        link = (await service.client(made["token"]).post("/api/v1/login-links")).json()
        await admin.delete(f"/api/v1/tokens/{made['id']}")
        answer = await service.client().post("/api/v1/session", json={"token": link["token"]})
        assert_problem(answer, 401, "unauthenticated")


class TestSessions:
    async def test_are_listed_and_ended(self, service: Service, admin: httpx.AsyncClient) -> None:
        viewing = await browser(service, await service.token(Role.VIEWER))
        planning = await browser(service, await service.token(Role.PLANNER))
        (own,) = (await viewing.get("/api/v1/sessions")).json()["items"]
        assert (own["is_current"], own["user_agent"], own["role"]) == (True, "Test/1", "viewer")
        everybody = (await admin.get("/api/v1/sessions")).json()["items"]
        assert {item["role"] for item in everybody} == {"viewer", "planner"}
        # A viewer ends nobody else's.
        other = next(item["id"] for item in everybody if item["role"] == "planner")
        assert_problem(await viewing.delete(f"/api/v1/sessions/{other}"), 404, "not-found")
        assert (await admin.delete(f"/api/v1/sessions/{other}")).status_code == 204
        assert_problem(await planning.get("/api/v1/nodes"), 401, "unauthenticated")
        assert (await viewing.delete(f"/api/v1/sessions/{own['id']}")).status_code == 204
        assert_problem(await viewing.get("/api/v1/nodes"), 401, "unauthenticated")


class TestRotation:
    async def test_leaves_no_gap(self, service: Service, agent: httpx.AsyncClient) -> None:
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
        made = (await agent.post("/api/v1/token/rotate", json={"overlap_seconds": 600})).json()
        assert (made["role"], made["machine_id"]) == ("agent", MACHINE_ID)
        for client in (agent, service.client(made["token"])):
            assert (await client.post("/api/v1/reports", json=report())).status_code == 201

    async def test_ends_the_old_one_after_the_overlap(self, service: Service, admin: httpx.AsyncClient) -> None:
        old = await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer", "expires_in_seconds": 9000})
        path = f"/api/v1/tokens/{old.json()['id']}/rotate"
        made = (await admin.post(path, json={"overlap_seconds": 0})).json()
        assert made["replaces"] == old.json()["id"]
        assert made["expires_at"] is not None
        assert_problem(await service.client(old.json()["token"]).get("/api/v1/nodes"), 401, "unauthenticated")
        assert (await service.client(made["token"]).get("/api/v1/nodes")).status_code == 200

    async def test_never_lengthens_the_old_one(self, admin: httpx.AsyncClient) -> None:
        old = (
            await admin.post("/api/v1/tokens", json={"name": "x", "role": "viewer", "expires_in_seconds": 60})
        ).json()
        await admin.post(f"/api/v1/tokens/{old['id']}/rotate", json={"overlap_seconds": 86400})
        listed = (await admin.get("/api/v1/tokens")).json()["items"]
        assert next(t for t in listed if t["id"] == old["id"])["expires_at"] == old["expires_at"]

    async def test_old_tokens_are_removed_by_maintenance(
        self, settings: Settings, service: Service, admin: httpx.AsyncClient
    ) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "gone", "role": "viewer"})).json()
        # The token ages, not the clock: a round with a clock far ahead deletes nothing where other rows are new.
        for days, is_there in ((settings.token_retention_days - 1, True), (settings.token_retention_days + 1, False)):
            ended = {"at": datetime.now(UTC) - timedelta(days=days), "id": made["id"]}
            async with service.database.write() as session:
                await session.execute(text("UPDATE tokens SET expires_at = :at WHERE id = :id"), ended)
            assert await maintain(service.database, settings, datetime.now(UTC)) is None
            listed = (await admin.get("/api/v1/tokens", params={"include_revoked": True})).json()["items"]
            assert (made["id"] in {token["id"] for token in listed}) is is_there


class TestAudit:
    async def test_every_change_is_written_with_who_and_where(self, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})).json()
        await admin.delete(f"/api/v1/tokens/{made['id']}")
        events = (await admin.get("/api/v1/audit", params={"subject": made["id"]})).json()["items"]
        assert [event["action"] for event in events] == ["tokens_revoke", "tokens_create"]
        for event in events:
            assert (event["actor_name"], event["actor_role"]) == ("test admin", "admin")
            assert event["address"] == "127.0.0.1"
        assert events[1]["detail"] == {"name": "ci", "role": "viewer", "machine_id": None}

    async def test_changes_of_every_room_are_written(
        self, planner: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        body = {"name": "s", "scenario": {"schema_version": 1, "node": {"memory": "8GiB"}}}
        answer = await planner.post("/api/v1/scenarios", json=body)
        assert answer.status_code == 201, answer.text
        await planner.delete(f"/api/v1/scenarios/{answer.json()['id']}", headers={"If-Match": answer.headers["etag"]})
        events = (await admin.get("/api/v1/audit", params={"actor": "test planner", "limit": 2})).json()["items"]
        assert [event["action"] for event in events] == ["scenarios_delete", "scenarios_create"]

    async def test_what_fails_and_what_changes_nothing_is_not_written(
        self, service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        before = (await admin.get("/api/v1/audit", params={"limit": 1})).json()["items"]
        await admin.post("/api/v1/tokens", json={"name": "x", "role": "king"})
        await admin.delete("/api/v1/tokens/00000000-0000-0000-0000-000000000000")
        await agent.post("/api/v1/reports", json=report())
        await service.client().post("/api/v1/session", json={"token": "wrong"})
        assert (await admin.get("/api/v1/audit", params={"limit": 1})).json()["items"] == before

    @pytest.mark.parametrize(
        "statement", ["UPDATE audit_events SET actor_name = 'x'", "DELETE FROM audit_events", "TRUNCATE audit_events"]
    )
    async def test_the_log_is_append_only(self, service: Service, admin: httpx.AsyncClient, statement: str) -> None:
        await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})
        with pytest.raises(DBAPIError, match="append-only"):
            async with service.database.write() as session:
                await session.execute(text(statement))

    async def test_csv_has_what_the_list_has_and_no_formula(self, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "=1+1", "role": "viewer"})).json()
        answer = await admin.get("/api/v1/audit.csv", params={"subject": made["id"]})
        assert answer.headers["content-type"].startswith("text/csv")
        (row,) = csv.DictReader(io.StringIO(answer.text))
        assert (row["action"], row["actor_name"]) == ("tokens_create", "test admin")
        assert not row["detail"].startswith("=")

    async def test_pages_lose_nothing(self, admin: httpx.AsyncClient) -> None:
        for number in range(5):
            await admin.post("/api/v1/tokens", json={"name": f"t{number}", "role": "viewer"})
        seen: list[int] = []
        cursor = None
        while len(seen) < 5:
            params = {"limit": 2, "action": "tokens_create"} | ({"cursor": cursor} if cursor else {})
            page = (await admin.get("/api/v1/audit", params=params)).json()
            seen += [event["id"] for event in page["items"]]
            cursor = page["next_cursor"]
        assert seen == sorted(set(seen), reverse=True)

    async def test_no_secret_is_in_the_log(self, service: Service, admin: httpx.AsyncClient) -> None:
        made = (await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"})).json()
        link = (await admin.post("/api/v1/login-links")).json()
        rotated = (await admin.post(f"/api/v1/tokens/{made['id']}/rotate", json={})).json()
        client = await browser(service, link["token"])
        everything = json.dumps((await admin.get("/api/v1/audit", params={"limit": 500})).json())
        for secret in (made["token"], link["token"], rotated["token"], *dict(client.cookies).values()):
            assert secret not in everything
