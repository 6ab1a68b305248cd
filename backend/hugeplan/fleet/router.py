"""Routes of reports, nodes and samples."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from hugeplan.access.dependencies import Admin, AdmittedAgent, Planner, Viewer, forget_credential
from hugeplan.access.guarded_route import GuardedRoute
from hugeplan.api.body import RawJson
from hugeplan.api.dependencies import CurrentMetrics, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.problems import UnauthenticatedError
from hugeplan.api.schemas import Moment
from hugeplan.benchmarks import service as benchmarks
from hugeplan.benchmarks.schemas import Run, RunMark
from hugeplan.fleet import service
from hugeplan.fleet.ingest.dependencies import CurrentReportWriter, admit_machine, read_beside_loop
from hugeplan.fleet.schemas import NodeDetail, NodeProcesses, NodeSummary, ReportReceipt, SampleRow
from hugeplan.fleet.selector import Selected

router = APIRouter(tags=["fleet"], route_class=GuardedRoute)

From = Annotated[Moment | None, Query(alias="from", description="Earliest time, inclusive")]
To = Annotated[Moment | None, Query(alias="to", description="Latest time, exclusive")]


@router.post(
    "/reports",
    status_code=201,
    response_model=ReportReceipt,
    responses={200: {"model": ReportReceipt, "description": "The report was stored before"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ReportDocument"}}},
        }
    },
)
async def reports_create(
    request: Request, token_id: AdmittedAgent, body: RawJson, writer: CurrentReportWriter, metrics: CurrentMetrics
) -> Response:
    """Store an agent's report. Idempotent by ``report_id``: the same report again is answered 200."""
    incoming = await read_beside_loop(body, token_id=token_id)
    try:
        receipt = await writer.store(await admit_machine(request, incoming))
    except UnauthenticatedError:
        forget_credential(request)
        raise
    metrics.count_report(created=receipt.created)
    return Response(
        receipt.model_dump_json(), status_code=201 if receipt.created else 200, media_type="application/json"
    )


@router.get("/nodes")
async def nodes_list(
    _: Viewer,
    session: Reads,
    selector: Selected,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    sort: Annotated[service.NodeSort, Query()] = "name",
    descending: Annotated[bool, Query()] = False,
) -> Page[NodeSummary]:
    """Nodes, by name unless ``sort`` says otherwise."""
    return await service.list_nodes(session, selector, sort=sort, descending=descending, limit=limit, cursor=cursor)


@router.get("/nodes/{node_id}")
async def nodes_get(_: Viewer, session: Reads, node_id: UUID) -> NodeDetail:
    """A node with its newest report, geometry and the facts the planner takes."""
    return await service.get_node(session, node_id)


@router.get("/nodes/{node_id}/samples")
async def node_samples_list(
    _: Viewer,
    session: Reads,
    node_id: UUID,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    from_: From = None,
    to: To = None,
) -> Page[SampleRow]:
    """The memory history of a node, newest first."""
    return await service.list_samples(session, node_id, start=from_, end=to, limit=limit, cursor=cursor)


@router.get("/nodes/{node_id}/runs")
async def node_runs_list(
    _: Viewer, session: Reads, node_id: UUID, limit: Limit = 50, cursor: Cursor = None
) -> Page[Run]:
    """The runs of a node, newest first."""
    await service.require_node(session, node_id)
    return await benchmarks.list_runs(session, node_id, limit=limit, cursor=cursor)


@router.get("/nodes/{node_id}/processes")
async def node_processes_get(_: Viewer, session: Reads, node_id: UUID) -> NodeProcesses:
    """The processes of a node's newest sample."""
    return await service.get_processes(session, node_id)


@router.delete("/nodes/{node_id}", status_code=204)
async def nodes_delete(_: Admin, session: Writes, node_id: UUID) -> None:
    """Delete a node with everything that is stored of it. Its agent's next report makes it anew."""
    await service.delete_node(session, node_id)


@router.delete("/runs/{run_id}", status_code=204)
async def runs_delete(_: Planner, session: Writes, run_id: UUID) -> None:
    """Delete a run; what was concluded from it is concluded anew from the others."""
    await service.measure_again(session, await benchmarks.delete_run(session, run_id))


@router.put("/runs/{run_id}/mark")
async def runs_mark(_: Planner, session: Writes, run_id: UUID, body: RunMark) -> Run:
    """Mark a run as bad, so that nothing is concluded from it, or take the mark away."""
    node_id, run = await benchmarks.mark_run(session, run_id, bad=body.bad, reason=body.reason)
    await service.measure_again(session, node_id)
    return run
