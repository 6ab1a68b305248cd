"""Routes of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from fastapi import Depends, Request, Response

from hugeplan.access import audit
from hugeplan.access.dependencies import Viewer, require
from hugeplan.access.gated_route import api_router
from hugeplan.access.schemas import Role
from hugeplan.access.service import Actor
from hugeplan.api.beside import Beside
from hugeplan.api.dependencies import CurrentSettings, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.unread import Unread, unread
from hugeplan.documents.trial import TrialDocument
from hugeplan.fleet import service as fleet
from hugeplan.trials import service
from hugeplan.trials.schemas import FleetTrial, Trial, TrialReceipt

router = api_router("fleet")

if TYPE_CHECKING:
    UnreadTrial = Unread[TrialDocument]
else:
    UnreadTrial = unread(TrialDocument)

Sender = Annotated[Actor, Depends(require(Role.AGENT, Role.PLANNER, Role.APPROVER, Role.ADMIN), scope="function")]


@router.post(
    "/trials",
    status_code=201,
    responses={200: {"model": TrialReceipt, "description": "The trial was stored before"}},
)
async def trials_create(
    actor: Sender,
    session: Writes,
    body: UnreadTrial,
    beside: Beside,
    *,
    settings: CurrentSettings,
    request: Request,
    response: Response,
) -> TrialReceipt:
    """Store what ``hugeplan trial`` wrote. Idempotent by id: the same trial again is answered 200."""
    document = await service.read(beside, body)
    found = await service.store(session, beside, actor, document, most=settings.max_trials_per_node)
    audit.note(request, kind="trial", subject=found.id, node=str(found.node_id))
    response.status_code = 201 if found.created else 200
    return found


@router.get("/nodes/{node_id}/trials")
async def node_trials_list(
    _: Viewer, session: Reads, node_id: UUID, limit: Limit = 50, cursor: Cursor = None
) -> Page[Trial]:
    """The trials of a node, newest first."""
    await fleet.require_node(session, node_id)
    return await service.list_trials(session, node_id, limit=limit, cursor=cursor)


@router.get("/trials")
async def trials_list(_: Viewer, session: Reads, limit: Limit = 50, cursor: Cursor = None) -> Page[FleetTrial]:
    """The trials of all nodes, newest first."""
    return await service.list_all_trials(session, limit=limit, cursor=cursor)


@router.get("/trials/{trial_id}", response_model=TrialDocument)
async def trials_get(_: Viewer, session: Reads, trial_id: UUID) -> Response:
    """A trial with every pair of batches, as it was sent."""
    return Response(await service.get_document(session, trial_id), media_type="application/json")
