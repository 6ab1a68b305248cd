"""What many share: so much of something at a time, and work in turns. No address takes it all, and no credential.

Who has an enrolment token has as many agents as it likes, in hundreds of connections of an address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from hugeplan.errors import RETRY_AFTER_SECONDS, RateLimitedError, UnavailableError

HANDLERS_OF_ONE: Final = 8
"""More of them wait. What the sandbox does for one has bounds of its own."""
WAITING_OF_ONE: Final = 512
"""As many as an address has connections: more wait behind a proxy alone, or have left."""
WAITING: Final = 2048
"""Of agents, of which one may have any number: what waits holds memory, also where its client has left unseen."""
WAITING_SECONDS: Final = 60.0
"""A report waits so long for those of its own credential."""
RETRY: Final = {"Retry-After": str(RETRY_AFTER_SECONDS)}


class InFlight:
    """So many of something at a time, of one credential and in all."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._of_one: Counter[str] = Counter()
        self._of_each: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """So many are there."""
        return self._of_one.total()

    def require_room(self, whose: str, most: int, count: int = 1) -> None:
        """RateLimitedError where a credential has so many that these would be too many."""
        own = self._of_one[whose]
        if own + count > most and own:
            shown = f"{most // 1024**2} MiB" if most > 1024**2 else most
            detail = f"At most {shown} of {self._what} of one credential at a time; try again later."
            raise RateLimitedError(detail, headers=RETRY)

    def take_of(
        self, whose: str, count: int, most_of_one: int, most: int, *, each: str | None = None, counted: int = 0
    ) -> None:
        """Count so many more, or refuse them. What is alone, of which so many are ``counted``, is taken at any size.

        ``each`` is the address of a credential of which one may have any number. An address, and within it a
        credential, has no more than is left of ``most`` beside it. So one address has at most half, some addresses
        leave as much as each of them has, and whoever comes with little is let in.
        """
        self.require_room(whose, most_of_one, count)
        each = whose if each is None else each
        if self._of_one[whose] + self._of_each[each] + count > most - self.held and self.held > counted:
            raise too_much(f"There are too many {self._what} at the moment.")
        self._of_one[whose] += count
        self._of_each[each] += count

    def give_back(self, whose: str, count: int, each: str | None = None) -> None:
        """Count so many less."""
        for held, key in ((self._of_one, whose), (self._of_each, whose if each is None else each)):
            held[key] -= count
            if not held[key]:
                del held[key]


class Turns:
    """So many handlers of one credential at a time: each may hold an unread document, and all others wait for it."""

    def __init__(self, most: int = HANDLERS_OF_ONE, waiting: int | None = None) -> None:
        self._most, self._waiting = most, waiting
        self._rooms: dict[str, Room] = {}

    def turn(self, whose: str) -> Room:
        """The time in which a handler may run, as a context. It is to be entered at once. RateLimitedError."""
        room = self._rooms.get(whose)
        if room is not None and self._waiting is not None and room.asked >= self._most + self._waiting:
            detail = f"At most {self._waiting} requests of one credential wait; try again later."
            raise RateLimitedError(detail, headers=RETRY)
        return room or Room(self._rooms, whose, self._most)


class Waiting(InFlight):
    """Those that wait for a turn, of each address and credential no more than others leave."""

    def __init__(self, most: int = WAITING) -> None:
        super().__init__("requests that wait")
        self._most = most

    @contextmanager
    def one(self, whose: str, each: str) -> Iterator[None]:
        """The time in which one more of a credential of an address waits. RateLimitedError, UnavailableError."""
        self.take_of(whose, 1, WAITING_OF_ONE, self._most, each=each)
        try:
            yield
        finally:
            self.give_back(whose, 1, each)


class Room(asyncio.Semaphore):
    """The turns of one credential, which are in ``rooms`` while anybody has or wants one."""

    def __init__(self, rooms: dict[str, Room], whose: str, most: int) -> None:
        super().__init__(most)
        self._rooms, self._whose, self.asked = rooms, whose, 0

    async def __aenter__(self) -> None:
        self._rooms[self._whose] = self
        self.asked += 1
        try:
            await self.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """The turn is over."""
        self.release()
        self._leave()

    def _leave(self) -> None:
        self.asked -= 1
        if not self.asked:
            del self._rooms[self._whose]


class Line:
    """Few at a time, one without more said: of each address few are in line, and of each credential one in that."""

    def __init__(self, most: int = 1, most_of_each: int = 1) -> None:
        self._of_one, self._of_each, self._of_all = Turns(1), Turns(most_of_each), asyncio.Semaphore(most)

    @asynccontextmanager
    async def turn(self, whose: str, each: str) -> AsyncIterator[None]:
        """The turn of a credential of an address."""
        async with self._of_one.turn(whose), self._of_each.turn(each), self._of_all:
            yield


def too_much(what: str) -> UnavailableError:
    """The refusal of what others have no room for."""
    return UnavailableError(f"{what} Try again later.", headers=RETRY)
