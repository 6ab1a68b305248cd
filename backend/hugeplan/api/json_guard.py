"""Bounds on request bodies: size, nesting, lengths, numbers and characters.

The whole body is read and checked before a handler sees it, so that nothing is half done. A value
that PostgreSQL or JSON cannot hold (a NUL character, NaN, a number past 64 bits) is refused here, once,
with the path of its field.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hugeplan.api.problems import (
    FieldProblem,
    InvalidInputError,
    ProblemError,
    TooLargeError,
    UnsupportedMediaTypeError,
    invalid_input,
    response_for,
    shown,
)
from hugeplan.settings import Settings

MAX_INTEGER = 2**64 - 1
MAX_KEY_CHARACTERS = 512
_BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How large a JSON document may be."""

    depth: int
    items: int
    string_characters: int

    @classmethod
    def of(cls, settings: Settings) -> JsonLimits:
        """The limits of the settings."""
        return cls(settings.max_json_depth, settings.max_json_items, settings.max_json_string_characters)


def _refuse(field: str, value: object, expected: str) -> NoReturn:
    raise invalid_input([FieldProblem(field=field or "body", value=shown(value), expected=expected)])


class _NonFinite(float):
    """NaN or an infinity as JSON spelled it, kept until its path is known."""

    def __new__(cls, text: str) -> _NonFinite:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def parse_json(body: bytes, limits: JsonLimits) -> Any:
    """The document in ``body``, or InvalidInputError naming the first field that breaks a limit."""
    try:
        document = json.loads(body.decode("utf-8"), parse_constant=_NonFinite)
    except UnicodeDecodeError as error:
        _refuse("body", None, f"UTF-8 text (byte {error.start} is not)")
    except json.JSONDecodeError as error:
        _refuse("body", None, f"JSON ({error.msg.lower()} at line {error.lineno} column {error.colno})")
    except RecursionError:
        _refuse("body", None, f"nesting of at most {limits.depth} levels")
    except ValueError as error:
        # Python refuses to read an integer of thousands of digits.
        _refuse("body", None, f"numbers of at most 4300 digits ({error})"[:200])
    _check(document, limits)
    return document


def _check(document: Any, limits: JsonLimits) -> None:
    """Walk the document without recursion; the stack holds (path, value, depth)."""
    stack: list[tuple[str, Any, int]] = [("", document, 1)]
    while stack:
        path, value, depth = stack.pop()
        if isinstance(value, dict | list):
            if depth > limits.depth:
                _refuse(path, None, f"nesting of at most {limits.depth} levels")
            if len(value) > limits.items:
                _refuse(path, f"{len(value)} elements", f"at most {limits.items} elements")
            members = value.items() if isinstance(value, dict) else enumerate(value)
            for key, member in members:
                if isinstance(key, str):
                    _check_text(_join(path, str(shown(key))), key, MAX_KEY_CHARACTERS)
                stack.append((_join(path, key), member, depth + 1))
        else:
            _check_scalar(path, value, limits)


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _check_scalar(path: str, value: Any, limits: JsonLimits) -> None:
    if isinstance(value, str):
        _check_text(path, value, limits.string_characters)
    elif isinstance(value, float):
        if not math.isfinite(value):
            _refuse(path, getattr(value, "text", "a number too large"), "a finite number")
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        digits = len(str(value))
        _refuse(path, f"an integer of {digits} digits", "an integer of at most 64 bits")


def _check_text(path: str, text: str, limit: int) -> None:
    if len(text) > limit:
        _refuse(path, f"{len(text)} characters", f"at most {limit} characters")
    if "\0" in text:
        _refuse(path, text, "text without NUL characters")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            _refuse(path, text, "text without lone surrogates")


class JsonGuard:
    """ASGI middleware that reads, bounds and checks the body of every request under ``/api``."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._max_body_bytes = settings.max_body_bytes
        self._limits = JsonLimits.of(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the body, then replay it to the application."""
        if scope["type"] != "http" or scope["method"] not in _BODY_METHODS:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            body = await self._read(request)
            if body:
                self._check_headers(request)
                request.state.json_document = parse_json(body, self._limits)
            request.state.json_body = body
        except ProblemError as error:
            response = response_for(request, error)
            await response(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, request: Request) -> bytes:
        too_large = TooLargeError(
            f"The body may have at most {self._max_body_bytes} bytes.",
            [
                FieldProblem(
                    field="body",
                    value=request.headers.get("content-length"),
                    expected=f"at most {self._max_body_bytes} bytes",
                )
            ],
            # What remains of a refused body is not read, so the connection cannot be used again.
            {"Connection": "close"},
        )
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._max_body_bytes:
            raise too_large
        chunks: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > self._max_body_bytes:
                raise too_large
            chunks.append(chunk)
        return b"".join(chunks)

    @staticmethod
    def _check_headers(request: Request) -> None:
        media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            raise UnsupportedMediaTypeError(
                "Send Content-Type: application/json.",
                [FieldProblem(field="Content-Type", value=media_type or None, expected="application/json")],
            )
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise UnsupportedMediaTypeError(
                "Send the body uncompressed.",
                [FieldProblem(field="Content-Encoding", value=encoding, expected="identity")],
            )


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def require_body(body: bytes) -> None:
    """Raise InvalidInputError when a body is needed and there is none."""
    if not body:
        raise InvalidInputError("A JSON body is needed.", [FieldProblem(field="body", value=None, expected="JSON")])
