"""Proposed and approved plans beside newer samples: whichever replica looks first marks the stale ones."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from hugeplan.db.alone import alone
from hugeplan.db.session import Database
from hugeplan.plans import repository, service
from hugeplan.sandbox.sandbox import Asker, Sandbox
from hugeplan.scenarios import saved_plans

LOOK_SECONDS: Final = 30.0
_BATCH: Final = 50
_OF_ONE_AUTHOR: Final = 25
"""Of a batch: each is planned again, and who proposes much costs the others' processor time."""


class _Beside:
    """The sandbox for this task, with a place of its own among the credentials."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def work(self, job: str, payload: bytes, *, what: str) -> bytes:
        return await self._sandbox.work(job, payload, whose=Asker("stale plans"), what=what)


async def check_plans(database: Database, sandbox: Sandbox) -> int:
    """Check a batch of plans, each in a transaction of its own. How many.

    A plan that cannot be planned again, or not in time, keeps what was known of it until the next sample.
    """
    async with database.read() as session:
        ids = await repository.unchecked(session, _BATCH, _OF_ONE_AUTHOR)
    beside = _Beside(sandbox)
    for plan_id in ids:
        with alone(f"plan {plan_id}"):  # it may be deleted meanwhile
            await _check(database, beside, plan_id)
    return len(ids)


async def _check(database: Database, beside: _Beside, plan_id: UUID) -> None:
    async with database.read() as session:
        seen = await saved_plans.stored_plan(session, plan_id)
        looked: service.Looked | None = service.unchanged(seen)
        with alone(f"plan {plan_id}"):
            looked = await service.look(session, beside, seen)
    async with database.write() as session:
        row = await repository.lock_plan(session, plan_id)
        if row is not None:
            await service.note_look(session, row, looked)
