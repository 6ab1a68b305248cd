"""The gate as an application, the first to see a request.

What can be answered by the head alone is answered here, without entering FastAPI.

The routes judge too (``gated_route``). But finding the route and its dependencies costs several times what a refusal
does, and a stranger should not be able to make the service do it. The few requests that come in large numbers
(``direct``: reports and probes) are answered from here for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from hugeplan.access.gate import address_key
from hugeplan.access.gated_route import GatedRoute, Intake
from hugeplan.access.schemas import Role
from hugeplan.api.allow import Methods
from hugeplan.api.body import refuse_gone
from hugeplan.api.problems import response_for
from hugeplan.db.turns import CONNECTION_TURN

Address = tuple[str, str]
"""Method and path."""

READERS = frozenset(Role) - {Role.AGENT, Role.ENROLMENT}


@dataclass(frozen=True, slots=True)
class Direct:
    """A route of which the handler needs no more than the request."""

    answer: Callable[[Request], Awaitable[Response]]
    needs_credential: bool


@dataclass(frozen=True, slots=True)
class _Known:
    route: APIRoute
    allowed: frozenset[Role] | None
    """The roles that may ask; None where no credential is needed."""
    reads_body: bool


def _came_by_proxy(request: Request) -> bool:
    """Whether a reverse proxy or an ingress passed the request on: each of them says so in one of these."""
    return any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"))


class GateApp:
    """ASGI application: it answers 401, 404, 405 and 429 itself, and passes on what is left.

    ``app`` is FastAPI's own stack, and ``routers`` are those of the API below ``prefix``, which ends with a slash.
    ``other`` are paths outside of the API that FastAPI knows; one that ends with a slash stands for all below it.
    ``gated`` are those of them that need a credential, ``direct_only`` those that need one unless the request came
    without a proxy. ``pages`` takes what is no route.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        intake: Intake,
        pages: Callable[[Scope], Awaitable[Response]],
        prefix: str,
        routers: Iterable[APIRouter],
        methods: Methods,
        other: Iterable[str],
        gated: frozenset[str],
        direct_only: frozenset[str],
        direct: Mapping[Address, Direct],
    ) -> None:
        self._app, self._pages, self._gate, self._methods, self._prefix = app, pages, intake.gate, methods, prefix
        self._other = tuple(other)
        self._intake = intake
        self._gated, self._direct_only = gated, direct_only
        self._direct = dict(direct)
        # A path without parameters is found at once; the others are few.
        self._plain: dict[Address, _Known] = {}
        self._patterns: list[tuple[str, re.Pattern[str], _Known]] = []
        for router in routers:
            for route in router.routes:
                if isinstance(route, APIRoute):
                    self._add(route)

    def _add(self, route: APIRoute) -> None:
        known = _Known(route, None, reads_body=False)
        if isinstance(route, GatedRoute):
            known = _Known(route, route.allowed_roles(), route.reads_body())
        for method in route.methods or ():
            if "{" in route.path:
                self._patterns.append((method, compile_path(route.path)[0], known))
            else:
                self._plain[method, route.path] = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge, and pass on or answer; one after the other where no credential is asked for."""
        request = Request(scope, receive)
        app: ASGIApp | None
        async with AsyncExitStack() as stack:
            stack.callback(CONNECTION_TURN.reset, CONNECTION_TURN.set(None))
            try:
                if len(request.headers.getlist("host")) > 1:
                    # Proxies and we may each believe another one (RFC 9112, section 3.2).
                    raise HTTPException(400, "The request has two Host headers.")
                known = self._gate.remembered(request)
                if (kind := self._open_kind(scope["method"], scope["path"])) is not None:
                    whose = address_key(request) if known is None or known.is_machine else known.line_id
                    await stack.enter_async_context(self._intake.strangers.brief_turn(f"{kind} of {whose}"))
                    refuse_gone(request)
                else:
                    await self._intake.begin(request, known)
                app = await self._answer(request)
                if app is None and not self._is_known(scope["path"]):
                    app = await self._pages(scope)
            except ClientDisconnect:
                raise
            except Exception as error:  # the table of problems knows them all
                app = response_for(request, error)
            await (app or self._app)(scope, receive, send)

    def _open_kind(self, method: str, path: str) -> str | None:
        """In which line a request waits that needs no credential: a flood of one kind keeps none of another.

        None for what needs one, for what is no route, and for bodies, which have a turn when they are whole.
        """
        direct = self._direct.get((method, path))
        if direct is not None:
            return None if direct.needs_credential else "probes"
        if path.startswith(self._prefix):
            known = self._find(method, path)
            return "requests" if known is not None and known.allowed is None and not known.reads_body else None
        return None if path in self._gated else "pages"

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request that goes no further; None for the others. Refusals are raised."""
        scope = request.scope
        method, path = scope["method"], scope["path"]
        direct = self._direct.get((method, path))
        known = self._find(method, path)
        if known is not None:
            scope["route"] = known.route
        if direct is not None:
            if direct.needs_credential:
                await self._gate.identify(request, known.allowed if known and known.allowed else frozenset(Role))
            return await direct.answer(request)
        if path.startswith(self._prefix):
            if known is None:
                raise HTTPException(405 if self._methods.at(path) else 404)
            if known.allowed is not None:
                await self._gate.identify(request, known.allowed)
        elif path in self._gated and method != "OPTIONS":
            await self._gate.identify(request)
        elif path in self._direct_only and _came_by_proxy(request):
            await self._gate.prove(request, READERS)
        return None

    def _find(self, method: str, path: str) -> _Known | None:
        found = self._plain.get((method, path))
        if found is None and path.startswith(self._prefix):
            for other, pattern, known in self._patterns:
                if method == other and pattern.match(path):
                    return known
        return found

    def _is_known(self, path: str) -> bool:
        """Whether FastAPI has routes for this path."""
        return path.startswith(self._prefix) or any(
            path.startswith(each) if each.endswith("/") else path == each for each in self._other
        )
