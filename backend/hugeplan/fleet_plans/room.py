"""Bounds on fleet plans that are kept: in number and bytes, of one credential and in all."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from hugeplan.access.service import Actor
from hugeplan.db.connection import allow
from hugeplan.db.locks import LockOfOne, keep_within
from hugeplan.db.session import Database, WriteSession
from hugeplan.errors import ConflictError
from hugeplan.fleet_plans import repository
from hugeplan.settings import Settings

WAITING_OF_ONE: Final = 20
WAITING: Final = 100
SHARE_OF_ONE: Final = 4
"""One credential may have a quarter of all."""


async def require_room_to_wait(session: WriteSession, actor: Actor) -> None:
    """ConflictError, now or before the commit, where as many fleet plans have not ended as may be.

    A credential has no more than are left for all others, so that some credentials leave each as many as they have.
    """

    async def require_room(coming: int) -> None:
        own, every = await repository.count_unfinished(session, actor.line_id)
        if own + coming > WAITING_OF_ONE:
            whose = f"{WAITING_OF_ONE} fleet plans of {actor.name}"
            raise ConflictError(f"{whose} have not ended, as many as may be. Wait for some.")
        if own + every + 2 * coming > WAITING + 1:
            raise ConflictError(
                f"{every + coming - 1} fleet plans have not ended, too many for another one of {actor.name}."
            )

    await keep_within(session, LockOfOne.FLEET_PLANS, "all", require_room)


async def make_room(database: Database, settings: Settings, author_id: UUID) -> None:
    """Let the oldest that have ended go where there are too many, or they are too large.

    Each in a transaction of its own, and beside all requests: it has a line per node and a plan per group.
    """
    most, most_bytes = settings.max_fleet_plans, settings.max_fleet_plans_bytes
    for whose, share in ((author_id, SHARE_OF_ONE), (None, 1)):
        bounds = {"most": most // share, "most_bytes": most_bytes // share}
        is_left = True
        while is_left:
            async with database.write() as session:
                await allow(session, 600)
                is_left = await repository.make_room(session, whose, **bounds)
