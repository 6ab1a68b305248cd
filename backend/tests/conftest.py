"""A real PostgreSQL for the service's tests: one server a worker, one database a test, all built by migrations."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from sqlalchemy import event
from support.service import Service

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.db import migrate
from hugeplan.events.records import LOCK_EVENTS
from hugeplan.main import create_app
from hugeplan.settings import Settings

TEMPLATE = "hugeplan_template"
REPOSITORY = Path(__file__).resolve().parents[2]
MIGRATIONS = REPOSITORY / "migrations"

# How long a busy machine takes to make an input says nothing about the product.
settings.register_profile("hugeplan", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hugeplan")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; the programs under test inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.EmbeddedPostgres]:
    """A started server of this worker."""
    with embedded.running(tmp_path_factory.mktemp("postgresql") / "data", embedded.TEST_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def template(postgres: embedded.EmbeddedPostgres) -> str:
    """A database at the newest migration, for copying."""
    postgres.ensure_database(TEMPLATE)
    migrate.upgrade(Settings(database_url=postgres.url(TEMPLATE)).sqlalchemy_url(), MIGRATIONS)
    return TEMPLATE


@pytest.fixture(scope="session")
def worker_database(postgres: embedded.EmbeddedPostgres, template: str) -> str:
    """The URL of this worker's database. Its tests run one after the other and find it empty."""
    postgres.ensure_database("worker", template)
    return postgres.url("worker")


@pytest.fixture
def own_database_url(postgres: embedded.EmbeddedPostgres) -> Iterator[str]:
    """The URL of an empty database without any table, for tests that migrate or change tables."""
    name = f"own_{next(_numbers)}"
    postgres.ensure_database(name)
    yield postgres.url(name)
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def settings(worker_database: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the service under test."""
    state = tmp_path_factory.mktemp("state")
    return Settings(
        webhook_allowed_networks=(ip_network("127.0.0.0/8"),),
        database_url=worker_database,
        state_dir=state,
        ui_dir=state / "ui",
        requests_per_minute=10**6,
        changes_per_minute=10**6,
        refusals_per_minute=10**6,
        event_stream_seconds=0.5,
    )


@pytest.fixture(scope="session")
async def application(settings: Settings) -> AsyncIterator[FastAPI]:
    """The application, with its background work running. Built once: tests differ in rows, not in wiring."""
    app = create_app(settings)
    _refuse_second_connections(app)
    _refuse_statements_after_events(app)
    async with app.router.lifespan_context(app):
        yield app


def _refuse_second_connections(app: FastAPI) -> None:
    """Fail who takes a connection of the pool while it holds one: as many of those at once wait for each other."""
    pool = app.state.database.engine.sync_engine.pool
    holders: set[int] = set()

    @event.listens_for(pool, "checkout")
    def note(_connection: Any, record: Any, _proxy: Any) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        if id(task) in holders:
            raise AssertionError(f"{task.get_name()} takes a second database connection while it holds one")
        record.info["holder"] = id(task)
        holders.add(id(task))

    @event.listens_for(pool, "checkin")
    def forget(_connection: Any, record: Any) -> None:
        holders.discard(record.info.pop("holder", None))


def _refuse_statements_after_events(app: FastAPI) -> None:
    """Fail who does anything but commit when events are written: whoever else writes some waits for it."""
    engine = app.state.database.engine.sync_engine

    @event.listens_for(engine, "before_cursor_execute")
    def look(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "events" in connection.info:
            raise AssertionError(f"the lock of events is held while this is carried out: {statement}")
        if LOCK_EVENTS in statement:
            connection.info["events"] = "locked"

    @event.listens_for(engine, "commit")
    @event.listens_for(engine, "rollback")
    def end(connection: Any) -> None:
        connection.info.pop("events", None)


@pytest.fixture
async def service(application: FastAPI) -> AsyncIterator[Service]:
    """The service with an empty database and full rate limits, which fill no more while a busy machine asks."""
    begun = time.monotonic()
    application.state.rate_limiter = RateLimiter(lambda: begun)
    application.state.machines.forget()
    running = Service(application)
    yield running
    for client in running.clients:
        await client.aclose()
    await running.empty()


@pytest.fixture
async def agent(service: Service) -> httpx.AsyncClient:
    """A client with an unbound agent token."""
    return await service.client_as(Role.AGENT)


@pytest.fixture
async def viewer(service: Service) -> httpx.AsyncClient:
    """A client that may read."""
    return await service.client_as(Role.VIEWER)


@pytest.fixture
async def planner(service: Service) -> httpx.AsyncClient:
    """A client that may plan."""
    return await service.client_as(Role.PLANNER)


@pytest.fixture
async def admin(service: Service) -> httpx.AsyncClient:
    """A client that may do everything."""
    return await service.client_as(Role.ADMIN)
