"""A connection to a trial's server, in whose place any program of that server's user may answer.

It is not waited for without end, and root's memory does not grow with what it sends.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout

Answer = TypeVar("Answer")
ANSWER_SECONDS: Final = 600.0
MOST_BYTES: Final = 512 << 20
"""Of memory, beside what the process had. An answer of ours has a few kilobytes."""
_TOO_LARGE: Final = "the trial's server answered with more than {} MiB"


class SilentError(psycopg.OperationalError):
    """The server did not answer in time, or with more than there is memory for."""


class _Bound:
    """Less memory for as long as somebody reads: as much as there was before the first of the open connections."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before, self._most = threading.Lock(), 0, (0, 0), 0
        self.open = WeakSet[ControlConnection]()

    @contextmanager
    def less(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._before = soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
                if all(one.closed for one in self.open):
                    self._most = _data_bytes() + MOST_BYTES
                is_lower = soft != resource.RLIM_INFINITY and soft < self._most
                resource.setrlimit(resource.RLIMIT_DATA, (soft if is_lower else self._most, hard))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    resource.setrlimit(resource.RLIMIT_DATA, self._before)


def _data_bytes() -> int:
    """What counts against RLIMIT_DATA (proc(5), statm's sixth field)."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()


class ControlConnection(psycopg.Connection[tuple[object, ...]]):
    """Every wait of it has an end. SilentError: it has passed, or the answer was too large; it is closed then."""

    answer_seconds = ANSWER_SECONDS

    @classmethod
    def connected(cls, conninfo: str, **more: Any) -> Self:
        """As connect does, within the same bounds. What nobody asked for is not kept."""
        try:
            with _BOUND.less():
                made = cls.connect(conninfo, **more)
        except MemoryError as problem:
            raise SilentError(_TOO_LARGE.format(MOST_BYTES >> 20)) from problem
        made.add_notify_handler(lambda _: None)
        _BOUND.open.add(made)
        return made

    def wait(self, gen: PQGen[Answer], interval: float = 0.1, timeout: float | None = None) -> Answer:
        seconds = min(self.answer_seconds, timeout or self.answer_seconds)
        try:
            with _BOUND.less():
                return super().wait(gen, interval, seconds)
        except _WaitTimeout as problem:
            self.pgconn.finish()
            raise SilentError(f"the trial's server did not answer within {seconds:g} s") from problem
        except MemoryError as problem:
            self.pgconn.finish()
            raise SilentError(_TOO_LARGE.format(MOST_BYTES >> 20)) from problem


_BOUND: Final = _Bound()
