"""How much of one round of the event loop one kind of work may take.

Hundreds of connections may be ready in one round. Where each is worked on without a pause, all others wait for all of
them. So what a kind of work has taken is a debt, which every round lessens by its share: in debt, the next waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from hugeplan.shares import Turns

T = TypeVar("T")

ROUND_SECONDS: Final = 0.002
"""Of processor time: some small reports. What takes longer is followed by as many more rounds of others."""


async def let_others(since: float) -> float:
    """Of long work on the loop: as many rounds of others as it took since a ``time.thread_time()``; from when on the
    next pause counts.
    """
    rounds = int((time.thread_time() - since) / ROUND_SECONDS)
    for _ in range(rounds):
        await asyncio.sleep(0)
    return time.thread_time() if rounds else since


class LoopShare:
    """The share of one kind of work. Of each who asks one is in line at a time, however many it sends at once.

    ``each``: of those who ask as one, whose turn within it this is: credentials of one address.
    """

    def __init__(self) -> None:
        self._each, self._own = Turns(1), Turns(1)
        self._first = asyncio.Semaphore(1)
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._debt_seconds = 0.0

    async def wait(self, whose: str, seconds: float, each: str = "") -> None:
        """Until there is something left of a round; then so much of it is taken."""
        async with self._each.turn(each or whose), self._own.turn(whose), self._first:
            await self._has_room.wait()
            self._owe(seconds)

    async def run(self, whose: str, work: Callable[[], T], each: str = "") -> T:
        """The result of work on the loop, which starts when there is something left of a round."""
        async with self._each.turn(each or whose), self._own.turn(whose), self._first:
            await self._has_room.wait()
            started = time.thread_time()
            try:
                return work()
            finally:
                self._owe(time.thread_time() - started)

    def _owe(self, seconds: float) -> None:
        if self._debt_seconds <= 0.0 < seconds:
            asyncio.get_running_loop().call_soon(self._pass_round)
        self._debt_seconds += seconds
        if self._debt_seconds >= ROUND_SECONDS:
            self._has_room.clear()

    def _pass_round(self) -> None:
        self._debt_seconds = max(0.0, self._debt_seconds - ROUND_SECONDS)
        if self._debt_seconds < ROUND_SECONDS:
            self._has_room.set()
        if self._debt_seconds > 0.0:
            asyncio.get_running_loop().call_soon(self._pass_round)
