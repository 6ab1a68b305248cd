"""The route of the linter."""

from __future__ import annotations

import pickle

from fastapi import APIRouter, Response

from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import GatedRoute
from hugeplan.api.beside import Beside, json_answer
from hugeplan.linting.schemas import LintReport, UnreadFiles
from hugeplan.linting.service import CHECK_FILES

router = APIRouter(tags=["planning"], route_class=GatedRoute)


@router.post("/lint", response_model=LintReport)
async def files_lint(_: Viewer, beside: Beside, body: UnreadFiles) -> Response:
    """Check files about huge pages: what they will really do, what is wrong, and the fixed text."""
    return json_answer(await beside.work(CHECK_FILES, pickle.dumps(body), what="Checking these files"))
