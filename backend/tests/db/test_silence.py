"""PostgreSQL says nothing: it is paused, or its machine has gone silent. Then this side ends what waits for it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from conftest import MIGRATIONS
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from support.reports import report
from support.service import Service

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.db import migrate
from hugeplan.db.connection import LOOK_SECONDS, Connection, SilentError, allow
from hugeplan.db.engine import create_engine
from hugeplan.db.exchange import Exchange, Statement
from hugeplan.db.session import Database
from hugeplan.errors import UnavailableError
from hugeplan.main import create_app
from hugeplan.settings import Settings

WAIT_SECONDS = 30.0
TIMEOUT_SECONDS = 1.0
"""For a connection, and PostgreSQL's for a statement."""
SLACK_SECONDS = 1.5
"""For a busy machine."""
SILENT_SECONDS = 5.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.EmbeddedPostgres]:
    """A server of these tests alone, since they pause it."""
    with embedded.running(tmp_path_factory.mktemp("silent") / "data", embedded.TEST_SETTINGS) as running:
        running.ensure_database("silent")
        migrate.upgrade(settings_of(running.url("silent")).sqlalchemy_url(), MIGRATIONS)
        yield running


def settings_of(url: str) -> Settings:
    return Settings.model_validate(
        {
            "database_url": url,
            "database_timeout_seconds": TIMEOUT_SECONDS,
            "statement_timeout_seconds": TIMEOUT_SECONDS,
            "requests_per_minute": 10**6,
            "changes_per_minute": 10**6,
            "refusals_per_minute": 10**6,
        }
    )


@contextmanager
def paused(server: embedded.EmbeddedPostgres) -> Iterator[None]:
    """Every process of PostgreSQL is stopped, as by a frozen container."""
    assert server.pid is not None
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    stopped = [server.pid]
    os.kill(server.pid, signal.SIGSTOP)
    stopped += map(int, children.read_text().split())
    for pid in stopped[1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@dataclass
class Relay:
    """A machine between the service and PostgreSQL. While it is silent it takes all and passes nothing on, and of the
    connections of that time it knows nothing later.
    """

    server: embedded.EmbeddedPostgres
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _is_silent: bool = False
    _age: int = 0

    @property
    def url(self) -> str:
        direct = urlsplit(self.server.url("silent"))
        return f"postgresql://{direct.username}@127.0.0.1:{self.port}/silent"

    @contextmanager
    def silent(self) -> Iterator[None]:
        self.cut()
        self._is_silent = True
        yield
        self._is_silent = False

    def cut(self) -> None:
        """Forget the connections there are."""
        self._age += 1

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        folder = parse_qs(urlsplit(self.server.url("silent")).query)["host"][0]
        theirs, ours = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.5432")
        age = -1 if self._is_silent else self._age

        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while some := await source.read(65536):
                if age == self._age:
                    target.write(some)
            if age == self._age or target is ours:
                target.close()

        try:
            await asyncio.gather(pass_on(reader, ours), pass_on(theirs, writer), return_exceptions=True)
        except asyncio.CancelledError:
            pass  # the server of streams asks its tasks how they ended
        finally:
            writer.close()
            ours.close()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)


@pytest.fixture
async def relay(server: embedded.EmbeddedPostgres) -> AsyncIterator[Relay]:
    made = Relay(server)
    listening = await asyncio.start_server(made.accept, "127.0.0.1")
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()
    await made.close()


@dataclass
class Watched:
    """What clients were told: when they asked (by the monotonic clock), how long it took, and the status."""

    reports: list[tuple[float, float, int]] = field(default_factory=list)
    lists: list[tuple[float, float, int]] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)


@asynccontextmanager
async def asked_without_end(service: Service) -> AsyncIterator[Watched]:
    """Agents report and viewers look, again and again; what an agent was refused it sends again, as agents do."""
    watched = Watched()
    machines = [f"{number:032x}" for number in range(1, 6)]
    agents = [await service.client_as(Role.AGENT, machine_id=machine_id) for machine_id in machines]
    viewers = [await service.client_as(Role.VIEWER) for _ in range(3)]

    async def timed(
        told: list[tuple[float, float, int]], ask: Callable[[], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        began = time.monotonic()
        answer = await ask()
        told.append((began, time.monotonic() - began, answer.status_code))
        await asyncio.sleep(0.05)  # as often as they ask
        return answer

    async def send(agent: httpx.AsyncClient, machine_id: str) -> None:
        while True:
            document = report(machine_id=machine_id, node_name=f"node-{machine_id[-2:]}")
            while not (
                answer := await timed(watched.reports, lambda: agent.post("/api/v1/reports", json=document))  # noqa: B023
            ).is_success:
                assert answer.status_code == 503
            watched.acknowledged.append(document["report_id"])

    async def look(viewer: httpx.AsyncClient) -> None:
        while True:
            await timed(watched.lists, lambda: viewer.get("/api/v1/nodes"))

    asking = [asyncio.create_task(send(*pair)) for pair in zip(agents, machines, strict=True)]
    asking += [asyncio.create_task(look(viewer)) for viewer in viewers]
    try:
        yield watched
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    assert not [task for task in asking if not task.cancelled() and task.exception()]


async def all_good(watched: Watched, since: float, many: int) -> None:
    """Until both are answered well again."""
    async with asyncio.timeout(WAIT_SECONDS):
        for told in (watched.reports, watched.lists):
            while sum(began >= since and status in (200, 201) for began, _, status in told) < many:
                await asyncio.sleep(0.02)


async def seen_over(service: Service, silence: Callable[[], AbstractContextManager[None]]) -> None:
    """Good answers, 503 in time while PostgreSQL is silent, and good ones again."""
    async with asked_without_end(service) as watched:
        await all_good(watched, 0, 10)
        with silence():
            silent_at = time.monotonic()
            await asyncio.sleep(SILENT_SECONDS)
        heard_at = time.monotonic()
        await all_good(watched, heard_at, 5)
        healed_in = time.monotonic() - heard_at
        for told in (watched.reports, watched.lists):
            took = [took for began, took, _ in told if silent_at < began + took and began < heard_at]
            assert max(took) < 2 * TIMEOUT_SECONDS + SLACK_SECONDS, "what was in flight has a statement's limit"
            later = [one for one in told if silent_at + 2 * TIMEOUT_SECONDS + SLACK_SECONDS < one[0] < heard_at]
            assert max(took for _, took, _ in later) < TIMEOUT_SECONDS + SLACK_SECONDS
            assert {status for _, _, status in told} in ({200, 503}, {201, 503}, {200, 201, 503})
        assert healed_in < 2 + SLACK_SECONDS
    async with asyncio.timeout(WAIT_SECONDS):
        async with service.database.read() as session:
            kept = Counter(map(str, (await session.scalars(text("SELECT report_id FROM reports"))).all()))
    assert set(watched.acknowledged) <= kept.keys()
    assert set(kept.values()) == {1}


@pytest.mark.parametrize("kind", ["paused", "silent machine"])
async def test_all_is_answered_in_time_and_nothing_acknowledged_is_lost(
    server: embedded.EmbeddedPostgres, relay: Relay, kind: str
) -> None:
    app = create_app(settings_of(server.url("silent") if kind == "paused" else relay.url))
    async with app.router.lifespan_context(app):
        service = Service(app)
        await seen_over(service, (lambda: paused(server)) if kind == "paused" else relay.silent)
        await service.empty()


async def test_who_no_longer_waits_ends_the_statement_and_goes(
    server: embedded.EmbeddedPostgres,
) -> None:
    database = Database(create_engine(settings_of(server.url("silent"))))
    async with await Connection.connect(server.url("silent")) as connection:
        running = asyncio.create_task(connection.execute("SELECT pg_sleep(600)"))
        look = text("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND state = 'active'")

        async def until_running(many: int) -> None:
            async with asyncio.timeout(WAIT_SECONDS):
                while True:
                    async with database.read() as session:
                        if await session.scalar(look) == many:
                            return

        await until_running(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert connection.closed
        await until_running(0)
    async with await Connection.connect(server.url("silent")) as connection:
        running = asyncio.create_task(connection.execute("SELECT pg_sleep(600)"))
        await until_running(1)
        with paused(server):
            began = time.monotonic()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert time.monotonic() - began < 1 + SLACK_SECONDS
    await until_running(0)
    await database.dispose()


async def test_what_may_take_longer_is_waited_for(server: embedded.EmbeddedPostgres) -> None:
    engine = create_engine(settings_of(server.url("silent")))
    sleep = text(f"SELECT pg_sleep({TIMEOUT_SECONDS + 2})")
    async with Database(engine).write() as session:
        await allow(session, 60)
        await session.execute(sleep)
    async with Database(engine).read() as session:  # on the same connection
        with pytest.raises(OperationalError, match="statement timeout"):
            await session.execute(sleep)
    await engine.dispose()


async def test_rows_that_keep_coming_may_take_their_time(server: embedded.EmbeddedPostgres) -> None:
    wide = "SELECT repeat('x', 50000), pg_sleep(0.2) FROM generate_series(1, 12)"
    async with await Connection.connect(server.url("silent"), silence_seconds=1.0) as connection:
        rows = await (await connection.execute(wide)).fetchall()
        assert len(rows) == 12
        with pytest.raises(SilentError):
            await connection.execute("SELECT pg_sleep(600)")
        assert connection.closed


async def test_statements_together_end_too(relay: Relay) -> None:
    async with await Connection.connect(relay.url, silence_seconds=0.5) as connection:
        await Exchange(connection, None).run([(Statement("SELECT 1"), ())])
        with relay.silent():
            began = time.monotonic()
            with pytest.raises(SilentError):
                await Exchange(connection, None).run([(Statement("SELECT 1"), ())])
            assert time.monotonic() - began < 0.5 + SLACK_SECONDS
        assert connection.closed


async def test_a_commit_without_an_answer_is_not_said_to_have_stored_nothing(relay: Relay) -> None:
    database = Database(create_engine(settings_of(relay.url)))
    with pytest.raises(UnavailableError, match="may have been stored"):
        async with database.write() as session:
            await session.execute(text("CREATE TABLE never (n int)"))
            relay.cut()
    with pytest.raises(OperationalError):
        async with database.write() as session:
            await session.execute(text("SELECT 1"))
            relay.cut()
            await session.execute(text("SELECT 1"))
    await database.dispose()


async def test_a_connection_that_waited_in_the_pool_costs_no_statement_limit(relay: Relay) -> None:
    """As a firewall forgets one: it is looked at before use, and another one is made in time."""
    settings = settings_of(relay.url).model_copy(update={"statement_timeout_seconds": 60.0})
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        service = Service(app)
        agent, viewer = await service.client_as(Role.AGENT), await service.client_as(Role.VIEWER)
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
        heard_at = time.monotonic()
        relay.cut()
        while time.monotonic() - heard_at <= LOOK_SECONDS:
            await asyncio.sleep(0.05)
        assert (await viewer.get("/api/v1/nodes")).status_code == 200
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
        await service.empty()


async def test_the_second_of_two_servers_has_its_turn(relay: Relay) -> None:
    """As docs/scaling.md has them, with a standby."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        ports = f"{deaf.getsockname()[1]},{relay.port}"
        both = f"host=127.0.0.1,127.0.0.1&port={ports}&target_session_attrs=read-write"
        user = urlsplit(relay.url).username
        database = Database(create_engine(settings_of(f"postgresql://{user}@/silent?{both}")))
        async with database.read() as session:
            assert await session.scalar(text("SELECT 1")) == 1
        await database.dispose()
