"""Bounds on what a planner may have kept: a credential that fell into wrong hands fills no disk."""

from __future__ import annotations

from hugeplan.access.service import Actor
from hugeplan.db.session import ReadSession
from hugeplan.errors import ConflictError
from hugeplan.scenarios import repository
from hugeplan.settings import Settings


async def require_room_for_scenario(session: ReadSession, settings: Settings) -> None:
    """ConflictError where as many scenarios are kept as may be."""
    most = settings.max_scenarios
    if await repository.count_scenarios(session) >= most:
        raise ConflictError(
            f"{most} scenarios are kept, as many as may be (HUGEPLAN_MAX_SCENARIOS). Delete some, then save this one."
        )


async def require_room_for_plan(session: ReadSession, settings: Settings, actor: Actor) -> None:
    """ConflictError where somebody has kept as many plans that nobody has decided about as may be."""
    most = settings.max_open_plans
    if await repository.count_open_plans(session, actor.token_id) >= most:
        raise ConflictError(
            f"{actor.name} has {most} plans that are drafts or proposed, as many as may be (HUGEPLAN_MAX_OPEN_PLANS)."
            " Delete some or have them approved, then keep this one."
        )
