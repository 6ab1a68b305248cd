"""The first to see a request of the API: without a good credential it goes no further than here.

The routes judge too (``guarded_route``). But finding the route and its dependencies costs several times what a refusal
does, and a stranger should not be able to make the service do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastapi import APIRouter, Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from hugeplan.access.admission import Gate
from hugeplan.access.guarded_route import GuardedRoute
from hugeplan.api.problems import response_for


class Doorkeeper:
    """ASGI middleware inside of the request's context: it answers 401 and 429 itself."""

    def __init__(self, app: ASGIApp, gate: Gate, prefix: str, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._gate = gate
        self._prefix = prefix
        # A path without parameters is found at once; the others are few.
        self._plain: set[tuple[str, str]] = set()
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        for router in routers:
            for route in router.routes:
                if not isinstance(route, GuardedRoute) or route.allowed_roles() is None:
                    continue
                for method in route.methods or ():
                    if "{" in route.path:
                        self._patterns.append((method, compile_path(prefix + route.path)[0]))
                    else:
                        self._plain.add((method, prefix + route.path))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge, and pass on or answer."""
        if scope["type"] == "http" and self._is_guarded(scope["method"], scope["path"]):
            request = Request(scope, receive)
            try:
                await self._gate.identify(request)
            except Exception as error:  # the table of problems knows them all
                await response_for(request, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_guarded(self, method: str, path: str) -> bool:
        if not path.startswith(self._prefix):
            return False
        if (method, path) in self._plain:
            return True
        return any(method == other and pattern.match(path) for other, pattern in self._patterns)
