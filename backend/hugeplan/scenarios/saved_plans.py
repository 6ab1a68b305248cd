"""Plans that are kept: computed once, frozen with all that they were computed from, and listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.pagination import Page, decode_time_cursor, page_within
from hugeplan.db.models import PlanRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import ConflictError, NotFoundError
from hugeplan.fleet import present_names
from hugeplan.scenarios import plan_content as content
from hugeplan.scenarios import repository, service, work
from hugeplan.scenarios.plan_content import Computed, Wanted
from hugeplan.scenarios.schemas import PlanFilter, PlanKeep, PlanSummary

T = TypeVar("T")

_ROWS_AT_ONCE: Final = 50
"""A plan of 256 databases, all of which a newer sample changed, is stale for 256 reasons."""


async def summaries(session: ReadSession, rows: Sequence[PlanRow]) -> list[PlanSummary]:
    """Plans without their content, each with the nodes where it is in force."""
    nodes = await repository.in_force_of(session, [row.id for row in rows])
    return [content.summary_of(row, nodes.get(row.id, [])) for row in rows]


async def summary(session: ReadSession, row: PlanRow) -> PlanSummary:
    """A plan without its content."""
    return (await summaries(session, [row]))[0]


async def create_plan(session: WriteSession, beside: RequestSandbox, scenario_id: UUID, *, by: Actor) -> content.Answer:
    """Compute the plan of a scenario's current version and keep it."""
    scenario, _ = await service.stored_scenario(session, scenario_id)
    wanted = Wanted(scenario.node_id, scenario.document, scenario_id=scenario.id, scenario_version=scenario.version)
    return await _keep(session, beside, wanted, by=by)


async def keep_plan(session: WriteSession, beside: RequestSandbox, body: PlanKeep, *, by: Actor) -> content.Answer:
    """Compute the plan of a scenario that is not saved, and keep it."""
    return await _keep(session, beside, Wanted(body.node_id, body.scenario), by=by)


async def _keep(session: WriteSession, beside: RequestSandbox, wanted: Wanted, *, by: Actor) -> content.Answer:
    row = await drafted(beside, await computed(session, beside, wanted), by=by)
    answer = await beside.thread(content.saved_plan, row)
    await repository.add_plans(session, [row])
    return answer


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the sandbox is asked about a plan, and the newest run of its node."""

    asked: work.Question
    run: tuple[UUID, datetime] | None


async def computed(
    session: ReadSession, beside: RequestSandbox, wanted: Wanted, inputs: Inputs | None = None
) -> Computed:
    """Compute a plan once. Nothing may have been written before: the arithmetic runs without a connection.

    Files of a plan that does not fit are kept with a warning in each; they are handed out with ``force`` alone.
    ``inputs`` where they have been read, with those of other plans.
    """
    if inputs is None:
        runs = {} if wanted.node_id is None else await repository.newest_runs(session, [wanted.node_id])
        asked = await service.question(session, wanted.node_id, wanted.scenario)
        inputs = Inputs(asked, None if wanted.node_id is None else runs.get(wanted.node_id))
    asked, run = inputs.asked, inputs.run
    taken_at = None if asked.sample is None else asked.sample.taken_at_seconds
    files = work.Files(force=True, keep=True)
    found = msgspec.json.decode(await service.compute(session, beside, wanted.node_id, asked, files))
    sampled_at = None if taken_at is None else datetime.fromtimestamp(taken_at, UTC)
    return Computed(wanted=wanted, sampled_at=sampled_at, run=run, **found)


newest_runs, add = repository.newest_runs, repository.add_plans


async def drafted(beside: RequestSandbox, made: Computed, *, by: Actor) -> PlanRow:
    """A computed plan as a draft that is not kept yet."""
    return await beside.thread(content.draft, made, by)


async def list_plans(session: ReadSession, wanted: PlanFilter, *, limit: int, cursor: str | None) -> Page[PlanSummary]:
    """Kept plans, newest first. NotFoundError for a scenario that is not there."""
    if wanted.scenario_id is not None:
        await service.stored_scenario(session, wanted.scenario_id)

    async def read(after: str | None, count: int) -> Sequence[PlanSummary]:
        rows = await repository.list_plans(session, wanted, after=decode_time_cursor(after), limit=count)
        return await summaries(session, rows)

    items, next_cursor = await page_within(
        session,
        read,
        limit=limit,
        cursor=cursor,
        key=lambda found: (found.created_at.isoformat(), str(found.id)),
        at_once=_ROWS_AT_ONCE,
        item=lambda found: found,
    )
    return Page(items=items, next_cursor=next_cursor)


async def stored_plan(session: ReadSession, plan_id: UUID) -> PlanRow:
    """A kept plan's row. NotFoundError where there is none."""
    return found(await repository.get_plan(session, plan_id), plan_id)


async def other_name(session: ReadSession, row: PlanRow) -> str | None:
    """What a plan's node is called now, where that is not what the plan says. None for a plan of no node."""
    if row.node_id is None or row.node_name is None:
        return None
    return await present_names.other_name(session, row.node_id, row.node_name)


async def misnamed(session: ReadSession, row: PlanRow) -> str | None:
    """Why what a plan names may be another machine than the one it was made for; None where it is not."""
    now = await other_name(session, row)
    return None if now is None else present_names.called_otherwise(row.node_name, now)


async def require_its_name(session: ReadSession, row: PlanRow) -> None:
    """ConflictError for a plan whose node has another name now."""
    why = await misnamed(session, row)
    if why is not None:
        raise ConflictError(why)


def found(row: T | None, plan_id: UUID) -> T:
    """What was read of a plan. NotFoundError where there is none."""
    if row is None:
        raise NotFoundError(f"There is no plan {plan_id}.")
    return row
