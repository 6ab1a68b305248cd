"""Proposed and approved plans beside newer samples: whichever replica looks first marks the stale ones."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from hugeplan.db.session import Database
from hugeplan.errors import ProblemError
from hugeplan.plans import repository, service

LOOK_SECONDS: Final = 30.0
_BATCH: Final = 50

_logger = logging.getLogger(__name__)


async def check_plans(database: Database) -> int:
    """Check a batch of plans, each in a transaction of its own. How many."""
    async with database.read() as session:
        ids = await repository.unchecked(session, _BATCH)
    for plan_id in ids:
        async with database.write() as session:
            row = await repository.lock_plan(session, plan_id)
            if row is not None:
                await service.check(session, row)
    return len(ids)


async def watch_forever(database: Database) -> None:
    """Check until cancelled. A database that is away is asked again."""
    while True:
        try:
            await check_plans(database)
        except (SQLAlchemyError, OSError, ProblemError) as error:
            _logger.warning("plans cannot be compared with new samples", extra={"error": str(error).splitlines()[0]})
        await asyncio.sleep(LOOK_SECONDS)
