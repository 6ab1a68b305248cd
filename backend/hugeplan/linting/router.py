"""The route of the linter."""

from __future__ import annotations

import pickle
from typing import Final

from fastapi import Response

from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.beside import Beside, json_answer
from hugeplan.linting.schemas import LintReport, UnreadFiles

CHECK_FILES: Final = "hugeplan.linting.service:check_files"
router = api_router("planning")


@router.post("/lint", response_model=LintReport)
async def files_lint(_: Viewer, beside: Beside, body: UnreadFiles) -> Response:
    """Check files about huge pages: what they will really do, what is wrong, and the fixed text."""
    return json_answer(await beside.work(CHECK_FILES, pickle.dumps(body), what="Checking these files"))
