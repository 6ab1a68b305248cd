"""How long a credential lives: nobody makes a longer one out of a shorter one, and streams end with theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
import pytest
from sqlalchemy import Select, select, text
from sqlalchemy.dialects import postgresql
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem, fields_of

from hugeplan.access import dependencies, logins
from hugeplan.access.enrolment_repository import count_in_force
from hugeplan.access.logins import BROWSER_ROLES, SESSIONS_PER_TOKEN
from hugeplan.access.schemas import Role
from hugeplan.access.service import Actor
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.db.models import Token
from hugeplan.errors import ForbiddenError, NotFoundError
from hugeplan.main import create_app
from hugeplan.settings import Settings


async def browser(service: Service, token: str) -> httpx.AsyncClient:
    client = service.client()
    opened = await client.post("/api/v1/session", json={"token": token})
    assert opened.status_code == 201
    client.headers["X-CSRF-Token"] = opened.json()["csrf_token"]
    return client


async def age_sessions(service: Service, minutes: int) -> None:
    """As if everybody had logged in so long ago."""
    async with service.database.write() as session:
        older = f"logged_in_at - interval '{minutes} minutes'"
        await session.execute(text(f"UPDATE browser_sessions SET logged_in_at = {older}"))


def ends(answer: httpx.Response) -> datetime | None:
    assert answer.status_code == 201, answer.text
    at = answer.json()["expires_at"]
    return None if at is None else datetime.fromisoformat(at)


ENDLESS = {"name": "x", "role": "admin"}
WAYS = ("tokens", "own rotation", "rotation of another")
LASTING = [{"name": "x", "role": role, "expires_in_seconds": 60} for role in ("enrolment", "agent")]


async def make(client: httpx.AsyncClient, way: str, other: str) -> httpx.Response:
    if way == "own rotation":
        return await client.post("/api/v1/token/rotate", json={})
    if way == "rotation of another":
        return await client.post(f"/api/v1/tokens/{other}/rotate", json={})
    return await client.post("/api/v1/tokens", json=ENDLESS)


@pytest.mark.parametrize("way", WAYS)
async def test_an_old_session_makes_no_endless_token(service: Service, admin: httpx.AsyncClient, way: str) -> None:
    other = (await admin.post("/api/v1/tokens", json=ENDLESS)).json()["id"]
    client = await browser(service, await service.token(Role.ADMIN))
    assert ends(await make(client, "tokens", other)) is None  # just logged in
    await age_sessions(service, 16)
    problem = assert_problem(await make(client, way, other), 403, "forbidden")
    assert fields_of(problem) == ["expires_in_seconds"]
    assert "log in again" in problem["detail"]
    short = await client.post("/api/v1/tokens", json=ENDLESS | {"expires_in_seconds": 3600})
    assert short.status_code == 201


async def test_nor_does_an_old_session_or_a_short_token_enrol(service: Service) -> None:
    """An agent's token has no end, so neither does it approve an enrolment."""
    body = {"machine_id": "a" * 32, "node_name": "n"}
    client = await browser(service, await service.token(Role.ADMIN))
    assert ends(await client.post("/api/v1/enrolments", json=body)) is None  # just logged in
    await age_sessions(service, 16)
    for one in (client, await service.client_as_for(Role.ADMIN, timedelta(minutes=2))):
        problem = assert_problem(await one.post("/api/v1/enrolments", json=body), 403, "forbidden")
        assert "log in again" in problem["detail"]
        approval = await one.post("/api/v1/enrolments/approvals", json={"machine_id": "a" * 32})
        assert "log in again" in assert_problem(approval, 403, "forbidden")["detail"]


async def test_who_may_make_no_agents_token_approves_no_request(service: Service) -> None:
    """A minute's token said yes, and the asker got a token without an end long after."""
    enroller, body = await service.client_as(Role.ENROLMENT), {"machine_id": "a" * 32, "node_name": "n"}
    asked = body | {"claim": "c" * 64}
    assert [(await enroller.post("/api/v1/enrolments", json=one)).status_code for one in (body, asked)] == [201, 409]
    short = await service.client_as_for(Role.ADMIN, timedelta(minutes=2))
    (waiting,) = (await short.get("/api/v1/enrolments/requests")).json()["items"]
    path = f"/api/v1/enrolments/requests/{waiting['id']}/decision"
    assert_problem(await short.post(path, json={"decision": "approved"}), 403, "forbidden")
    assert (await short.post(path, json={"decision": "refused"})).status_code == 200
    assert (await enroller.post("/api/v1/enrolments", json=asked)).status_code == 403
    assert (await (await service.client_as(Role.ADMIN)).post(path, json={"decision": "approved"})).status_code == 200
    assert (await enroller.post("/api/v1/enrolments", json=asked)).status_code == 201


@pytest.mark.parametrize("body", LASTING, ids=lambda body: body["role"])
async def test_nor_do_they_make_or_renew_a_short_one_that_makes_endless_ones(
    service: Service, admin: httpx.AsyncClient, body: dict[str, object]
) -> None:
    """What an enrolment token of a minute enrols is good for ever, and an agent's token of a minute renews itself."""
    made = (await admin.post("/api/v1/tokens", json=body)).json()["id"]
    client = await browser(service, await service.token(Role.ADMIN))
    await age_sessions(service, 16)
    for one in (client, await service.client_as_for(Role.ADMIN, timedelta(minutes=2))):
        for answer in (
            await one.post("/api/v1/tokens", json=body),
            await one.post(f"/api/v1/tokens/{made}/rotate", json={}),
        ):
            problem = assert_problem(answer, 403, "forbidden")
            assert fields_of(problem) == ["role"]
            assert "log in again" in problem["detail"]


@pytest.mark.parametrize("way", WAYS)
async def test_nor_through_login_links_of_itself(service: Service, admin: httpx.AsyncClient, way: str) -> None:
    """A link opens a session that is neither fresher nor longer than the one that made it."""
    other = (await admin.post("/api/v1/tokens", json=ENDLESS)).json()["id"]
    client = await browser(service, await service.token(Role.ADMIN))
    await age_sessions(service, 16)
    first_end = (await client.get("/api/v1/session")).json()["expires_at"]
    for _ in range(3):
        link = (await client.post("/api/v1/login-links")).json()["token"]
        client = await browser(service, link)
        assert (await client.get("/api/v1/session")).json()["expires_at"] <= first_end
    assert (await make(client, way, other)).status_code == 403


@pytest.mark.parametrize("way", WAYS)
async def test_a_short_token_makes_no_longer_one(service: Service, admin: httpx.AsyncClient, way: str) -> None:
    other = (await admin.post("/api/v1/tokens", json=ENDLESS)).json()["id"]
    client = await service.client_as_for(Role.ADMIN, timedelta(minutes=2))
    latest = datetime.now(UTC) + timedelta(minutes=2, seconds=5)
    answer = await make(client, way, other)
    if answer.status_code == 201:  # the end of the old one, however often
        for _ in range(3):
            at = ends(answer)
            assert at is not None
            assert at <= latest
            client = service.client(answer.json()["token"])
            answer = await make(client, way, other)
    else:
        assert answer.status_code == 403
    assert (await client.post("/api/v1/tokens", json=ENDLESS)).status_code == 403


async def test_an_agents_token_renews_itself_as_long_as_it_was(service: Service) -> None:
    agent = service.client(await service.token(Role.AGENT, machine_id=MACHINE_ID, expires_in=timedelta(minutes=3)))
    for _ in range(2):
        made = await agent.post("/api/v1/token/rotate", json={})
        at = ends(made)
        assert at is not None
        assert timedelta(minutes=2) < at - datetime.now(UTC) <= timedelta(minutes=3, seconds=5)
        agent = service.client(made.json()["token"])


async def test_an_old_agents_token_renews_itself_for_as_long_again(service: Service) -> None:
    """Not for what is left of it: an agent whose token is nearly over would be lost by renewing it."""
    agent = service.client(await service.token(Role.AGENT, machine_id=MACHINE_ID, expires_in=timedelta(hours=2)))
    async with service.database.write() as session:
        earlier = "created_at - interval '110 minutes', expires_at = expires_at - interval '110 minutes'"
        await session.execute(text(f"UPDATE tokens SET created_at = {earlier} WHERE role = 'agent'"))
    at = ends(await agent.post("/api/v1/token/rotate", json={}))
    assert at is not None
    assert at - datetime.now(UTC) > timedelta(minutes=115)


@pytest.mark.parametrize("maker", ["a bearer token", "a session that just logged in"])
async def test_a_link_of_whoever_is_fresh_opens_a_fresh_session(service: Service, maker: str) -> None:
    token = await service.token(Role.ADMIN)
    client = service.client(token) if maker == "a bearer token" else await browser(service, token)
    opened = await browser(service, (await client.post("/api/v1/login-links")).json()["token"])
    assert ends(await opened.post("/api/v1/tokens", json=ENDLESS)) is None


@pytest.mark.parametrize("role", sorted(BROWSER_ROLES - {Role.ADMIN}))
async def test_a_browser_session_renews_no_token_that_others_may_share(service: Service, role: Role) -> None:
    """Who was let in by a login link does not know the token, and would lock out those who do."""
    token = await service.token(role)
    for client in (await browser(service, token), await browser(service, await link(service, token))):
        problem = assert_problem(await client.post("/api/v1/token/rotate", json={}), 403, "forbidden")
        assert "Authorization" in problem["detail"]
    assert (await service.client(token).get("/api/v1/session")).json()["expires_at"] is None
    assert ends(await service.client(token).post("/api/v1/token/rotate", json={})) is None


async def link(service: Service, token: str) -> str:
    answer = await service.client(token).post("/api/v1/login-links")
    return str(answer.json()["token"])


async def test_a_gone_token_is_not_rotated(admin: httpx.AsyncClient) -> None:
    made = (await admin.post("/api/v1/tokens", json=ENDLESS)).json()["id"]
    await admin.delete(f"/api/v1/tokens/{made}")
    for gone in (made, str(uuid4())):
        assert_problem(await admin.post(f"/api/v1/tokens/{gone}/rotate", json={}), 404, "not-found")


@pytest.mark.parametrize("role", [Role.AGENT, Role.ENROLMENT])
async def test_a_machines_token_has_no_login_link(service: Service, role: Role) -> None:
    """Neither asked for by itself nor made on the server."""
    await service.client_as(role)
    async with service.database.write() as session:
        (token_id,) = (await session.scalars(select(Token.id).where(Token.role == role.value))).all()
        with pytest.raises(ForbiddenError, match=f"role {role.value} cannot log in"):
            await logins.link_of(session, token_id)
        asking = Actor(token_id, "x", role, machine_id=None, expires_at=None, line_id=token_id)
        with pytest.raises(ForbiddenError, match=f"role {role.value} cannot log in"):
            await logins.link_for(session, asking, logins.LoginLimit(RateLimiter(), "127.0.0.1", 5))
        with pytest.raises(NotFoundError):
            await logins.link_of(session, uuid4())


async def test_a_session_of_a_short_token_ends_with_it(service: Service) -> None:
    async with service.database.read() as session:
        now = await session.scalar(text("SELECT now()"))
    assert now is not None
    token = await service.token(Role.ADMIN, expires_in=timedelta(minutes=5))
    client = await browser(service, token)
    assert datetime.fromisoformat((await client.get("/api/v1/session")).json()["expires_at"]) <= now + timedelta(
        minutes=6
    )
    assert (await client.post("/api/v1/tokens", json=ENDLESS)).status_code == 403


async def test_logins_of_one_token_are_limited(service: Service, settings: Settings) -> None:
    token = await service.token(Role.VIEWER)
    for _ in range(3 * settings.logins_per_minute):
        answer = await service.client().post("/api/v1/session", json={"token": token})
        assert answer.status_code == 201
    assert_problem(await service.client().post("/api/v1/session", json={"token": token}), 429, "rate-limited")
    other = await service.token(Role.VIEWER)
    assert (await service.client().post("/api/v1/session", json={"token": other})).status_code == 201
    bearer = service.client(token)
    assert (await bearer.post("/api/v1/login-links")).status_code == 429


async def test_one_token_keeps_so_many_sessions(service: Service) -> None:
    token = await service.token(Role.VIEWER)
    async with service.database.write() as session:
        many = (
            "INSERT INTO browser_sessions (id, secret_sha256, token_id, created_at, expires_at)"
            " SELECT gen_random_uuid(), sha256(int4send(n)), t.id, now() - interval '1 hour', now() + interval '1 day'"
            " FROM generate_series(1, 300) n, tokens t"
        )
        await session.execute(text(many))
    assert (await service.client().post("/api/v1/session", json={"token": token})).status_code == 201
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM browser_sessions")) == SESSIONS_PER_TOKEN
        assert await session.scalar(text("SELECT count(*) FROM browser_sessions WHERE logged_in_at IS NOT NULL")) == 1


async def test_counting_machines_in_force_reads_no_token_that_has_ended(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that there ever were cost each enrolment 0.13 s beside 189,000."""
    async with service.database.write() as session:
        many = """INSERT INTO tokens (id, name, role, secret_sha256, created_at, revoked_at, line_id)
            SELECT g, 'n', 'agent', sha256(g::text::bytea), now(), CASE WHEN i > 5 THEN now() END, g
            FROM (SELECT gen_random_uuid() g, i FROM generate_series(1, 20000) i) q"""
        await session.execute(text(many))
        await session.execute(text("ANALYZE tokens"))
        execute, plans = session.execute, list[str]()

        async def explained(statement: Select[tuple[int]]) -> object:
            spelled = statement.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})
            plans.extend((await execute(text(f"EXPLAIN {spelled}"))).scalars())
            return await execute(statement)

        monkeypatch.setattr(session, "execute", explained)
        assert await count_in_force(session, datetime.now(UTC) - timedelta(days=1)) >= 5
    assert "ix_tokens_in_force" in " ".join(plans)


@pytest.fixture
async def strict(settings: Settings) -> AsyncIterator[Service]:
    """Another application over the same database: streams last, ten changes a minute and three machines are many."""
    changed = {"event_stream_seconds": 60.0, "changes_per_minute": 10, "most_machines": 3}
    app = create_app(settings.model_copy(update=changed))
    app.state.rate_limiter = RateLimiter(lambda: 0.0)
    running = Service(app)
    yield running
    for client in running.clients:
        await client.aclose()
    await running.database.dispose()


@pytest.mark.parametrize("how", ["revoked", "logged out"])
async def test_a_stream_ends_with_its_credential(
    service: Service, strict: Service, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(dependencies, "STREAM_CHECK_SECONDS", 0.05)
    token = await service.token(Role.VIEWER)
    watcher = strict.client(token) if how == "revoked" else await browser(strict, token)

    async def listen() -> str:
        return (await watcher.get("/api/v1/events?after=0")).text

    listening = asyncio.create_task(listen())
    # It goes on through several checks while its credential is good.
    assert await asyncio.wait({listening}, timeout=0.4) == (set(), {listening})
    if how == "revoked":
        (found,) = (t for t in (await admin.get("/api/v1/tokens")).json()["items"] if t["role"] == "viewer")
        assert (await admin.delete(f"/api/v1/tokens/{found['id']}")).is_success
    else:
        async with service.database.write() as session:
            await session.execute(text("DELETE FROM browser_sessions"))
    async with asyncio.timeout(5):
        assert "listening" in await listening


async def test_changes_of_one_credential_are_limited_and_none_is_lost(service: Service, strict: Service) -> None:
    """A flood of changes ends with 429, before anything happens: each change that happened has its line."""
    planner = strict.client(await service.token(Role.PLANNER))
    lines = text("SELECT count(*) FROM audit_events WHERE action = 'scenarios_create' AND actor_name = 'test planner'")
    async with service.database.read() as session:
        before = await session.scalar(lines)
    scenario = {"name": "s", "scenario": {"node": {"name": "n", "memory": "8GiB"}}}
    answers = [(await planner.post("/api/v1/scenarios", json=scenario)).status_code for _ in range(40)]
    made = 10
    assert answers == [201] * made + [429] * 30
    async with service.database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM scenarios")) == made
        assert await session.scalar(lines) == (before or 0) + made
    assert (await planner.get("/api/v1/scenarios")).status_code == 200
    preview = {"scenario": scenario["scenario"]}
    assert (await planner.post("/api/v1/plans/preview", json=preview)).status_code == 200
    agent = strict.client(await service.token(Role.AGENT))
    statuses = {(await agent.post("/api/v1/reports", json={})).status_code for _ in range(15)}
    assert statuses == {422}


async def test_an_enrolment_token_makes_so_many_machines_and_lines_of_the_audit_log(
    service: Service, strict: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """Who reads it on one node could make any number up. Those that are known go on, and an administrator's come."""
    holder = strict.client(await service.token(Role.ENROLMENT))
    bodies = [{"machine_id": f"{n:032x}", "node_name": f"db-{n}", "claim": f"{n:064x}"} for n in range(9)]
    answers = [await holder.post("/api/v1/enrolments", json=body) for body in bodies[:5]]
    assert [answer.status_code for answer in answers] == [201] * 3 + [409] * 2
    problem = assert_problem(answers[-1], 409, "conflict")
    assert fields_of(problem) == ["machine_id"]
    assert "HUGEPLAN_MOST_MACHINES" in problem["detail"]
    assert sum("HUGEPLAN_MOST_MACHINES" in record.message for record in caplog.records) == 1
    boss = strict.client(await service.token(Role.ADMIN))
    assert (await boss.post("/api/v1/enrolments", json=bodies[5])).status_code == 201
    async with service.database.write() as session:
        long_ago = "created_at = created_at - interval '31 days', last_used_at = {}"
        for name, used in (("db-0", "NULL"), ("db-1", "created_at - interval '31 days'"), ("db-2", "now()")):
            values = {"name": name}
            await session.execute(text(f"UPDATE tokens SET {long_ago.format(used)} WHERE name = :name"), values)
    answers = [await holder.post("/api/v1/enrolments", json=body) for body in bodies[6:8]]
    assert [answer.status_code for answer in answers] == [201, 409]  # the used one, the administrator's and this
    answers = [await holder.post("/api/v1/enrolments", json=bodies[0]) for _ in range(8)]
    assert [answer.status_code for answer in answers] == [201] * 6 + [429] * 2


async def test_an_enrolment_token_renews_itself_never_and_its_successor_has_what_is_left(
    service: Service, admin: httpx.AsyncClient
) -> None:
    limits = {"max_enrolments": 2, "name_pattern": "db-*"}
    made = (await admin.post("/api/v1/tokens", json={"name": "e", "role": "enrolment", "limits": limits})).json()
    holder = service.client(made["token"])
    first = {"machine_id": f"{1:032x}", "node_name": "db-1"}
    assert (await holder.post("/api/v1/enrolments", json=first)).status_code == 201
    assert_problem(await holder.post("/api/v1/token/rotate", json={"overlap_seconds": 0}), 403, "forbidden")
    rotated = await admin.post(f"/api/v1/tokens/{made['id']}/rotate", json={"overlap_seconds": 3600})
    assert rotated.status_code == 201, rotated.text
    second, third = ({"machine_id": f"{n:032x}", "node_name": f"db-{n}"} for n in (2, 3))
    assert (await holder.post("/api/v1/enrolments", json=second)).status_code == 401  # else both would enrol the rest
    other = service.client(rotated.json()["token"])
    assert_problem(await other.post("/api/v1/enrolments", json=second | {"node_name": "evil"}), 403, "forbidden")
    assert (await other.post("/api/v1/enrolments", json=second)).status_code == 201
    assert_problem(await other.post("/api/v1/enrolments", json=third), 403, "forbidden")


async def test_what_a_token_may_goes_over_to_its_successor(service: Service, admin: httpx.AsyncClient) -> None:
    """Each column of a token is of one kind or the other, so that a new one is thought of."""
    own = {"id", "secret_sha256", "created_at", "expires_at", "revoked_at", "last_used_at", "replaces", "oidc_subject"}
    values = {
        "name": "a", "role": "enrolment", "machine_id": None, "enrolments": 3, "max_enrolments": 5,
        "name_pattern": "db-*", "claim_sha256": b"c" * 32, "line_id": uuid4(),
    }  # fmt: skip
    assert own | values.keys() == {column.name for column in Token.__table__.columns}
    old = Token(id=uuid4(), secret_sha256=b"s" * 32, created_at=datetime.now(UTC), **values)
    async with service.database.write() as session:
        session.add(old)
    made = (await admin.post(f"/api/v1/tokens/{old.id}/rotate", json={"overlap_seconds": 0})).json()
    async with service.database.read() as session:
        new = await session.get_one(Token, UUID(made["id"]))
        assert {name: getattr(new, name) for name in values} == values


@pytest.mark.parametrize("is_in_use", [True, False])
async def test_a_secret_that_was_replaced_proves_a_machine_until_its_successor_is_used(
    service: Service, admin: httpx.AsyncClient, is_in_use: bool
) -> None:
    """An answer to a renewal may be lost: then the former secret is all that the machine has."""
    enrolment = (await admin.post("/api/v1/tokens", json={"name": "e", "role": "enrolment"})).json()["token"]
    enroller, machine = service.client(enrolment), {"machine_id": "c" * 32, "node_name": "db-9"}
    made = (await enroller.post("/api/v1/enrolments", json=machine)).json()
    new = (await admin.post(f"/api/v1/tokens/{made['id']}/rotate", json={"overlap_seconds": 0})).json()
    if is_in_use:
        sent = await service.client(new["token"]).post("/api/v1/reports", json=report(machine_id="c" * 32))
        assert sent.status_code == 201, sent.text
    again = await enroller.post("/api/v1/enrolments", json=machine | {"current_token": made["token"]})
    assert again.status_code == (409 if is_in_use else 201), again.text
