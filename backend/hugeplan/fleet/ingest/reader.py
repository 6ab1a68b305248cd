"""Reading reports with runs: here, or in a process of its own once many come.

A run is a hundred kilobytes: reading one takes longer than all else that the service does for its report. When a fleet
measures at once, a second core reads (ADR 0028). It is a help and never needed: whatever that process does
not answer is read here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from contextlib import suppress
from typing import Final

import msgspec

from hugeplan.api.json_body import JsonLimits
from hugeplan.fleet.ingest.incoming import ReadReport
from hugeplan.fleet.ingest.reader_process import LENGTH, READY
from hugeplan.settings import Settings
from hugeplan.unprivileged import own_path

LARGE_BYTES: Final = 32 * 1024
"""A report of this size has a run. Below, handing it over costs about as much as reading it."""
TOO_LARGE_BYTES: Final = 1024**2
"""One of this size would hold up the others."""
MANY: Final = 20
WITHIN_SECONDS: Final = 10.0
"""So many large reports in so many seconds are worth a process and its memory, about 70 MiB."""
AT_ONCE: Final = 5
"""So many reports are with the process at a time; those that come meanwhile are read here, so both have work."""
IDLE_SECONDS: Final = 600.0
START_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 30.0
"""Before the next one is started after one that failed."""

_logger = logging.getLogger(__name__)
_decode = msgspec.msgpack.Decoder(ReadReport).decode


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


class ReportReader:
    """The reading process of one process of the service."""

    def __init__(self, settings: Settings) -> None:
        self._limits = JsonLimits.of(settings)
        self._is_wanted = settings.report_reader_process and cores() > 1
        self._recent: deque[float] = deque(maxlen=MANY)
        self._not_before = 0.0
        self._task: asyncio.Task[None] | None = None
        self._process: Process | None = None
        self._waiting: deque[asyncio.Future[ReadReport | None]] = deque()

    async def read(self, raw: bytes) -> ReadReport | None:
        """What the process read of a report. None: read it here."""
        if not self._is_wanted or not LARGE_BYTES <= len(raw) <= TOO_LARGE_BYTES:
            return None
        now = asyncio.get_running_loop().time()
        self._recent.append(now)
        if self._task is None:
            if now > self._not_before and len(self._recent) == MANY and now - self._recent[0] < WITHIN_SECONDS:
                self._task = asyncio.create_task(self._run(), name="reader of reports")
            return None
        process = self._process
        if process is None or process.stdin is None or len(self._waiting) >= AT_ONCE:
            return None
        answer: asyncio.Future[ReadReport | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        process.stdin.writelines((LENGTH.pack(len(raw)), raw))
        return await answer

    async def close(self) -> None:
        """End the process. Reports that it has are read here."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """Start the process and take its answers, until it ends or has had nothing to do for long."""
        process = None
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hugeplan.fleet.ingest.reader_process"),
                msgspec.json.encode(self._limits).decode(),
                env={**os.environ, **own_path()},
                stdin=PIPE,
                stdout=PIPE,
                stderr=None,
                start_new_session=True,
            )
            await self._take_answers(process)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, msgspec.DecodeError) as error:
            self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
            _logger.warning("the process that reads reports ended", extra={"error": repr(error)})
        finally:
            self._process = None
            for answer in self._waiting:
                if not answer.done():
                    answer.set_result(None)
            self._waiting.clear()
            self._recent.clear()
            if process is not None:
                await _end(process)
            self._task = None

    async def _take_answers(self, process: Process) -> None:
        answers = process.stdout
        assert answers is not None
        async with asyncio.timeout(START_SECONDS):
            await answers.readexactly(len(READY))
        self._process = process
        while True:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    head = await answers.readexactly(LENGTH.size)
            except TimeoutError:
                if self._waiting:
                    raise
                return
            read = await answers.readexactly(LENGTH.unpack(head)[0])
            answer = self._waiting.popleft()
            if not answer.done():  # else its client went away
                answer.set_result(_decode(read) if read else None)


async def _end(process: Process) -> None:
    """End a process that has nothing of value, and wait for it."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
