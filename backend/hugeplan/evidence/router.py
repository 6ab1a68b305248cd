"""Routes of published results, the backtest, processor facts and engines."""

from __future__ import annotations

from fastapi import APIRouter

from hugeplan.access.dependencies import Viewer
from hugeplan.evidence import service
from hugeplan.evidence.schemas import Backtest, Engines, Evidence, TlbCatalogue

router = APIRouter(tags=["evidence"])


@router.get("/evidence")
async def evidence_list(_: Viewer) -> Evidence:
    """Published results of page sizes, with their sources."""
    return service.evidence()


@router.get("/evidence/backtest")
async def backtest_get(_: Viewer) -> Backtest:
    """The model against every published result it has inputs for."""
    return await service.backtest()


@router.get("/catalogue/tlb")
async def tlb_catalogue_list(_: Viewer) -> TlbCatalogue:
    """TLB geometry of server processors, with sources and confidence."""
    return service.tlb_catalogue()


@router.get("/engines")
async def engines_list(_: Viewer) -> Engines:
    """The database engines the planner can size, with their settings."""
    return service.engines()
