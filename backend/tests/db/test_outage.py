"""The database goes away and comes back: 503 with Retry-After meanwhile, no restart after."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from conftest import MIGRATIONS
from support.reports import report
from support.server import free_port
from support.service import Service, assert_problem

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.db import migrate
from hugeplan.main import create_app
from hugeplan.settings import Settings

WAIT_SECONDS = 20.0


async def until_ready(client: httpx.AsyncClient) -> None:
    """Wait until the service says it is ready."""
    async with asyncio.timeout(WAIT_SECONDS):
        while (await client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.05)


def assert_unavailable(answer: httpx.Response) -> None:
    """503, and when to come back."""
    assert_problem(answer, 503, "unavailable")
    assert int(answer.headers["retry-after"]) >= 1


async def test_service_survives_a_restart_of_its_database(tmp_path: Path) -> None:
    server = embedded.EmbeddedPostgres(tmp_path / "data", embedded.TEST_SETTINGS)
    server.start()
    server.ensure_database("hugeplan")
    settings = Settings.model_validate({"database_url": server.url("hugeplan"), "database_timeout_seconds": 2})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    app = create_app(settings)
    try:
        async with app.router.lifespan_context(app):
            service = Service(app)
            viewer = await service.client_as(Role.VIEWER)
            agent = await service.client_as(Role.AGENT)
            document = report()
            assert (await viewer.get("/api/v1/nodes")).status_code == 200

            server.stop()
            assert_unavailable(await viewer.get("/api/v1/nodes"))
            assert_unavailable(await agent.post("/api/v1/reports", json=document))
            assert_unavailable(await service.client().get("/readyz"))
            assert (await service.client().get("/healthz")).status_code == 200

            server.start()
            await until_ready(service.client())
            assert (await agent.post("/api/v1/reports", json=document)).status_code == 201
            assert len((await viewer.get("/api/v1/nodes")).json()["items"]) == 1
    finally:
        server.close()


async def test_service_starts_without_its_database() -> None:
    settings = Settings.model_validate({"database_url": "postgresql:///hugeplan?host=/nonexistent"})
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        client = Service(app).client("some-token")
        assert_unavailable(await client.get("/readyz"))
        assert_unavailable(await client.get("/api/v1/nodes"))


async def test_readiness_needs_the_newest_migration(own_database_url: str) -> None:
    settings = Settings.model_validate({"database_url": own_database_url})
    app = create_app(settings)
    client = Service(app).client()
    problem = assert_problem(await client.get("/readyz"), 503, "unavailable")
    assert "hugeplan migrate" in problem["detail"]
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    assert (await client.get("/readyz")).status_code == 200
    await app.state.database.dispose()


async def test_a_database_that_hangs_is_not_ready(tmp_path: Path) -> None:
    with embedded.running(tmp_path / "data", embedded.TEST_SETTINGS) as server:
        server.ensure_database("hugeplan")
        settings = Settings.model_validate({"database_url": server.url("hugeplan"), "database_timeout_seconds": 0.5})
        migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
        app = create_app(settings)
        client = Service(app).client()
        assert (await client.get("/readyz")).status_code == 200
        assert server.pid is not None
        stopped = [server.pid, *children_of(server.pid)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                # A good answer holds a moment.
                while (answer := await client.get("/readyz")).status_code == 200:
                    await asyncio.sleep(0.05)
            assert_unavailable(answer)
            assert (await client.get("/healthz")).status_code == 200
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        await until_ready(client)
        await app.state.database.dispose()


async def test_probes_load_no_migration_scripts(own_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.model_validate({"database_url": own_database_url})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    app = create_app(settings)
    client = Service(app).client()
    await until_ready(client)

    def refuse(*_: object) -> None:
        raise AssertionError("scripts were loaded")

    monkeypatch.setattr(migrate, "_REVISION", refuse)
    assert (await client.get("/readyz")).status_code == 200
    await app.state.database.dispose()


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_password_that_is_changed_in_its_file_needs_no_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kubelet hands a changed secret to a pod: the role has it first, or the file."""
    port = free_port()
    listening = {"listen_addresses": "127.0.0.1", "port": str(port)}
    file = tmp_path / "hugeplan_database_url"

    def url(password: str) -> str:
        return f"postgresql://known:{password}@127.0.0.1:{port}/hugeplan"

    with (
        embedded.running(tmp_path / "data", embedded.TEST_SETTINGS | listening) as server,
        psycopg.connect(server.url("postgres"), autocommit=True) as superuser,
    ):
        server.ensure_database("hugeplan")
        migrate.upgrade(Settings.model_validate({"database_url": server.url("hugeplan")}).sqlalchemy_url(), MIGRATIONS)
        superuser.execute("CREATE ROLE known LOGIN SUPERUSER PASSWORD 'first'")
        hba = tmp_path / "data/pg_hba.conf"
        hba.write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        superuser.execute("SELECT pg_reload_conf()")
        async with asyncio.timeout(WAIT_SECONDS):
            while is_let_in(url("wrong")):
                await asyncio.sleep(0.05)
        file.write_text(f"{url('first')}\n")
        monkeypatch.setenv("HUGEPLAN_SECRETS_DIR", str(tmp_path))
        monkeypatch.delenv("HUGEPLAN_DATABASE_URL", raising=False)
        app = create_app(Settings())
        async with app.router.lifespan_context(app):
            service = Service(app)
            viewer = await service.client_as(Role.VIEWER)
            superuser.execute("ALTER ROLE known PASSWORD 'second'")
            end_sessions_of_known(superuser)
            assert_unavailable(await viewer.get("/api/v1/nodes"))
            file.write_text(f"{url('second')}\n")
            await until_ready(service.client())
            assert (await viewer.get("/api/v1/nodes")).status_code == 200

            # A file that is just being written costs an answer, and not the service.
            for text in ("", "no url"):
                file.write_text(text)
                end_sessions_of_known(superuser)
                assert_unavailable(await viewer.get("/api/v1/nodes"))
            file.write_text(url("second"))
            await until_ready(service.client())


def is_let_in(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def end_sessions_of_known(superuser: psycopg.Connection[Any]) -> None:
    superuser.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'known'")
