"""Starting the processes that plan: arithmetic of seconds must not hold up the requests of the service."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

from hugeplan.db.alone import alone
from hugeplan.db.session import Database
from hugeplan.db.turns import without_turn
from hugeplan.fleet_plans import repository
from hugeplan.fleet_plans.room import make_room
from hugeplan.settings import Settings
from hugeplan.unprivileged import own_path

JOBS_AT_A_TIME: Final = 1
ABANDONED_AFTER: Final = timedelta(minutes=15)
"""A job that runs says so several times per second; for one that waits its service says so at each look."""
LOOK_SECONDS: Final = 60.0

_logger = logging.getLogger(__name__)


class FleetPlanRunner:
    """The jobs of one process of the service. They end with it."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._turn = asyncio.Semaphore(JOBS_AT_A_TIME)
        self._turns: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._ready: asyncio.subprocess.Process | None = None
        self._preparing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[UUID] = set()
        self._has_looked = False
        self._shared_by: str | None = None
        self._claim: socket.socket | None = None

    def share_ready_process(self, service: str) -> None:
        """Keep a process ready in one worker of this service alone: each takes about 100 MB."""
        self._shared_by = service

    async def start(self, job_id: UUID, whose: UUID) -> None:
        """Run a stored job when it is its turn: one of each credential's waits, so that these take turns."""
        self._waiting.add(job_id)
        own_turn = self._turns.setdefault(whose, asyncio.Lock())
        with without_turn():  # the job goes on when the request that asked for it has ended
            task = asyncio.create_task(self._run_and_make_room(job_id, own_turn, whose), name=f"fleet plan {job_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def look_after(self) -> None:
        """Say that jobs wait here, and mark those as failed of which nobody is heard: of this service or a replica's.

        From the second look on, a process is kept ready for the next job: a service that stays can spare its memory.
        """
        if self._has_looked and not self._turn.locked():
            await self.prepare()
        self._has_looked = True
        now = datetime.now(UTC)
        async with self._database.write() as session:
            await repository.wait_on(session, sorted(self._waiting), now)
            await repository.end_abandoned(session, now - ABANDONED_AFTER, now)

    async def close(self) -> None:
        """Stop waiting for jobs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._claim is not None:
            self._claim.close()
            self._claim = None
        if self._ready is not None and self._ready.returncode is None:
            self._ready.terminate()
            await self._ready.communicate()

    async def prepare(self) -> None:
        """Start a process that has read its modules when its job comes. It ends with this one, whose pipe it reads."""
        async with self._preparing:
            if self._is_its_turn() and (self._ready is None or self._ready.returncode is not None):
                self._ready = await self._process()

    def _is_its_turn(self) -> bool:
        """Whether this worker keeps the process: the first that asks does, and when it ends, the next that asks."""
        if self._shared_by is None or self._claim is not None:
            return True
        claim = socket.socket(socket.AF_UNIX)
        try:
            # A name that the kernel frees when its owner ends, however it ends.
            claim.bind(f"\0hugeplan-fleet-plan-{self._shared_by}")
        except OSError:
            claim.close()
            return False
        self._claim = claim
        return True

    async def _process(self) -> asyncio.subprocess.Process:
        own = {"HUGEPLAN_DATABASE_URL": self._settings.psycopg_url()}
        environment = {
            **os.environ,
            **own_path(),
            **own,
            "MALLOC_ARENA_MAX": "1",
        }  # each arena maps 64 MiB, which would count
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hugeplan.fleet_plans.worker",
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

    async def _take(self) -> asyncio.subprocess.Process:
        """The process that is ready, or a new one."""
        async with self._preparing:
            process, self._ready = self._ready, None
        return process if process is not None and process.returncode is None else await self._process()

    async def _run_and_make_room(self, job_id: UUID, own_turn: asyncio.Lock, whose: UUID) -> None:
        await self._run(job_id, own_turn)
        with alone("room for fleet plans"):
            await make_room(self._database, self._settings, whose)

    async def _run(self, job_id: UUID, own_turn: asyncio.Lock) -> None:
        try:
            async with own_turn, self._turn:
                self._waiting.discard(job_id)
                async with self._database.read() as session:
                    job = await repository.get_job(session, job_id)
                if job is None or job.status != "queued":  # cancelled before its turn: no process starts for it
                    return
                process = await self._take()
                try:
                    _, errors = await process.communicate(f"{job_id}\n".encode())
                except asyncio.CancelledError:
                    process.terminate()
                    await process.communicate()
                    raise
        except asyncio.CancelledError:
            self._waiting.discard(job_id)
            await self._fail(job_id, "The service was stopped before it was done. Start it again.")
            raise
        if process.returncode != 0:
            _logger.error("a fleet plan failed", extra={"error": errors.decode(errors="replace")[-2000:]})
            await self._fail(
                job_id, "The process that planned it ended before it was done. The service's log says why."
            )

    async def _fail(self, job_id: UUID, reason: str) -> None:
        async with self._database.write() as session:
            await repository.end_job(session, job_id, datetime.now(UTC), status="failed", error=reason)
