"""Proposed and approved plans beside newer samples: whichever replica looks first marks the stale ones."""

from __future__ import annotations

from typing import Final

from hugeplan.db.session import Database
from hugeplan.plans import repository, service

LOOK_SECONDS: Final = 30.0
_BATCH: Final = 50


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
