"""Authentication and authorisation as dependencies of handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from hugeplan.access import service
from hugeplan.access.schemas import Role
from hugeplan.access.service import Actor, Credential
from hugeplan.api.dependencies import SAFE_METHODS, CurrentSettings, Reads
from hugeplan.api.problems import CsrfError, ForbiddenError
from hugeplan.api.ratelimit import RateLimiter

SESSION_COOKIE = "hugeplan_session"
CSRF_HEADER = "X-CSRF-Token"

# Declared for the OpenAPI document; the credential itself is read below, in one place.
_bearer_scheme = HTTPBearer(auto_error=False, description="A token of `hugeplan token create`")
_cookie_scheme = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, description="The browser's session")


def client_address(request: Request) -> str:
    """The peer's address, for rate limits."""
    return request.client.host if request.client else "unknown"


def _credential(request: Request) -> Credential | None:
    scheme, parameter = get_authorization_scheme_param(request.headers.get("Authorization"))
    if scheme.lower() == "bearer" and parameter:
        return Credential(secret=parameter, is_session=False)
    cookie = request.cookies.get(SESSION_COOKIE)
    return Credential(secret=cookie, is_session=True) if cookie else None


async def get_actor(
    request: Request,
    session: Reads,
    settings: CurrentSettings,
    _bearer: Annotated[object, Depends(_bearer_scheme)],
    _cookie: Annotated[object, Depends(_cookie_scheme)],
) -> Actor:
    """Who is asking: 401 without a valid credential, 403 for a browser session without its CSRF token."""
    limiter: RateLimiter = request.app.state.rate_limiter
    credential = _credential(request)
    try:
        actor = await service.authenticate(session, credential)
    except service.WrongCredentialError:
        # A browser whose session has ended asks a few times before it shows the login page: that is not guessing.
        if credential is not None and not credential.is_session:
            limiter.spend("login", client_address(request), settings.logins_per_minute)
        raise
    limiter.spend("token", str(actor.token_id), settings.requests_per_minute)
    if actor.csrf_token is not None and request.method not in SAFE_METHODS:
        given = request.headers.get(CSRF_HEADER, "")
        if not service.is_same_secret(given, actor.csrf_token):
            raise CsrfError(f"Send the csrf_token of GET /api/v1/session in the header {CSRF_HEADER}.")
    request.state.actor_id = str(actor.token_id)
    return actor


CurrentActor = Annotated[Actor, Depends(get_actor, scope="function")]


def require(*roles: Role) -> Callable[[Actor], Awaitable[Actor]]:
    """A dependency that answers 403 unless the actor has one of the roles."""

    async def check(actor: CurrentActor) -> Actor:
        if actor.role not in roles:
            wanted = " or ".join(roles)
            raise ForbiddenError(f"This needs the role {wanted}; the credential has the role {actor.role}.")
        return actor

    return check


require_viewer = require(Role.VIEWER, Role.PLANNER, Role.ADMIN)

Viewer = Annotated[Actor, Depends(require_viewer, scope="function")]
Planner = Annotated[Actor, Depends(require(Role.PLANNER, Role.ADMIN), scope="function")]
Admin = Annotated[Actor, Depends(require(Role.ADMIN), scope="function")]
Agent = Annotated[Actor, Depends(require(Role.AGENT), scope="function")]
Enroller = Annotated[Actor, Depends(require(Role.ENROLMENT, Role.ADMIN), scope="function")]
