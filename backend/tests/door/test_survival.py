"""No connection is free, or the disk is full: 503 meanwhile, nothing lost, no restart of the service after."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from conftest import MIGRATIONS
from support.folders import folder_for_all
from support.reports import report
from support.service import Service, assert_problem

from hugeplan import embedded
from hugeplan.access.schemas import Role
from hugeplan.db import migrate
from hugeplan.main import create_app
from hugeplan.settings import Settings

MIB = 1024**2
MOUNT, UMOUNT = "/usr/bin/mount", "/usr/bin/umount"


async def test_without_a_free_connection_requests_are_503_and_reports_go_on(
    postgres: embedded.EmbeddedPostgres, template: str
) -> None:
    postgres.ensure_database("exhausted", template)
    settings = Settings.model_validate(
        {
            "database_url": postgres.url("exhausted"),
            "database_pool_size": 1,
            "database_pool_overflow": 0,
            "database_timeout_seconds": 1,
        }
    )
    app = create_app(settings)
    service = Service(app)
    viewer, agent = await service.client_as(Role.VIEWER), await service.client_as(Role.AGENT)
    await app.state.report_writer.open(app.state.background)
    try:
        assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
        async with app.state.database.read() as session:
            await session.connection()
            refused = await viewer.get("/api/v1/nodes")
            assert_problem(refused, 503, "unavailable")
            assert int(refused.headers["retry-after"]) >= 1
            # Reports of machines that are known have connections of their own.
            assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
            assert (await service.client().get("/healthz")).status_code == 200
        assert (await viewer.get("/api/v1/nodes")).status_code == 200
    finally:
        await app.state.background.close()
        await app.state.report_writer.close()
        await app.state.database.dispose()


async def sent_until_accepted(agent: httpx.AsyncClient, document: dict[str, Any]) -> tuple[httpx.Response, float]:
    """Send again what is answered 503, as agents do; the answer that accepts, and the seconds until it."""
    began = time.monotonic()
    while True:
        answer = await agent.post("/api/v1/reports", json=document)
        seconds = time.monotonic() - began
        if answer.status_code != 503 or seconds > 60:
            return answer, seconds


async def test_reports_are_stored_soon_after_the_database_is_back(open_folder: Path) -> None:
    """However long it was away: attempts to connect do not grow rarer with the length of the outage."""
    server = embedded.EmbeddedPostgres(open_folder / "data", embedded.DEMO_SETTINGS)
    server.start()
    try:
        server.ensure_database("hugeplan")
        settings = Settings.model_validate({"database_url": server.url("hugeplan"), "database_timeout_seconds": 1})
        migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
        app = create_app(settings)
        async with app.router.lifespan_context(app):
            agent = await Service(app).client_as(Role.AGENT)
            assert (await agent.post("/api/v1/reports", json=report())).status_code == 201
            server.stop()
            away = time.monotonic()
            refused = 0
            # Waits that double are 1, 2, 4 and 8 s: after 16 s the next one would take 15 s more.
            while time.monotonic() - away < 16:
                assert (await agent.post("/api/v1/reports", json=report())).status_code == 503
                refused += 1
            assert refused >= 3
            away = time.monotonic() - away
            server.start()
            answer, seconds = await sent_until_accepted(agent, report())
            assert answer.status_code == 201, answer.text
            assert seconds < 0.75 * away, "waits that double would be as long as it was away"
    finally:
        server.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's user may enter."""
    with folder_for_all() as folder:
        yield folder


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A file system of 160 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    folder = open_folder / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        [MOUNT, "-t", "tmpfs", "-o", "size=160m,mode=0777", "tmpfs", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode != 0:
        pytest.skip(f"tmpfs cannot be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run([UMOUNT, "-l", str(folder)], check=True)


def large(number: int) -> dict[str, Any]:
    """A report with many processes whose names do not compress."""
    document = report()
    document["sample"]["processes"] = [
        {"pid": each + 1, "start_time_ticks": number, "name": "".join(str(uuid.uuid4()) for _ in range(6))}
        for each in range(1000)
    ]
    return document


async def test_a_full_disk_refuses_reports_and_loses_none(small_disk: Path) -> None:
    server = embedded.EmbeddedPostgres(small_disk / "data", embedded.DEMO_SETTINGS | {"max_wal_size": "64MB"})
    server.start()
    server.ensure_database("hugeplan")
    settings = Settings.model_validate({"database_url": server.url("hugeplan"), "database_timeout_seconds": 3})
    migrate.upgrade(settings.sqlalchemy_url(), MIGRATIONS)
    app = create_app(settings)
    acknowledged: list[str] = []
    try:
        async with app.router.lifespan_context(app):
            service = Service(app)
            agent = await service.client_as(Role.AGENT)
            filling = small_disk / "filling"
            free = os.statvfs(small_disk)
            filling.write_bytes(b"\1" * max(0, free.f_bavail * free.f_frsize - 8 * MIB))
            refused = None
            for number in range(400):
                document = large(number)
                answer = await agent.post("/api/v1/reports", json=document)
                if answer.status_code != 201:
                    refused = answer
                    break
                acknowledged.append(document["report_id"])
            assert refused is not None, "the disk did not fill"
            assert_problem(refused, 503, "unavailable")
            assert (await service.client().get("/healthz")).status_code == 200
            filling.unlink()
            # PostgreSQL ends itself when it cannot write its log.
            server.stop()
            server.start()
            answer, _ = await sent_until_accepted(agent, document)
            assert answer.status_code in {200, 201}, answer.text
            acknowledged.append(document["report_id"])
        with psycopg.connect(server.url("hugeplan")) as connection:
            stored = [str(row[0]) for row in connection.execute("SELECT report_id FROM reports")]
        assert sorted(stored) == sorted(acknowledged)
    finally:
        server.close()
