"""What goes wrong with a request, as the domain says it: the errors that services raise, and the fields they name.

Nothing here knows HTTP. ``hugeplan.api.problems`` has the one table from these to a status and a problem document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from hugeplan.planner.errors import PlannerError

MAX_SHOWN_ERRORS = 50
MOST_ERRORS: Final = 2000
"""Of one body that are looked at: pydantic makes an object of each, and 49,000 of them took a quarter of a second."""
MAX_SHOWN_VALUE = 120
RETRY_AFTER_SECONDS = 5


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong field: its path, the value as received (shortened), and what was expected."""

    field: str
    value: str | None
    expected: str


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


class PlanFitUnknownError(ProblemError):
    """It is not known whether the plan fits its node, and the approval does not say that its approver knows that."""


class PreconditionFailedError(ProblemError):
    """If-Match names an older version than the stored one."""


class PreconditionRequiredError(ProblemError):
    """An edit without If-Match."""


class InvalidInputError(ProblemError):
    """The request is well formed HTTP but its content is not acceptable; ``errors`` says where."""

    @classmethod
    def of_planner(cls, error: PlannerError) -> InvalidInputError:
        """The planner's refusal of a value."""
        return invalid_input([FieldProblem(field=error.field, value=shown(error.value), expected=error.expected)])


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


class DamagedError(ProblemError):
    """What is stored cannot be read back; everything else is as it was."""


# What begins like a token of ours is not repeated, wherever it stood.
_CREDENTIAL = re.compile(r"(hpl?_)[A-Za-z0-9_-]{16,}")


def without_credentials(text: str) -> str:
    """The text with all that begins like a token of ours cut short."""
    return _CREDENTIAL.sub(r"\1...", text)


def shown(value: object) -> str | None:
    """A received value as a short printable text; None when there was no value."""
    if value is None:
        return None
    text = value if isinstance(value, str) else repr(value)
    text = without_credentials(text)
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\\0")
    return text if len(text) <= MAX_SHOWN_VALUE else text[: MAX_SHOWN_VALUE - 3] + "..."


_SECRET_FIELD = re.compile(r"token|secret|password|cookie|authorization", re.IGNORECASE)

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


def errors_of(error: ValidationError) -> list[Any]:
    """Pydantic's errors; where they are too many to be looked at, one that says how many."""
    if (many := error.error_count()) <= MOST_ERRORS:
        return error.errors(include_url=False)
    expected = f"at most {MOST_ERRORS} wrong fields, of which {MAX_SHOWN_ERRORS} are named"
    return [{"type": "too_many", "loc": (), "msg": expected, "input": many}]


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


def invalid_input(errors: Sequence[FieldProblem], many: int = 0) -> InvalidInputError:
    """An InvalidInputError whose detail is one sentence about the first wrong field; ``many`` are wrong, or these."""
    if not errors:
        return InvalidInputError("The request is not valid.")
    first = errors[0]
    got = "" if first.value is None else f", got {first.value or 'nothing'}"
    more = f" ({max(many, len(errors)) - 1} more)" if len(errors) > 1 else ""
    return InvalidInputError(f"{first.field}: expected {first.expected}{got}{more}.", errors)


def from_validation(error: ValidationError, *within: str) -> InvalidInputError:
    """A pydantic error of a hand-parsed document, which stood within others, as a problem."""
    errors = errors_of(error)
    return invalid_input(field_problems([{**one, "loc": (*within, *one["loc"])} for one in errors]), len(errors))
