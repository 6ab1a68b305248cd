"""Routes of published results and the backtest."""

from __future__ import annotations

from fastapi import APIRouter

from hugeplan.access.dependencies import Viewer
from hugeplan.access.guarded_route import GuardedRoute
from hugeplan.evidence import service
from hugeplan.evidence.schemas import Backtest, Evidence

router = APIRouter(tags=["evidence"], route_class=GuardedRoute)


@router.get("/evidence")
async def evidence_list(_: Viewer) -> Evidence:
    """Published results of page sizes, with their sources."""
    return service.evidence()


@router.get("/evidence/backtest")
async def backtest_get(_: Viewer) -> Backtest:
    """The model against every published result it has inputs for."""
    return await service.backtest()
