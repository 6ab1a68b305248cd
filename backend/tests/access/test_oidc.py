"""Logging in with a real OpenID provider, run as a process of its own (the package oidc-provider-mock)."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from support.server import WAIT_SECONDS, free_port
from support.service import BASE_URL, Service, assert_problem

from hugeplan.access import oidc
from hugeplan.access.oidc import person_of
from hugeplan.access.schemas import Role
from hugeplan.errors import ForbiddenError, UnauthenticatedError
from hugeplan.main import create_app
from hugeplan.settings import Settings

LOGIN, CALLBACK = "/api/v1/oidc/login", "/api/v1/oidc/callback"
PEOPLE = {
    "ann": {"email": "ann@example.org", "groups": ["staff", "dba"]},
    "bob": {"email": "bob@example.org", "groups": ["staff"]},
    "eve": {"email": "eve@example.org", "groups": ["visitors"]},
}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A running provider's address."""
    port = free_port()
    people = [word for sub, claims in PEOPLE.items() for word in ("--user-claims", json.dumps({"sub": sub, **claims}))]
    provider = subprocess.Popen(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "oidc_provider_mock",
            "--port",
            str(port),
            "--require-nonce",
            "1",
            *people,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            httpx.get(f"{address}/.well-known/openid-configuration", trust_env=False).raise_for_status()
            break
        except httpx.HTTPError:
            assert provider.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    yield address
    provider.terminate()
    provider.wait()


@pytest.fixture
async def opened(settings: Settings, issuer: str, service: Service) -> AsyncIterator[Service]:
    """The service with the provider configured."""
    chosen: dict[str, Any] = {
        "oidc_issuer": issuer,
        "oidc_client_id": "hugeplan",
        "oidc_client_secret": SecretStr("a secret"),
        "oidc_role_map": {"dba": "planner", "staff": "viewer"},
        "public_url": BASE_URL,
    }
    app = create_app(settings.model_copy(update=chosen))
    yield Service(app)
    await app.state.database.dispose()
    assert service


async def sent(client: httpx.AsyncClient, sub: str) -> dict[str, str]:
    """Log in at the provider as somebody; the query that it sends the browser back with."""
    begun = await client.get(LOGIN)
    assert begun.status_code == 303
    async with httpx.AsyncClient(trust_env=False) as browser:
        agreed = await browser.post(begun.headers["location"], data={"sub": sub})
    back = urlsplit(agreed.headers["location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == BASE_URL + CALLBACK
    return {name: values[0] for name, values in parse_qs(back.query).items()}


async def log_in(opened: Service, sub: str) -> tuple[httpx.AsyncClient, httpx.Response]:
    """A browser that went through a login, and the last answer of it."""
    client = opened.client()
    return client, await client.get(CALLBACK, params=await sent(client, sub))


class TestLogin:
    @pytest.mark.parametrize(("sub", "role"), [("ann", "planner"), ("bob", "viewer")])
    async def test_a_person_has_the_highest_role_of_their_groups(self, opened: Service, sub: str, role: str) -> None:
        client, answer = await log_in(opened, sub)
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"] == "/"
        me = (await client.get("/api/v1/session")).json()
        assert (me["role"], me["name"]) == (role, f"{sub}@example.org")
        assert me["csrf_token"]

    async def test_the_first_logins_of_a_person_at_once_make_one_row(self, service: Service) -> None:
        async def row() -> UUID:
            async with service.database.write() as session:
                return (await oidc.row_of(session, oidc.Person("issuer sub", "n", Role.VIEWER))).id

        assert len(set(await asyncio.gather(*(row() for _ in range(8))))) == 1

    async def test_those_that_begin_at_once_leave_connections_to_others(
        self, opened: Service, service: Service
    ) -> None:
        viewer, stranger = opened.client(await service.token(Role.VIEWER)), opened.client()
        async with service.database.write() as session:
            await session.execute(text("LOCK TABLE oidc_logins IN EXCLUSIVE MODE"))
            begun = asyncio.gather(*(stranger.get(LOGIN) for _ in range(40)))
            await asyncio.sleep(0.5)
            assert (await asyncio.wait_for(viewer.get("/api/v1/nodes"), 3)).status_code == 200
        assert {one.status_code for one in await begun} == {303}

    async def test_a_login_lasts_half_a_day(self, opened: Service) -> None:
        """Whoever is removed at the provider is asked for there again; a login with a token lasts two weeks."""
        client, _ = await log_in(opened, "ann")
        ends_at = datetime.fromisoformat((await client.get("/api/v1/session")).json()["expires_at"])
        assert timedelta(hours=11) < ends_at - datetime.now(UTC) < timedelta(hours=13)

    async def test_a_person_without_a_role_is_403(self, opened: Service) -> None:
        client, answer = await log_in(opened, "eve")
        assert_problem(answer, 403, "forbidden")
        assert_problem(await client.get("/api/v1/session"), 401, "unauthenticated")

    async def test_a_browser_reads_why_it_is_refused(self, opened: Service) -> None:
        client = opened.client()
        query = await sent(client, "eve")
        answer = await client.get(CALLBACK, params=query, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (answer.status_code, answer.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert "none of your groups has a role here" in answer.text
        assert 'href="/login"' in answer.text
        wrong = await client.get(f"{CALLBACK}?state=%3Cb%3E&code=", headers={"Accept": "text/html"})
        assert wrong.status_code == 422
        assert "<b>" not in wrong.text
        assert_problem(await client.get("/api/v1/nodes", headers={"Accept": "text/html"}), 401, "unauthenticated")

    async def test_who_does_not_agree_is_not_confirmed(self, opened: Service) -> None:
        client = opened.client()
        state = (await sent(client, "ann"))["state"]
        refused = await client.get(CALLBACK, params={"error": "access_denied", "state": state})
        assert "did not confirm" in assert_problem(refused, 401, "unauthenticated")["detail"]
        again = await client.get(CALLBACK, params={"error": "access_denied", "state": state})
        assert "used already" in assert_problem(again, 401, "unauthenticated")["detail"]

    async def test_groups_may_be_told_by_user_info_alone(
        self, opened: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """OpenID Connect Core 1.0, 5.4: beside an access token, the claims of a scope are UserInfo's."""
        provider = opened.app.state.oidc
        of_token, ask = provider._claims, provider._request

        async def short(*arguments: Any) -> dict[str, Any]:
            found: dict[str, Any] = await of_token(*arguments)
            return {name: value for name, value in found.items() if name not in {"groups", "email"}}

        monkeypatch.setattr(provider, "_claims", short)
        client, answer = await log_in(opened, "ann")
        assert answer.status_code == 303, answer.text
        session = (await client.get("/api/v1/session")).json()
        assert (session["name"], session["role"]) == ("ann@example.org", "planner")

        async def of_another(method: str, url: str, **rest: Any) -> dict[str, Any]:
            found: dict[str, Any] = await ask(method, url, **rest)
            return found | {"sub": "bob"} if url.endswith("/userinfo") else found

        monkeypatch.setattr(provider, "_request", of_another)
        assert_problem((await log_in(opened, "ann"))[1], 401, "unauthenticated")

    async def test_a_new_login_takes_the_role_of_now(self, opened: Service) -> None:
        await log_in(opened, "ann")
        opened.app.state.oidc._settings = opened.app.state.settings.model_copy(
            update={"oidc_role_map": {"dba": "admin"}}
        )
        client, _ = await log_in(opened, "ann")
        assert (await client.get("/api/v1/session")).json()["role"] == "admin"
        people = [t for t in (await client.get("/api/v1/tokens")).json()["items"] if t["name"] == "ann@example.org"]
        assert len(people) == 1

    async def test_revoking_a_person_ends_and_bars_them(self, opened: Service) -> None:
        client, _ = await log_in(opened, "bob")
        admin = await opened.client_as(Role.ADMIN)
        (row,) = [t for t in (await admin.get("/api/v1/tokens")).json()["items"] if t["name"] == "bob@example.org"]
        await admin.delete(f"/api/v1/tokens/{row['id']}")
        assert_problem(await client.get("/api/v1/nodes"), 401, "unauthenticated")
        _, answer = await log_in(opened, "bob")
        assert_problem(answer, 403, "forbidden")

    async def test_is_in_the_audit_log(self, opened: Service) -> None:
        await log_in(opened, "ann")
        admin = await opened.client_as(Role.ADMIN)
        (event,) = (await admin.get("/api/v1/audit", params={"action": "oidc_login", "limit": 1})).json()["items"]
        assert (event["actor_name"], event["actor_role"]) == ("ann@example.org", "planner")


class TestForgery:
    async def test_a_callback_of_another_browser_is_refused(self, opened: Service) -> None:
        thief = opened.client()
        query = await sent(opened.client(), "ann")
        assert_problem(await thief.get(CALLBACK, params=query), 401, "unauthenticated")

    async def test_a_callback_works_once(self, opened: Service) -> None:
        client = opened.client()
        query = await sent(client, "ann")
        state = dict(client.cookies)["hugeplan_oidc"]
        assert (await client.get(CALLBACK, params=query)).status_code == 303
        again = await opened.client().get(CALLBACK, params=query, headers={"Cookie": f"hugeplan_oidc={state}"})
        assert_problem(again, 401, "unauthenticated")

    async def test_a_forged_code_is_refused(self, opened: Service) -> None:
        client = opened.client()
        query = await sent(client, "ann")
        answer = await client.get(CALLBACK, params=query | {"code": "forged"})
        assert_problem(answer, 401, "unauthenticated")

    async def test_a_token_for_another_login_is_refused(self, opened: Service) -> None:
        # The code of one login in the place of another's: its nonce and its verifier are others.
        stolen = await sent(opened.client(), "ann")
        client = opened.client()
        own = await sent(client, "bob")
        assert_problem(await client.get(CALLBACK, params=own | {"code": stolen["code"]}), 401, "unauthenticated")


class TestProviderAtFault:
    async def test_no_database_connection_waits_for_the_provider(
        self, opened: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Callbacks need no credential: those of one login would otherwise keep the pool from everybody else.
        client = opened.client()
        query = await sent(client, "ann")
        provider, pool = opened.app.state.oidc, opened.app.state.database.engine.pool
        ask, in_use = provider._request, []

        async def watched(*arguments: Any, **keywords: Any) -> dict[str, Any]:
            in_use.append(pool.checkedout())
            found: dict[str, Any] = await ask(*arguments, **keywords)
            return found

        monkeypatch.setattr(provider, "_request", watched)
        provider._until = 0.0  # metadata, token and keys are all asked for
        answer = await client.get(CALLBACK, params=query)
        assert answer.status_code == 303, answer.text
        assert in_use == [0, 0, 0]

    async def test_a_callback_that_fails_uses_its_login_up(self, opened: Service) -> None:
        client = opened.client()
        query = await sent(client, "ann")
        assert_problem(await client.get(CALLBACK, params=query | {"code": "forged"}), 401, "unauthenticated")
        again = await client.get(CALLBACK, params=query)
        assert_problem(again, 401, "unauthenticated")
        assert "used already" in again.json()["detail"]

    @pytest.mark.parametrize("missing", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
    async def test_metadata_without_an_address_is_503_and_not_kept(
        self, opened: Service, issuer: str, missing: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client, provider = opened.client(), opened.app.state.oidc
        whole = {"issuer": issuer, "authorization_endpoint": issuer, "token_endpoint": issuer, "jwks_uri": issuer}
        for wrong in ({k: v for k, v in whole.items() if k != missing}, whole | {missing: None}):

            async def answered(*_: Any, found: dict[str, Any] = wrong) -> dict[str, Any]:
                return found

            with monkeypatch.context() as patched:
                patched.setattr(provider, "_request", answered)
                assert_problem(await client.get(LOGIN), 503, "unavailable")
        assert (await client.get(LOGIN)).status_code == 303

    @pytest.mark.parametrize("groups", [True, 7, {"dba": 1}, ["other", ["dba"]], None])
    def test_groups_that_are_no_list_of_texts_give_no_role(self, settings: Settings, groups: object) -> None:
        chosen = settings.model_copy(update={"oidc_issuer": "http://x", "oidc_role_map": {"dba": "planner"}})
        with pytest.raises(ForbiddenError):
            person_of({"sub": "ann", "groups": groups}, chosen)

    @pytest.mark.parametrize("sub", ["a\0b", "\ud800", "a\nb", "a" * 256, 7, None])
    def test_a_subject_that_postgresql_cannot_hold_is_a_login_refused(self, settings: Settings, sub: object) -> None:
        chosen = settings.model_copy(update={"oidc_issuer": "http://x", "oidc_role_map": {"dba": "planner"}})
        with pytest.raises(UnauthenticatedError, match="sub: a text"):
            person_of({"sub": sub, "groups": "dba", "email": "e"}, chosen)
        name = person_of({"sub": "s", "groups": "dba", "email": "\ud800\0" * 200}, chosen).name
        assert "\0" not in name.encode().decode()
        assert len(name) <= 253

    @pytest.mark.parametrize("packed", [False, True])
    async def test_an_answer_without_end_is_503(
        self, settings: Settings, packed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(oidc, "ANSWER_SECONDS", 1.0)
        sent_bytes = 0

        async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent_bytes
            with suppress(ConnectionError):
                writer.write(b"HTTP/1.1 200 OK\r\n" + b"Content-Encoding: gzip\r\n" * packed + b"\r\n")
                pieces = gzip.compress(b" " * (1 << 24)) if packed else b" " * 1024
                while not writer.is_closing():
                    writer.write(pieces)
                    await writer.drain()
                    sent_bytes += len(pieces)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

        async with await asyncio.start_server(endless, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            chosen = {"oidc_issuer": f"http://127.0.0.1:{port}", "oidc_client_id": "hugeplan"}
            app = create_app(settings.model_copy(update=chosen))
            assert_problem(await Service(app).client().get(LOGIN), 503, "unavailable")
            await app.state.database.dispose()
        assert sent_bytes < 64 * oidc.MAX_ANSWER_BYTES  # what the kernel holds is sent, too


class TestWithoutProvider:
    async def test_says_so(self, service: Service) -> None:
        client = service.client()
        assert (await client.get("/api/v1/login-methods")).json() == {"oidc_url": None}
        assert_problem(await client.get(LOGIN), 404, "not-found")

    async def test_that_is_away_is_503(self, settings: Settings) -> None:
        chosen = {"oidc_issuer": f"http://127.0.0.1:{free_port()}", "oidc_client_id": "hugeplan"}
        app = create_app(settings.model_copy(update=chosen))
        client = Service(app).client()
        assert (await client.get("/api/v1/login-methods")).json() == {"oidc_url": LOGIN}
        assert_problem(await client.get(LOGIN), 503, "unavailable")
        await app.state.database.dispose()
