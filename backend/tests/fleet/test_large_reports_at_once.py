"""Large reports that come together: few are held at a time, one is worked on, and each is stored or refused."""

from __future__ import annotations

import asyncio
import gzip
import json
import uuid
from collections import Counter
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import Request
from support.reports import report
from support.service import Service, assert_problem

from hugeplan.access.gate import Admitted
from hugeplan.access.gated_route import Intake
from hugeplan.access.schemas import Role
from hugeplan.api import bodies_in_flight
from hugeplan.api.bodies_in_flight import REPORTS_OF_ONE, BodiesInFlight
from hugeplan.errors import RateLimitedError, UnavailableError
from hugeplan.fleet.ingest import direct
from hugeplan.fleet.ingest.incoming import Incoming
from hugeplan.fleet.ingest.writer import ReportWriter
from hugeplan.fleet.schemas import ReportReceipt
from hugeplan.settings import Settings

URL = "/api/v1/reports"
MIB = 1024**2


def large(number: int = 0) -> dict[str, Any]:
    """A report of three megabytes of one machine."""
    return report(report_id=str(uuid.uuid4()), machine_id=f"{number:032x}") | {"x": ["y" * 900_000] * 3}


def bodies(service: Service) -> BodiesInFlight:
    intake: Intake = service.app.state.intake
    return intake.bodies_of_agents


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for two such reports of one credential, and for three of an address."""
    monkeypatch.setattr(bodies_in_flight, "BYTES_OF_ONE", 6 * MIB)
    monkeypatch.setattr(bodies_in_flight, "BYTES_OF_AGENTS", 20 * MIB)


@pytest.mark.usefixtures("narrow")
async def test_what_is_accepted_is_stored_and_the_rest_is_told_to_come_again(service: Service) -> None:
    agents = [await service.client_as(Role.AGENT) for _ in range(6)]
    waiting = [large(number) for number in range(6)]
    stored: set[str] = set()
    for _ in range(6):
        answers = await asyncio.gather(*(a.post(URL, json=r) for a, r in zip(agents, waiting, strict=False)))
        for answer, sent in zip(answers, list(waiting), strict=False):
            assert answer.status_code in {200, 201, 503}, answer.text
            if answer.status_code == 503:
                assert_problem(answer, 503, "unavailable")
                assert int(answer.headers["Retry-After"]) > 0
            else:
                stored.add(sent["report_id"])
        waiting = [one for one in waiting if one["report_id"] not in stored]
        agents = [a for a, answer in zip(agents, answers, strict=False) if answer.status_code == 503]
    assert not waiting
    assert len(stored) == 6
    assert not bodies(service)._of_one


@pytest.mark.usefixtures("narrow")
async def test_one_credential_leaves_room_for_others(service: Service, agent: httpx.AsyncClient) -> None:
    """Held at their turn: what one credential sends past its share is refused, another's is taken."""
    other = await service.client_as(Role.AGENT)
    lock = bodies(service).line._of_all
    await lock.acquire()
    try:
        held = [asyncio.create_task(agent.post(URL, json=large())) for _ in range(2)]
        async with asyncio.timeout(60):
            while bodies(service)._of_one.total() < 5 * MIB:
                await asyncio.sleep(0.01)
        refused = await agent.post(URL, json=large())
        assert_problem(refused, 429, "rate-limited")
        assert "6 MiB" in refused.json()["detail"]
        # A small report neither counts nor waits.
        assert (await agent.post(URL, json=report(machine_id=f"{0:032x}"))).status_code in {200, 201}
        others = asyncio.create_task(other.post(URL, json=large(1)))
        async with asyncio.timeout(60):
            while bodies(service)._of_one.total() < 7 * MIB:
                await asyncio.sleep(0.01)
    finally:
        lock.release()
    assert [one.status_code for one in await asyncio.gather(*held, others)] == [201, 201, 201]
    assert not bodies(service)._of_one


async def test_reports_of_one_credential_are_worked_on_a_few_at_a_time(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those of all others wait behind them, however many come together."""
    other, at_a_time, most = await service.client_as(Role.AGENT), Counter[str](), 0
    store = ReportWriter.store

    async def counted(writer: ReportWriter, incoming: Incoming) -> ReportReceipt:
        nonlocal most
        at_a_time[incoming.machine_id] += 1
        most = max(most, *at_a_time.values())
        try:
            return await store(writer, incoming)
        finally:
            at_a_time[incoming.machine_id] -= 1

    monkeypatch.setattr(ReportWriter, "store", counted)
    sent = [report(report_id=str(uuid.uuid4()), machine_id=f"{0:032x}") for _ in range(64)]
    with_others = [agent.post(URL, json=one) for one in sent] + [other.post(URL, json=report(machine_id=f"{1:032x}"))]
    assert {answer.status_code for answer in await asyncio.gather(*with_others)} == {201}
    assert most == REPORTS_OF_ONE
    intake: Intake = service.app.state.intake
    assert not intake.report_turns._rooms


async def test_what_waits_for_its_credentials_turn_is_not_unpacked(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of a megabyte each, out of 3 kB of gzip, took 1.4 GB while they waited: the service may have 1 GiB."""
    intake: Intake = service.app.state.intake
    stores, ends = asyncio.Event(), asyncio.Event()
    read, waiting = direct.read_body, 0
    unpacked: list[int] = []

    async def noted(*given: Any) -> bytes:
        raw = await read(*given)
        unpacked.append(len(raw))
        return raw

    async def held(_: ReportWriter, __: Incoming) -> ReportReceipt:
        nonlocal waiting
        waiting += 1
        if waiting == REPORTS_OF_ONE:
            stores.set()
        await ends.wait()
        raise UnavailableError("enough")

    monkeypatch.setattr(direct, "read_body", noted)
    monkeypatch.setattr(ReportWriter, "store", held)
    sent = [report(report_id=str(uuid.uuid4())) | {"x": "y" * 900_000} for _ in range(12)]
    tasks = [asyncio.create_task(agent.post(URL, json=one)) for one in sent]
    async with asyncio.timeout(60):
        await stores.wait()
    assert len(unpacked) == REPORTS_OF_ONE
    assert intake.bodies_of_reports._of_one.total() == sum(unpacked)
    ends.set()
    assert {answer.status_code for answer in await asyncio.gather(*tasks)} == {503}
    assert not intake.bodies_of_reports._of_one


async def test_all_reports_that_come_have_a_bound(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies_in_flight, "BYTES_OF_REPORTS", 2 * MIB)
    intake: Intake = service.app.state.intake
    sent = report() | {"x": "y" * 900_000}
    intake.bodies_of_reports.take("others", MIB + MIB // 2)
    assert_problem(await agent.post(URL, json=sent), 503, "unavailable")
    assert (await agent.post(URL, json=report())).status_code == 201  # a small one is not counted
    intake.bodies_of_reports.give_back("others", MIB + MIB // 2)
    assert (await agent.post(URL, json=sent | {"report_id": str(uuid.uuid4())})).status_code == 201


async def test_large_reports_of_one_credential_come_after_anothers(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line was first come, first served: eight agents had all of another's answered 503 after ten seconds."""
    monkeypatch.setattr(bodies_in_flight, "BYTES_OF_AGENTS", 64 * MIB)
    other, lock, order = await service.client_as(Role.AGENT), bodies(service).line._of_all, list[str]()
    read = direct._read

    async def noted(request: Request, raw: bytes, known: Admitted, *, is_beside: bool) -> Incoming:
        order.append(known.line_id)
        return await read(request, raw, known, is_beside=is_beside)

    monkeypatch.setattr(direct, "_read", noted)
    await lock.acquire()
    tasks = [asyncio.create_task(agent.post(URL, json=large(0))) for _ in range(4)]
    async with asyncio.timeout(60):
        while bodies(service)._of_one.total() < 4 * 2 * MIB:
            await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(other.post(URL, json=large(1))))
        while len(bodies(service)._of_one) < 2:
            await asyncio.sleep(0.01)
        while len(bodies(service).line._of_one._rooms) < 2:
            await asyncio.sleep(0.01)
    lock.release()
    assert {answer.status_code for answer in await asyncio.gather(*tasks)} == {201}
    (late,) = [at for at, whose in enumerate(order) if order.count(whose) == 1]
    assert late == 1


async def test_one_whose_node_is_locked_leaves_its_turn_to_others(
    service: Service, agent: httpx.AsyncClient, settings: Settings
) -> None:
    other = await service.client_as(Role.AGENT)
    assert (await agent.post(URL, json=large())).status_code == 201
    writer: ReportWriter = service.app.state.report_writer
    async with await psycopg.AsyncConnection.connect(settings.psycopg_url()) as connection:
        await connection.execute("SELECT FROM nodes FOR UPDATE")
        held = asyncio.create_task(agent.post(URL, json=large()))
        async with asyncio.timeout(60):
            while not any(writer._lines.values()):
                await asyncio.sleep(0.01)
        assert (await other.post(URL, json=large(1))).status_code == 201
        assert not held.done()
    assert (await held).status_code == 201


async def test_a_body_counts_uncompressed(service: Service, agent: httpx.AsyncClient) -> None:
    lock = bodies(service).line._of_all
    await lock.acquire()
    try:
        packed = gzip.compress(json.dumps(large()).encode())
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        sent = asyncio.create_task(agent.post(URL, content=packed, headers=headers))
        async with asyncio.timeout(60):
            while bodies(service).held <= 2 * MIB:
                await asyncio.sleep(0.01)
        assert len(packed) < 2 * MIB
    finally:
        lock.release()
    assert (await sent).status_code == 201


async def test_one_that_is_never_its_turn_is_told_to_come_again(
    service: Service, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies_in_flight, "TURN_SECONDS", 0.05)
    lock = bodies(service).line._of_all
    await lock.acquire()
    try:
        assert_problem(await agent.post(URL, json=large()), 503, "unavailable")
    finally:
        lock.release()
    assert (await agent.post(URL, json=large())).status_code == 201


def test_a_body_alone_is_taken_however_large() -> None:
    found = BodiesInFlight()
    found.take("a", 256 * MIB)
    with pytest.raises(RateLimitedError):
        found.take("a", 1)
    with pytest.raises(UnavailableError):
        found.take("b", 1)


@pytest.mark.usefixtures("narrow")
async def test_agents_leave_room_for_the_bodies_of_others(service: Service, planner: httpx.AsyncClient) -> None:
    """Who has an enrolment token has as many agents as it likes, and may send their bodies slowly."""
    agent = await service.client_as(Role.AGENT)
    for whose in "abcd":
        bodies(service).take(whose, 4 * MIB)
    assert (await agent.post(URL, json=large())).status_code == 503
    assert (await agent.post(URL, json=report())).status_code == 201
    text = "vm.nr_hugepages = 8\n" * 10_000
    assert (await planner.post("/api/v1/lint", json={"files": [{"name": "a.conf", "text": text}]})).status_code != 503
    for whose in "abcd":
        bodies(service).give_back(whose, 4 * MIB)
