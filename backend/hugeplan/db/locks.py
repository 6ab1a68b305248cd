"""The advisory locks of the service, each with a number of its own: whoever takes one waits for nobody else's work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum, unique
from typing import Final

from psycopg.errors import LockNotAvailable
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from hugeplan.db.session import WriteSession


@unique
class AdvisoryLock(IntEnum):
    """What is done by one process at a time, over all replicas."""

    MIGRATION = 4_811_252_263_001
    MAINTENANCE = 4_811_252_263_002
    EVENTS = 4_811_252_263_003
    BOOTSTRAP = 4_811_252_263_004
    SEALING = 4_811_252_263_005
    NAMES = 4_811_252_263_006
    REPLACEMENT = 4_811_252_263_007


@unique
class LockOfOne(IntEnum):
    """What is done one after the other for one machine, credential or node: the seed of the hash of whose lock it is.

    Any number does: a lock may meet another in 2^64.
    """

    MACHINE = 4_811_252_263
    SCENARIOS = 4_811_252_264
    OPEN_PLANS = 4_811_252_265
    FLEET_PLANS = 4_811_252_266
    TRIALS = 4_811_252_267
    TOKEN_LINE = 4_811_252_268
    WEBHOOKS = 4_811_252_269


async def lock_one(session: WriteSession, lock: LockOfOne, whose: object) -> None:
    """Wait for the transaction of whoever holds this lock, and hold it until one's own ends."""
    statement = text("SELECT pg_advisory_xact_lock(hashtextextended(:whose, :seed))")
    await session.execute(statement, {"whose": str(whose), "seed": int(lock)})


TABLE_TRIES: Final = 20
LOCK_TIMEOUT: Final = "SET LOCAL lock_timeout = '50ms'"
"""All others queue behind whoever waits for a whole table, and a backup holds each of them to its end."""


async def lock_table(session: WriteSession, table: str) -> None:
    """Hold a table alone: several short waits, between which others go on. DBAPIError where it stays held."""
    for left in range(TABLE_TRIES - 1, -1, -1):
        try:
            async with session.begin_nested():
                await session.execute(text(LOCK_TIMEOUT))
                await session.execute(text(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"))
        except DBAPIError as error:
            if not left or not isinstance(error.orig, LockNotAvailable):
                raise
            await asyncio.sleep(0.2)
        else:
            return


async def keep_within(
    session: WriteSession, lock: LockOfOne, whose: object, require_room: Callable[[int], Awaitable[None]]
) -> None:
    """Refuse before any work where another one would be too many, and before the commit where there are too many.

    ``require_room`` gets how many are still to come. The second time, those who add count one after the other.
    """
    await require_room(1)

    async def again() -> None:
        await lock_one(session, lock, whose)
        await require_room(0)

    session.before_commit.append(again)
