"""Bounds on fleet plans that are kept: in number and bytes, of one credential and in all."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from hugeplan.access.service import Actor
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import ConflictError
from hugeplan.fleet_plans import repository
from hugeplan.settings import Settings

WAITING_OF_ONE: Final = 20
WAITING: Final = 100
SHARE_OF_ONE: Final = 4
"""One credential may have a quarter of all."""


async def require_room_to_wait(session: ReadSession, actor: Actor) -> None:
    """ConflictError where as many fleet plans have not ended as may be."""
    own, every = await repository.count_unfinished(session, actor.token_id)
    if own >= WAITING_OF_ONE:
        raise ConflictError(f"{own} fleet plans of {actor.name} have not ended, as many as may be. Wait for some.")
    if every >= WAITING:
        raise ConflictError(f"{every} fleet plans have not ended, as many as may be. Wait for some.")


async def make_room(session: WriteSession, settings: Settings, author_id: UUID | None, *, for_another: bool) -> None:
    """Let the oldest that have ended go where there are too many, or they are too large.

    ``for_another``: one that has not ended comes or is there, and counts.
    """
    most, most_bytes, coming = settings.max_fleet_plans, settings.max_fleet_plans_bytes, int(for_another)
    if author_id is not None:
        of_one = {"most": most // SHARE_OF_ONE - coming, "most_bytes": most_bytes // SHARE_OF_ONE}
        await repository.make_room(session, author_id, **of_one)
    await repository.make_room(session, None, most=most - coming, most_bytes=most_bytes)
