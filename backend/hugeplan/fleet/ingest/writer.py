"""Storing reports: those that wait share a transaction, and each is answered after its commit."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from hugeplan.api.background import Supervisor
from hugeplan.db.alone import AWAY, UNKNOWN
from hugeplan.db.connection import Connection, SilentError, look_at, options_of
from hugeplan.db.exchange import Prepared
from hugeplan.errors import RETRY_AFTER_SECONDS, UnavailableError
from hugeplan.fleet.ingest.batch import Batch, NodeLockedError
from hugeplan.fleet.ingest.in_force import SavedPlans
from hugeplan.fleet.ingest.incoming import Incoming
from hugeplan.fleet.schemas import ReportReceipt
from hugeplan.settings import Settings

WRITERS = 2
MAX_BATCH = 32
ENOUGH = 4
"""Reports that make a batch while another one is under way. What a batch costs by itself, here and in
PostgreSQL, is as much as three of them."""
PATIENCE_SECONDS = 0.01
"""How long fewer wait for the batch that is under way, or to be as many as in the last one: an agent that was answered
sends its next one."""
LOCKED_SECONDS = 10.0
"""How long a report is tried again while somebody else has locked its node; then its agent is to send it again."""
AGAIN_SECONDS = 0.05
"""Before the next attempt, or an eighth of the time since the first; longer where many nodes are locked."""
MOST_HELD = 256
"""Reports of locked nodes that are kept in memory. Of more the agents are told to send them again."""
RECONNECT_SECONDS = 1.0
"""How long one attempt to connect is repeated. The pool waits twice as long after each failure and counts an attempt as
a connection, so a long attempt would keep a database that is back unused for as long as it was away. The next batch
makes a new attempt."""
BY_INDEX = " ".join(
    f"-c {setting}"
    for setting in (
        "plan_cache_mode=force_generic_plan",
        "enable_seqscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
        "jit=off",
    )
)
"""Each statement here finds a few rows by their keys, so one plan serves all its parameters. A plan that was made while
tables were small read all of them, and went on to until they were next analysed."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """``locked_at``: when its node was first found locked, by the monotonic clock."""

    incoming: Incoming
    answer: asyncio.Future[ReportReceipt]
    locked_at: float | None = None


class ReportWriter:
    """Stores reports for one process. ``open`` and ``close`` belong to the application's lifespan."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting: deque[_Waiting] = deque()
        # Machines whose reports are under way or whose node is locked, with what waits behind: none is in _waiting.
        self._lines: dict[str, deque[_Waiting]] = {}
        self._arrived = asyncio.Event()
        self._reading = asyncio.Lock()
        self._in_line: Incoming | None = None  # found its node locked before, and waits for the lock by itself
        self._under_way = self._before = 0
        self._heard_at = 0.0  # when PostgreSQL answered a batch last, by the monotonic clock
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._plans = SavedPlans()
        self._prepared: WeakKeyDictionary[Connection, Prepared] = WeakKeyDictionary()

    async def open(self, work: Supervisor) -> None:
        """Start, as needed work. The database may be away: connections are made when they are needed."""
        milliseconds = int(self._settings.statement_timeout_seconds * 1000)
        self._pool = AsyncConnectionPool(
            self._settings.psycopg_url,
            connection_class=Connection,
            min_size=0,
            max_size=WRITERS,
            timeout=self._settings.database_timeout_seconds,
            reconnect_timeout=RECONNECT_SECONDS,
            open=False,
            kwargs={
                **options_of(self._settings),
                "application_name": "hugeplan reports",
                # What psycopg prepares it drops with a rollback, and all else that is prepared along with it.
                "prepare_threshold": None,
                "options": f"-c statement_timeout={milliseconds} -c TimeZone=UTC {BY_INDEX}",
            },
        )
        await self._pool.open(wait=False)
        for number in range(WRITERS):
            work.start(f"reports {number}", self._write_forever, is_needed=True)

    async def close(self) -> None:
        """Stop, once the supervisor has ended the work. Reports that wait are refused: their agents send them again."""
        _answer_all([*self._waiting, *chain(*self._lines.values())], _unavailable())
        self._waiting.clear()
        self._lines.clear()
        if self._pool is not None:
            await self._pool.close()

    async def store(self, incoming: Incoming) -> ReportReceipt:
        """Store a report once; when this returns it is on disk. The same report again changes nothing.

        ConflictError for another report with its id, ForbiddenError for another machine's token.
        """
        waiting, began = _Waiting(incoming, asyncio.get_running_loop().create_future()), time.monotonic()
        self._lines.get(incoming.machine_id, self._waiting).append(waiting)
        self._arrived.set()
        try:
            while not waiting.answer.done():
                left = max(began, self._heard_at) + self._settings.database_timeout_seconds - time.monotonic()
                if left <= 0:
                    raise self._silence(waiting)
                await asyncio.wait([waiting.answer], timeout=left)
            return waiting.answer.result()
        finally:
            waiting.answer.cancel()

    def _silence(self, waiting: _Waiting) -> UnavailableError:
        """What is said of a report since when PostgreSQL has answered nothing, for as long as all requests wait for
        it. It waits no more. One that is being written may be stored yet: sent again, it is stored once.
        """
        try:
            self._lines.get(waiting.incoming.machine_id, self._waiting).remove(waiting)
        except ValueError:
            return _unavailable(UNKNOWN)
        return _unavailable()

    async def _write_forever(self) -> None:
        """Write batch after batch. One writer reads and judges while the other's statements are under way."""
        while True:
            await self._reading.acquire()
            turn = ExitStack()  # to read and judge: a writer closes it once its statements are sent
            turn.callback(self._reading.release)
            batch, held, stands = list[_Waiting](), list[_Waiting](), False
            try:
                await self._gather()
                # Half of what is here and there: the other half is read while this one is written.
                half = (len(self._waiting) + self._under_way + 1) // 2
                most = min(MAX_BATCH, len(self._waiting), max(half, self._enough()))
                stands = self._in_line is None and self._waiting[0].locked_at is not None
                batch = self._take(1 if stands else most)
                self._before = len(batch)
                self._under_way += len(batch)
                if stands:  # the other writer reads and judges meanwhile
                    self._in_line = batch[0].incoming
                    turn.close()
                held = await self._write(batch, turn)
            except asyncio.CancelledError:
                _answer_all(batch, _unavailable())
                raise
            finally:
                self._under_way -= len(batch)
                self._in_line = None if stands else self._in_line
                self._let_go(batch, held)
                turn.close()

    def _take(self, most: int) -> list[_Waiting]:
        """The next batch. What else its nodes have sent waits in line, so that each node's reports stay in order."""
        batch = [self._waiting.popleft() for _ in range(most)]
        lines: dict[str, deque[_Waiting]] = {waiting.incoming.machine_id: deque() for waiting in batch}
        others: deque[_Waiting] = deque()
        for waiting in self._waiting:
            lines.get(waiting.incoming.machine_id, others).append(waiting)
        self._waiting, self._lines = others, self._lines | lines
        return batch

    def _let_go(self, batch: Sequence[_Waiting], held: Sequence[_Waiting]) -> None:
        """What waits behind a batch is next; behind a locked node in a while, its reports of the batch first."""
        now, since = time.monotonic(), dict[str, float]()
        for waiting in reversed(held):
            self._lines[waiting.incoming.machine_id].appendleft(waiting)
            since[waiting.incoming.machine_id] = waiting.locked_at or now
        least = AGAIN_SECONDS * (1 + len(self._lines) // MAX_BATCH)
        for machine_id in {waiting.incoming.machine_id for waiting in batch}:
            age = now - since.get(machine_id, now)
            pause = min(max(least, age / 8), LOCKED_SECONDS - age) if machine_id in since else 0
            asyncio.get_running_loop().call_later(pause, self._release, machine_id)
        self._arrived.set()

    def _release(self, machine_id: str) -> None:
        self._waiting.extend(self._lines.pop(machine_id, ()))
        self._arrived.set()

    async def _gather(self) -> None:
        """Wait for a report, and then for others while these are few."""
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while self._are_few():
                        self._arrived.clear()
                        await self._arrived.wait()
            if self._waiting:  # else the last of them was forgotten meanwhile
                return

    def _are_few(self) -> bool:
        """Whether the reports that wait are worth waiting for others, or for the batch that is under way."""
        here = len(self._waiting)
        return 0 < here < self._enough() and (self._under_way > 0 or here < self._before)

    def _enough(self) -> int:
        """Of runs half: reading one takes longer than to store it, so that more would come one after the other."""
        return ENOUGH if self._waiting[0].incoming.run is None else ENOUGH // 2

    async def _write(self, batch: list[_Waiting], turn: ExitStack) -> list[_Waiting]:
        """Write a batch; the reports that are to be tried again, as their nodes are locked. Where it fails for one
        report's sake, each is tried alone, so that only that one fails.
        """
        try:
            answers = await self._commit_again([waiting.incoming for waiting in batch], turn)
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, OSError) as error:
            if not _may_pass(error) or len(batch) == 1:
                _answer_all(batch, _unavailable(UNKNOWN if isinstance(error, SilentError) else AWAY))
                return []
        except Exception as error:
            if len(batch) == 1:
                _answer_all(batch, error)
                return []
        else:
            return [one for one, answer in zip(batch, answers, strict=True) if not self._answer(one, answer)]
        return [one for waiting in batch for one in await self._write([waiting], turn)]

    def _answer(self, waiting: _Waiting, answer: ReportReceipt | Exception) -> bool:
        """Answer a report. False: its node is locked, and it is tried again."""
        if isinstance(answer, NodeLockedError):
            now = time.monotonic()
            waiting.locked_at = waiting.locked_at or now
            if now - waiting.locked_at < LOCKED_SECONDS and sum(map(len, self._lines.values())) < MOST_HELD:
                return False
            answer = _unavailable()
        if isinstance(answer, Exception):
            _answer_all([waiting], answer)
        elif not waiting.answer.done():  # else its client went away
            waiting.answer.set_result(answer)
        return True

    async def _commit_again(self, batch: Sequence[Incoming], turn: ExitStack) -> list[ReportReceipt | Exception]:
        """Commit; on another connection when PostgreSQL has closed this one, as it does when it restarts.

        A report is stored once however often it is written, so nothing is lost or doubled by writing it again.
        """
        for _ in range(WRITERS):
            try:
                return await self._commit(batch, turn)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if _may_pass(error) or isinstance(error, PoolTimeout | SilentError):
                    raise
        return await self._commit(batch, turn)

    async def _commit(self, batch: Sequence[Incoming], turn: ExitStack) -> list[ReportReceipt | Exception]:
        assert self._pool is not None
        in_line = batch[0] is self._in_line
        try:
            async with self._pool.connection() as connection:
                await look_at(connection)
                prepared = self._prepared.setdefault(connection, Prepared())
                work = Batch(connection, batch, self._plans, prepared=prepared)
                # The next batch is read while this one is committed.
                try:
                    while not await work.commit(turn.close, in_line=in_line):
                        pass  # Another process made one of the nodes in this moment: begin again, now it is there.
                finally:
                    self._heard_at = max(self._heard_at, connection.heard_at)
                return [work.answers[index] for index in range(len(batch))]
        except psycopg.errors.LockNotAvailable:
            if not in_line:
                raise
            return [NodeLockedError(batch[0].machine_id)]


def _may_pass(error: Exception) -> bool:
    """Whether the next attempt may go well at once: a deadlock or a serialisation failure."""
    return isinstance(error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure)


def _unavailable(detail: str = AWAY) -> UnavailableError:
    return UnavailableError(detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


def _answer_all(batch: Sequence[_Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
