"""Jobs that plan many nodes."""

from __future__ import annotations

import asyncio
import pickle
import uuid
from collections.abc import AsyncGenerator, Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal
from uuid import UUID

import msgspec
from sqlalchemy import select

from hugeplan import __version__
from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.pagination import Page, count, decode_cursor, decode_time_cursor, encode_cursor, page_within
from hugeplan.api.schemas import JsonObject
from hugeplan.db.models import FleetPlanGroupRow, FleetPlanNodeRow, FleetPlanRow
from hugeplan.db.session import Database, ReadSession, WriteSession
from hugeplan.db.turns import without_turn
from hugeplan.documents.plans import MAX_BYTES
from hugeplan.errors import ConflictError, FieldProblem, NotFoundError, invalid_input
from hugeplan.fleet import service as fleet
from hugeplan.fleet.present_names import departure, names_of
from hugeplan.fleet.selector import NodeSelector
from hugeplan.fleet_plans import repository, work
from hugeplan.fleet_plans.room import require_room_to_wait
from hugeplan.fleet_plans.schemas import (
    FleetPlanDetail,
    FleetPlanGroup,
    FleetPlanJob,
    FleetPlanNode,
    FleetPlanRequest,
)

FINISHED: Final = frozenset(repository.ENDED)
SEVERITIES: Final[tuple[Literal["fine", "attention", "wrong"], ...]] = ("fine", "attention", "wrong")
PROGRESS_SECONDS = 0.25
MOST_PROGRESS_SECONDS = 2.0
"""Between looks at a job that does not get on, such as one that waits for its turn."""
_ROWS_AT_ONCE: Final = 20
"""A group of nodes with 1,024 NUMA nodes has about 120 kB of pools."""


async def create_job(
    session: WriteSession, beside: RequestSandbox, body: FleetPlanRequest, *, by: Actor
) -> FleetPlanJob:
    """A new job, not begun yet.

    InvalidInputError when it selects no node, or the scenario brings its own; ConflictError when too many wait.
    """
    await require_room_to_wait(session, by)
    if body.scenario is not None:
        await beside.work(work.CHECK, pickle.dumps(body.scenario), what="Planning this scenario")
    now = datetime.now(UTC)
    row = FleetPlanRow(
        id=uuid.uuid4(),
        name=body.name,
        created_at=now,
        created_by=by.name,
        author_id=by.line_id,
        status="queued",
        cancel_requested=False,
        selector=body.selector.model_dump(mode="json"),
        scenario=body.scenario,
        model_version=__version__,
        nodes_total=await fleet.count_nodes(session, body.selector),
        nodes_done=0,
        plans_computed=0,
        heartbeat_at=now,
    )
    if row.nodes_total == 0:
        raise invalid_input([FieldProblem(field="selector", value=None, expected="at least one node")])
    await repository.add_job(session, row)
    return _job(row)


def _job(row: FleetPlanRow) -> FleetPlanJob:
    values = {name: getattr(row, name) for name in FleetPlanJob.model_fields if name != "selector"}
    return FleetPlanJob.model_validate(values | {"selector": NodeSelector.model_validate(row.selector)})


async def _stored(session: ReadSession, job_id: UUID, *, with_scenario: bool = False) -> FleetPlanRow:
    row = await repository.get_job(session, job_id, with_scenario=with_scenario)
    if row is None:
        raise NotFoundError(f"There is no fleet plan {job_id}.")
    return row


async def get_job(session: ReadSession, job_id: UUID) -> FleetPlanDetail:
    """A job with its scenario."""
    row = await _stored(session, job_id, with_scenario=True)
    return FleetPlanDetail(**_job(row).model_dump(), scenario=row.scenario)


async def list_jobs(session: ReadSession, *, limit: int, cursor: str | None) -> Page[FleetPlanJob]:
    """Jobs, newest first."""

    async def read(after: str | None, rows: int) -> Sequence[FleetPlanRow]:
        return await repository.list_jobs(session, after=decode_time_cursor(after), limit=rows)

    items, next_cursor = await page_within(
        session,
        read,
        limit=limit,
        cursor=cursor,
        key=lambda row: (row.created_at.isoformat(), str(row.id)),
        at_once=_ROWS_AT_ONCE,
        item=_job,
    )
    return Page(items=items, next_cursor=next_cursor)


async def cancel_job(session: WriteSession, job_id: UUID) -> FleetPlanJob:
    """Ask a job to end. ConflictError when it has ended."""
    row = await _stored(session, job_id)
    if row.status in FINISHED:
        raise ConflictError(f"This fleet plan has ended: {row.status}.")
    await repository.request_cancel(session, job_id, datetime.now(UTC))
    await session.refresh(row)
    return _job(row)


class Looks:
    """Looks at jobs, each shared by all who follow it: a hundred streams read one row four times per second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looks: dict[UUID, asyncio.Task[FleetPlanJob]] = {}

    async def look(self, job_id: UUID) -> FleetPlanJob:
        """The job as it was at most PROGRESS_SECONDS ago."""
        look = self._looks.get(job_id)
        if look is None:
            look = self._looks[job_id] = asyncio.create_task(self._read(job_id))
            forget = partial(asyncio.get_running_loop().call_later, PROGRESS_SECONDS, self._looks.pop, job_id, None)
            look.add_done_callback(lambda _: forget())
        return await asyncio.shield(look)

    async def _read(self, job_id: UUID) -> FleetPlanJob:
        with without_turn():
            async with self._database.read() as session:
                return _job(await _stored(session, job_id))


async def progress(looks: Looks, job_id: UUID) -> AsyncGenerator[FleetPlanJob]:
    """The job whenever it got on, and once more when it has ended."""
    before: tuple[object, ...] | None = None
    pause = PROGRESS_SECONDS
    while True:
        job = await looks.look(job_id)
        now = (job.status, job.nodes_done, job.plans_computed)
        pause = min(2 * pause, MOST_PROGRESS_SECONDS) if now == before else PROGRESS_SECONDS
        if now != before:
            before = now
            yield job
        if job.status in FINISHED:
            return
        await asyncio.sleep(pause)


def _group(row: FleetPlanGroupRow) -> FleetPlanGroup:
    return FleetPlanGroup.model_validate({name: getattr(row, name) for name in FleetPlanGroup.model_fields})


async def list_groups(session: ReadSession, job_id: UUID, *, limit: int, cursor: str | None) -> Page[FleetPlanGroup]:
    """Groups of nodes with the same pools and files, the largest first."""
    await _stored(session, job_id)

    async def read(after: str | None, rows: int) -> Sequence[FleetPlanGroupRow]:
        return await repository.list_groups(session, job_id, after=decode_cursor(after, count, count), limit=rows)

    items, next_cursor = await page_within(
        session,
        read,
        limit=limit,
        cursor=cursor,
        key=lambda row: (str(row.nodes), str(row.number)),
        at_once=_ROWS_AT_ONCE,
        item=_group,
    )
    return Page(items=items, next_cursor=next_cursor)


async def get_group(session: ReadSession, job_id: UUID, number: int) -> bytes:
    """A group with its whole plan, as JSON; the plan in the text that PostgreSQL keeps: nothing here reads it."""
    await _stored(session, job_id)
    found = await repository.get_group(session, job_id, number, 2 * MAX_BYTES)  # as text it has spaces
    if found is None:
        raise NotFoundError(f"This fleet plan has no group {number}.")
    row, plan = found
    if plan is None:
        raise ConflictError("An older version kept a plan of too many bytes for this group. Run the fleet plan again.")
    return msgspec.json.encode(_group(row).model_dump(mode="json") | {"plan": msgspec.Raw(plan.encode())})


async def pools_of_groups(session: ReadSession, job_id: UUID, numbers: Collection[int]) -> dict[int, list[JsonObject]]:
    """The pools of some groups of a job, by number."""
    row = FleetPlanGroupRow
    statement = select(row.number, row.pools).where(row.fleet_plan_id == job_id, row.number.in_(numbers))
    return {row[0]: row[1] for row in await session.execute(statement)}


async def files_key_of_group(session: ReadSession, job_id: UUID, number: int) -> str | None:
    """What tells a group's files apart from those of others. None where its plan does not fit, and in older jobs."""
    row = FleetPlanGroupRow
    statement = select(row.files_key).where(row.fleet_plan_id == job_id, row.number == number)
    found: str | None = await session.scalar(statement)
    return found


def _node(row: FleetPlanNodeRow, name_now: str | None) -> FleetPlanNode:
    values = {name: getattr(row, name) for name in FleetPlanNode.model_fields}
    left = departure(row.name, name_now)  # who makes an inventory of the names reaches no other machine
    shown = row.name if left is None else f"{row.name} ({left})"
    return FleetPlanNode.model_validate(values | {"name": shown, "severity": SEVERITIES[row.severity]})


async def list_nodes(
    session: ReadSession,
    job_id: UUID,
    *,
    severity: str | None,
    group_number: int | None,
    search: str | None,
    limit: int,
    cursor: str | None,
) -> Page[FleetPlanNode]:
    """Nodes of a job, exceptions first: wrong, attention, then the rest by name."""
    await _stored(session, job_id)
    position = decode_cursor(cursor, count, str)
    if search is not None and "\0" in search:
        raise invalid_input([FieldProblem(field="q", value=search, expected="text without NUL characters")])
    rows = await repository.list_nodes(
        session,
        job_id,
        severity=None if severity is None else [*SEVERITIES].index(severity),  # type: ignore[arg-type]
        group_number=group_number,
        search=search,
        after=None if position is None else position[0],
        limit=limit + 1,
    )
    next_cursor = encode_cursor(str(rows[limit - 1].position), "") if len(rows) > limit else None
    names = await names_of(session, [row.node_id for row in rows])
    return Page(items=[_node(row, names.get(row.node_id)) for row in rows[:limit]], next_cursor=next_cursor)
