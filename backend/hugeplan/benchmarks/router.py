"""Routes of runs and curves."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Response

from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.beside import json_answer
from hugeplan.api.dependencies import Reads
from hugeplan.benchmarks import service
from hugeplan.benchmarks.schemas import RunComparison, RunDetail

router = api_router("benchmarks", below="/runs")


@router.get("/compare", response_model=RunComparison)
async def runs_compare(
    _: Viewer,
    session: Reads,
    run: Annotated[list[UUID], Query(min_length=2, max_length=20, description="Runs to compare, in this order")],
) -> Response:
    """Runs side by side: curves of the same measurement share a row."""
    return json_answer(await service.compare_runs(session, run))


@router.get("/{run_id}", response_model=RunDetail)
async def runs_get(_: Viewer, session: Reads, run_id: UUID) -> Response:
    """A run with everything it measured."""
    return json_answer(await service.get_run(session, run_id))
