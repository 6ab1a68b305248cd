"""Routes of decisions about kept plans: each is one call with the ETag of the state that it changes."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request, Response

from hugeplan.access import audit
from hugeplan.access.dependencies import Approver, Planner, Viewer
from hugeplan.access.gate import refuse_role
from hugeplan.access.gated_route import api_router
from hugeplan.access.schemas import Role
from hugeplan.api.beside import Beside, json_answer
from hugeplan.api.dependencies import CurrentSettings, Reads, Writes
from hugeplan.api.preconditions import IfMatch, etag
from hugeplan.api.schemas import PathNumber
from hugeplan.db.models import PlanRow
from hugeplan.plans import fleet_rows, service
from hugeplan.plans.service import FleetRowsDecided, FleetRowsDecision
from hugeplan.scenarios import plan_answers
from hugeplan.scenarios.schemas import PlanSummary, SavedPlan
from hugeplan.scenarios.service import require_room_for_plan

AcceptUnknownFit = Annotated[bool, Query(description="Approve it although it is not known whether it fits")]

router = api_router("planning")


def _note(request: Request, row: PlanRow) -> None:
    audit.note(request, kind="plan", digest=row.digest, node=row.node_name)


def _answer(response: Response, found: PlanSummary) -> PlanSummary:
    response.headers["ETag"] = etag(found.version)
    return found


@router.post("/plans/{plan_id}/propose")
async def plans_propose(
    actor: Planner,
    session: Writes,
    beside: Beside,
    plan_id: UUID,
    *,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
) -> PlanSummary:
    """Put a draft before an approver. 409 when it does not fit or is no draft."""
    looked = await service.looked_at(session, beside, plan_id, "draft")
    row = await service.locked(session, plan_id, if_match)
    _note(request, row)
    return _answer(response, await service.propose(session, row, looked, by=actor))


@router.post("/plans/{plan_id}/approve")
async def plans_approve(
    actor: Approver,
    session: Writes,
    beside: Beside,
    plan_id: UUID,
    *,
    settings: CurrentSettings,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
    accept_unknown_fit: AcceptUnknownFit = False,
) -> PlanSummary:
    """Approve a proposal. 409 when its node has changed since, or when it is not known whether it fits and that is not
    accepted; 403 when a second person is asked for.
    """
    looked = await service.looked_at(session, beside, plan_id, "proposed")
    row = await service.locked(session, plan_id, if_match)
    _note(request, row)
    second = settings.approval_by_second_person
    found = await service.approve(
        session, row, looked, by=actor, second_person=second, accept_unknown_fit=accept_unknown_fit
    )
    return _answer(response, found)


@router.post("/plans/{plan_id}/withdraw")
async def plans_withdraw(
    actor: Planner, session: Writes, plan_id: UUID, *, request: Request, response: Response, if_match: IfMatch = None
) -> PlanSummary:
    """Take back a proposal, or as an approver an approval, before the plan is in force."""
    row = await service.locked(session, plan_id, if_match)
    if row.state == "approved":
        refuse_role(actor.role, frozenset({Role.APPROVER, Role.ADMIN}))
    _note(request, row)
    return _answer(response, await service.withdraw(session, row, by=actor))


@router.post("/plans/{plan_id}/in-force")
async def plans_put_in_force(
    actor: Planner,
    session: Writes,
    beside: Beside,
    plan_id: UUID,
    *,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
) -> PlanSummary:
    """Put an approved plan in force on its node: each report is compared with it from now on."""
    verified = await plan_answers.verify_plan(session, beside, plan_id)
    row = await service.locked(session, plan_id, if_match)
    _note(request, row)
    return _answer(response, await service.put_in_force(session, row, verified, by=actor))


@router.delete("/plans/{plan_id}/in-force")
async def plans_end_in_force(
    actor: Planner, session: Writes, plan_id: UUID, *, request: Request, response: Response, if_match: IfMatch = None
) -> PlanSummary:
    """Take it back before a report says that the plan is in force; the plan of before is in force again."""
    row = await service.locked(session, plan_id, if_match)
    _note(request, row)
    return _answer(response, await service.end_in_force(session, row, by=actor))


@router.delete("/plans/{plan_id}", status_code=204)
async def plans_delete(
    _: Planner, session: Writes, plan_id: UUID, *, request: Request, if_match: IfMatch = None
) -> None:
    """Delete a draft. A plan that was proposed stays."""
    row = await service.locked(session, plan_id, if_match)
    _note(request, row)
    await service.delete(session, row)


@router.post("/fleet/plans/{job_id}/nodes/{node_id}/plan", response_model=SavedPlan)
async def fleet_plan_rows_open(
    actor: Planner,
    session: Writes,
    beside: Beside,
    job_id: UUID,
    node_id: UUID,
    *,
    settings: CurrentSettings,
    request: Request,
) -> Response:
    """The plan of exactly this row, kept when it is asked for the first time (201). 409 when its node has changed."""
    await require_room_for_plan(session, settings, actor)
    plan, is_new = await fleet_rows.open_row(session, beside, job_id, node_id, by=actor)
    audit.note(request, kind="plan", subject=plan.id, digest=plan.digest, fleet_plan=str(job_id))
    return json_answer(plan.content, 201 if is_new else 200, {"ETag": etag(plan.version)})


@router.post("/fleet/plans/{job_id}/decisions")
async def fleet_plan_rows_decide(
    actor: Planner,
    session: Writes,
    beside: Beside,
    job_id: UUID,
    *,
    body: FleetRowsDecision,
    settings: CurrentSettings,
    request: Request,
) -> FleetRowsDecided:
    """Propose, approve or put in force the rows of a fleet plan, a part of them per call. Approving needs the role."""
    if body.to == "approve":
        refuse_role(actor.role, frozenset({Role.APPROVER, Role.ADMIN}))
    if body.to == "propose":
        await require_room_for_plan(session, settings, actor)
    second = settings.approval_by_second_person
    found = await fleet_rows.decide(session, beside, job_id, body, by=actor, second_person=second)
    audit.note(request, kind="fleet_plan", subject=job_id, to=body.to, done=found.done, skipped=len(found.skipped))
    return found


@router.get(
    "/fleet/plans/{job_id}/groups/{number}/files.zip",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle"}},
)
async def fleet_plan_group_files(
    _: Viewer, session: Reads, beside: Beside, job_id: UUID, number: PathNumber
) -> Response:
    """The files of a group of a fleet plan as a bundle, with the names of its nodes. 409 when there are none."""
    async with beside.in_line():
        name, content = await fleet_rows.zip_group(session, beside, job_id, number)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/zip", headers=headers)
