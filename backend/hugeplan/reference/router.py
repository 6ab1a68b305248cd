"""Routes of processor facts and engines."""

from __future__ import annotations

from fastapi import Response

from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.beside import Beside, json_answer
from hugeplan.api.dependencies import CurrentSettings
from hugeplan.reference import service
from hugeplan.reference.pasted import READ_SETTINGS
from hugeplan.reference.schemas import About, Engines, PastedSettings, PastedText, TlbCatalogue

router = api_router("reference")


@router.get("/catalogue/tlb")
async def tlb_catalogue_list(_: Viewer) -> TlbCatalogue:
    """TLB geometry of server processors, with sources and confidence."""
    return service.tlb_catalogue()


@router.get("/engines")
async def engines_list(_: Viewer) -> Engines:
    """The database engines the planner can size, with their settings."""
    return service.engines()


@router.post("/engines/read-settings", response_model=PastedSettings)
async def engine_settings_read(_: Viewer, beside: Beside, body: PastedText) -> Response:
    """Read a server's own list of its settings: SHOW ALL, pg_settings, SHOW VARIABLES or show parameter."""
    return json_answer(await beside.work(READ_SETTINGS, body.text.encode(), what="Reading these settings"))


@router.get("/about")
async def about_get(_: Viewer, settings: CurrentSettings) -> About:
    """The version of the service, and how long it keeps what."""
    return service.about(settings)
