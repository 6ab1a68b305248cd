"""Routes about many nodes at once."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Query

from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.csv_response import AsCsv, CsvResponse, json_row
from hugeplan.api.dependencies import Reads
from hugeplan.api.pagination import Cursor, Limit, Page, json_response
from hugeplan.api.schemas import Word
from hugeplan.fleet import overview
from hugeplan.fleet.overview_schemas import FleetSummary, Grouping, NodeDrift, NodeGroup, PageSizeWins
from hugeplan.fleet.selector import Selected

router = api_router("fleet", below="/fleet")

DRIFT_COLUMNS: Final = (
    "node_id",
    "node_name",
    "numa_node",
    "page_bytes",
    "planned_pages",
    "actual_pages",
    "state",
    "since",
)
"""One row per pool of a node."""


@router.get("/summary")
async def fleet_summary_get(
    _: Viewer,
    session: Reads,
    selector: Selected,
    by: Annotated[Grouping, Query(description="What ``parts`` are grouped by")] = "machine_type",
    label_key: Annotated[Word | None, Query(description="The label's key where by is label")] = None,
) -> FleetSummary:
    """The fleet in numbers: memory by use, pools by size, findings, plans in force, stale nodes, by group."""
    return await overview.summary(session, selector, by=by, label=label_key)


@router.get("/drift.csv", name="fleet_drift_export", response_class=CsvResponse)
@router.get("/drift", response_model=Page[NodeDrift])
async def fleet_drift_list(
    _: Viewer,
    session: Reads,
    selector: Selected,
    *,
    matching: Annotated[bool, Query(description="Also nodes that match their plan")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_csv: AsCsv,
) -> Any:
    """Nodes beside their plan in force, pool by pool."""
    listed = partial(overview.drift, selector=selector, matching=matching)
    page = await listed(session, limit=limit, cursor=cursor)
    if not as_csv:
        return json_response(page)
    return await as_csv.of("drift", DRIFT_COLUMNS, page, listed, _pool_rows)


def _pool_rows(item: NodeDrift) -> list[dict[str, Any]]:
    node = {"node_id": item.node_id, "node_name": item.node_name, "since": item.since}
    return [node | pool.model_dump() for pool in item.pools]


@router.get("/page-size-wins")
async def fleet_page_size_wins_get(
    _: Viewer,
    session: Reads,
    selector: Selected,
    latest_only: Annotated[bool, Query(description="Only the newest run of each node")] = True,
    run: Annotated[
        list[UUID], Query(max_length=100, description="Only these runs of the selected nodes, new or old")
    ] = [],  # noqa: B006 - FastAPI copies it
) -> PageSizeWins:
    """How often each page size is best over the measured nodes, and by how much, by machine type.

    Over at most 5,000 nodes, and with ``latest_only`` false over each one's newest runs: as many of each, 5,000 in all.
    """
    return await overview.page_size_wins(session, selector, latest_only=latest_only, runs=run)


@router.get("/groups.csv", name="fleet_groups_export", response_class=CsvResponse)
@router.get("/groups", response_model=Page[NodeGroup])
async def fleet_groups_list(
    _: Viewer, session: Reads, selector: Selected, *, limit: Limit = 50, cursor: Cursor = None, as_csv: AsCsv
) -> Any:
    """Groups of like nodes, the largest first, at most 2,000."""
    listed = partial(overview.groups, selector=selector)
    page = await listed(session, limit=limit, cursor=cursor)
    if as_csv:
        return await as_csv.of("groups", list(NodeGroup.model_fields), page, listed, json_row)
    return page
