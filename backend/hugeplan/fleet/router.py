"""Routes of reports, nodes and samples."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from hugeplan.access.dependencies import Agent, Viewer
from hugeplan.access.guarded_route import GuardedRoute
from hugeplan.api.body import RawJson
from hugeplan.api.dependencies import CurrentMetrics, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.schemas import Moment
from hugeplan.benchmarks import service as benchmarks
from hugeplan.benchmarks.schemas import Run
from hugeplan.fleet import service
from hugeplan.fleet.schemas import NodeDetail, NodeProcesses, NodeSummary, ReportReceipt, SampleRow

router = APIRouter(tags=["fleet"], route_class=GuardedRoute)

Search = Annotated[str | None, Query(max_length=253, description="Part of the node's name")]
From = Annotated[Moment | None, Query(alias="from", description="Earliest time, inclusive")]
To = Annotated[Moment | None, Query(alias="to", description="Latest time, exclusive")]


@router.post(
    "/reports",
    status_code=201,
    responses={200: {"model": ReportReceipt, "description": "The report was stored before"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ReportDocument"}}},
        }
    },
)
async def reports_create(
    actor: Agent, session: Writes, body: RawJson, metrics: CurrentMetrics, response: Response
) -> ReportReceipt:
    """Store an agent's report. Idempotent by ``report_id``: the same report again is answered 200."""
    receipt = await service.store_report(session, actor, body)
    response.status_code = 201 if receipt.created else 200
    metrics.count_report(created=receipt.created)
    return receipt


@router.get("/nodes")
async def nodes_list(
    _: Viewer, session: Reads, limit: Limit = 50, cursor: Cursor = None, q: Search = None
) -> Page[NodeSummary]:
    """Nodes by name."""
    return await service.list_nodes(session, search=q, limit=limit, cursor=cursor)


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
