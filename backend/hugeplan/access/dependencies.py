"""Authentication and authorisation as dependencies of handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from sqlalchemy.exc import SQLAlchemyError

from hugeplan.access import service
from hugeplan.access.gate import SESSION_COOKIE, client_address, credential_of, refuse_role
from hugeplan.access.schemas import Role
from hugeplan.access.service import Actor
from hugeplan.api.dependencies import SAFE_METHODS, Reads
from hugeplan.db.session import Database
from hugeplan.errors import CsrfError, UnauthenticatedError

T = TypeVar("T")

__all__ = [
    "SESSION_COOKIE",
    "Admin",
    "AdmittedAgent",
    "Agent",
    "Approver",
    "CredentialCheck",
    "CurrentActor",
    "Enroller",
    "Planner",
    "Viewer",
    "client_address",
    "forget_credential",
    "get_actor",
    "require",
    "require_viewer",
    "while_good",
]

CSRF_HEADER = "X-CSRF-Token"

# Declared for the OpenAPI document; the credential itself is read below, in one place.
_bearer_scheme = HTTPBearer(auto_error=False, description="A token of `hugeplan token create`")
_cookie_scheme = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, description="The browser's session")


async def get_actor(
    request: Request,
    session: Reads,
    _bearer: Annotated[object, Depends(_bearer_scheme)],
    _cookie: Annotated[object, Depends(_cookie_scheme)],
) -> Actor:
    """Who is asking: 401 without a valid credential, 403 for a browser session without its CSRF token."""
    credential = credential_of(request)
    try:
        actor = await service.authenticate(session, credential)
    except service.WrongCredentialError:
        # The gate let it in a moment ago: it has ended since.
        if credential is not None:
            request.app.state.intake.gate.count_guess(request, credential)
        raise
    if actor.csrf_token is not None and request.method not in SAFE_METHODS:
        given = request.headers.get(CSRF_HEADER, "")
        if not service.is_same_secret(given, actor.csrf_token):
            raise CsrfError(f"Send the csrf_token of GET /api/v1/session in the header {CSRF_HEADER}.")
    request.state.actor_id = str(actor.token_id)
    request.state.actor = actor
    return actor


# Any role will do; a gated route still wants one.
setattr(get_actor, "allowed_roles", frozenset(Role))  # noqa: B010

CurrentActor = Annotated[Actor, Depends(get_actor, scope="function")]


async def admitted_agent(
    request: Request,
    _bearer: Annotated[object, Depends(_bearer_scheme)],
    _cookie: Annotated[object, Depends(_cookie_scheme)],
) -> UUID:
    """The token id of an agent that the gate let in. Whoever uses it asks the database about the token once more."""
    return UUID(request.state.actor_id)


setattr(admitted_agent, "allowed_roles", frozenset({Role.AGENT}))  # noqa: B010

AdmittedAgent = Annotated[UUID, Depends(admitted_agent)]


def forget_credential(request: Request) -> None:
    """Note that the credential of this request has ended since the gate let it in."""
    credential = credential_of(request)
    if credential is not None:
        request.app.state.intake.gate.count_guess(request, credential)


STREAM_CHECK_SECONDS = 5.0
"""How long a stream may go on after its credential has ended."""


class CredentialCheck:
    """Whether the credential of a request has ended since: asked of the database every STREAM_CHECK_SECONDS."""

    def __init__(self, request: Request) -> None:
        self._request, self._clock = request, asyncio.get_running_loop().time
        self._at = self._clock() + STREAM_CHECK_SECONDS

    @property
    def in_seconds(self) -> float:
        """Until it is asked again."""
        return max(0.0, self._at - self._clock())

    async def has_ended(self) -> bool:
        """The answer, or False where it is not time to ask."""
        if self.in_seconds:
            return False
        database: Database = self._request.app.state.database
        try:
            async with database.read() as session:
                actor = await service.authenticate(session, credential_of(self._request))
        except UnauthenticatedError:
            return True
        except (SQLAlchemyError, OSError):
            pass  # asked again; a database that is away says nothing about the credential
        else:
            if actor.role is not self._request.state.admitted.role:
                return True
        self._at = self._clock() + STREAM_CHECK_SECONDS
        return False


async def while_good(request: Request, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """``items`` for as long as the credential of the request is good: a stream ends with it."""
    check = CredentialCheck(request)
    waiting: asyncio.Future[T] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(items))
            await asyncio.wait({waiting}, timeout=check.in_seconds)
            if await check.has_ended():
                return
            if waiting.done():
                done, waiting = waiting, None
                try:
                    item = done.result()
                except StopAsyncIteration:
                    return
                yield item
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        await items.aclose()


def require(*roles: Role) -> Callable[[Actor], Awaitable[Actor]]:
    """A dependency that answers 403 unless the actor has one of the roles."""
    allowed = frozenset(roles)

    async def check(actor: CurrentActor) -> Actor:
        refuse_role(actor.role, allowed)
        return actor

    # A gated route reads this off the handler's signature, and refuses others before it reads their body.
    setattr(check, "allowed_roles", allowed)  # noqa: B010
    return check


require_viewer = require(Role.VIEWER, Role.PLANNER, Role.APPROVER, Role.ADMIN)

Viewer = Annotated[Actor, Depends(require_viewer, scope="function")]
Planner = Annotated[Actor, Depends(require(Role.PLANNER, Role.APPROVER, Role.ADMIN), scope="function")]
Approver = Annotated[Actor, Depends(require(Role.APPROVER, Role.ADMIN), scope="function")]
Admin = Annotated[Actor, Depends(require(Role.ADMIN), scope="function")]
Agent = Annotated[Actor, Depends(require(Role.AGENT), scope="function")]
Enroller = Annotated[Actor, Depends(require(Role.ENROLMENT, Role.ADMIN), scope="function")]
