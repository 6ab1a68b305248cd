"""Background work under supervision: what fails is logged, counted, shown, and begun anew; nothing ends in silence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from sqlalchemy.exc import SQLAlchemyError

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
RAN_WELL_SECONDS: Final = 60.0
"""Work that ran this long before it failed begins anew after the first pause."""
FAILS_FROM: Final = 3
"""As many failures in a row are no accident: readiness says so."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Work:
    """One task. ``every``: seconds between rounds that went well; None: it runs until it ends."""

    name: str
    run: Callable[[], Awaitable[object]]
    every: float | None
    is_needed: bool
    failures: int = 0


class Supervisor:
    """Runs the background work of one process. ``open`` to ``close`` is the application's lifespan."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._work: dict[str, _Work] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ends = False
        self._failed = Counter(
            "hugeplan_background_failures", "Failures of background work.", ("work",), registry=registry
        )
        self._fails = Gauge(
            "hugeplan_background_failing", "1 while background work failed when it last ran.", ("work",),
            registry=registry,
        )  # fmt: skip

    def start(
        self, name: str, run: Callable[[], Awaitable[object]], *, every: float | None = None, is_needed: bool = False
    ) -> None:
        """Run work until ``close``: round after round, or until it ends well. What fails begins anew after a pause.

        ``is_needed``: without it the process does not do what it is for, and is not ready.
        """
        work = self._work[name] = _Work(name, run, every, is_needed)
        self._failed.labels(name)
        self._fails.labels(name).set(0)
        self._tasks.append(asyncio.create_task(self._keep(work), name=name))

    async def close(self) -> None:
        """End all work. What ends with an error, as of a rollback on the connection that was closed for it, begins no
        more.
        """
        self._ends = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._work.clear()

    def failing(self) -> list[str]:
        """Work that has failed several times in a row."""
        return sorted(work.name for work in self._work.values() if work.failures >= FAILS_FROM)

    def needed_and_failing(self) -> list[str]:
        """The same of the work without which the process is not ready."""
        return [name for name in self.failing() if self._work[name].is_needed]

    async def _keep(self, work: _Work) -> None:
        while True:
            begun = time.monotonic()
            try:
                await work.run()
            except Exception as error:
                if work.every is None and time.monotonic() - begun > RAN_WELL_SECONDS:
                    work.failures = 0
                work.failures += 1
                self._note(work, error)
                if self._ends:
                    return
                await asyncio.sleep(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(work.failures - 1, 20)))
                continue
            work.failures = 0
            self._fails.labels(work.name).set(0)
            if work.every is None or self._ends:
                return
            await asyncio.sleep(work.every)

    def _note(self, work: _Work, error: Exception) -> None:
        self._failed.labels(work.name).inc()
        self._fails.labels(work.name).set(1)
        told = {"work": work.name, "failures": work.failures}
        if isinstance(error, SQLAlchemyError | OSError):  # the database is away, as it may be for a while
            _logger.warning("background work failed", extra=told | {"error": str(error).splitlines()[0]})
        else:
            _logger.error("background work failed and begins anew", extra=told, exc_info=error)
