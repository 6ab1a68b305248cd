"""Connections to PostgreSQL whose waits end on this side. PostgreSQL keeps its own time limits while it runs: a server
that is paused, or a machine that has gone silent, keeps none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg import AsyncConnection, waiting
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from hugeplan.settings import Settings

GRACE_SECONDS: Final = 1.0
"""Beyond PostgreSQL's own limit of a statement: while it runs, it is the one that ends a statement, and says so."""
LOOK_SECONDS: Final = 1.0
"""For the answer to an empty statement, with which a connection is looked at before use; at most half of the time for
the connection, so that there is time for a new one. Who used a connection a moment ago does not look at it."""
CANCEL_SECONDS: Final = 1.0
"""To ask PostgreSQL to end the statement of somebody who no longer waits for it."""

LEAST_CONNECT: Final = 2
"""The least seconds that libpq and psycopg take for one host."""

R = TypeVar("R")

_until: ContextVar[float | None] = ContextVar("until", default=None)


@contextmanager
def connected_within(seconds: float) -> Iterator[None]:
    """Within the block, connections are looked at and made until then, however many of them."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


class SilentError(psycopg.OperationalError):
    """PostgreSQL said nothing for as long as it is waited for. What it was sent it may still carry out."""


def options_of(settings: Settings) -> dict[str, Any]:
    """How all connections of the service are made."""
    hosts = str(conninfo_to_dict(settings.psycopg_url()).get("host") or "").count(",") + 1
    return {
        "silence_seconds": settings.statement_timeout_seconds + GRACE_SECONDS,
        "connect_seconds": settings.database_timeout_seconds,
        # Of each host. Where the first is silent, the next has its time, too.
        "connect_timeout": max(LEAST_CONNECT, int(settings.database_timeout_seconds / hosts)),
        "least_seconds": LEAST_CONNECT * hosts if hosts > 1 else 0,
        # A database machine that has gone silent is noticed in seconds, not in the kernel's quarter of an hour.
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }


class Connection(AsyncConnection[Any]):
    """A connection that is closed when PostgreSQL says nothing for ``silence_seconds`` while it is waited for."""

    silence_seconds = 15.0 + GRACE_SECONDS
    look_seconds = LOOK_SECONDS
    heard_at = 0.0
    """When PostgreSQL answered last, by the monotonic clock."""
    _in_transaction: float | None = None

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        """A new one. psycopg's own limit is of each address, and none of it is of looking up names."""
        silence = options.pop("silence_seconds", cls.silence_seconds)
        seconds = most = options.pop("connect_seconds", 5.0)
        if (until := _until.get()) is not None:
            seconds = until - time.monotonic()
        try:
            async with asyncio.timeout(max(seconds, options.pop("least_seconds", 0))):
                made = await super().connect(conninfo, **options)
        except TimeoutError as error:
            raise SilentError("PostgreSQL made no connection in time") from error
        made.silence_seconds, made.look_seconds = silence, min(LOOK_SECONDS, most / 2)
        made.heard_at = time.monotonic()
        return made

    async def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:  # noqa: ASYNC109
        """What psycopg asks of PostgreSQL, within the limit. Who no longer waits (a client that went away, a service
        that stops) has the statement ended and the connection closed: psycopg waits for that for up to 10 s.
        """
        within = _within(gen, self._seconds())
        try:
            found = await waiting.wait_async(within, self.pgconn.socket, interval, timeout)
        except SilentError:
            self.pgconn.finish()
            raise
        except asyncio.CancelledError:
            try:
                if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                    with suppress(psycopg.Error):
                        await self.cancel_safe(timeout=CANCEL_SECONDS)
            finally:
                self.pgconn.finish()
            raise
        self.heard_at = time.monotonic()
        return found

    def _seconds(self) -> float:
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._in_transaction = None
        seconds = self._in_transaction or self.silence_seconds
        if (until := _until.get()) is None:
            return seconds
        if self.autocommit:  # how SQLAlchemy and psycopg's pool look at a connection
            seconds = self.look_seconds
        return min(seconds, until - time.monotonic())

    def allow(self, seconds: float) -> None:
        """Wait longer, until the transaction ends."""
        self._in_transaction = seconds + GRACE_SECONDS


def _within(gen: PQGen[R], seconds: float) -> PQGen[R]:
    """The same steps. SilentError when nothing comes for so long: an answer of many rows may take its time."""
    until = time.monotonic() + seconds
    try:
        waits_for = next(gen)
        while True:
            if ready := (yield waits_for):
                until = time.monotonic() + seconds
            waits_for = gen.send(ready)
            if not ready and time.monotonic() >= until:
                raise SilentError("PostgreSQL does not answer in time")
    except StopIteration as end:
        found: R = end.value
        return found


async def look_at(connection: Connection) -> None:
    """psycopg.OperationalError where a connection of a pool is of no use: the next one may be."""
    if time.monotonic() - connection.heard_at > LOOK_SECONDS:
        try:
            with connected_within(LOOK_SECONDS):
                await AsyncConnectionPool.check_connection(connection)
        except SilentError as error:
            raise psycopg.OperationalError("PostgreSQL has forgotten this connection") from error


async def allow(session: AsyncSession, seconds: int) -> None:
    """Let each statement take longer, until the transaction ends."""
    await session.execute(text(f"SET LOCAL statement_timeout = '{seconds}s'"))
    connection = (await (await session.connection()).get_raw_connection()).driver_connection
    assert isinstance(connection, Connection)
    connection.allow(seconds)
