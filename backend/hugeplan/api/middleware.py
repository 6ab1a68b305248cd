"""Around every request: an id, security headers, one log line, metrics, and a problem for what nobody caught."""

from __future__ import annotations

import logging
import re
import time
import uuid

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hugeplan.api.logs import request_id_context
from hugeplan.api.metrics import Metrics
from hugeplan.api.problems import response_for

REQUEST_ID_HEADER = "X-Request-ID"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

# Answers of the API are data: nothing in them may run, load or be framed.
API_CONTENT_SECURITY_POLICY = "default-src 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

_logger = logging.getLogger("hugeplan.requests")


def operation_of(scope: Scope) -> str:
    """The operation id of the route that took the request, so that metrics do not grow with ids; else ``other``."""
    return str(getattr(scope.get("route"), "name", None) or "other")


class RequestContext:
    """ASGI middleware, the outermost of the application's own."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        given = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        request.state.request_id = request_id
        reset = request_id_context.set(request_id)
        started = time.perf_counter()
        status = 500
        response_started = False
        self._metrics.requests_in_progress += 1

        async def send_with_headers(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                response_started = True
                status = message["status"]
                _add_headers(MutableHeaders(scope=message), scope["path"], request_id)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            # Nothing inside knew this error. A half-sent answer cannot become a problem: the server closes it.
            if response_started:
                raise
            await response_for(request, error)(scope, receive, send_with_headers)
        finally:
            self._metrics.requests_in_progress -= 1
            seconds = time.perf_counter() - started
            self._metrics.observe(request.method, operation_of(scope), status, seconds)
            _logger.info(
                "request",
                extra={
                    "method": request.method,
                    # The path holds no secret: tokens travel in headers and bodies, the login link's in its fragment.
                    "path": scope["path"],
                    "status": status,
                    "duration_ms": round(seconds * 1000, 2),
                    "actor": getattr(request.state, "actor_id", None),
                },
            )
            request_id_context.reset(reset)


def _add_headers(headers: MutableHeaders, path: str, request_id: str) -> None:
    headers[REQUEST_ID_HEADER] = request_id
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Content-Security-Policy", API_CONTENT_SECURITY_POLICY)
    if path.startswith("/api/"):
        headers.setdefault("Cache-Control", "no-store")
