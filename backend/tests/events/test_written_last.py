"""Events are written where their transaction ends: whoever else writes some waits for no other work of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from support.service import Service, somebody_waits

from hugeplan.db.session import ReadSession
from hugeplan.events.records import LOCK_EVENTS, Event, write_events

SAID = "SELECT string_agg(text, ' ' ORDER BY id) FROM events"
IS_LOCKED = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"


def said(words: str) -> list[Event]:
    """An event with this text."""
    return [Event(at=datetime.now(UTC), kind="node_deleted", text=words)]


async def stored(session: ReadSession) -> str | None:
    """The texts of the events, in the order of their ids."""
    found: str | None = await session.scalar(text(SAID))
    return found


async def test_nothing_is_locked_and_nothing_written_before_the_end(service: Service) -> None:
    async with service.database.write() as session:
        write_events(session, said("first"))
        async with session.begin_nested():
            write_events(session, said("second"))
        assert await session.scalar(text(IS_LOCKED)) == 0
        assert await stored(session) is None
        await session.execute(text("SELECT 1"))
        write_events(session, said("third"))
    async with service.database.read() as session:
        assert await stored(session) == "first second third"


async def test_a_savepoint_that_is_undone_takes_its_events_with_it(service: Service) -> None:
    async with service.database.write() as session:
        write_events(session, said("before"))
        with pytest.raises(ZeroDivisionError):
            async with session.begin_nested():
                write_events(session, said("undone"))
                async with session.begin_nested():
                    write_events(session, said("undone with it"))
                raise ZeroDivisionError
        async with session.begin_nested():
            write_events(session, said("kept"))
        write_events(session, said("after"))
    async with service.database.read() as session:
        assert await stored(session) == "before kept after"


async def test_a_transaction_that_is_undone_takes_its_events_with_it(service: Service) -> None:
    async with service.database.write() as session:
        write_events(session, said("undone"))
        async with session.begin_nested():
            write_events(session, said("undone, too"))
        await session.rollback()
        write_events(session, said("of the next"))
    with pytest.raises(ZeroDivisionError):
        async with service.database.write() as session:
            write_events(session, said("never"))
            raise ZeroDivisionError
    async with service.database.read() as session:
        assert await stored(session) == "of the next"


async def test_events_are_written_once_where_a_session_commits_twice(service: Service) -> None:
    async with service.database.write() as session:
        write_events(session, said("first"))
        await session.commit()
        write_events(session, said("second"))
    async with service.database.read() as session:
        assert await stored(session) == "first second"


async def test_events_get_their_ids_when_the_lock_is_theirs(service: Service, worker_database: str) -> None:
    async def write() -> None:
        async with service.database.write() as session:
            write_events(session, said("second") + said("third"))

    async def last_id(connection: psycopg.AsyncConnection[Any]) -> Any:
        return await (await connection.execute("SELECT last_value FROM events_id_seq")).fetchone()

    async with await psycopg.AsyncConnection.connect(worker_database) as held:
        await held.execute(LOCK_EVENTS)
        before = await last_id(held)
        waiting = asyncio.create_task(write())
        async with service.database.read() as session:
            await somebody_waits(session)
        assert await last_id(held) == before
        await held.execute("INSERT INTO events (at, kind, text) VALUES (now(), 'node_deleted', 'first')")
    await waiting
    async with service.database.read() as session:
        assert await stored(session) == "first second third"
