"""What holds for requests one after the other holds for many at once: limits, rotation, and who waits for whom."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from access.test_access import RIGHTS
from access.test_access import _path as path_of
from fleet.test_fleet_plan_room import job
from sqlalchemy import select
from support.reports import MACHINE_ID, report
from support.service import Service, assert_problem
from trials.test_trials import known_node, trial

from door.test_room import API, SCENARIO, Limit, kept, limit
from hugeplan.access.logins import SESSIONS_PER_TOKEN
from hugeplan.access.schemas import Role
from hugeplan.db.locks import LockOfOne, lock_one
from hugeplan.db.models import EnrolmentRequestRow
from hugeplan.fleet_plans.room import WAITING_OF_ONE
from hugeplan.main import create_app
from hugeplan.settings import Settings

__all__ = ["limit"]

AT_ONCE = 12


async def statuses(requests: list[Awaitable[httpx.Response]]) -> Counter[int]:
    """How often each status was the answer to requests that are sent at once."""
    return Counter(one.status_code for one in await asyncio.gather(*requests))


async def test_refused_enrolments_wait_for_no_second_connection(service: Service, viewer: httpx.AsyncClient) -> None:
    """More at once than the pool has connections: each kept one and waited 5 s for another."""
    enroller = await service.client_as(Role.ENROLMENT)
    body = {"machine_id": "f1" * 16, "node_name": "x", "boot_id": "other"}
    assert (await enroller.post(f"{API}/enrolments", json=body)).status_code == 201
    asked, seen = await asyncio.gather(
        statuses([enroller.post(f"{API}/enrolments", json=body) for _ in range(40)]),
        statuses([viewer.get(f"{API}/nodes") for _ in range(5)]),
    )
    assert (asked, seen) == ({409: 40}, {200: 5})
    async with service.database.read() as session:
        (row,) = (await session.scalars(select(EnrolmentRequestRow))).all()
    assert row.attempts == 40


async def test_who_waits_for_one_machine_leaves_connections_to_others(
    service: Service, viewer: httpx.AsyncClient
) -> None:
    """One credential's requests with a body wait for one another without one, as those without a body do."""
    enroller = await service.client_as(Role.ENROLMENT)
    body = {"machine_id": "f1" * 16, "node_name": "x", "boot_id": "other"}
    await enroller.post(f"{API}/enrolments", json=body)
    async with service.database.write() as session:
        await lock_one(session, LockOfOne.MACHINE, body["machine_id"])
        asked = asyncio.gather(*(enroller.post(f"{API}/enrolments", json=body) for _ in range(40)))
        await asyncio.sleep(0.3)
        assert (await asyncio.wait_for(viewer.get(f"{API}/nodes"), 3)).status_code == 200
    assert {one.status_code for one in await asked} == {409}


async def test_askers_of_one_machine_are_kept_up_to_the_limit(service: Service) -> None:
    enroller = await service.client_as(Role.ENROLMENT)
    body = {"machine_id": "f1" * 16, "node_name": "x", "boot_id": "other"}
    await enroller.post(f"{API}/enrolments", json=body)
    asked = [enroller.post(f"{API}/enrolments", json=body | {"claim": f"{n:064x}"}) for n in range(35)]
    assert await statuses(asked) == {409: 35}
    async with service.database.read() as session:
        assert len((await session.scalars(select(EnrolmentRequestRow))).all()) == 20


async def test_every_route_answers_over_one_connection(settings: Settings, service: Service) -> None:
    """Also where a handler waits for work of another task: with its own connection kept, neither would go on."""
    token = await service.token(Role.ADMIN)
    one = {"database_pool_size": 1, "database_pool_overflow": 0, "database_timeout_seconds": 60.0}
    alone = settings.model_copy(update=one)
    app = create_app(alone)
    async with app.router.lifespan_context(app):
        client = Service(app).client(token)
        routes = [(method, path) for method, path in RIGHTS if path != "/api/v1/token/rotate"]
        for method, path in [*routes, ("GET", "/metrics"), ("GET", "/readyz")]:
            sent = client.request(method, path_of(path), json={} if method in {"POST", "PUT"} else None)
            answer = await asyncio.wait_for(sent, 20)
            assert answer.status_code < 500, (method, path, answer.text)
        await client.aclose()


class TestRotation:
    async def test_without_overlap_has_one_successor(self, admin: httpx.AsyncClient) -> None:
        made = (await admin.post(f"{API}/tokens", json={"name": "a", "role": "viewer"})).json()
        path = f"{API}/tokens/{made['id']}/rotate"
        rotated = [admin.post(path, json={"overlap_seconds": 0}) for _ in range(AT_ONCE)]
        assert await statuses(rotated) == {201: 1, 404: AT_ONCE - 1}

    async def test_of_ones_own_without_overlap_has_one_successor(self, service: Service) -> None:
        agent = await service.client_as(Role.AGENT, machine_id=MACHINE_ID)
        found = await statuses([agent.post(f"{API}/token/rotate", json={"overlap_seconds": 0}) for _ in range(AT_ONCE)])
        assert found[201] == 1
        assert found.keys() <= {201, 401, 404}

    @pytest.mark.parametrize("role", [Role.AGENT, Role.VIEWER])
    async def test_again_replaces_the_former_successor(self, service: Service, role: Role) -> None:
        """Whose answer was lost rotates again, and never leaves a secret behind that nobody has."""
        client = await service.client_as(role, machine_id=MACHINE_ID if role is Role.AGENT else None)
        made = [(await client.post(f"{API}/token/rotate", json={})).json() for _ in range(3)]
        # An agent's lives as long as the first was to; another's may not outlive the one that makes it.
        assert [one["expires_at"] is None for one in made] == [True, *[role is Role.AGENT] * 2]
        good = [(await service.client(one["token"]).get(f"{API}/session")).status_code for one in made]
        assert good == [401, 401, 200]
        answers = await asyncio.gather(*(client.post(f"{API}/token/rotate", json={}) for _ in range(AT_ONCE)))
        clients = [service.client(one.json()["token"]) for one in answers]
        assert await statuses([one.get(f"{API}/session") for one in clients]) == {200: 1, 401: AT_ONCE - 1}

    async def test_again_by_an_administrator_lives_as_long(self, admin: httpx.AsyncClient) -> None:
        wanted = {"name": "a", "role": "viewer", "expires_in_seconds": 90_000}
        path = f"{API}/tokens/{(await admin.post(f'{API}/tokens', json=wanted)).json()['id']}/rotate"
        made = [(await admin.post(path, json={"overlap_seconds": 60})).json() for _ in range(2)]
        first, second = (datetime.fromisoformat(one["expires_at"]) for one in made)
        assert timedelta(0) <= second - first < timedelta(minutes=1)

    async def test_again_is_refused_where_the_successor_is_in_use(
        self, service: Service, agent: httpx.AsyncClient, admin: httpx.AsyncClient
    ) -> None:
        await agent.post(f"{API}/reports", json=report())
        made = (await agent.post(f"{API}/token/rotate", json={})).json()
        successor = service.client(made["token"])
        assert (await successor.post(f"{API}/reports", json=report())).status_code == 201
        for again in (
            await agent.post(f"{API}/token/rotate", json={}),
            await admin.post(f"{API}/tokens/{made['replaces']}/rotate", json={}),
        ):
            assert made["id"] in assert_problem(again, 409, "conflict")["detail"]
        assert (await successor.post(f"{API}/reports", json=report())).status_code == 201

    async def test_revoking_ends_the_whole_line(self, service: Service, admin: httpx.AsyncClient) -> None:
        line = [(await admin.post(f"{API}/tokens", json={"name": "a", "role": "viewer"})).json()]
        for _ in range(3):
            line.append((await service.client(line[-1]["token"]).post(f"{API}/token/rotate", json={})).json())
        other = (await admin.post(f"{API}/tokens", json={"name": "a", "role": "viewer"})).json()
        assert (await admin.delete(f"{API}/tokens/{line[1]['id']}")).status_code == 200
        good = [(await service.client(one["token"]).get(f"{API}/session")).status_code for one in (*line, other)]
        assert good == [401, 401, 401, 401, 200]

    async def test_revoking_meets_a_rotation_at_the_same_moment(
        self, service: Service, admin: httpx.AsyncClient
    ) -> None:
        for _ in range(5):
            made = (await admin.post(f"{API}/tokens", json={"name": "a", "role": "viewer"})).json()
            client = service.client(made["token"])
            *rotated, gone = await asyncio.gather(
                *(client.post(f"{API}/token/rotate", json={}) for _ in range(3)),
                admin.delete(f"{API}/tokens/{made['id']}"),
            )
            assert gone.status_code == 200
            left = [service.client(one.json()["token"]) for one in rotated if one.status_code == 201]
            assert {(await one.get(f"{API}/session")).status_code for one in left} <= {401}


class TestLimits:
    async def test_of_fleet_plans(
        self, service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def not_begun(*_: object) -> None:
            """Its turn has not come: a job that ends makes room."""

        monkeypatch.setattr(service.app.state.fleet_plan_runner, "start", not_begun)
        await agent.post(f"{API}/reports", json=report())
        planner, other = await service.client_as(Role.PLANNER), await service.client_as(Role.PLANNER)
        sent = [planner.post(f"{API}/fleet/plan", json={}) for _ in range(WAITING_OF_ONE + 10)]
        assert await statuses(sent) == {202: WAITING_OF_ONE, 409: 10}
        async with service.database.write() as session:
            session.add_all([job(0, status="queued") for _ in range(78)])
        # Two are left of all, one of them for another credential.
        assert await statuses([other.post(f"{API}/fleet/plan", json={}) for _ in range(6)]) == {202: 1, 409: 5}

    async def test_of_scenarios(self, planner: httpx.AsyncClient, limit: Limit) -> None:
        limit(max_scenarios=2)
        requests: list[Any] = [
            planner.post(f"{API}/scenarios", json={"name": f"s{n}", "scenario": SCENARIO}) for n in range(6)
        ]
        requests += [
            planner.post(
                f"{API}/imports/scenarios", json={"source": "x", "scenarios": [{"name": f"i{n}", "scenario": SCENARIO}]}
            )
            for n in range(3)
        ]
        found = await statuses(requests)
        assert found[409] == 7
        assert len((await planner.get(f"{API}/scenarios")).json()["items"]) == 2

    async def test_of_open_plans(self, planner: httpx.AsyncClient, limit: Limit) -> None:
        limit(max_open_plans=2)
        assert await statuses([kept(planner) for _ in range(6)]) == {201: 2, 409: 4}

    async def test_of_trials(self, agent: httpx.AsyncClient, planner: httpx.AsyncClient, limit: Limit) -> None:
        node_id = await known_node(agent)
        limit(max_trials_per_node=2)
        assert await statuses([planner.post(f"{API}/trials", json=trial()) for _ in range(6)]) == {201: 6}
        assert len((await planner.get(f"{API}/nodes/{node_id}/trials")).json()["items"]) == 2

    async def test_of_sessions(self, service: Service) -> None:
        token = await service.token(Role.VIEWER)
        service.app.state.rate_limiter.spend = lambda *_: None
        sent = [service.client().post(f"{API}/session", json={"token": token}) for _ in range(SESSIONS_PER_TOKEN + 8)]
        assert await statuses(sent) == {201: SESSIONS_PER_TOKEN + 8}
        listed = (await service.client(token).get(f"{API}/sessions", params={"limit": 200})).json()["items"]
        assert len(listed) == SESSIONS_PER_TOKEN
