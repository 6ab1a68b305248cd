"""Routes of plans of many nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import BackgroundTasks, Depends, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from hugeplan.access.dependencies import Planner, Viewer, while_good
from hugeplan.access.gated_route import api_router
from hugeplan.api.beside import Beside, json_answer
from hugeplan.api.csv_response import AsCsv, CsvResponse, json_row
from hugeplan.api.dependencies import Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.schemas import PathNumber
from hugeplan.fleet_plans import service
from hugeplan.fleet_plans.runner import FleetPlanRunner
from hugeplan.fleet_plans.schemas import (
    FleetPlanDetail,
    FleetPlanGroup,
    FleetPlanGroupDetail,
    FleetPlanJob,
    FleetPlanNode,
    FleetPlanRequest,
)

router = api_router("fleet plans", below="/fleet")


async def _runner(request: Request) -> FleetPlanRunner:
    runner: FleetPlanRunner = request.app.state.fleet_plan_runner
    return runner


async def _existing_job(session: Reads, job_id: UUID) -> UUID:
    return (await service.get_job(session, job_id)).id


@router.post("/plan", status_code=202)
async def fleet_plans_create(
    actor: Planner,
    session: Writes,
    body: FleetPlanRequest,
    beside: Beside,
    *,
    runner: Annotated[FleetPlanRunner, Depends(_runner)],
    after_commit: BackgroundTasks,
    response: Response,
) -> FleetPlanJob:
    """Plan every selected node as it runs, or for one scenario. The answer is the job; Location is where it is.

    409 while 20 of one's own have not ended. The oldest that have ended go where as many are kept as may be.
    """
    job = await service.create_job(session, beside, body, by=actor)
    after_commit.add_task(runner.start, job.id, actor.line_id)
    response.headers["Location"] = f"/api/v1/fleet/plans/{job.id}"
    return job


@router.get("/plans")
async def fleet_plans_list(_: Viewer, session: Reads, limit: Limit = 50, cursor: Cursor = None) -> Page[FleetPlanJob]:
    """Fleet plans, newest first."""
    return await service.list_jobs(session, limit=limit, cursor=cursor)


@router.get("/plans/{job_id}")
async def fleet_plans_get(_: Viewer, session: Reads, job_id: UUID) -> FleetPlanDetail:
    """A fleet plan with its scenario and, when it is done, its summary."""
    return await service.get_job(session, job_id)


@router.post("/plans/{job_id}/cancel")
async def fleet_plans_cancel(_: Planner, session: Writes, job_id: UUID) -> FleetPlanJob:
    """End a fleet plan that is under way."""
    return await service.cancel_job(session, job_id)


@router.get("/plans/{job_id}/progress", response_class=EventSourceResponse)
async def fleet_plan_progress_stream(
    request: Request,
    _: Viewer,
    job_id: Annotated[UUID, Depends(_existing_job, scope="function")],
) -> AsyncIterator[ServerSentEvent]:
    """The job as it gets on, as server-sent events named ``progress``; the last one is named ``end``."""
    async with aclosing(while_good(request, service.progress(request.app.state.fleet_plan_looks, job_id))) as jobs:
        async for job in jobs:
            yield ServerSentEvent(data=job, event="end" if job.status in service.FINISHED else "progress")


@router.get("/plans/{job_id}/groups")
async def fleet_plan_groups_list(
    _: Viewer, session: Reads, job_id: UUID, limit: Limit = 50, cursor: Cursor = None
) -> Page[FleetPlanGroup]:
    """Groups of nodes of one machine type with the same pools now and planned, and the same files, largest first."""
    return await service.list_groups(session, job_id, limit=limit, cursor=cursor)


@router.get("/plans/{job_id}/groups/{number}", response_model=FleetPlanGroupDetail)
async def fleet_plan_groups_get(_: Viewer, session: Reads, job_id: UUID, number: PathNumber) -> Response:
    """A group with the whole plan of its node with the least memory."""
    return json_answer(await service.get_group(session, job_id, number))


@router.get("/plans/{job_id}/nodes.csv", name="fleet_plan_nodes_export", response_class=CsvResponse)
@router.get("/plans/{job_id}/nodes", response_model=Page[FleetPlanNode])
async def fleet_plan_nodes_list(
    _: Viewer,
    session: Reads,
    job_id: UUID,
    *,
    severity: Literal["fine", "attention", "wrong"] | None = None,
    group_number: Annotated[int | None, Query(ge=0, le=10**9)] = None,
    q: Annotated[str | None, Query(max_length=253, description="Part of the node's name")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_csv: AsCsv,
) -> Any:
    """Nodes of a fleet plan, exceptions first."""
    listed = partial(service.list_nodes, job_id=job_id, severity=severity, group_number=group_number, search=q)
    page = await listed(session, limit=limit, cursor=cursor)
    if as_csv:
        return await as_csv.of("fleet-plan", list(FleetPlanNode.model_fields), page, listed, json_row)
    return page
