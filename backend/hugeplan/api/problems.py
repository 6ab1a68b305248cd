"""RFC 9457 problem details: the one shape of every error, and the one table from exception to status.

Domain code raises the errors of ``hugeplan.errors``; only this module knows HTTP. Clients match on ``type``, whose
URIs are stable, and read ``errors`` for the field, the value and what was expected.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from hugeplan.api.allow import Methods
from hugeplan.api.schemas import ResponseModel
from hugeplan.db.alone import AWAY, is_unavailable
from hugeplan.errors import (
    RETRY_AFTER_SECONDS,
    BodyTimeoutError,
    ConflictError,
    CsrfError,
    DamagedError,
    FieldProblem,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    PlanDoesNotFitError,
    PlanFitUnknownError,
    PreconditionFailedError,
    PreconditionRequiredError,
    ProblemError,
    RateLimitedError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedMediaTypeError,
    field_problems,
    invalid_input,
    without_credentials,
)
from hugeplan.planner.errors import PlannerError

TYPE_BASE = "https://hugeplan.dev/problems/"
MEDIA_TYPE = "application/problem+json"

_logger = logging.getLogger(__name__)


class Problem(ResponseModel):
    """An error, as RFC 9457 has it. ``type`` is stable; ``request_id`` finds the log line."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    errors: list[FieldProblem] | None = None


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A row of the table: HTTP status, slug of the type URI, and the title."""

    status: int
    slug: str
    title: str


PROBLEM_TYPES: dict[type[Exception], ProblemType] = {
    InvalidInputError: ProblemType(422, "invalid-input", "The request has invalid fields"),
    UnauthenticatedError: ProblemType(401, "unauthenticated", "A valid credential is needed"),
    ForbiddenError: ProblemType(403, "forbidden", "This credential does not allow that"),
    CsrfError: ProblemType(403, "csrf", "The X-CSRF-Token header is missing or wrong"),
    NotFoundError: ProblemType(404, "not-found", "Not found"),
    BodyTimeoutError: ProblemType(408, "body-timeout", "The request body came too slowly"),
    ConflictError: ProblemType(409, "conflict", "The request contradicts what is stored"),
    PlanDoesNotFitError: ProblemType(409, "plan-does-not-fit", "The plan does not fit the node"),
    PlanFitUnknownError: ProblemType(409, "plan-fit-unknown", "It is not known whether the plan fits the node"),
    PreconditionFailedError: ProblemType(412, "precondition-failed", "It was changed since you read it"),
    TooLargeError: ProblemType(413, "body-too-large", "The request body is too large"),
    UnsupportedMediaTypeError: ProblemType(415, "unsupported-media-type", "The request body must be JSON"),
    PreconditionRequiredError: ProblemType(428, "precondition-required", "The If-Match header is missing"),
    RateLimitedError: ProblemType(429, "rate-limited", "Too many requests"),
    DamagedError: ProblemType(500, "document-damaged", "A stored document cannot be read back"),
    UnavailableError: ProblemType(503, "unavailable", "The service cannot answer right now"),
}

HTTP_PROBLEM_TYPES: dict[int, ProblemType] = {
    400: ProblemType(400, "bad-request", "The request cannot be understood"),
    404: PROBLEM_TYPES[NotFoundError],
    405: ProblemType(405, "method-not-allowed", "This method is not allowed here"),
    413: PROBLEM_TYPES[TooLargeError],
    415: PROBLEM_TYPES[UnsupportedMediaTypeError],
}

OPENED_BY_BROWSERS = "/api/v1/oidc/"
"""What is below is opened by people, not by programs: a provider sends their browsers there."""

INTERNAL = ProblemType(500, "internal", "Internal server error")


def request_id_of(request: Request) -> str:
    """The id that the request middleware gave this request."""
    return str(getattr(request.state, "request_id", "unknown"))


def render(
    request: Request,
    kind: ProblemType,
    detail: str,
    *,
    errors: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem+json response."""
    problem = Problem(
        type=TYPE_BASE + kind.slug,
        title=kind.title,
        status=kind.status,
        detail=without_credentials(detail),
        instance=without_credentials(request.url.path),
        request_id=request_id_of(request),
        errors=list(errors) or None,
    )
    if problem.instance.startswith(OPENED_BY_BROWSERS) and "text/html" in request.headers.get("Accept", ""):
        return HTMLResponse(_page(problem), status_code=kind.status, headers=dict(headers or {}))
    return JSONResponse(
        problem.model_dump(mode="json", exclude={"errors"} if problem.errors is None else None),
        status_code=kind.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def _page(problem: Problem) -> str:
    """What a person reads whose browser was sent here. The policy of the API's answers lets a page have no styles."""
    title, detail, request_id = (html.escape(text) for text in (problem.title, problem.detail, problem.request_id))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{title} - hugeplan</title></head><body>"
        f'<h1>{title}</h1><p>{detail}</p><p><a href="/login">Back to the login</a></p>'
        f"<p><small>Request {request_id}</small></p></body></html>"
    )


def response_for(request: Request, error: Exception) -> Response:
    """The response for any exception; unknown ones are logged with their trace and answered as 500.

    It ends the traces of the error and its causes. One that came through a future refers by its trace to a frame that
    refers to the future, which has the error: the body in their frames would stay until the collector of cycles looks.
    """
    try:
        return _response_for(request, error)
    finally:
        rest: list[BaseException | None] = [error]
        while rest:
            one = rest.pop()
            if one is not None:
                rest += (one.__cause__, one.__context__)
                one.__traceback__ = one.__cause__ = one.__context__ = None


def _response_for(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        error = invalid_input(field_problems(error.errors(), skip_first=True), len(error.errors()))
    if isinstance(error, PlannerError):
        error = InvalidInputError.of_planner(error)
    if isinstance(error, ProblemError):
        kind = next(PROBLEM_TYPES[base] for base in type(error).__mro__ if base in PROBLEM_TYPES)
        return render(request, kind, error.detail, errors=error.errors, headers=error.headers)
    if isinstance(error, HTTPException):
        return _for_http_exception(request, error)
    if is_unavailable(error):
        _logger.warning("database unavailable", extra={"error": type(error).__name__})
        return render(request, PROBLEM_TYPES[UnavailableError], AWAY, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
    _logger.error("unhandled error", exc_info=error)
    return render(request, INTERNAL, "An unexpected error happened. Nothing was stored. The request id finds the log.")


def _for_http_exception(request: Request, error: HTTPException) -> Response:
    known = HTTP_PROBLEM_TYPES.get(error.status_code)
    if known is None:
        known = ProblemType(error.status_code, f"http-{error.status_code}", HTTPStatus(error.status_code).phrase)
    details = {
        404: f"There is nothing at {request.url.path}.",
        405: f"{request.method} is not allowed at {request.url.path}.",
    }
    detail = details.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    if error.status_code == 405:
        methods: Methods = request.app.state.methods
        # A route knows its own methods only; an address may have several routes.
        headers["Allow"] = methods.at(request.url.path)
        if request.method == "OPTIONS" and headers["Allow"]:
            return Response(status_code=204, headers=headers)
    return render(request, known, detail, headers=headers)


def install(app: FastAPI) -> None:
    """Register the table with the application."""

    async def handle(request: Request, error: Exception) -> Response:
        return response_for(request, error)

    for kind in (ProblemError, PlannerError, HTTPException, RequestValidationError, DBAPIError, PoolTimeoutError):
        app.add_exception_handler(kind, handle)
