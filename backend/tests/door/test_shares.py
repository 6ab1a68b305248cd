"""Of what all machines share no address takes all: who has an enrolment token has as many agents as it likes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from starlette.requests import ClientDisconnect
from support.reports import report
from support.service import Service

from hugeplan.access import enrolments
from hugeplan.access import service as access
from hugeplan.access.gate import Admitted, Gate
from hugeplan.access.gated_route import Intake
from hugeplan.access.schemas import EnrolmentRequest, Role
from hugeplan.access.service import Credential
from hugeplan.api import bodies_in_flight
from hugeplan.errors import RateLimitedError, UnavailableError
from hugeplan.fleet.ingest.again import MOST, SentAgain
from hugeplan.shares import HANDLERS_OF_ONE, WAITING_OF_ONE, Waiting

API = "/api/v1"
MIB = 1024**2
JSON = {"Content-Type": "application/json"}
THERE, HERE = "203.0.113.7", "203.0.113.8"
LINES = (b'"' + b"x" * 1000 + b'",\n') * (4 * MIB // 1004)


@asynccontextmanager
async def under_way(*requests: Awaitable[Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Requests that do not end by themselves."""
    tasks = [asyncio.ensure_future(one) for one in requests]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def slow_body(size: int, came: Callable[[], object]) -> AsyncIterator[bytes]:
    """So much of a body, whose rest never comes."""
    for at in range(0, size, 64 * 1024):
        yield LINES[at : min(size, at + 64 * 1024)]
    came()
    await asyncio.Event().wait()


@asynccontextmanager
async def slow_reports(clients: list[httpx.AsyncClient], size: int) -> AsyncIterator[None]:
    """A report of each whose rest never comes; those that are refused are not there."""
    came = 0

    def count() -> None:
        nonlocal came
        came += 1

    async with under_way(
        *(one.post(f"{API}/reports", content=slow_body(size, count), headers=JSON) for one in clients)
    ) as tasks:
        async with asyncio.timeout(60):
            while came + sum(task.done() for task in tasks) < len(clients):
                await asyncio.sleep(0.01)
        yield


async def send(client: httpx.AsyncClient, size: int) -> int:
    """The status of a report of one machine that has so many bytes."""
    sent = report(report_id=str(uuid.uuid4()), machine_id=uuid.uuid4().hex) | {"x": ["y" * 500_000] * (size // 500_000)}
    sent["y"] = "y" * (size % 500_000)
    return (await client.post(f"{API}/reports", json=sent)).status_code


@pytest.mark.parametrize(
    ("bound", "size", "small"),
    [("BYTES_OF_REPORTS", 900_000, 100_000), ("BYTES_OF_AGENTS", 3 * MIB, 1_200_000)],
)
async def test_the_bodies_of_one_address_leave_room_for_those_of_others(
    service: Service, monkeypatch: pytest.MonkeyPatch, bound: str, size: int, small: int
) -> None:
    """One enrolment token's agents, who never ended their bodies, had all other large reports answered 503."""
    monkeypatch.setattr(bodies_in_flight, bound, 9 * MIB)
    many = [await service.client_as(Role.AGENT, address=THERE) for _ in range(20)]
    other = await service.client_as(Role.AGENT, address=HERE)
    async with slow_reports(many[:-8], size), slow_reports(many[-8:], small):
        assert await send(other, small) == 201
    assert await send(many[0], small) == 201


async def test_bodies_of_some_addresses_leave_room_for_another(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies_in_flight, "BYTES_OF_REPORTS", 9 * MIB)
    many = [await service.client_as(Role.AGENT, address=f"203.0.113.{number // 4}") for number in range(32)]
    other = await service.client_as(Role.AGENT, address="198.51.100.1")
    async with slow_reports(many, 900_000), slow_reports(many, 100_000):
        assert await send(other, 100_000) == 201


async def test_a_credential_leaves_room_for_others_of_its_address(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies_in_flight, "BYTES_OF_REPORTS", 3 * MIB)
    one, other = [await service.client_as(Role.AGENT, address=THERE) for _ in range(2)]
    async with slow_reports([one] * 3, 900_000), slow_reports([one], 400_000):
        assert await send(other, 100_000) == 201


async def test_the_largest_report_alone_is_taken(service: Service, agent: httpx.AsyncClient) -> None:
    """With those of two others under way, one of 2 MiB is."""
    assert await send(agent, service.app.state.intake.limits.max_bytes - 20_000) == 201
    async with slow_reports([await service.client_as(Role.AGENT, address=THERE) for _ in range(2)], 2 * MIB):
        assert await send(await service.client_as(Role.AGENT), 2 * MIB) == 201


@asynccontextmanager
async def held_up(
    monkeypatch: pytest.MonkeyPatch, count: int, requests: Callable[[], list[Awaitable[Any]]]
) -> AsyncIterator[None]:
    """So many requests, from when all are known."""
    real, known, all_known = Gate.identify, 0, asyncio.Event()

    async def identify(*given: Any) -> Any:
        nonlocal known
        found = await real(*given)
        known += 1
        if known == count:
            all_known.set()
        return found

    monkeypatch.setattr(Gate, "identify", identify)
    async with under_way(*requests()):
        async with asyncio.timeout(30):
            await all_known.wait()
        yield


async def enrol(client: httpx.AsyncClient, name: str = "n") -> int:
    body = {"machine_id": uuid.uuid4().hex, "node_name": f"{name}-{uuid.uuid4().hex[:8]}"}
    return (await client.post(f"{API}/enrolments", json=body)).status_code


async def test_agents_of_one_address_leave_turns_to_others(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 connections of agents of one address: an enrolment from another took 6 s."""
    tokens = [await service.token(Role.AGENT) for _ in range(30)]
    many = [service.client(token, address=THERE) for token in tokens]
    other = await service.client_as(Role.AGENT, address=HERE)
    enroller = await service.client_as(Role.ENROLMENT, address=THERE)
    for one in (*many, other):
        assert (await one.get(f"{API}/session")).status_code == 200  # from here on it is remembered
    real = access.authenticate

    async def authenticate(session: Any, credential: Credential) -> Any:
        if credential.secret in tokens:
            await asyncio.Event().wait()
        return await real(session, credential)

    monkeypatch.setattr(access, "authenticate", authenticate)
    held = held_up(monkeypatch, len(many), lambda: [one.get(f"{API}/session") for one in many])
    async with held, asyncio.timeout(20):
        assert (await other.get(f"{API}/session")).status_code == 200
        assert await enrol(enroller) == 201


async def test_an_enrolment_token_at_one_address_leaves_turns_to_it_at_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fleet's token is on each of its nodes: one of them, which asks with it many times, holds up no other."""
    token, count, real = await service.token(Role.ENROLMENT), 30, enrolments.enrol
    one, other = service.client(token, address=THERE), service.client(token, address=HERE)
    assert await enrol(one) == 201

    async def enrolled(session: Any, actor: Any, body: EnrolmentRequest, *given: Any) -> Any:
        if body.node_name.startswith("held"):
            await asyncio.Event().wait()
        return await real(session, actor, body, *given)

    monkeypatch.setattr(enrolments, "enrol", enrolled)
    held = held_up(monkeypatch, count, lambda: [enrol(one, "held") for _ in range(count)])
    async with held, asyncio.timeout(20):
        assert await enrol(other) == 201


async def test_large_reports_come_one_address_after_the_other(service: Service) -> None:
    """Twenty agents of one address had all of another's answered 503 after ten seconds."""
    many = [await service.client_as(Role.AGENT, address=THERE) for _ in range(6)]
    other, order = await service.client_as(Role.AGENT, address=HERE), list[str]()
    bodies = service.app.state.intake.bodies_of_agents

    async def sent(client: httpx.AsyncClient, name: str) -> None:
        assert await send(client, 1_200_000) == 201
        order.append(name)

    async with bodies.line.turn("", ""):
        tasks = [asyncio.create_task(sent(one, "many")) for one in many]
        async with asyncio.timeout(60):
            while bodies.held < len(many) * 1_200_000:
                await asyncio.sleep(0.01)
            tasks.append(asyncio.create_task(sent(other, "other")))
            while bodies.held < (1 + len(many)) * 1_200_000:
                await asyncio.sleep(0.01)
    await asyncio.gather(*tasks)
    assert order.index("other") < 4, "as they are stored; in turn it would be the seventh"


async def test_reports_that_came_again_come_one_address_after_the_other(service: Service) -> None:
    """Twenty agents of one address had all places, and each waits for a full block: a fifth of a second."""
    again: SentAgain = service.app.state.reports_again
    reading, order = asyncio.Event(), list[str]()

    async def is_same(*_: object) -> bool:
        await reading.wait()
        return True

    async def answered(whose: str, address: str) -> None:
        incoming, found = SimpleNamespace(report_id=whose), SimpleNamespace(receipt=None)
        await again.answer(incoming, found, whose=whose, address=address, read=lambda _: None)  # type: ignore[arg-type]
        order.append(address)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SentAgain, "_is_same", is_same)
        tasks = [asyncio.create_task(answered(f"agent {number}", THERE)) for number in range(2 * MOST)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(answered("other", HERE)))
        await asyncio.sleep(0)
        reading.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(one, UnavailableError) for one in found[:-1]) > MOST
    assert order.index(HERE) <= 1


async def test_machines_of_one_address_that_are_looked_up_leave_connections_to_others(
    service: Service, viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports that say another boot each time, on 400 connections: lists of nodes took 2 s, enrolments were refused."""
    many = [await service.client_as(Role.AGENT, address=THERE) for _ in range(30)]
    other = await service.client_as(Role.AGENT, address=HERE)
    real, machine_id = access.admit_machine, uuid.uuid4().hex

    async def admit(session: Any, token_id: Any, machine: str, hints: Any) -> Any:
        if machine != machine_id:
            await session.execute(text("SELECT 1"))
            await asyncio.Event().wait()
        return await real(session, token_id, machine, hints)

    monkeypatch.setattr(access, "admit_machine", admit)
    held = held_up(monkeypatch, len(many), lambda: [send(one, 1000) for one in many])
    async with held, asyncio.timeout(20):
        sent = report(machine_id=machine_id)
        assert (await other.post(f"{API}/reports", json=sent)).status_code == 201
        assert (await viewer.get(f"{API}/nodes")).status_code == 200


async def test_an_import_that_waits_in_its_own_line_leaves_the_place_of_all_to_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven previews and one import in a loop made another's import wait 5.4 s (20 to 120 times as long)."""
    one, other = await service.client_as(Role.PLANNER), await service.client_as(Role.PLANNER)
    sandbox, whose = service.app.state.sandbox, set[str]()
    waits, real = asyncio.Event(), sandbox.work

    async def work(*arguments: Any, **more: Any) -> bytes:
        whose.add(more["whose"].name)
        if len(whose) == 1:
            waits.set()
            await asyncio.Event().wait()
        return await real(*arguments, **more)

    monkeypatch.setattr(sandbox, "work", work)
    sent = {"source": "s", "scenarios": [{"name": "n", "scenario": {"node": {"name": "n", "memory": 2**36}}}]}
    held = asyncio.create_task(one.post(f"{API}/imports/scenarios", json=sent))
    async with asyncio.timeout(20):
        await waits.wait()
        assert (await other.post(f"{API}/imports/scenarios", json=sent)).json()["scenarios"]
    held.cancel()
    await asyncio.wait([held])


async def test_who_has_left_takes_no_turn_and_no_memory(service: Service) -> None:
    """A viewer who asked for what takes long, and left at once, had thousands that waited: 70 to 100 MiB a minute."""
    intake: Intake = service.app.state.intake

    def request() -> Any:
        state = SimpleNamespace(admitted=Admitted("one", "one", Role.VIEWER), line_id="one")
        return SimpleNamespace(state=state, scope={"state": {}})

    async with AsyncExitStack() as others:
        for _ in range(HANDLERS_OF_ONE):
            await others.enter_async_context(intake.turn_of(request()))
        waiting = [request() for _ in range(WAITING_OF_ONE)]
        entering = [asyncio.create_task(intake.turn_of(one).__aenter__()) for one in waiting]
        await asyncio.sleep(0)
        with pytest.raises(RateLimitedError, match="At most 512 requests of one credential wait"):
            await intake.turn_of(request()).__aenter__()
        for one in waiting:  # as the connection does
            one.scope["state"]["leaves"].reschedule(0)
        found = await asyncio.wait_for(asyncio.gather(*entering, return_exceptions=True), 5)
        assert {type(one) for one in found} == {ClientDisconnect}
        assert intake.turns._rooms["one"].asked == HANDLERS_OF_ONE
    assert not intake.turns._rooms


async def test_who_waits_leaves_others_of_its_address_room() -> None:
    """What waits of clients that left unseen holds memory. Two agents had all places of their address."""
    waiting = Waiting(most=100)
    with ExitStack() as held:
        for whose in ("a", "b"):
            with pytest.raises(UnavailableError, match="too many requests that wait"):
                for _ in range(100):
                    held.enter_context(waiting.one(whose, "address"))
        for number in range(3):
            held.enter_context(waiting.one(f"other {number}", "address"))
        held.enter_context(waiting.one("elsewhere", "another"))
        assert waiting.held < 50
    assert waiting.held == 0
