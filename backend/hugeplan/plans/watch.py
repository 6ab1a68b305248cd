"""Proposed and approved plans beside newer samples: whichever replica looks first marks the stale ones."""

from __future__ import annotations

from typing import Final

from hugeplan.db.session import Database
from hugeplan.errors import InvalidInputError, NotFoundError
from hugeplan.plans import repository, service
from hugeplan.sandbox.sandbox import Sandbox
from hugeplan.scenarios import saved_plans

LOOK_SECONDS: Final = 30.0
_BATCH: Final = 50


class _Beside:
    """The sandbox for this task, with a place of its own among the credentials."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def work(self, job: str, payload: bytes, *, what: str) -> bytes:
        return await self._sandbox.work(job, payload, whose="stale plans", what=what)


async def check_plans(database: Database, sandbox: Sandbox) -> int:
    """Check a batch of plans, each in a transaction of its own. How many.

    A plan that takes too long to plan again keeps what was known of it, and is looked at with the next sample.
    """
    async with database.read() as session:
        ids = await repository.unchecked(session, _BATCH)
    beside = _Beside(sandbox)
    for plan_id in ids:
        async with database.read() as session:
            try:
                seen = await saved_plans.stored_plan(session, plan_id)
            except NotFoundError:  # deleted meanwhile
                continue
            try:
                looked = await service.look(session, beside, seen)
            except InvalidInputError:
                looked = service.unchanged(seen)
        async with database.write() as session:
            row = await repository.lock_plan(session, plan_id)
            if row is not None:
                await service.note_look(session, row, looked)
    return len(ids)
