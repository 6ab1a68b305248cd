"""Connections in turns: who asks for much holds few of them, and nobody waits for all that another asks.

A handler holds its connection for as long as it works with it, and on the event loop all others wait for it. So who has
a connection has a turn to work. Requests have turns; background work and reports come as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry, ManagesConnection, PoolProxiedConnection
from sqlalchemy.util import await_only

from hugeplan.db.connection import connected_within


class ConnectionTurn(Protocol):
    """What one request waits for before it has a connection."""

    async def take(self) -> float:
        """Wait for it, and say for how many seconds others had it. ``sqlalchemy.exc.TimeoutError`` when it does not
        come.
        """

    def give_back(self) -> None:
        """The connection is back in the pool."""


CONNECTION_TURN: Final[ContextVar[ConnectionTurn | None]] = ContextVar("connection_turn", default=None)
"""Of the request at work. Tasks that a request starts inherit it."""
_KEY: Final = "hugeplan.turn"


@contextmanager
def without_turn() -> Iterator[None]:
    """For what requests share: who has it waits for nothing that one credential has filled."""
    token = CONNECTION_TURN.set(None)
    try:
        yield
    finally:
        CONNECTION_TURN.reset(token)


class PoolInTurns(AsyncAdaptedQueuePool):
    """SQLAlchemy's pool, behind the turns. To wait for others' turns and for a connection, to look at it and to make
    another one take ``pool_timeout`` together.
    """

    def connect(self) -> PoolProxiedConnection:
        turn = CONNECTION_TURN.get()
        if turn is None:
            return self._connect(0.0)
        waited = await_only(turn.take())
        try:
            made = self._connect(waited)
            _info(made)[_KEY] = turn
        except BaseException:
            turn.give_back()
            raise
        return made

    def _connect(self, waited: float) -> PoolProxiedConnection:
        with connected_within(self.timeout() - waited):
            return super().connect()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        turn: ConnectionTurn | None = _info(record).pop(_KEY, None)
        try:
            super()._do_return_conn(record)
        finally:
            if turn is not None:
                turn.give_back()


def _info(entry: ManagesConnection) -> dict[Any, Any]:
    found = entry.record_info
    assert found is not None
    return found
