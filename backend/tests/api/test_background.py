"""Background work: nothing ends in silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy.exc import OperationalError

from hugeplan.api import background
from hugeplan.api.background import Supervisor
from hugeplan.db.locks import AdvisoryLock


@pytest_asyncio.fixture
async def registry(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CollectorRegistry]:
    monkeypatch.setattr(background, "FIRST_PAUSE_SECONDS", 0.001)
    yield CollectorRegistry()


async def until(condition: asyncio.Event) -> None:
    await asyncio.wait_for(condition.wait(), 20)


async def test_work_that_fails_is_logged_counted_shown_and_begun_anew(
    registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    found, go_on, well = asyncio.Event(), asyncio.Event(), asyncio.Event()
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds <= 2:
            raise ValueError("a partition with an odd name")
        if rounds == 3:
            raise OperationalError("SELECT 1", {}, Exception("the database is away"))
        found.set()
        await go_on.wait()
        well.set()

    supervisor = Supervisor(registry)
    with caplog.at_level(logging.WARNING):
        supervisor.start("retention", work, is_needed=True)
        await until(found)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR", "WARNING"]
    assert "an odd name" in (caplog.records[0].exc_text or "")
    assert supervisor.failing() == supervisor.needed_and_failing() == ["retention"]
    told = generate_latest(registry).decode()
    assert 'hugeplan_background_failures_total{work="retention"} 3.0' in told
    assert 'hugeplan_background_failing{work="retention"} 1.0' in told
    go_on.set()
    await until(well)
    await asyncio.sleep(0)
    assert supervisor.failing() == []
    assert 'hugeplan_background_failing{work="retention"} 0.0' in generate_latest(registry).decode()
    await supervisor.close()


async def test_rounds_go_on(registry: CollectorRegistry) -> None:
    enough = asyncio.Event()
    rounds = 0

    async def work() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            enough.set()
        if rounds % 2:
            raise KeyError("an event kind of a later version")

    supervisor = Supervisor(registry)
    supervisor.start("events", work, every=0.001)
    await until(enough)
    assert supervisor.needed_and_failing() == []
    await supervisor.close()


async def test_it_ends_with_the_service(registry: CollectorRegistry) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    supervisor = Supervisor(registry)
    supervisor.start("feed", work)
    await until(begun)
    await supervisor.close()
    assert ended.is_set()


def test_no_two_locks_share_a_number() -> None:
    assert len({int(lock) for lock in AdvisoryLock}) == len(AdvisoryLock.__members__)


async def test_work_whose_end_fails_ends(registry: CollectorRegistry) -> None:
    """A service that stopped while it looked after its tables waited for the next round, ten minutes later."""
    begun = asyncio.Event()

    async def fails_when_it_is_to_end() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the connection is closed")

    supervisor = Supervisor(registry)
    supervisor.start("maintenance", fails_when_it_is_to_end, every=600.0)
    await begun.wait()
    await asyncio.wait_for(supervisor.close(), 10)
