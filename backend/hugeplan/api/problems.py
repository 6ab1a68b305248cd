"""RFC 9457 problem details: the one shape of every error, and the one table from exception to status.

Domain code raises plain exceptions; only this module knows HTTP. Clients match on ``type``, whose
URIs are stable, and read ``errors`` for the field, the value and what was expected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException

from hugeplan.api.allow import Methods
from hugeplan.api.schemas import ResponseModel
from hugeplan.planner.errors import PlannerError

TYPE_BASE = "https://hugeplan.dev/problems/"
MEDIA_TYPE = "application/problem+json"
MAX_SHOWN_ERRORS = 50
MAX_SHOWN_VALUE = 120
RETRY_AFTER_SECONDS = 5

_logger = logging.getLogger(__name__)


class FieldProblem(ResponseModel):
    """One wrong field: its path, the value as received (shortened), and what was expected."""

    field: str
    value: str | None
    expected: str


class Problem(ResponseModel):
    """An error, as RFC 9457 has it. ``type`` is stable; ``request_id`` finds the log line."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str
    errors: list[FieldProblem] | None = None


@dataclass
class ProblemError(Exception):
    """An error with a known place in the table. ``slug`` names the problem type."""

    detail: str
    errors: Sequence[FieldProblem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail


class NotFoundError(ProblemError):
    """What was asked for does not exist, or not any more."""


class UnauthenticatedError(ProblemError):
    """No credential, or one that is wrong, expired or revoked."""


class ForbiddenError(ProblemError):
    """The credential does not allow this."""


class CsrfError(ProblemError):
    """A browser session's unsafe request without its X-CSRF-Token."""


class ConflictError(ProblemError):
    """The request contradicts what is stored."""


class PlanDoesNotFitError(ProblemError):
    """The plan does not fit its node, so its files are held back: applied, they would take memory that is not there."""


class PreconditionFailedError(ProblemError):
    """If-Match names an older version than the stored one."""


class PreconditionRequiredError(ProblemError):
    """An edit without If-Match."""


class InvalidInputError(ProblemError):
    """The request is well formed HTTP but its content is not acceptable; ``errors`` says where."""


class TooLargeError(ProblemError):
    """The body is larger than the service takes."""


class BodyTimeoutError(ProblemError):
    """The body came more slowly than the service waits for."""


class UnsupportedMediaTypeError(ProblemError):
    """The body is not JSON."""


class RateLimitedError(ProblemError):
    """Too many requests with this credential or from this address."""


class UnavailableError(ProblemError):
    """Something the service needs is away for now."""


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
    PreconditionFailedError: ProblemType(412, "precondition-failed", "It was changed since you read it"),
    TooLargeError: ProblemType(413, "body-too-large", "The request body is too large"),
    UnsupportedMediaTypeError: ProblemType(415, "unsupported-media-type", "The request body must be JSON"),
    PreconditionRequiredError: ProblemType(428, "precondition-required", "The If-Match header is missing"),
    RateLimitedError: ProblemType(429, "rate-limited", "Too many requests"),
    UnavailableError: ProblemType(503, "unavailable", "The service cannot answer right now"),
}

HTTP_PROBLEM_TYPES: dict[int, ProblemType] = {
    400: ProblemType(400, "bad-request", "The request cannot be understood"),
    404: PROBLEM_TYPES[NotFoundError],
    405: ProblemType(405, "method-not-allowed", "This method is not allowed here"),
    413: PROBLEM_TYPES[TooLargeError],
    415: PROBLEM_TYPES[UnsupportedMediaTypeError],
}

INTERNAL = ProblemType(500, "internal", "Internal server error")

# PostgreSQL's "the server went away" classes: connection exception, operator intervention,
# insufficient resources, lost a deadlock or a serialisation, a lock not granted in time, and a read-only
# transaction (a replica during failover). All of them pass; nothing was stored.
_UNAVAILABLE_SQLSTATES = ("08", "57", "53", "40", "55P03", "25006")


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
        detail=detail,
        instance=request.url.path,
        request_id=request_id_of(request),
        errors=list(errors) or None,
    )
    return JSONResponse(
        problem.model_dump(mode="json", exclude={"errors"} if problem.errors is None else None),
        status_code=kind.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


# What begins like a token of ours is not repeated, wherever it stood.
_CREDENTIAL = re.compile(r"(hpl?_)[A-Za-z0-9_-]{16,}")
_SECRET_FIELD = re.compile(r"token|secret|password|cookie|authorization", re.IGNORECASE)


def shown(value: object) -> str | None:
    """A received value as a short printable text; None when there was no value."""
    if value is None:
        return None
    text = value if isinstance(value, str) else repr(value)
    text = _CREDENTIAL.sub(r"\1...", text)
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\\0")
    return text if len(text) <= MAX_SHOWN_VALUE else text[: MAX_SHOWN_VALUE - 3] + "..."


_EXPECTED_BY_PYDANTIC_TYPE = {
    "missing": "this field is required",
    "extra_forbidden": "no such field",
}


# Pydantic's sentences as what is expected: "String should have at most 253 characters" -> "at most 253 characters".
_PYDANTIC_WORDS = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be "), ""),
    (re.compile(r"^\w+ should have (at (?:least|most) \d+ \w+).*$"), r"\1"),
    (re.compile(r"^String should match pattern "), "text that matches "),
    (re.compile(r"^a valid UUID,.*$"), "a valid UUID"),
)


def _in_our_words(message: str) -> str:
    for pattern, words in _PYDANTIC_WORDS:
        message = pattern.sub(words, message)
    return message


def field_problems(errors: Sequence[Any], *, skip_first: bool = False) -> list[FieldProblem]:
    """Pydantic's errors as field, value, expected. ``skip_first`` drops the leading "body" or "query"."""
    problems = []
    for error in errors[:MAX_SHOWN_ERRORS]:
        location = list(error.get("loc", ()))
        if skip_first and len(location) > 1:
            location = location[1:]
        kind = str(error.get("type", ""))
        value = None if kind == "missing" else error.get("input")
        if isinstance(value, (dict, list)):
            value = f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
        message = _in_our_words(str(error.get("msg", "a valid value")))
        cause = (error.get("ctx") or {}).get("error")
        expected = cause.expected if isinstance(cause, PlannerError) else _EXPECTED_BY_PYDANTIC_TYPE.get(kind, message)
        path = field_path(location)
        if _SECRET_FIELD.search(path):
            value = None
        problems.append(FieldProblem(field=path, value=shown(value), expected=expected))
    return problems


def field_path(location: Sequence[object]) -> str:
    """A location as people write it: ``databases[0].settings``; the whole body is ``body``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path or "body"


def invalid_input(errors: Sequence[FieldProblem]) -> InvalidInputError:
    """An InvalidInputError whose detail is one sentence about the first wrong field."""
    if not errors:
        return InvalidInputError("The request is not valid.")
    first = errors[0]
    got = "" if first.value is None else f", got {first.value or 'nothing'}"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return InvalidInputError(f"{first.field}: expected {first.expected}{got}{more}.", errors)


def is_unavailable(error: BaseException) -> bool:
    """Whether a database error means that the server is away, rather than that the statement is wrong."""
    if isinstance(error, PoolTimeoutError | ConnectionError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is None:
        return isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated
    return str(sqlstate).startswith(_UNAVAILABLE_SQLSTATES)


def response_for(request: Request, error: Exception) -> Response:
    """The response for any exception; unknown ones are logged with their trace and answered as 500."""
    if isinstance(error, RequestValidationError):
        error = invalid_input(field_problems(error.errors(), skip_first=True))
    if isinstance(error, PlannerError):
        error = invalid_input([FieldProblem(field=error.field, value=shown(error.value), expected=error.expected)])
    if isinstance(error, ProblemError):
        kind = next(PROBLEM_TYPES[base] for base in type(error).__mro__ if base in PROBLEM_TYPES)
        return render(request, kind, error.detail, errors=error.errors, headers=error.headers)
    if isinstance(error, HTTPException):
        return _for_http_exception(request, error)
    if is_unavailable(error):
        _logger.warning("database unavailable", extra={"error": type(error).__name__})
        return render(
            request,
            PROBLEM_TYPES[UnavailableError],
            "The database cannot be reached. Nothing was stored; try again later.",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
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


def from_validation(error: ValidationError) -> InvalidInputError:
    """A pydantic error of a hand-parsed document as a problem."""
    return invalid_input(field_problems(error.errors(include_url=False, include_context=False)))
