"""A token and all that came of it by rotation are one line: it has one share of everything, and it ends as one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from door.test_room import Limit, kept, limit
from sqlalchemy import insert, select, text, update
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem

from hugeplan.access import service as access
from hugeplan.access.schemas import Role
from hugeplan.api.bodies_in_flight import AnswersInFlight, BodiesInFlight
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.db.models import AuditEvent, FleetPlanRow, PlanRow, Token
from hugeplan.sandbox.sandbox import Sandbox
from hugeplan.shares import Turns

__all__ = ["limit"]

API = "/api/v1"


async def rotated(service: Service, client: httpx.AsyncClient, **body: int) -> httpx.AsyncClient:
    """A client with the token that a client's was rotated to."""
    made = await client.post(f"{API}/token/rotate", json=body)
    assert made.status_code == 201, made.text
    return service.client(made.json()["token"])


async def status(client: httpx.AsyncClient) -> int:
    return (await client.get(f"{API}/session")).status_code


async def test_a_machine_that_enrols_again_goes_on_in_its_line(service: Service) -> None:
    """Else its day's bytes of reports would begin anew each time, with the token that it has itself."""
    enroller = await service.client_as(Role.ENROLMENT)
    body = {"machine_id": MACHINE_ID, "node_name": "db-7"}
    first = (await enroller.post(f"{API}/enrolments", json=body)).json()
    again = await enroller.post(f"{API}/enrolments", json=body | {"current_token": first["token"]})
    assert again.status_code == 201, again.text
    other = await enroller.post(f"{API}/enrolments", json=body | {"machine_id": "f" * 32})
    ids = [UUID(one["id"]) for one in (first, again.json(), other.json())]
    async with service.database.read() as session:
        lines = [(await session.get_one(Token, one)).line_id for one in ids]
    assert lines == [ids[0], ids[0], ids[2]]


@pytest.mark.parametrize("role", [Role.PLANNER, Role.AGENT])
async def test_all_that_is_bounded_per_credential_is_counted_for_its_line(
    service: Service, monkeypatch: pytest.MonkeyPatch, role: Role
) -> None:
    """Whatever a bound counts by, no id of a later token is among it: each would have a share of its own."""
    counted: set[tuple[str, str]] = set()

    def spy(owner: type, name: str, whose: Callable[..., Any]) -> None:
        real = getattr(owner, name)

        def noted(*args: Any, **named: Any) -> Any:
            counted.add((f"{owner.__name__}.{name}", str(whose(*args, **named))))
            return real(*args, **named)

        monkeypatch.setattr(owner, name, noted)

    async def not_begun(_: UUID, whose: UUID) -> None:
        counted.add(("FleetPlanRunner.start", str(whose)))

    for owner, name in (
        (AnswersInFlight, "take"),
        (AnswersInFlight, "require_room"),
        (Turns, "turn"),
        (BodiesInFlight, "body"),
    ):
        spy(owner, name, lambda _, whose, *__, **___: whose)
    spy(Sandbox, "work", lambda *_, whose, **__: whose)
    spy(RateLimiter, "spend", lambda _, __, key, ___: key)
    spy(RateLimiter, "spend_bytes", lambda _, key, *__: key)
    first = await service.client_as(role, machine_id=MACHINE_ID if role is Role.AGENT else None)
    client = await rotated(service, first)
    if role is Role.AGENT:
        assert (await client.post(f"{API}/reports", json=report())).status_code == 201
    else:
        monkeypatch.setattr(service.app.state.fleet_plan_runner, "start", not_begun)
        await (await service.client_as(Role.AGENT)).post(f"{API}/reports", json=report())
        assert (await kept(client)).status_code == 201
        assert (await client.post(f"{API}/fleet/plan", json={})).status_code == 202
        assert (await client.post(f"{API}/login-links")).status_code == 201
        token = client.headers["Authorization"].removeprefix("Bearer ")
        assert (await service.client().post(f"{API}/session", json={"token": token})).status_code == 201
    async with service.database.read() as session:
        line, later = (
            await session.scalars(select(Token.id).where(Token.role == role).order_by(Token.created_at))
        ).all()
        authors = [
            *await session.scalars(select(PlanRow.author_id)),
            *await session.scalars(select(FleetPlanRow.author_id)),
        ]
    assert {by for by, whose in counted if whose == str(later)} == set()
    assert {by for by, whose in counted if whose == str(line)} >= {"AnswersInFlight.take", "BodiesInFlight.body"}
    assert authors == ([] if role is Role.AGENT else [line, line])


async def test_rotating_buys_no_room_for_plans(service: Service, planner: httpx.AsyncClient, limit: Limit) -> None:
    limit(max_open_plans=1)
    assert (await kept(planner)).status_code == 201
    assert_problem(await kept(await rotated(service, planner)), 409, "conflict")


async def test_two_tokens_of_a_line_are_good_at_a_time(service: Service, viewer: httpx.AsyncClient) -> None:
    line = [viewer]
    for _ in range(4):
        line.append(await rotated(service, line[-1], overlap_seconds=2_592_000))
    assert [await status(one) for one in line] == [401, 401, 401, 200, 200]


async def test_a_line_is_rotated_so_often_within_an_hour_and_each_time_has_one_line_in_the_log(
    service: Service, viewer: httpx.AsyncClient
) -> None:
    client = viewer
    for _ in range(access.LINKS_PER_HOUR - 1):
        client = await rotated(service, client)
    for _ in range(3):
        refused = await client.post(f"{API}/token/rotate", json={})
        assert_problem(refused, 429, "rate-limited")
        assert refused.headers["Retry-After"] == "3600"
    async with service.database.write() as session:
        events = await session.scalars(select(AuditEvent).where(AuditEvent.action == "own_token_rotate"))
        ids = (await session.scalars(select(Token.id).where(Token.role == "viewer"))).all()
        assert len([event for event in events if event.actor_id in ids]) == access.LINKS_PER_HOUR - 1
        await session.execute(update(Token).values(created_at=Token.created_at - timedelta(hours=1)))
    await rotated(service, client)


@pytest.mark.parametrize("ended", ["first", "last"])
async def test_revoking_any_token_ends_its_line_however_long_it_is(
    service: Service, admin: httpx.AsyncClient, ended: str
) -> None:
    """Also one from before lines were bounded, in which all are good, and of which maintenance has deleted some."""
    ids, now = [uuid4() for _ in range(5000)], datetime.now(UTC)
    common = {"name": "chain", "role": "viewer", "enrolments": 0}
    async with service.database.write() as session:
        own = {"replaces": None, "line_id": ids[0], "created_at": now}
        rows = [common | own | {"id": one, "secret_sha256": access.hash_secret(str(one))} for one in ids]
        for row, (before, _) in zip(rows[1:], pairwise(ids), strict=True):
            row["replaces"] = before
        await session.execute(insert(Token), rows)
        await session.execute(text("DELETE FROM tokens WHERE id = :id"), {"id": ids[7]})
    assert await status(service.client(str(ids[-1]))) == 200
    path = f"{API}/tokens/{ids[0 if ended == 'first' else -1]}"
    assert (await admin.delete(path)).status_code == 200
    assert {await status(service.client(str(one))) for one in (ids[0], ids[1], ids[4000], ids[-1])} == {401}
    assert_problem(await admin.delete(path), 404, "not-found")
    assert await status(admin) == 200


async def test_a_token_that_an_older_service_rotates_stays_in_its_line(service: Service) -> None:
    """It names no line: the database does."""
    first, second, third = uuid4(), uuid4(), uuid4()
    columns = "id, name, role, secret_sha256, created_at, replaces"
    statement = text(f"INSERT INTO tokens ({columns}) VALUES (:id, 'a', 'viewer', :sha256, now(), :of)")
    async with service.database.write() as session:
        for one, of in ((first, None), (second, first), (third, second)):
            await session.execute(statement, {"id": one, "of": of, "sha256": access.hash_secret(str(one))})
        lines: list[UUID] = [*await session.scalars(text("SELECT line_id FROM tokens WHERE name = 'a'"))]
    assert lines == [first] * 3
