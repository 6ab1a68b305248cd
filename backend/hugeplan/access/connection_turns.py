"""Whose turn it is to hold a database connection: of each credential one request, and a few in all."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from fastapi import Request
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hugeplan.access.gate import Admitted
from hugeplan.api.dependencies import SAFE_METHODS
from hugeplan.db.turns import CONNECTION_TURN
from hugeplan.settings import Settings
from hugeplan.shares import Room, Turns

PART_OF_POOL: Final = 4
"""Each kind of request has a fourth of the connections that are kept open, and at least two."""


class ConnectionTurns:
    """The turns of one process of the service."""

    def __init__(self, settings: Settings) -> None:
        self._seconds = settings.database_timeout_seconds
        self._of_one, self._of_all = Turns(1), Turns(max(2, settings.database_pool_size // PART_OF_POOL))

    def begin(self, request: Request, known: Admitted, *, is_import: bool) -> None:
        """What this request does with the database from now on is in its credential's turn.

        What writes may wait for rows that another holds: reads do not wait for it. Machines are few at a time already.
        Imports share a place, which waits for nothing else of whose it is.
        """
        if not known.is_machine:
            kind = "reads" if request.method in SAFE_METHODS else "imports" if is_import else "writes"
            CONNECTION_TURN.set(_Turn(self, known.line_id, kind))

    async def wait(self, whose: str, kind: str, held: list[Room]) -> float:
        """Until ``held`` has a turn; the seconds for which others had it. PoolTimeoutError when it does not come."""
        await _enter(self._of_one.turn(f"{kind} of {whose}"), held)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                await _enter(self._of_all.turn(kind), held)
        except TimeoutError as error:
            raise PoolTimeoutError("no turn for a connection") from error
        return time.monotonic() - begun


async def _enter(room: Room, held: list[Room]) -> None:
    await room.__aenter__()
    held.append(room)


class _Turn:
    """Of one request, however many connections it holds at a time: it may wait for one while it has another."""

    def __init__(self, turns: ConnectionTurns, whose: str, kind: str) -> None:
        self._turns, self._whose, self._kind, self._connections = turns, whose, kind, 0
        self._held: list[Room] = []

    async def take(self) -> float:
        self._connections += 1
        if self._connections > 1:
            return 0.0
        try:
            return await self._turns.wait(self._whose, self._kind, self._held)
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        self._connections -= 1
        while self._held and not self._connections:
            self._held.pop().end()
