"""Reading a request's body: after authentication, bounded in size and time, and parsed beside the event loop.

A body that is too large, too slow or cut short is refused while it arrives. What is left of a refused body is
dropped by the connection (``hugeplan.api.connection``), so that the client can read why.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request

from hugeplan.api.forwarded import limit_key
from hugeplan.api.json_body import JsonLimits, ValueCount, parse_json
from hugeplan.api.loop_share import LoopShare
from hugeplan.errors import (
    BodyTimeoutError,
    FieldProblem,
    InvalidInputError,
    ProblemError,
    TooLargeError,
    UnsupportedMediaTypeError,
    invalid_input,
)
from hugeplan.settings import Settings
from hugeplan.shares import Line

T = TypeVar("T")

PARSE_BESIDE_LOOP_BYTES = 192 * 1024
"""A larger body is parsed in a thread. Below, handing it over and sharing the interpreter cost more than is gained: a
report with a quick run, 100 kB, took a fifth more processor time in a thread. One thread works at a time: several
would take the interpreter from the event loop in turn.
"""

UNPACK_SECONDS = 0.0003
"""Of processor time, to unpack 64 KiB and to count their values: what a small body unpacks to takes turns for it."""

_DISCARD_AFTER_LOGIN_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What a body may take: bytes, seconds for the first byte and the rest, its JSON; and what to do instead."""

    max_bytes: int
    patience_seconds: float
    min_bytes_per_second: int
    json: JsonLimits
    beside_loop: Line = field(default_factory=Line)
    of_the_loop: LoopShare = field(default_factory=LoopShare)
    instead: str = ""

    @classmethod
    def of(cls, settings: Settings) -> BodyLimits:
        """The limits of the settings."""
        return cls(
            settings.max_body_bytes,
            settings.body_timeout_seconds,
            settings.min_body_bytes_per_second,
            JsonLimits.of(settings),
        )

    def at_most(self, max_bytes: int, max_values: int) -> BodyLimits:
        """These limits, and no more than so many bytes and values."""
        values = min(self.json.values, max_values)
        return replace(self, max_bytes=min(self.max_bytes, max_bytes), json=replace(self.json, values=values))

    def too_large(self, declared: str | None) -> TooLargeError:
        """The refusal of a body past ``max_bytes``."""
        problem = FieldProblem(field="body", value=declared, expected=f"at most {self.max_bytes} bytes")
        return TooLargeError(f"The body may have at most {self.max_bytes} bytes{self.instead}.", [problem])


async def keep_json(request: Request, body: bytes, limits: BodyLimits) -> None:
    """Parse the body of this request and keep both for the handler. InvalidInputError for no acceptable JSON."""
    # FastAPI reads the body again through these two; they are where Starlette keeps what was read. Without the first it
    # would wait for what has come.
    setattr(request, "_body", body)  # noqa: B010
    if body:
        document = await beside_loop(request, len(body), limits, partial(parse_json, body, limits.json))
        setattr(request, "_json", document)  # noqa: B010


async def read_body(request: Request, limits: BodyLimits, taken: Callable[[int], None] | None = None) -> bytes:
    """The bytes of this request's JSON body, uncompressed. An absent body is empty bytes.

    ``taken`` is told how many came, and may refuse them with a problem. Raises TooLargeError, BodyTimeoutError,
    UnsupportedMediaTypeError, InvalidInputError, or starlette's ClientDisconnect when the client went away.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.max_bytes:
        _let_it_end(request)
        raise limits.too_large(declared)
    if declared in {"", "0"} and "transfer-encoding" not in request.headers:
        return b""
    inflate = _check_headers(request)
    return await _read(request, limits, taken, inflate=inflate)


def _check_headers(request: Request) -> bool:
    """Whether the body is gzip. UnsupportedMediaTypeError when it is not JSON, or compressed in another way."""
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedMediaTypeError(
            "Send Content-Type: application/json.",
            [FieldProblem(field="Content-Type", value=media_type or None, expected="application/json")],
        )
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip"}:
        raise UnsupportedMediaTypeError(
            "Send the body uncompressed or as gzip.",
            [FieldProblem(field="Content-Encoding", value=encoding, expected="identity or gzip")],
        )
    return encoding == "gzip"


async def _read(request: Request, limits: BodyLimits, taken: Callable[[int], None] | None, *, inflate: bool) -> bytes:
    """The whole body, uncompressed. Every byte that comes buys more time, at the least rate that is allowed."""
    unpacked = _Inflater(limits) if inflate else None
    values = ValueCount(limits.json, limits.instead)
    chunks: list[bytes] = []
    size = received = 0
    state: dict[str, Any] = request.scope.get("state", {})
    started = asyncio.get_running_loop().time()
    while True:
        until = started + limits.patience_seconds + received / limits.min_bytes_per_second
        try:
            async with asyncio.timeout_at(until):
                message = await request.receive()
        except TimeoutError as error:
            if state.get("body_bytes", 0) <= received:
                raise _too_slow(limits) from error
            received = state["body_bytes"]  # for which nobody was woken
            continue
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if state.get("is_in_small_parts"):
            _let_it_end(request)
            raise _in_small_parts()
        chunk: bytes = message.get("body", b"")
        received = state.get("body_bytes", received + len(chunk))
        for part in (chunk,) if unpacked is None else unpacked.parts(chunk):
            size += len(part)
            if size > limits.max_bytes:
                _let_it_end(request)
                raise limits.too_large(None)
            values.add(part)
            if taken is not None:
                _take(request, taken, len(part))
            chunks.append(part)
            if unpacked is not None and size > PARSE_BESIDE_LOOP_BYTES:
                await limits.of_the_loop.wait(address_of(request), UNPACK_SECONDS, _whose(request))
        if not message.get("more_body", False):
            break
    if unpacked is not None:
        unpacked.finish()
    return b"".join(chunks)


def _take(request: Request, taken: Callable[[int], None], count: int) -> None:
    try:
        taken(count)
    except ProblemError:
        _let_it_end(request)
        raise


def _let_it_end(request: Request) -> None:
    """Have a refused body read to its end without keeping it: who was let in should learn what is wrong."""
    if getattr(request.state, "admitted", None) is not None:
        request.state.discard_bytes = _DISCARD_AFTER_LOGIN_BYTES


def _in_small_parts() -> TooLargeError:
    problem = FieldProblem(field="body", value=None, expected="parts of at least 1024 bytes")
    # What is left of it is read by nobody, so that no request is found behind it.
    return TooLargeError("The body comes in too many small parts.", [problem], {"Connection": "close"})


def _too_slow(limits: BodyLimits) -> BodyTimeoutError:
    expected = (
        f"all of it within {limits.patience_seconds:g} seconds and one more second"
        f" for each {limits.min_bytes_per_second} bytes"
    )
    return BodyTimeoutError(
        "The body came too slowly.",
        [FieldProblem(field="body", value=None, expected=expected)],
        {"Connection": "close"},
    )


class _Inflater:
    """Unpacks gzip in bounded parts, so that a small body cannot become a large one."""

    PART_BYTES = 64 * 1024

    def __init__(self, limits: BodyLimits) -> None:
        self._zlib = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._limits = limits

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """What this part of the compressed body unpacks to, at most one byte past the size limit: as it is asked for,
        since a refusal of the first part spares the others."""
        left = self._limits.max_bytes + 1
        try:
            while left > 0:
                wanted = min(self.PART_BYTES, left)
                part = self._zlib.decompress(chunk, wanted)
                left -= len(part)
                yield part
                chunk = self._zlib.unconsumed_tail
                if not chunk and len(part) < wanted:
                    break
        except zlib.error as error:
            raise _not_gzip() from error
        if self._zlib.unused_data:
            raise _not_gzip()

    def finish(self) -> None:
        """InvalidInputError when the stream has no end."""
        if not self._zlib.eof:
            raise _not_gzip()


def _not_gzip() -> InvalidInputError:
    return invalid_input([FieldProblem(field="body", value=None, expected="one whole gzip stream")])


async def beside_loop(request: Request, size_bytes: int, limits: BodyLimits, work: Callable[[], T]) -> T:
    """The result of work on a body of this size, done in a thread, in line, where it is large."""
    whose, address = _whose(request), address_of(request)
    if size_bytes <= PARSE_BESIDE_LOOP_BYTES:
        return await limits.of_the_loop.run(address, work, whose)
    async with limits.beside_loop.turn(whose or address, address):
        return await anyio.to_thread.run_sync(work)


def _whose(request: Request) -> str:
    return str(getattr(request.state, "line_id", ""))


def address_of(request: Request) -> str:
    """What bounds by address count a request by."""
    return limit_key(request.client.host if request.client else "")


def refuse_gone(request: Request) -> None:
    """ClientDisconnect where the client has left while its request waited."""
    if request.scope["state"].get("is_gone"):
        raise ClientDisconnect


@asynccontextmanager
async def unless_gone(request: Request) -> AsyncIterator[None]:
    """What waits in the block ends when the client leaves, and with it what the request holds. ClientDisconnect."""
    refuse_gone(request)
    state = request.scope["state"]
    try:
        async with asyncio.timeout(None) as state["leaves"]:
            yield
    except TimeoutError:
        if state["leaves"].expired():
            raise ClientDisconnect from None
        raise
    finally:
        del state["leaves"]
    refuse_gone(request)


def no_body() -> InvalidInputError:
    """The refusal of a request without a body that needs one."""
    return InvalidInputError("A JSON body is needed.", [FieldProblem(field="body", value=None, expected="JSON")])


@dataclass(frozen=True)
class UnreadBody:
    """For a body that the sandbox parses; the refusal of one that is too large ends with what to do ``instead``."""

    instead: str

    async def __call__(self, request: Request) -> bytes:
        """The bytes of this request's body, which nobody has parsed; InvalidInputError when there are none."""
        raw: bytes = request.state.json_body
        if not raw:
            raise no_body()
        return raw
