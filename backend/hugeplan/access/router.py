"""Routes of sessions and tokens."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from hugeplan.access import service
from hugeplan.access.dependencies import SESSION_COOKIE, Admin, CurrentActor, Enroller, client_address
from hugeplan.access.guarded_route import GuardedRoute
from hugeplan.access.schemas import (
    EnrolmentRequest,
    Session,
    SessionCreate,
    Token,
    TokenCreate,
    TokenCreated,
    TokenRevoked,
)
from hugeplan.api.dependencies import CurrentSettings, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page

router = APIRouter(tags=["access"], route_class=GuardedRoute)


@router.post("/session", status_code=201)
async def session_create(
    request: Request, session: Writes, settings: CurrentSettings, body: SessionCreate, response: Response
) -> Session:
    """Log a browser in with the token of a login link; sets the session cookie."""
    limiter = service.LoginLimit(request.app.state.rate_limiter, client_address(request), settings.logins_per_minute)
    opened = await service.open_session(session, body.token, settings.session_hours, limiter)
    response.set_cookie(
        SESSION_COOKIE,
        opened.secret,
        max_age=settings.session_hours * 3600,
        httponly=True,
        samesite="strict",
        secure=settings.is_cookie_secure(),
        path="/",
    )
    return opened.session


@router.get("/session")
async def session_get(actor: CurrentActor) -> Session:
    """Who is asking, and the CSRF token of a browser session."""
    return service.describe(actor)


@router.delete("/session", status_code=204)
async def session_delete(actor: CurrentActor, session: Writes, response: Response) -> None:
    """Log the browser out."""
    await service.close_session(session, actor)
    response.delete_cookie(SESSION_COOKIE, path="/")


@router.get("/tokens")
async def tokens_list(
    _: Admin,
    session: Reads,
    limit: Limit = 50,
    cursor: Cursor = None,
    include_revoked: Annotated[bool, Query()] = False,
) -> Page[Token]:
    """Credentials, newest first, without their secrets."""
    return await service.list_tokens(session, include_revoked=include_revoked, limit=limit, cursor=cursor)


@router.post("/tokens", status_code=201)
async def tokens_create(_: Admin, session: Writes, body: TokenCreate) -> TokenCreated:
    """Make a credential. Its secret is in this answer and nowhere else."""
    return await service.create_token(session, body)


@router.delete("/tokens/{token_id}")
async def tokens_revoke(_: Admin, session: Writes, token_id: UUID) -> TokenRevoked:
    """Revoke a credential and the browser sessions opened with it."""
    return await service.revoke_token(session, token_id)


@router.post("/enrolments", status_code=201)
async def enrolments_create(_: Enroller, session: Writes, body: EnrolmentRequest) -> TokenCreated:
    """Mint the agent token of one machine; needs an enrolment token. Former agent tokens of it are revoked."""
    return await service.enrol(session, body)
