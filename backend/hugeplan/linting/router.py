"""The route of the linter."""

from __future__ import annotations

from fastapi import APIRouter

from hugeplan.access.dependencies import Viewer
from hugeplan.access.guarded_route import GuardedRoute
from hugeplan.linting import service
from hugeplan.linting.schemas import LintReport, LintRequest

router = APIRouter(tags=["planning"], route_class=GuardedRoute)


@router.post("/lint")
async def files_lint(_: Viewer, body: LintRequest) -> LintReport:
    """Check files about huge pages: what they will really do, what is wrong, and the fixed text."""
    return await service.check_files(body)
