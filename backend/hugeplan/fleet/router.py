"""Routes of reports, nodes and samples."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query, Request, Response

from hugeplan.access.dependencies import Admin, AdmittedAgent, Planner, Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.csv_response import AsCsv, CsvResponse, csv_response, json_row
from hugeplan.api.dependencies import CurrentSettings, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page, json_response
from hugeplan.api.schemas import Moment
from hugeplan.benchmarks import service as benchmarks
from hugeplan.benchmarks.schemas import Run, RunMark
from hugeplan.fleet import edits, history, service
from hugeplan.fleet.ingest.direct import answer_report
from hugeplan.fleet.overview_schemas import LabelsWrite, PlanInForceWrite
from hugeplan.fleet.schemas import (
    HistoryPoint,
    NodeDetail,
    NodeHistory,
    NodeProcesses,
    NodeSummary,
    ReportReceipt,
    SampleRow,
)
from hugeplan.fleet.selector import Selected, conditions

router = api_router("fleet")

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
async def reports_create(request: Request, _: AdmittedAgent) -> Response:
    """Store an agent's report. Idempotent by ``report_id``: the same report again is answered 200."""
    return await answer_report(request)


@router.get("/nodes.csv", name="nodes_export", response_class=CsvResponse)
@router.get("/nodes", response_model=Page[NodeSummary])
async def nodes_list(
    _: Viewer, session: Reads, selector: Selected, *, limit: Limit = 50, cursor: Cursor = None,
    sort: Annotated[service.NodeSort, Query()] = "name", descending: Annotated[bool, Query()] = False, as_csv: AsCsv,
) -> Any:  # fmt: skip
    """Nodes, by name unless ``sort`` says otherwise."""
    if as_csv:
        listed = partial(service.list_nodes, selector=selector, sort=sort, descending=descending)
        page = await listed(session, limit=limit, cursor=cursor)
        return await as_csv.of("nodes", list(NodeSummary.model_fields), page, listed, json_row)
    answer = await service.list_nodes_json(
        session, selector, sort=sort, descending=descending, limit=limit, cursor=cursor
    )
    return Response(answer, media_type="application/json")


@router.get("/nodes/{node_id}", response_model=NodeDetail)
async def nodes_get(_: Viewer, session: Reads, node_id: UUID) -> Response:
    """A node with its newest report, geometry and the facts the planner takes."""
    return json_response(await service.get_node(session, node_id))


@router.get("/nodes/{node_id}/samples", response_model=Page[SampleRow])
async def node_samples_list(
    _: Viewer,
    session: Reads,
    node_id: UUID,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    from_: From = None,
    to: To = None,
) -> Response:
    """The memory history of a node, newest first."""
    return json_response(await service.list_samples(session, node_id, start=from_, end=to, limit=limit, cursor=cursor))


@router.get("/nodes/{node_id}/history.csv", name="node_history_export", response_class=CsvResponse)
@router.get("/nodes/{node_id}/history", response_model=NodeHistory)
async def node_history_get(
    _: Viewer,
    session: Reads,
    node_id: UUID,
    *,
    from_: From = None,
    to: To = None,
    points: Annotated[int, Query(ge=10, le=500, description="The largest number of points to answer")] = 500,
    as_csv: AsCsv,
) -> Any:
    """The memory of a node over time, as wide as the roll-ups reach, in at most ``points`` points of equal width."""
    found = await history.get_history(session, node_id, start=from_, end=to, points=points)
    if as_csv:
        rows = [point.model_dump(mode="json") for point in found.points]
        return await csv_response("history", list(HistoryPoint.model_fields), rows, None)
    return json_response(found)


@router.get("/nodes/{node_id}/runs", response_model=Page[Run])
async def node_runs_list(
    _: Viewer, session: Reads, node_id: UUID, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The runs of a node, newest first."""
    await service.require_node(session, node_id)
    return json_response(await benchmarks.list_runs(session, node_id, limit=limit, cursor=cursor))


@router.get("/nodes/{node_id}/processes", response_model=NodeProcesses)
async def node_processes_get(_: Viewer, session: Reads, node_id: UUID) -> Response:
    """The processes of a node's newest sample."""
    return json_response(await service.get_processes(session, node_id))


@router.get(
    "/nodes/{node_id}/report",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The report"}},
)
async def node_report_get(_: Viewer, session: Reads, node_id: UUID, report_id: UUID | None = None) -> Response:
    """A node's report, byte for byte as its agent sent it; without ``report_id`` the newest."""
    return Response(await service.report_document(session, node_id, report_id), media_type="application/json")


@router.delete("/nodes/{node_id}", status_code=204)
async def nodes_delete(actor: Admin, session: Writes, node_id: UUID) -> None:
    """Delete a node with everything that is stored of it. Its agent's next report makes it anew."""
    await edits.delete_node(session, node_id, by=actor.name)


@router.put("/nodes/{node_id}/labels")
async def node_labels_replace(_: Planner, session: Writes, node_id: UUID, body: LabelsWrite) -> NodeDetail:
    """Replace the labels that are written over those of the agent."""
    await edits.set_labels(session, node_id, body.labels)
    return await service.get_node(session, node_id)


@router.put("/nodes/{node_id}/plan-in-force")
async def node_plan_in_force_replace(
    actor: Planner, session: Writes, node_id: UUID, body: PlanInForceWrite, settings: CurrentSettings
) -> NodeDetail:
    """Say which pools the node is meant to have. Each report is compared with them from now on."""
    await edits.require_approved(session, node_id, body, second_person=settings.approval_by_second_person)
    await edits.set_plan_in_force(session, node_id, body, by=actor.name)
    return await service.get_node(session, node_id)


@router.delete("/nodes/{node_id}/plan-in-force", status_code=204)
async def node_plan_in_force_delete(actor: Planner, session: Writes, node_id: UUID) -> None:
    """End the plan in force."""
    await edits.end_plan_in_force(session, node_id, by=actor.name)


@router.get("/runs.csv", name="runs_export", response_class=CsvResponse)
@router.get("/runs", response_model=Page[Run])
async def runs_list(
    _: Viewer, session: Reads, selector: Selected, *, limit: Limit = 50, cursor: Cursor = None, as_csv: AsCsv
) -> Any:
    """The runs of the selected nodes, newest first."""
    listed = partial(benchmarks.list_fleet_runs, where=conditions(selector))
    page = await listed(session, limit=limit, cursor=cursor)
    return (await as_csv.of("runs", list(Run.model_fields), page, listed, json_row)) if as_csv else page


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
