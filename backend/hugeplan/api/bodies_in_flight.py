"""How much of large bodies one process holds at a time, and that it works on one of them after the other.

A body of up to a megabyte is not counted: a fleet's reports are small, and their number is bounded by their rate.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hugeplan.errors import RETRY_AFTER_SECONDS, RateLimitedError, UnavailableError

LARGE_BYTES: Final = 1024**2
BYTES_OF_ONE: Final = 16 * 1024**2
"""Of one credential: two of the largest."""
BYTES: Final = 48 * 1024**2
TURN_SECONDS: Final = 10.0
"""A large body waits so long for its turn."""
_RETRY: Final = {"Retry-After": str(RETRY_AFTER_SECONDS)}


class LargeBody:
    """One body on its way. Nothing is counted before it is large."""

    def __init__(self, bodies: BodiesInFlight, whose: str) -> None:
        self._bodies, self._whose = bodies, whose
        self._size = self.counted = 0

    def add(self, count: int) -> None:
        """So many bytes came. RateLimitedError and UnavailableError past the bounds."""
        self._size += count
        if self._size > LARGE_BYTES:
            self._bodies.take(self._whose, self._size - self.counted)
            self.counted = self._size

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The time to work on it: alone when it is large. UnavailableError when its turn does not come."""
        if not self.counted:
            yield
            return
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._bodies.one_at_a_time.acquire()
        except TimeoutError as error:
            raise _too_much("Too many large reports wait.") from error
        try:
            yield
        finally:
            self._bodies.one_at_a_time.release()


class BodiesInFlight:
    """The large bodies of one process of the service."""

    def __init__(self) -> None:
        self._of_one: Counter[str] = Counter()
        self.one_at_a_time = asyncio.Lock()

    @asynccontextmanager
    async def body(self, whose: str) -> AsyncIterator[LargeBody]:
        """A body of a credential, which counts until the block ends."""
        body = LargeBody(self, whose)
        try:
            yield body
        finally:
            self._of_one[whose] -= body.counted
            if not self._of_one[whose]:
                del self._of_one[whose]

    def take(self, whose: str, count: int) -> None:
        """Count so many more bytes, or refuse them. A credential may always have one body, of whatever size."""
        own = self._of_one[whose]
        if own + count > BYTES_OF_ONE and own:
            most = BYTES_OF_ONE // 1024**2
            raise RateLimitedError(
                f"At most {most} MiB of large bodies of one credential at a time; send it again later.", headers=_RETRY
            )
        if self._of_one.total() + count > BYTES and self._of_one.total():
            raise _too_much("Too many large bodies are under way.")
        self._of_one[whose] += count


def _too_much(what: str) -> UnavailableError:
    return UnavailableError(f"{what} Nothing was stored; try again later.", headers=_RETRY)
