"""Routes of sessions, tokens, enrolments and the audit log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from hugeplan.access import audit, enrolments, logins, oidc, service
from hugeplan.access.dependencies import SESSION_COOKIE, Admin, CurrentActor, Enroller, Viewer
from hugeplan.access.gate import address_key, client_address
from hugeplan.access.gated_route import api_router
from hugeplan.access.schemas import (
    AuditEntry,
    BrowserSessionItem,
    EnrolmentApproval,
    EnrolmentApprovalCreate,
    EnrolmentDecision,
    EnrolmentRequest,
    LoginLink,
    LoginMethods,
    PendingEnrolment,
    Role,
    Session,
    SessionCreate,
    Token,
    TokenCreate,
    TokenCreated,
    TokenRevoked,
    TokenRotate,
)
from hugeplan.api.csv_response import AsCsv, CsvResponse, json_row
from hugeplan.api.dependencies import CurrentDatabase, CurrentSettings, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.api.schemas import Moment
from hugeplan.settings import Settings
from hugeplan.shares import Turns

router = api_router("access")


OIDC_LOGINS_PER_LOGIN = 6
"""Logins begun at the provider for each failed credential that an address may have: beginning one is no guess."""


async def get_provider(request: Request) -> oidc.Provider:
    """The OpenID provider of the settings."""
    provider: oidc.Provider = request.app.state.oidc
    return provider


CurrentProvider = Annotated[oidc.Provider, Depends(get_provider)]


def browser_of(request: Request, settings: Settings) -> logins.Browser:
    """Where a login comes from."""
    return logins.Browser(client_address(request), request.headers.get("User-Agent"), settings.session_hours)


def login_limit(request: Request, settings: Settings) -> logins.LoginLimit:
    """The buckets that a login draws from."""
    return logins.LoginLimit(request.app.state.rate_limiter, address_key(request), settings.logins_per_minute)


def set_session_cookie(request: Request, response: Response, opened: logins.OpenedSession, settings: Settings) -> None:
    """Keep a session's secret in the browser, out of reach of scripts and of other sites' requests."""
    actor, gate = opened.actor, request.app.state.intake.gate
    gate.remember(opened.secret, actor.line_id, actor.token_id, actor.role, is_session=True)
    response.set_cookie(
        SESSION_COOKIE,
        opened.secret,
        max_age=settings.session_hours * 3600,
        httponly=True,
        samesite="strict",
        secure=settings.is_cookie_secure(),
        path="/",
    )


@router.post("/session", status_code=201)
async def session_create(
    request: Request, session: Writes, settings: CurrentSettings, body: SessionCreate, response: Response
) -> Session:
    """Log a browser in with a token or the token of a login link; sets the session cookie."""
    request.app.state.intake.gate.refuse_guessing(request, body.token)
    limiter = login_limit(request, settings)
    opened = await logins.open_session(session, body.token, browser_of(request, settings), limiter)
    request.state.actor = opened.actor
    audit.note(request, kind="session", subject=opened.actor.session_id)
    set_session_cookie(request, response, opened, settings)
    return opened.session


@router.get("/login-methods")
async def login_methods_get(provider: CurrentProvider) -> LoginMethods:
    """How a browser may log in: with a token always, with an OpenID provider where one is configured."""
    return LoginMethods(oidc_url="/api/v1/oidc/login" if provider.is_configured else None)


@router.get("/oidc/login", status_code=303, response_class=RedirectResponse)
async def oidc_login(
    request: Request, database: CurrentDatabase, settings: CurrentSettings, provider: CurrentProvider
) -> RedirectResponse:
    """Send the browser to the OpenID provider."""
    limiter: RateLimiter = request.app.state.rate_limiter
    limiter.spend("oidc", address_key(request), settings.logins_per_minute * OIDC_LOGINS_PER_LOGIN)
    turns: Turns = request.app.state.intake.turns
    async with turns.turn(f"logins of {address_key(request)}"), database.write() as session:
        started = await provider.start(session)
    response = RedirectResponse(started.url, status_code=303)
    response.set_cookie(
        oidc.STATE_COOKIE,
        started.state,
        max_age=oidc.LOGIN_SECONDS,
        httponly=True,
        samesite="lax",  # the provider sends the browser back, which is another site's link
        secure=settings.is_cookie_secure(),
        path=oidc.CALLBACK,
    )
    return response


@router.get("/oidc/callback", status_code=303, response_class=RedirectResponse)
async def oidc_callback(
    request: Request,
    database: CurrentDatabase,
    settings: CurrentSettings,
    provider: CurrentProvider,
    *,
    code: Annotated[str | None, Query(min_length=1, max_length=4096)] = None,
    state: Annotated[str, Query(min_length=1, max_length=256)],
) -> RedirectResponse:
    """Where the OpenID provider sends the browser back; opens a session and goes to the start page.

    Without ``code`` the provider did not let the person in, or the person did not agree.
    """
    confirmed = await provider.finish(database, code=code, state=state, cookie=request.cookies.get(oidc.STATE_COOKIE))
    async with database.write() as session:
        person = await oidc.row_of(session, confirmed)
        login_limit(request, settings).spend_of(person.line_id)
        now = datetime.now(UTC)
        login = logins.Login(now, now, now + timedelta(hours=settings.oidc_session_hours))
        opened = await logins.open_for(session, person, browser_of(request, settings), login)
        await audit.record(
            session,
            actor=opened.actor,
            address=client_address(request),
            action="oidc_login",
            kind="session",
            subject=str(opened.actor.session_id),
            detail={},
        )
    response = RedirectResponse("/", status_code=303)
    set_session_cookie(request, response, opened, settings)
    response.delete_cookie(oidc.STATE_COOKIE, path=oidc.CALLBACK)
    return response


@router.get("/session")
async def session_get(actor: CurrentActor) -> Session:
    """Who is asking, and the CSRF token of a browser session."""
    return service.describe(actor)


@router.delete("/session", status_code=204)
async def session_delete(request: Request, actor: Viewer, session: Writes, response: Response) -> None:
    """Log the browser out."""
    await logins.close_session(session, actor)
    audit.note(request, kind="session", subject=actor.session_id)
    response.delete_cookie(SESSION_COOKIE, path="/")


@router.post("/login-links", status_code=201)
async def login_links_create(request: Request, actor: Viewer, session: Writes, settings: CurrentSettings) -> LoginLink:
    """Make a login for a browser with the rights of whoever asks. It works once, for a quarter of an hour."""
    audit.note(request, kind="login_link")
    return await logins.link_for(session, actor, login_limit(request, settings))


@router.get("/sessions")
async def sessions_list(
    actor: Viewer, session: Reads, limit: Limit = 50, cursor: Cursor = None
) -> Page[BrowserSessionItem]:
    """Browsers that are logged in: everybody's for an administrator, one's own for others."""
    return await logins.list_sessions(session, actor, limit=limit, cursor=cursor)


@router.delete("/sessions/{session_id}", status_code=204)
async def sessions_end(actor: Viewer, session: Writes, session_id: UUID) -> None:
    """Log a browser out from afar."""
    await logins.end_session(session, actor, session_id)


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
async def tokens_create(request: Request, actor: Admin, session: Writes, body: TokenCreate) -> TokenCreated:
    """Make a credential. Its secret is in this answer and nowhere else."""
    made = await service.create_token(session, body, actor)
    request.app.state.intake.gate.remember(made.token, made.id, made.id, made.role)
    audit.note(request, subject=made.id, name=made.name, role=made.role, machine_id=made.machine_id)
    return made


@router.delete("/tokens/{token_id}")
async def tokens_revoke(_: Admin, session: Writes, token_id: UUID) -> TokenRevoked:
    """Revoke a credential, all of its line by rotation, and the browser sessions opened with them."""
    return await service.revoke_token(session, token_id)


@router.post("/tokens/{token_id}/rotate", status_code=201)
async def tokens_rotate(
    request: Request, actor: Admin, session: Writes, token_id: UUID, body: TokenRotate
) -> TokenCreated:
    """A new secret with the same rights; the old one stays good for a while, so that nothing is interrupted."""
    made = await service.rotate_token(session, token_id, body.overlap_seconds, actor)
    audit.note(request, replaced_by=str(made.id))
    return made


@router.post("/token/rotate", status_code=201)
async def own_token_rotate(request: Request, actor: CurrentActor, session: Writes, body: TokenRotate) -> TokenCreated:
    """A new secret for the token that asks, as an agent does before its own expires."""
    made = await service.rotate_token(session, actor.token_id, body.overlap_seconds, actor)
    request.app.state.intake.gate.remember(made.token, actor.line_id, made.id, made.role)
    audit.note(request, kind="tokens", subject=actor.token_id, replaced_by=str(made.id))
    return made


@router.post("/enrolments", status_code=201)
async def enrolments_create(
    request: Request, actor: Enroller, session: Writes, settings: CurrentSettings, body: EnrolmentRequest
) -> TokenCreated:
    """Mint the agent token of one machine. A machine that is known must prove or show that it is the known one."""
    silence = timedelta(seconds=settings.reenrolment_silence_seconds)
    try:
        enrolled = await enrolments.enrol(session, actor, body, silence, settings.most_machines)
    except enrolments.NotRecognisedError as error:
        # The request's own change ends without a trace; that somebody asked is to stay.
        await enrolments.keep_asking(session, actor, body, error.asking, client_address(request))
        raise
    if actor.role is Role.ENROLMENT:  # each leaves a line for good; a whole fleet may come at once
        limiter: RateLimiter = request.app.state.rate_limiter
        per_minute = settings.changes_per_minute
        limiter.spend("enrolment", str(actor.line_id), per_minute, max(per_minute, settings.most_machines))
    made = enrolled.token
    audit.note(request, kind="machine", subject=made.machine_id, token_id=str(made.id), how=enrolled.how)
    return made


@router.get("/enrolments/requests")
async def enrolment_requests_list(
    _: Admin, session: Reads, limit: Limit = 50, cursor: Cursor = None
) -> Page[PendingEnrolment]:
    """Machines that ask to enrol again and were not let in, newest first."""
    return await enrolments.list_pending(session, limit=limit, cursor=cursor)


@router.post("/enrolments/requests/{request_id}/decision")
async def enrolment_requests_decide(
    request: Request, actor: Admin, session: Writes, request_id: UUID, body: EnrolmentDecision
) -> PendingEnrolment:
    """Approve or refuse one request. The machine asks again by itself; an approval lets exactly that asker in."""
    decided = await enrolments.decide(session, actor, request_id, body)
    audit.note(request, kind="machine", subject=decided.node_machine_id, decision=body.decision)
    return decided


@router.post("/enrolments/approvals", status_code=201)
async def enrolment_approvals_create(
    request: Request, actor: Admin, session: Writes, body: EnrolmentApprovalCreate
) -> EnrolmentApproval:
    """Say yes to one new enrolment of a known machine."""
    audit.note(request, kind="machine", subject=body.machine_id)
    return await enrolments.approve_machine(session, actor, body)


Actor_ = Annotated[str | None, Query(alias="actor", max_length=253, description="Name of who made the change")]
Action = Annotated[str | None, Query(max_length=64, description="What was done, as an operation id")]
Subject = Annotated[str | None, Query(max_length=256, description="Id of what was changed")]
From = Annotated[Moment | None, Query(alias="from", description="Earliest time, inclusive")]
To = Annotated[Moment | None, Query(alias="to", description="Latest time, exclusive")]


@router.get("/audit.csv", name="audit_csv", response_class=CsvResponse)
@router.get("/audit", response_model=Page[AuditEntry])
async def audit_list(
    _: Admin,
    session: Reads,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    actor: Actor_ = None,
    action: Action = None,
    subject: Subject = None,
    from_: From = None,
    to: To = None,
    as_csv: AsCsv,
) -> Any:
    """Every change, newest first. By several conditions a page looks through 50,000: one with few may have a cursor."""
    wanted = audit.Wanted(subject, actor, action, from_, to)
    listed = partial(audit.list_events, wanted=wanted)
    page = await listed(session, limit=limit, cursor=cursor)
    if as_csv:
        return await as_csv.of("hugeplan-audit", audit.CSV_COLUMNS, page, listed, json_row)
    return page
