"""The plans of a fleet plan's rows: each row's own plan is kept when it is opened or decided about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.preconditions import etag
from hugeplan.api.schemas import JsonObject
from hugeplan.artifacts.base import object_name
from hugeplan.db.models import FleetPlanNodeRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import ConflictError, InvalidInputError, NotFoundError, ProblemError
from hugeplan.fleet_plans import service as fleet_plans
from hugeplan.fleet_plans.schemas import FleetPlanDetail
from hugeplan.planner.pages import counted_pages
from hugeplan.plans import repository, service
from hugeplan.plans.service import FleetRowsDecided, FleetRowsDecision, SkippedRow
from hugeplan.scenarios import saved_plans
from hugeplan.scenarios import service as scenarios
from hugeplan.scenarios.schemas import SavedPlan

ROWS_PER_CALL: Final = 20
WORK_PER_CALL: Final = 32
"""After rows of so much work no further row is begun: it takes 0.2 s of processor time. A row is ROW_WORK, and one more
per database."""
ROW_WORK: Final = 7
_STATES: Final = {"propose": "proposed", "approve": "approved", "in_force": "in_force"}
_ORDER: Final = ("draft", "proposed", "approved", "in_force")


async def open_row(
    session: WriteSession, beside: RequestSandbox, job_id: UUID, node_id: UUID, *, by: Actor
) -> tuple[SavedPlan, bool]:
    """The plan of a row, and whether it was kept only now. ConflictError where the node has changed since."""
    job = await fleet_plans.get_job(session, job_id)
    row = await repository.fleet_row(session, job_id, node_id)
    if row is None:
        raise NotFoundError(f"The fleet plan has no row of node {node_id}.")
    found = await repository.plan_of_row(session, job_id, node_id)
    is_new = found is None
    if found is None:
        found = await saved_plans.keep(session, await _computed(session, beside, job, row), by=by)
    return await saved_plans.get_plan(session, found.id), is_new


async def zip_group(session: ReadSession, beside: RequestSandbox, job_id: UUID, number: int) -> tuple[str, bytes]:
    """File name and bytes of the bundle of a group: the files of its node with the least memory, for all its nodes.

    ConflictError where the plan does not fit, changes nothing, or the node has changed since.
    """
    job = await fleet_plans.get_job(session, job_id)
    rows = await repository.group_rows(session, job_id, number)
    if not rows:
        raise NotFoundError(f"This fleet plan has no group {number}.")
    if rows[0].fits is False:
        raise ConflictError(f"The plan of {rows[0].name} does not fit, so there is no file to apply.")
    names = sorted(row.name for row in rows) if len(rows) > 1 else []
    kept = await repository.plan_of_row(session, job_id, rows[0].node_id)
    if kept is not None:
        _, content = await saved_plans.zip_artifacts(session, kept.id, group=names)
    else:
        content = saved_plans.zip_computed(await _computed(session, beside, job, rows[0]), group=names)
    return f"hugeplan-group-{number + 1}-{object_name(job.name)}.zip", content


async def _computed(
    session: ReadSession, beside: RequestSandbox, job: FleetPlanDetail, row: FleetPlanNodeRow
) -> saved_plans.Computed:
    """The plan of a row. ConflictError where its node's newest report asks for other pools than the row says."""
    if row.group_number is None:
        raise ConflictError(f"{row.name} has no plan: {' '.join(row.exceptions)}")
    group = await fleet_plans.get_group(session, job.id, row.group_number)
    wanted = {(pool["numa_node"], pool["page_bytes"]): pool["pages"] for pool in group.pools}
    scenario = job.scenario
    if scenario is None:
        scenario = await scenarios.scenario_of_node(session, row.node_id)
    question = saved_plans.Wanted(row.node_id, scenario, fleet_plan_id=job.id)
    made = await saved_plans.computed(session, beside, question)
    pools = {(pool["numa_node"], pool["page_bytes"]): pool["pages"] for pool in made.plan["pools"] if pool["pages"]}
    if pools != wanted:
        raise ConflictError(
            f"{row.name} has changed since the fleet plan: its row says {_pages(wanted)}, its newest report asks"
            f" for {_pages(pools)}. Run the fleet plan again."
        )
    return made


def _pages(pools: dict[tuple[int, int], int]) -> str:
    by_size: dict[int, int] = {}
    for (_, size), pages in pools.items():
        by_size[size] = by_size.get(size, 0) + pages
    return " and ".join(counted_pages(pages, size) for size, pages in sorted(by_size.items())) or "no huge page"


async def decide(
    session: WriteSession,
    beside: RequestSandbox,
    job_id: UUID,
    body: FleetRowsDecision,
    *,
    by: Actor,
    second_person: bool,
) -> FleetRowsDecided:
    """Propose, approve or put in force the next rows of a fleet plan. A row that cannot be is named with its reason."""
    job = await fleet_plans.get_job(session, job_id)
    if job.status != "done":
        raise ConflictError(f"This fleet plan is {job.status}; its rows can be decided about when it is done.")
    rows = await repository.fleet_rows(
        session, job_id, group_number=body.group_number, after=body.after, limit=ROWS_PER_CALL + 1
    )
    last = rows[ROWS_PER_CALL - 1].position if len(rows) > ROWS_PER_CALL else None
    made: dict[UUID, _Prepared] = {}
    failed: dict[UUID, str] = {}
    # All arithmetic comes before the first row is written: it runs without a connection.
    work = 0
    for number, row in enumerate(rows[:ROWS_PER_CALL]):
        if work >= WORK_PER_CALL:
            rows, last = rows[:number], rows[number - 1].position
            break
        try:
            made[row.node_id] = await _prepared(session, beside, job, row, body)
            work += made[row.node_id].work
        except ProblemError as error:
            failed[row.node_id] = str(error)
            # One that takes too long to plan has cost as much as a request may.
            work += WORK_PER_CALL if isinstance(error, InvalidInputError) else ROW_WORK
    done, already = 0, 0
    for row in rows[:ROWS_PER_CALL]:
        if row.node_id in failed:
            continue
        try:
            if await _advance(session, job, row, made[row.node_id], body, by=by, second_person=second_person):
                done += 1
            else:
                already += 1
        except ProblemError as error:
            # Raised before a statement of the row changes anything, so what was done for other rows stands.
            failed[row.node_id] = str(error)
    names = {row.node_id: row.name for row in rows}
    skipped = [SkippedRow(node_id=key, node_name=names[key], reason=reason) for key, reason in failed.items()]
    return FleetRowsDecided(done=done, already=already, skipped=skipped, next=last)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was computed for a row before anything was written: its plan, or its kept plan beside a newer sample."""

    made: saved_plans.Computed | None = None
    looked: service.Looked | None = None
    work: int = 1
    """See WORK_PER_CALL; a row that is there already costs next to nothing."""


async def _prepared(
    session: ReadSession, beside: RequestSandbox, job: FleetPlanDetail, row: FleetPlanNodeRow, body: FleetRowsDecision
) -> _Prepared:
    found = await repository.plan_of_row(session, job.id, row.node_id)
    if found is not None:
        is_asked = found.state == {"propose": "draft", "approve": "proposed"}.get(body.to)
        if _is_there(found.state, body):
            return _Prepared()
        looked = await service.look(session, beside, found) if is_asked else None
        return _Prepared(looked=looked, work=_work_of(found.plan))
    if body.to != "propose":
        return _Prepared()
    if row.fits is False:
        raise ConflictError(f"The plan of {row.name} does not fit.")
    made = await _computed(session, beside, job, row)
    return _Prepared(made=made, work=_work_of(made.plan))


def _work_of(plan: JsonObject) -> int:
    return ROW_WORK + len(plan.get("instances") or ())


def _is_there(state: str, body: FleetRowsDecision) -> bool:
    """Whether a plan in this state is where it is to be, or further."""
    return state in _ORDER[_ORDER.index(_STATES[body.to]) :]


async def _advance(
    session: WriteSession,
    job: FleetPlanDetail,
    row: FleetPlanNodeRow,
    prepared: _Prepared,
    body: FleetRowsDecision,
    *,
    by: Actor,
    second_person: bool,
) -> bool:
    """One row one step on. False where it is there already, or further."""
    found = await repository.plan_of_row(session, job.id, row.node_id)
    if found is None:
        if prepared.made is None:
            raise ConflictError(f"The plan of {row.name} is not proposed.")
        found = await saved_plans.keep(session, prepared.made, by=by)
    plan = await service.locked(session, found.id, etag(found.version))
    if _is_there(plan.state, body):
        return False
    if body.to == "propose":
        await service.propose(session, plan, prepared.looked, by=by)
    elif body.to == "approve":
        await service.approve(session, plan, prepared.looked, by=by, second_person=second_person)
    else:
        await service.put_in_force(session, plan, by=by)
    return True
