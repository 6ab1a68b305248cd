"""Statements that go to PostgreSQL together: answers, failures, sizes, and connections that end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from hugeplan.db.connection import Connection
from hugeplan.db.exchange import (
    BEGIN,
    COMMIT,
    Exchange,
    Prepared,
    Row,
    Statement,
    blobs,
    integers,
    texts,
    times,
    uuids,
)

ONE = Statement("SELECT 1")
SUM = Statement("SELECT $1::int + $2::int")
FAILS = Statement("SELECT 1 / $1::int")
NAMES = Statement("SELECT count(*) FROM pg_prepared_statements")


@pytest.fixture
async def connection(worker_database: str) -> AsyncIterator[Connection]:
    """A connection without a transaction around its statements."""
    opened = await Connection.connect(worker_database, prepare_threshold=None)
    yield opened
    await opened.close()


async def one(connection: Connection, statement: Statement, *parameters: bytes | None) -> list[Row]:
    """The rows of one statement that is not prepared before."""
    (rows,) = await Exchange(connection, None).run([(statement, parameters)])
    return rows


async def test_each_statement_has_its_rows(connection: Connection) -> None:
    series = Statement("SELECT n, NULL FROM generate_series(1, $1::int) n")
    nothing = Statement("SELECT 1 WHERE false")
    calls = [(ONE, ()), (series, [b"3"]), (nothing, ()), (SUM, [b"2", b"40"]), (SUM, [b"5", b"-6"])]
    for prepared in (None, Prepared()):
        answers = await Exchange(connection, prepared).run(calls)
        assert answers == [[(b"1",)], [(b"1", None), (b"2", None), (b"3", None)], [], [(b"42",)], [(b"-1",)]]


async def test_a_statement_is_prepared_once_per_connection(connection: Connection) -> None:
    prepared = Prepared()
    for _ in range(3):
        await Exchange(connection, prepared).run([(SUM, [b"1", b"1"]), (SUM, [b"1", b"2"]), (ONE, ())])
    assert await one(connection, NAMES) == [(b"2",)]


async def test_what_follows_a_failure_is_not_carried_out(connection: Connection) -> None:
    await one(connection, Statement("CREATE TEMP TABLE kept (n int)"))
    add = Statement("INSERT INTO kept VALUES ($1)")
    prepared = Prepared()
    exchange = Exchange(connection, prepared)
    with pytest.raises(psycopg.errors.DivisionByZero):
        await exchange.run(
            [(BEGIN, ()), (add, [b"1"]), (FAILS, [b"0"]), (add, [b"2"]), (SUM, [b"1", b"1"]), (COMMIT, ())]
        )
    await connection.rollback()
    # SUM was not prepared then; it is now.
    answers = await exchange.run([(BEGIN, ()), (add, [b"3"]), (SUM, [b"1", b"1"]), (COMMIT, ())])
    assert answers[2] == [(b"2",)]
    assert await one(connection, Statement("SELECT n FROM kept")) == [(b"3",)]


async def test_a_statement_that_cannot_be_prepared_fails_as_itself(connection: Connection) -> None:
    wrong = Statement("SELECT missing FROM nowhere")
    for prepared in (None, Prepared()):
        with pytest.raises(psycopg.errors.UndefinedTable):
            await Exchange(connection, prepared).run([(wrong, ()), (ONE, ())])
        await connection.rollback()
        assert await one(connection, ONE) == [(b"1",)]


async def test_parameters_arrive_as_they_are(connection: Connection) -> None:
    words = ["", "plain", 'a "quote"', "back\\slash", "{brace, comma}", "NULL", " space ", "ü 漢 🐘", "line\nbreak"]
    (row,) = await one(connection, Statement("SELECT to_json($1::text[])::text"), texts(words))
    assert row[0] is not None
    (again,) = await one(
        connection,
        Statement("SELECT $1::text[] = ARRAY(SELECT json_array_elements_text($2::json))"),
        texts(words),
        row[0],
    )
    assert again == (b"t",)
    contents = [b"", bytes(range(256)), b"\\x", b"\x1f\x8b"]
    found = await one(connection, Statement("SELECT encode(b, 'hex') FROM unnest($1::bytea[]) b"), blobs(contents))
    assert [bytes.fromhex((value or b"").decode()) for (value,) in found] == contents
    ids = [uuid4(), None, UUID(int=0)]
    found = await one(connection, Statement("SELECT u FROM unnest($1::uuid[]) u"), uuids(ids))
    assert [None if value is None else UUID(value.decode()) for (value,) in found] == ids
    found = await one(connection, Statement("SELECT n FROM unnest($1::smallint[]) n"), integers([1, -32768, 32767]))
    assert found == [(b"1",), (b"-32768",), (b"32767",)]
    moments = [datetime(2026, 2, 3, 4, 5, 6, 789, UTC), datetime(2026, 2, 3, tzinfo=timezone(timedelta(hours=-3.5)))]
    found = await one(
        connection, Statement("SELECT extract(epoch FROM t) FROM unnest($1::timestamptz[]) t"), times(moments)
    )
    assert [float(value or b"") for (value,) in found] == [moment.timestamp() for moment in moments]
    empty = Statement("SELECT cardinality($1::uuid[]), cardinality($2::bytea[]), cardinality($3::text[])")
    assert await one(connection, empty, uuids([]), blobs([]), texts([])) == [(b"0", b"0", b"0")]


async def test_large_questions_and_large_answers_pass_each_other(connection: Connection) -> None:
    """Neither side waits for the other to read: together they are far more than the socket holds."""
    echo = Statement("SELECT $1::text")
    large = b"x" * 3_000_000
    answers = await asyncio.wait_for(Exchange(connection, None).run([(echo, [large])] * 8), 60)
    assert all(rows == [(large,)] for rows in answers)


async def test_it_says_when_all_is_sent(connection: Connection) -> None:
    """Before PostgreSQL answers: here it waits for a lock that is given up only then."""
    other = await Connection.connect(connection.info.dsn, password=connection.info.password, autocommit=True)
    await other.execute("SELECT pg_advisory_lock(7)")
    sent = asyncio.Event()
    waiting = Statement("SELECT pg_advisory_lock(7) IS NOT NULL")
    running = asyncio.create_task(Exchange(connection, None).run([(waiting, ())], sent.set))
    await asyncio.wait_for(sent.wait(), 30)
    assert not running.done()
    await other.execute("SELECT pg_advisory_unlock(7)")
    assert await asyncio.wait_for(running, 30) == [[(b"t",)]]
    await other.close()


async def ended(connection: Connection, running: asyncio.Task[Any], other: Connection) -> None:
    """Wait until the statement of ``running`` is carried out, and end its connection."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
    while not running.done():
        found = await (await other.execute(query, [connection.info.backend_pid])).fetchall()
        if found:
            return


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_round_that_is_cut_off_closes_its_connection(connection: Connection, cancelled: bool) -> None:
    """Answers may still be on their way: nobody else may read them as his own."""
    other = await Connection.connect(connection.info.dsn, password=connection.info.password, autocommit=True)
    await other.execute("SELECT pg_advisory_lock(7)")
    sent = asyncio.Event()
    waiting = Statement("SELECT pg_advisory_lock(7)")
    running = asyncio.create_task(Exchange(connection, Prepared()).run([(ONE, ()), (waiting, ())], sent.set))
    await asyncio.wait_for(sent.wait(), 30)
    if cancelled:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        await asyncio.wait_for(ended(connection, running, other), 30)
        with pytest.raises(psycopg.OperationalError):
            await running
    assert connection.closed
    await other.close()
