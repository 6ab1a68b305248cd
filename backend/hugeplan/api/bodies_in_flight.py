"""How much of large bodies one process holds at a time, and that it works on one of them after the other.

A body counts from what one write takes, since hundreds of them may come slowly at a time, and so does an answer: a
client that reads slowly keeps all of it for minutes, on each of hundreds of connections. Reports of up to a megabyte
have a bound of their own, which a fleet's do not come near: they are small, and of each agent a few are read at a time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import Final

from hugeplan.errors import RateLimitedError
from hugeplan.shares import RETRY, InFlight, Line, Turns, too_much

Headers = Iterable[tuple[bytes, bytes]]

LARGE_BYTES: Final = 1024**2
"""A report that is large."""
BYTES_OF_ONE: Final = 16 * 1024**2
"""Of one credential: two of the largest."""
BYTES: Final = 48 * 1024**2
BYTES_OF_AGENTS: Final = BYTES // 2
"""Of all agents, beside those of others: who has an enrolment token has as many as it likes, whose bodies may come
slowly."""
BYTES_OF_REPORTS: Final = 256 * 1024**2
"""Of all reports of more than PART_BYTES: each is up to a megabyte while it comes, in hundreds of connections."""
TURN_SECONDS: Final = 10.0
"""A large body waits so long for its turn."""
PART_BYTES: Final = 64 * 1024
"""What is written of an answer before its client has read some of it, and a body that is small."""
PAGES_BYTES: Final = 4 * 1024**2
"""What a list that is answered page by page counts as."""
REPORTS_OF_ONE: Final = 4
"""That are read and stored at a time. Those of all others wait behind them; an agent sends one after the other."""
STRANGERS_OF_ONE: Final = 2
"""Requests without a credential that are answered at a time, of one address and kind."""
WAITING_STRANGERS_OF_ONE: Final = 1024
"""More than an address has connections: those that wait past it have none any more."""
TURN_SECONDS_OF_STRANGERS: Final = 0.02
STREAMS_OF_ONE: Final = 32
"""Streams of events that one credential listens to."""
STREAMS: Final = 400


class LargeBody:
    """One body on its way. Nothing is counted before it is large."""

    def __init__(self, bodies: BodiesInFlight, whose: str, least_bytes: int, each: str) -> None:
        self._bodies, self._whose, self._least_bytes, self._each = bodies, whose, least_bytes, each
        self._size = self.counted = 0

    def __enter__(self) -> LargeBody:
        return self

    def __exit__(self, *_: object) -> None:
        if self.counted:
            self._bodies.give_back(self._whose, self.counted, self._each)

    def add(self, count: int) -> None:
        """So many bytes came. RateLimitedError and UnavailableError past the bounds."""
        self._size += count
        if self._size > self._least_bytes:
            self._bodies.take(self._whose, self._size - self.counted, self._each, self.counted)
            self.counted = self._size

    def turn(self, *, alone: bool = False) -> AbstractAsyncContextManager[None]:
        """The time to work on it, ``alone`` or when it is large. UnavailableError when its turn does not come."""
        return self._alone() if self.counted or alone else nullcontext()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(TURN_SECONDS):
                    await stack.enter_async_context(self._bodies.line.turn(self._whose, self._each))
            except TimeoutError as error:
                raise too_much("Too many large reports wait.") from error
            yield


class StrangersTurns(Turns):
    """So many requests without a credential of one address at a time: hundreds that are ready in one round of the event
    loop held up all others. A turn that waits for something else ends: it takes no processor time."""

    def __init__(self) -> None:
        super().__init__(STRANGERS_OF_ONE)

    @asynccontextmanager
    async def brief_turn(self, whose: str) -> AsyncIterator[None]:
        """The time in which a request is answered. RateLimitedError where too many of the address wait."""
        room = self.turn(whose)
        if room.asked >= WAITING_STRANGERS_OF_ONE:
            raise RateLimitedError("Too many requests of this address wait; try again later.", headers=RETRY)
        await room.__aenter__()
        held = [room]

        def end() -> None:
            if held:
                held.pop().end()

        over = asyncio.get_running_loop().call_later(TURN_SECONDS_OF_STRANGERS, end)
        try:
            # Those that are ready in this round see that the turns are taken, and everybody else comes between.
            await asyncio.sleep(0)
            yield
        finally:
            over.cancel()
            end()


class BodiesInFlight(InFlight):
    """The large bodies of one process of the service."""

    def __init__(self, *, of_agents: bool = False, of_reports: bool = False) -> None:
        super().__init__("large bodies")
        self._of_agents, self._of_reports = of_agents, of_reports
        self.line = Line()

    def body(self, whose: str, least_bytes: int, each: str | None = None) -> LargeBody:
        """A body of a credential, of the address ``each`` where that is an agent's. It counts until the block ends
        where it has more than ``least_bytes``.
        """
        return LargeBody(self, whose, least_bytes, whose if each is None else each)

    def take(self, whose: str, count: int, each: str | None = None, counted: int = 0) -> None:
        """Count so many more bytes of a body that is ``counted`` so far, or refuse them."""
        most = BYTES_OF_REPORTS if self._of_reports else BYTES_OF_AGENTS if self._of_agents else BYTES
        self.take_of(whose, count, BYTES_OF_ONE, most, each=each, counted=counted)


class AnswersInFlight:
    """The large answers and the streams of one process of the service, until their clients have taken them."""

    def __init__(self) -> None:
        self._bytes, self._streams = InFlight("unread answers"), InFlight("streams of events")
        self._in_parts = InFlight("unread exports")  # those that nobody reads leave room for lists

    def require_room(self, whose: str) -> None:
        """RateLimitedError where a credential has not read what it was answered: asked before anything changes."""
        self._bytes.require_room(whose, BYTES_OF_ONE)

    def take(self, whose: str, headers: Headers, *, may_refuse: bool) -> Callable[[], None]:
        """Count the answer that begins with these headers, or refuse it; the result ends its being counted."""
        known = dict(headers)
        if known.get(b"content-type", b"").startswith(b"text/event-stream"):
            self._streams.take_of(whose, 1, STREAMS_OF_ONE, STREAMS)
            return partial(self._streams.give_back, whose, 1)
        held = self._bytes if b"content-length" in known else self._in_parts
        size = int(known.get(b"content-length", PAGES_BYTES))
        if size > PART_BYTES:
            most = (BYTES_OF_ONE, BYTES) if may_refuse else (sys.maxsize, sys.maxsize)
            held.take_of(whose, size, *most)
        return partial(held.give_back, whose, size if size > PART_BYTES else 0)
