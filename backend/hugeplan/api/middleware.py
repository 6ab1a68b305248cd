"""Around every request: an id, security headers, one log line, metrics, and a problem for what nobody caught."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hugeplan.api.bodies_in_flight import PART_BYTES, AnswersInFlight, Headers
from hugeplan.api.body import unless_gone
from hugeplan.api.csv_response import CredentialEndedError
from hugeplan.api.forwarded import Proxies, limit_key
from hugeplan.api.logs import request_id_context
from hugeplan.api.metrics import Metrics
from hugeplan.api.problems import PROBLEM_TYPES, response_for
from hugeplan.api.ratelimit import RateLimiter
from hugeplan.errors import FieldProblem, ProblemError, RateLimitedError, UnauthenticatedError, invalid_input
from hugeplan.settings import Settings

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

KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

CLIENT_CLOSED = 499
"""The status of a log line when the client went away before its answer; nobody receives it."""

MAX_PARAMETERS = 128
"""Of a query: FastAPI takes it apart for every route, also those that have none."""

MAX_DELAYED = 2000
"""Refusals that wait at a time; more of them are answered at once, on a connection that then closes."""

_logger = logging.getLogger("hugeplan.requests")


class Refusals:
    """Errors to machines, and to those who have shown no good credential: so many a minute at once, the others late.

    Who asks in a loop and waits for each answer is slowed to what costs nothing; nobody else notices.
    """

    def __init__(self, settings: Settings, limiter: Callable[[], RateLimiter]) -> None:
        self._per_minute = settings.refusals_per_minute
        self._seconds = settings.refusal_delay_seconds
        self._limiter = limiter
        self._waiting = 0

    async def delay(self, request: Request) -> bool:
        """Wait if this address has had its share. False when it had: its connection then ends with the answer."""
        try:
            self._limiter().spend("refusal", limit_key(request.client.host if request.client else ""), self._per_minute)
        except RateLimitedError:
            if self._waiting < MAX_DELAYED:
                self._waiting += 1
                try:
                    # Not all at one time: those who were refused together would come back together.
                    with suppress(ClientDisconnect):
                        async with unless_gone(request):
                            await asyncio.sleep(self._seconds * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
                finally:
                    self._waiting -= 1
            return False
        return True


def _is_refused(state: dict[str, Any], status: int) -> bool:
    """Whether an answer is an error to a stranger, or to a machine, of which one token makes as many as it likes."""
    if state.get("admitted") is None:
        return 400 <= status < 500
    return status >= 400 and bool(state.get("is_machine"))


def operation_of(scope: Scope) -> str:
    """The operation id of the route that took the request, so that metrics do not grow with ids; else ``other``."""
    return str(getattr(scope.get("route"), "name", None) or "other")


class RequestContext:
    """ASGI middleware, the outermost: not even FastAPI stands before it."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, refusals: Refusals, proxies: Proxies, answers: AnswersInFlight
    ) -> None:
        self._app = app
        self._answers = answers
        self._proxies = proxies
        self._metrics = metrics
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._proxies and scope.get("client"):
            scope["client"] = (self._proxies.client_of(scope["client"][0], scope["headers"]), 0)
        request = Request(scope, receive)
        given = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        reset = request_id_context.set(request_id)
        started = time.perf_counter()
        status = 500
        response_started = False
        ended: list[Callable[[], None]] = []
        self._metrics.requests_in_progress.inc()

        async def send_with_headers(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                if state.get("line_id") is not None:
                    ended.append(self._counted(state, message.get("headers", ())))
                response_started = True
                status = message["status"]
                headers = message["headers"] = _with_headers(message.get("headers", ()), scope["path"], request_id)
                if _is_refused(state, status) and not await self._refusals.delay(request):
                    headers[:] = [header for header in headers if header[0] != b"connection"]
                    headers.append((b"connection", b"close"))
            await _send_in_parts(send, message)

        try:
            await self._ask(scope, receive, send_with_headers)
        except ClientDisconnect:
            # An upload that was cut short is the client's affair.
            status = CLIENT_CLOSED
        except CredentialEndedError:
            status = PROBLEM_TYPES[UnauthenticatedError].status
        except Exception as error:
            # Nothing inside knew this error. A half-sent answer cannot become a problem: the server closes it.
            if response_started:
                raise
            await response_for(request, state.get("refusal", error))(scope, receive, send_with_headers)
        finally:
            for end in ended:
                end()
            self._metrics.requests_in_progress.dec()
            seconds = time.perf_counter() - started
            method = request.method if request.method in KNOWN_METHODS else "other"
            self._metrics.observe(method, operation_of(scope), status, seconds)
            _logger.info(
                "request",
                extra={
                    "method": request.method,
                    # The path holds no secret: tokens travel in headers and bodies, the login link's in its fragment.
                    "path": scope["path"],
                    "status": status,
                    "duration_ms": round(seconds * 1000, 2),
                    "actor": state.get("actor_id"),
                },
            )
            request_id_context.reset(reset)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            expected = f"at most {MAX_PARAMETERS} parameters"
            raise invalid_input([FieldProblem(field="query", value=None, expected=expected)])
        scope["headers"] = [_with_our_cookies(*header) for header in scope["headers"]]
        await self._app(scope, receive, send)

    def _counted(self, state: dict[str, Any], headers: Headers) -> Callable[[], None]:
        """Count an answer to a credential; the result ends that. A problem, also as ``state.refusal``: too many are."""
        try:
            may_refuse = not state.get("is_change", False)
            return self._answers.take(state["line_id"], headers, may_refuse=may_refuse)
        except ProblemError as error:
            # What is between may answer with an error of its own. A copy: the frames of this one hold the answer.
            state["refusal"] = replace(error)
            raise


_OUR_COOKIE = re.compile(rb'(?:^|;)[ \t]*(hugeplan_[^;"]*)(?=;|$)')


def _with_our_cookies(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A header; of cookies those that the service sets, none of which has a quote.

    FastAPI reads cookies for every route, and Python before the fix of CVE-2024-7592 undoes quotes in quadratic time.
    """
    return (name, b"; ".join(_OUR_COOKIE.findall(value))) if name == b"cookie" else (name, value)


async def _send_in_parts(send: Send, message: Message) -> None:
    """A message whose body is sent part by part: each when the client has taken most of those before."""
    body, at = message.get("body", b""), 0
    while len(body) - at > PART_BYTES:
        await send({"type": message["type"], "body": body[at : at + PART_BYTES], "more_body": True})
        at += PART_BYTES
    await send({**message, "body": body[at:]} if at else message)


_ALWAYS = tuple(
    (name.lower().encode("latin-1"), value.encode("latin-1"))
    for name, value in (SECURITY_HEADERS | {"Content-Security-Policy": API_CONTENT_SECURITY_POLICY}).items()
)
_REQUEST_ID = REQUEST_ID_HEADER.lower().encode("latin-1")
_NOT_KEPT = (b"cache-control", b"no-store")


def _with_headers(given: Iterable[tuple[bytes, bytes]], path: str, request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with those that every answer has; what the answer says itself stays."""
    headers = [header for header in given if header[0] != _REQUEST_ID]
    names = {name for name, _ in headers}
    headers.append((_REQUEST_ID, request_id.encode("latin-1")))
    headers += [header for header in _ALWAYS if header[0] not in names]
    if path.startswith("/api/") and _NOT_KEPT[0] not in names:
        headers.append(_NOT_KEPT)
    return headers
