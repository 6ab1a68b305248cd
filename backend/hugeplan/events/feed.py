"""The stream of events of one process: one reader of the table for all its listeners."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import suppress
from itertools import takewhile
from uuid import UUID
from weakref import WeakValueDictionary

from pydantic import ValidationError

from hugeplan.db.models import EventRow
from hugeplan.db.session import Database
from hugeplan.db.turns import without_turn
from hugeplan.events import repository
from hugeplan.events.schemas import FleetEvent
from hugeplan.planner.printable import printable

POLL_SECONDS = 0.5
QUIET_SECONDS = 15.0
"""After so long without an event a listener hears that there was none: a proxy does not take its stream for dead."""
REPLAY_SECONDS = 0.05
"""Between two batches of the past, of all who listen: 256 of them, who read slowly, took a third of a processor."""
REMEMBERED = 2000
_BATCH = 500
_OF_THE_PAST = 25
"""A listener has its own of these in memory for as long as its client does not read them."""

_logger = logging.getLogger(__name__)


def events_of(rows: Iterable[EventRow]) -> list[FleetEvent]:
    """Stored events as they are answered. One that only a newer version knows is logged and left out."""
    found = []
    for row in rows:
        try:
            found.append(FleetEvent.model_validate(row))
        except ValidationError:
            _logger.warning("an event cannot be read", extra={"event_id": row.id, "kind": printable(row.kind)})
    return found


class EventFeed:
    """Reads new events while somebody listens, and keeps the newest in memory for those who come back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events: deque[FleetEvent] = deque(maxlen=REMEMBERED)
        self._last_id: int | None = None
        self._remembers_after = 0
        self._listeners = 0
        self._news = asyncio.Condition()
        self._somebody = asyncio.Event()
        self._reading = asyncio.Lock()
        self._pausing = asyncio.Lock()
        self._pauses: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._has_ended = False

    async def end(self) -> None:
        """End every stream, so that a server that stops does not wait for tabs that are open."""
        self._has_ended = True
        async with self._news:
            self._news.notify_all()

    async def run_forever(self) -> None:
        """Read until cancelled."""
        while True:
            await self._somebody.wait()
            await self._read()
            await asyncio.sleep(POLL_SECONDS)

    async def _read(self) -> None:
        async with self._database.read() as session:
            if self._last_id is None:
                newest = await repository.last_event_id(session)
                if self._listeners:
                    self._last_id = self._remembers_after = newest
                return
            known = self._last_id
            rows = await repository.events_after(session, known, _BATCH)
        if rows and self._last_id == known:  # nobody left last meanwhile, with whom the memory went
            async with self._news:
                self._events.extend(events_of(rows))
                if len(self._events) == REMEMBERED:
                    self._remembers_after = self._events[0].id - 1
                self._last_id = rows[-1].id
                self._news.notify_all()

    async def listen(self, after: int | None, line_id: UUID) -> AsyncGenerator[list[FleetEvent]]:
        """Events with an id above ``after``, those that are stored already too; None: from now on. Until ``end``.

        They come in batches: one by one, 300 events for 155 listeners held the process for 18 s. An empty one says
        that nothing came for a while.
        """
        self._listeners += 1
        self._somebody.set()
        try:
            async with self._database.read() as session:
                newest_stored = await repository.last_event_id(session)
                # After a restore the ids go on below those that a client remembers.
                position = newest_stored if after is None else min(after, newest_stored)
            while True:
                newest = self._last_id or 0
                async for events in self._stored(position, line_id):
                    position = events[-1].id
                    yield events
                position = max(position, newest)  # the last ones may be of a kind that is left out
                while not await self._has_news(position):
                    yield []
                if self._has_ended:
                    return
        finally:
            self._listeners -= 1
            if self._listeners == 0:
                self._somebody.clear()
                self._last_id = None
                self._events.clear()

    async def _has_news(self, position: int) -> bool:
        """Wait until there is more than ``position``, or the feed ends; false when it was quiet for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS), self._news:
                await self._news.wait_for(
                    lambda: self._has_ended or (self._last_id is not None and self._last_id > position)
                )
                return True
        return False

    async def _stored(self, position: int, line_id: UUID) -> AsyncIterator[list[FleetEvent]]:
        """What comes after a position, batch by batch. Credentials take turns, so that all take a share of the time.

        The first batch waits for no pause: who listens from now on is held up by nobody's past.
        """
        own_pause = self._pauses.setdefault(line_id, asyncio.Lock())
        while True:
            events, goes_on_at = await self._batch(position)
            if events:
                yield events
            if goes_on_at is None or self._has_ended:
                return
            position = goes_on_at
            async with own_pause, self._pausing:
                await asyncio.sleep(REPLAY_SECONDS)

    async def _batch(self, position: int) -> tuple[list[FleetEvent], int | None]:
        """From memory where it reaches back that far, else from the table; and the id after which there may be more."""
        if self._last_id is not None and position >= self._last_id:
            return [], None  # who listens from now on does not wait for those who read the past
        if self._last_id is not None and position >= self._remembers_after:
            newer = [*takewhile(lambda event: event.id > position, reversed(self._events))]
            batch = newer[: -_BATCH - 1 : -1]
            return batch, batch[-1].id if len(newer) > _BATCH else None
        # All who read the past have one connection, and none of them keeps it waiting behind its own requests.
        async with self._reading:
            with without_turn():
                async with self._database.read() as session:
                    rows = await repository.events_after(session, position, _OF_THE_PAST)
        return events_of(rows), rows[-1].id if len(rows) == _OF_THE_PAST else None
