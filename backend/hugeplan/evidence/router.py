"""Routes of published results and the backtest."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.documents.bounds import MAX_BYTES
from hugeplan.evidence import service
from hugeplan.evidence.schemas import Backtest, Evidence, ModelErrors, PublishedPoolShape, Validation

router = api_router("evidence")


@router.get("/evidence")
async def evidence_list(_: Viewer) -> Evidence:
    """Published results of page sizes, with their sources."""
    return service.evidence()


@router.get("/evidence/pool-shape")
async def pool_shape_get(
    _: Viewer,
    pool_bytes: Annotated[int | None, Query(ge=1, le=MAX_BYTES)] = None,
    working_set_bytes: Annotated[int | None, Query(ge=1, le=MAX_BYTES)] = None,
) -> PublishedPoolShape:
    """What published series say of throughput by buffer pool size, and of one pool where its working set is given."""
    return service.published_pool_shape(pool_bytes, working_set_bytes)


@router.get("/evidence/backtest")
async def backtest_get(_: Viewer) -> Backtest:
    """The model against every published result it has inputs for."""
    return service.backtest()


@router.get("/evidence/model-error")
async def model_error_get(_: Viewer) -> ModelErrors:
    """How far the model's likely gains were off where they were measured, by class, with the noise taken out."""
    return service.model_errors()


@router.get("/evidence/validation")
async def validation_list(_: Viewer) -> Validation:
    """What this project measured itself, beside what it had predicted."""
    return service.validation()
