"""Prepared statements that go to PostgreSQL together and are answered together.

psycopg's own pipeline writes to the socket, and waits for it, once per statement. Where a handful of small statements
store a batch of reports, that took more time than everything else about them. Here all are one write and one wait. It
stands on psycopg.pq, psycopg's interface to libpq; connections, errors and the pool stay psycopg's.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

from hugeplan.db.connection import Connection, SilentError

Parameter = bytes | None
"""A parameter in PostgreSQL's text format, or in its binary format where it is Binary; None is NULL."""
Row = tuple[bytes | None, ...]
"""A row of an answer in PostgreSQL's text format; None is NULL."""

_DONE: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class Statement:
    """A statement with parameters ``$1``, ``$2`` and so on. One object per statement: it is known by its identity."""

    __slots__ = ("sql",)

    def __init__(self, sql: str) -> None:
        self.sql = sql.encode()


Call = tuple[Statement, Sequence[Parameter]]

BEGIN: Final = Statement("BEGIN")
COMMIT: Final = Statement("COMMIT")
ROLLBACK: Final = Statement("ROLLBACK")


class Prepared:
    """The names of the statements that are prepared on one connection. It lives as long as the connection."""

    def __init__(self) -> None:
        self._names: dict[Statement, bytes] = {}
        self._made = 0

    def name(self, statement: Statement) -> bytes | None:
        """The name of a prepared statement; None when it is not prepared."""
        return self._names.get(statement)

    def new_name(self) -> bytes:
        """A name that was never used here: after a failure it is not known which statements are there."""
        self._made += 1
        return b"exchange%d" % self._made

    def add(self, statement: Statement, name: bytes) -> None:
        """Note a statement that PostgreSQL has prepared."""
        self._names[statement] = name


class Exchange:
    """Statements over one connection that nobody else uses meanwhile.

    ``prepared`` is what is prepared on the connection; None: statements are prepared for one use, as on a connection
    whose prepared statements somebody else may drop.
    """

    def __init__(self, connection: Connection, prepared: Prepared | None) -> None:
        self._connection = connection
        self._server = connection.pgconn
        self._prepared = prepared
        self._ready: asyncio.Future[None] | None = None

    async def run(self, calls: Sequence[Call], sent: Callable[[], None] | None = None) -> list[list[Row]]:
        """The rows of each statement. ``sent`` is called when all have left for PostgreSQL, before it answers.

        psycopg.Error of the first statement that fails; those behind it are not carried out. After any other failure
        the connection is closed, because answers may still be on their way. SilentError where all of it takes longer
        than one statement may.
        """
        loop = asyncio.get_running_loop()
        socket = self._server.socket
        try:
            # Until the end of the round: to watch the socket for each wait costs as much as the wait.
            loop.add_reader(socket, self._wake)
            try:
                async with asyncio.timeout(self._connection.silence_seconds):
                    self._server.enter_pipeline_mode()
                    made = self._send(calls)
                    await self._flush(socket)
                    if sent is not None:
                        sent()
                    failed, answers = await self._answers(calls, made)
                    self._server.exit_pipeline_mode()
            finally:
                loop.remove_reader(socket)
        except TimeoutError as error:
            await self._connection.close()
            raise SilentError("PostgreSQL does not answer in time") from error
        except BaseException:
            await self._connection.close()
            raise
        self._connection.heard_at = time.monotonic()
        if failed is not None:
            raise error_from_result(failed)
        return answers

    def _send(self, calls: Sequence[Call]) -> list[bytes | None]:
        """Put all into libpq's buffer. For each call the name of its statement, where it is prepared with it."""
        made: list[bytes | None] = []
        new: dict[Statement, bytes] = {}
        for statement, parameters in calls:
            name = self._known(statement, new)
            made.append(None if name is not None else self._new_name())
            if name is None:
                name = new[statement] = made[-1] or b""
                self._server.send_prepare(name, statement.sql)
            self._server.send_query_prepared(name, parameters, [type(one) is Binary for one in parameters])
        self._server.pipeline_sync()
        return made

    def _known(self, statement: Statement, new: dict[Statement, bytes]) -> bytes | None:
        if self._prepared is None:
            return None  # the next one takes the place of what has no name
        return self._prepared.name(statement) or new.get(statement)

    def _new_name(self) -> bytes:
        return b"" if self._prepared is None else self._prepared.new_name()

    async def _answers(
        self, calls: Sequence[Call], made: Sequence[bytes | None]
    ) -> tuple[pq.abc.PGresult | None, list[list[Row]]]:
        """The first failure, and the rows of each statement. Everything up to the end of the round is read."""
        failed: pq.abc.PGresult | None = None
        answers: list[list[Row]] = []
        for (statement, _), name in zip(calls, made, strict=True):
            if name is not None:
                prepared = await self._result()
                if prepared.status in _DONE and self._prepared is not None:
                    self._prepared.add(statement, name)
                failed = failed or _failure(prepared)
            result = await self._result()
            failed = failed or _failure(result)
            answers.append(_rows(result))
        end = await self._next()
        if end is None or end.status != pq.ExecStatus.PIPELINE_SYNC:
            raise psycopg.OperationalError("PostgreSQL ended the connection before the end of its answer")
        return failed, answers

    async def _result(self) -> pq.abc.PGresult:
        """The answer to one message, which libpq follows with nothing."""
        result = await self._next()
        if result is None or await self._next() is not None:
            raise psycopg.OperationalError("PostgreSQL ended the connection before its answer")
        return result

    async def _next(self) -> pq.abc.PGresult | None:
        while self._server.is_busy():
            await self._until_ready()
            self._server.consume_input()
        return self._server.get_result()

    async def _flush(self, socket: int) -> None:
        """Until everything has left. PostgreSQL may answer before it has read all, so its answers are taken in."""
        if not self._server.flush():
            return
        loop = asyncio.get_running_loop()
        loop.add_writer(socket, self._wake)
        try:
            while self._server.flush():
                await self._until_ready()
                self._server.consume_input()
        finally:
            loop.remove_writer(socket)

    async def _until_ready(self) -> None:
        self._ready = asyncio.get_running_loop().create_future()
        await self._ready

    def _wake(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)


def _failure(result: pq.abc.PGresult) -> pq.abc.PGresult | None:
    return None if result.status in _DONE else result


def _rows(result: pq.abc.PGresult) -> list[Row]:
    columns = range(result.nfields)
    return [tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)]


# --- parameters -----------------------------------------------------------------------------------


class Binary(bytes):
    """A parameter in PostgreSQL's binary format."""

    __slots__ = ()


_ARRAY: Final = struct.Struct(">iiiii")
_LENGTH: Final = struct.Struct(">i")
_BYTEA_OID: Final = 17
_UUID_OID: Final = 2950


def _binary_array(oid: int, members: Sequence[bytes | None]) -> Binary:
    """An array as PostgreSQL's array_recv reads it: dimensions, whether there are NULLs, type, length, lower bound."""
    if not members:
        return Binary(_ARRAY.pack(0, 0, oid, 0, 0)[:12])
    parts = [_ARRAY.pack(1, int(None in members), oid, len(members), 1)]
    for member in members:
        parts += (_LENGTH.pack(-1),) if member is None else (_LENGTH.pack(len(member)), member)
    return Binary(b"".join(parts))


def uuids(values: Iterable[UUID | None]) -> Binary:
    """``uuid[]``."""
    return _binary_array(_UUID_OID, [None if value is None else value.bytes for value in values])


def blobs(values: Iterable[bytes]) -> Binary:
    """``bytea[]``."""
    return _binary_array(_BYTEA_OID, list(values))


def times(values: Iterable[datetime | None]) -> bytes:
    """``timestamptz[]`` of times with their zone."""
    return b"{" + b",".join(b"NULL" if value is None else value.isoformat().encode() for value in values) + b"}"


def integers(values: Iterable[int]) -> bytes:
    """An array of any type of integers."""
    return b"{" + b",".join(b"%d" % value for value in values) + b"}"


def texts(values: Iterable[str]) -> bytes:
    """``text[]``."""
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"').encode() for value in values)
    return b"{" + b",".join(b'"' + value + b'"' for value in quoted) + b"}"
