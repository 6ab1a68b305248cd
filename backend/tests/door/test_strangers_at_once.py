"""Hundreds of requests without a credential, of one address: they come one after the other, all others in between."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, closing
from functools import partial
from itertools import pairwise
from typing import Any

import httpx
import pytest
from support.service import Service

from hugeplan.access import service as access
from hugeplan.access.gate import LOOKUPS_AT_A_TIME
from hugeplan.access.gated_route import HEAD_SECONDS
from hugeplan.access.schemas import Role
from hugeplan.api import bodies_in_flight, loop_share
from hugeplan.api.bodies_in_flight import STRANGERS_OF_ONE, StrangersTurns
from hugeplan.cli import serving
from hugeplan.errors import RateLimitedError
from hugeplan.shares import HANDLERS_OF_ONE

MANY = 200
"""Fewer than may wait."""
MOST_IN_A_ROUND = 2 * round(loop_share.ROUND_SECONDS / HEAD_SECONDS)


def scope_of(path: str, method: str = "GET", *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http", "server": ("t", 80),
        "client": ("203.0.113.7", 1), "headers": [(b"host", b"t"), *headers],
    }  # fmt: skip


async def asked(service: Service, scope: dict[str, Any], body: bytes = b"") -> int:
    """The status of an answer. What is read a second time never comes, as on a connection that stays open."""
    found: list[int] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    await service.app(scope, receive, send)
    return found[0]


@pytest.mark.parametrize("path", ["/api/v1/login-methods", "/healthz", "/api/openapi.json", "/somewhere"])
async def test_few_are_answered_in_one_round_of_the_loop(service: Service, path: str) -> None:
    """500 connections of one address asked again with each answer: all others waited for 10 s, probes in vain."""
    await asked(service, scope_of(path))  # what is made for the first
    tasks = [asyncio.create_task(asked(service, scope_of(path))) for _ in range(MANY)]
    most = before = 0
    while before < MANY:
        await asyncio.sleep(0)
        done = sum(task.done() for task in tasks)
        most, before = max(most, done - before), done
    assert {task.result() for task in tasks} <= {200, 404}
    assert most <= 2 * STRANGERS_OF_ONE


@pytest.mark.parametrize(
    ("method", "path", "body", "statuses"),
    [
        ("POST", "/api/v1/reports", b'{"a":[' + b"{}," * 2600 + b"0]}", {422}),
        ("POST", "/api/v1/reports", b"{}", {422}),
        ("GET", "/api/v1/nodes", b"", {403}),
        ("GET", "/api/v1/login-methods", b"", {200}),
    ],
    ids=["8 kB that take 10 ms", "a small report", "what it may not", "an open route"],
)
async def test_few_of_an_agents_are_answered_in_one_round_of_the_loop(
    service: Service, method: str, path: str, body: bytes, statuses: set[int]
) -> None:
    """Three tokens with 500 connections of one address failed all probes for two minutes."""
    agent = await service.client_as(Role.AGENT)
    headers = [(b"authorization", agent.headers["Authorization"].encode())]
    if body:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]

    async def ask() -> int:
        return await asked(service, scope_of(path, method, *headers), body)

    assert await ask() in statuses  # what is made for the first
    tasks = [asyncio.create_task(ask()) for _ in range(MANY)]
    most = before = 0
    while before < MANY:
        await asyncio.sleep(0)
        done = sum(task.done() for task in tasks)
        most, before = max(most, done - before), done
    assert {task.result() for task in tasks} <= statuses
    assert most <= MOST_IN_A_ROUND


async def test_agents_wait_in_the_line_of_their_address_where_no_credential_is_needed(service: Service) -> None:
    """500 agents of one enrolment token, or 119 tokens that were revoked, had two turns each: probes took 2 s."""
    lines: set[str] = set()
    turns = service.app.state.intake.strangers
    for role in (Role.AGENT, Role.AGENT, Role.ENROLMENT, Role.VIEWER):
        client = await service.client_as(role)
        headers = [(b"authorization", client.headers["Authorization"].encode())]
        await asked(service, scope_of("/api/v1/session", "GET", *headers))  # from here on it is remembered
        task = asyncio.create_task(asked(service, scope_of("/api/v1/login-methods", "GET", *headers)))
        while not turns._rooms and not task.done():
            await asyncio.sleep(0)
        lines |= set(turns._rooms)
        await task
    assert len(lines) == 2
    assert "requests of 203.0.113.7" in lines


async def test_what_took_long_is_followed_by_rounds_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.thread_time", lambda: next(clock) * 10 * loop_share.ROUND_SECONDS)
    share, done = loop_share.LoopShare(), list[int]()
    tasks = [asyncio.create_task(share.run(str(number), partial(done.append, number))) for number in range(3)]
    rounds: list[int] = []
    for at in range(40):
        await asyncio.sleep(0)
        rounds += [at] * (len(done) - len(rounds))
    await asyncio.gather(*tasks)
    assert done == [0, 1, 2]
    assert all(after - before >= 9 for before, after in pairwise(rounds))


async def test_a_turn_that_waits_for_something_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_in_flight, "TURN_SECONDS_OF_STRANGERS", 0.001)
    turns, ends = StrangersTurns(), asyncio.Event()

    async def wait() -> None:
        async with turns.brief_turn("a"):
            await ends.wait()

    waiting = [asyncio.create_task(wait()) for _ in range(3 * STRANGERS_OF_ONE)]
    async with asyncio.timeout(5), turns.brief_turn("a"):
        ends.set()
    await asyncio.gather(*waiting)
    assert not turns._rooms


async def test_too_many_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies_in_flight, "WAITING_STRANGERS_OF_ONE", 1)
    turns = StrangersTurns()
    async with turns.brief_turn("a"), turns.brief_turn("b"):
        with pytest.raises(RateLimitedError):
            await turns.brief_turn("a").__aenter__()


@pytest.mark.parametrize("path", ["/api/v1/session", "/api/v1/plans", "/api/v1/fleet/plan"])
async def test_an_empty_body_in_parts_is_not_waited_for(
    service: Service, planner: httpx.AsyncClient, path: str
) -> None:
    """It was read twice: the request stayed for as long as its connection, and eight took all turns of a credential."""
    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    headers.append((b"authorization", planner.headers["Authorization"].encode()))
    async with asyncio.timeout(5):
        assert await asked(service, scope_of(path, "POST", *headers)) in {401, 422}


async def test_changes_of_an_enrolment_token_are_counted_but_for_enrolments(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each leaves a line for good in the audit log."""
    gate = service.app.state.intake.gate
    monkeypatch.setattr(gate, "_settings", gate._settings.model_copy(update={"changes_per_minute": 3}))
    token = await service.client_as(Role.ENROLMENT)
    found = [await token.post("/api/v1/token/rotate", json={}) for _ in range(6)]
    assert [one.status_code for one in found[3:]] == [429] * 3
    for number in range(6):
        body = {"machine_id": f"{number}" * 32, "node_name": f"n{number}"}
        assert (await token.post("/api/v1/enrolments", json=body)).status_code == 201


@pytest.mark.parametrize("role", [Role.AGENT, Role.ENROLMENT])
async def test_who_cannot_log_in_has_no_sessions(service: Service, role: Role) -> None:
    machine = await service.client_as(role)
    assert (await machine.get("/api/v1/session")).status_code == 200
    for method, path in (("GET", "sessions"), ("DELETE", "session"), ("POST", "login-links"),
                         ("DELETE", f"sessions/{'0' * 8}-0000-4000-8000-{'0' * 12}")):  # fmt: skip
        assert (await machine.request(method, f"/api/v1/{path}")).status_code == 403


async def test_all_agents_together_have_some_turns(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 agents of one enrolment token had all connections of the database."""
    under_way, most, real = 0, 0, access.authenticate

    async def slow(*arguments: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return await real(*arguments)

    monkeypatch.setattr(access, "authenticate", slow)
    agents = [await service.client_as(Role.AGENT) for _ in range(3 * HANDLERS_OF_ONE)]
    await asyncio.gather(*(agent.get("/api/v1/session") for agent in agents))
    assert 1 < most <= HANDLERS_OF_ONE + LOOKUPS_AT_A_TIME


def test_of_those_who_wait_to_be_accepted_each_has_a_round_of_the_event_loop() -> None:
    """asyncio's own loop accepts up to its backlog of 2,048 in one."""
    made: list[asyncio.Protocol] = []

    class Made(asyncio.Protocol):
        def connection_made(self, _: object) -> None:
            made.append(self)

    async def accepted() -> list[int]:
        with closing(serving.bind("127.0.0.1", 0)) as listening, ExitStack() as clients:
            for _ in range(20):
                clients.enter_context(closing(socket.create_connection(listening.getsockname())))
            await asyncio.get_running_loop().create_server(Made, sock=listening, backlog=serving.BACKLOG)
            counts = [0]
            while counts[-1] < 20:
                await asyncio.sleep(0)
                counts.append(len(made))
        return [after - before for before, after in pairwise(counts)]

    with asyncio.Runner(loop_factory=serving._config("x").get_loop_factory()) as runner:
        assert max(runner.run(accepted())) == 1
