"""Connections to a trial's server, in whose place any program of that server's user may answer.

A process of its own speaks with it (hugeplan.measuring.control_process): libpq computes for days over what such a
program sends, psycopg makes gigabytes of it, and no signal or time is looked at meanwhile. Text and numbers alone come
here, of bounded length.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Self
from weakref import WeakSet

import psycopg

from hugeplan.measuring.user_programs import ANSWER_SECONDS, apart
from hugeplan.unprivileged import own_path

CONNECT_SECONDS: Final = 60.0
MOST_BYTES: Final = 128 << 20
"""Of that process's memory, beside what a row of a MiB takes in each of its connections."""
_ROW_BYTES: Final = 4 << 20
_MOST_ANSWER_BYTES: Final = 4 << 20
"""A user's own schema may have ten thousand tables, whose names are asked for."""
Rows = list[tuple[str | None, ...]]


class SilentError(psycopg.OperationalError):
    """The server did not answer in time, or with more than there is memory for."""


class ControlConnection:
    """One connection, or some that work at once. psycopg.Error: what the server says of an order.

    SilentError: an answer did not come in time or was too large; it is closed then, as after Ctrl-C. ``held``: file
    descriptors that ``conninfo`` speaks of.
    """

    def __init__(
        self, conninfo: str, answer_seconds: float = ANSWER_SECONDS, *, count: int = 1, held: Sequence[int] = ()
    ) -> None:
        most = MOST_BYTES + count * _ROW_BYTES
        words = [sys.executable, "-m", "hugeplan.measuring.control_process", str(most), str(count), conninfo]
        how = apart() | {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        how["env"] |= own_path()
        self.closed, self.answer_seconds = False, answer_seconds
        with _BEGINNING:
            if _ALL_END.is_set():
                raise psycopg.OperationalError("the trial ends")
            self._process = subprocess.Popen(words, **how, pass_fds=held)  # noqa: S603 - this Python, a fixed module
            _OPEN.add(self)
        try:
            self.backend_pids: list[int] = self._answer(CONNECT_SECONDS)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and the connections with it."""
        self.closed = True
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # an order that was not taken
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)

    def execute(self, query: str, parameters: Sequence[object] | None = None) -> Rows:
        """The rows, their values as text."""
        return [tuple(row) for row in self._answer(self.answer_seconds, [query, True, [[parameters]]])]

    def execute_each(self, query: str, of_each: Sequence[Sequence[Sequence[object] | None]]) -> float:
        """Once with each of a connection's parameters, all connections at the same time; how long that took, s."""
        return float(self._answer(self.answer_seconds, [query, False, of_each]))

    def numbers(self, query: str, parameters: Sequence[object] | None = None, *, width: int = 1) -> list[list[float]]:
        """Rows of so many finite numbers each. psycopg.DataError: they are none."""
        try:
            rows = [[float(one or "") for one in row] for row in self.execute(query, parameters)]
        except ValueError:
            rows = [[math.nan]]
        if not all(len(row) == width and all(map(math.isfinite, row)) for row in rows):
            raise psycopg.DataError("the trial's server answered with something else than numbers")
        return rows

    def _answer(self, seconds: float, order: object = None) -> Any:
        said, until, orders, pipe = b"", time.monotonic() + seconds, self._process.stdin, self._process.stdout
        if self.closed or orders is None or pipe is None:
            raise psycopg.OperationalError("the connection to the trial's server is closed")
        try:
            with suppress(BrokenPipeError):  # it has ended, and says nothing
                if order is not None:
                    orders.write(json.dumps(order).encode() + b"\n")
                    orders.flush()
            while not said.endswith(b"\n"):
                if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                    raise SilentError(f"the trial's server did not answer within {seconds:g} s")
                piece = os.read(pipe.fileno(), 1 << 20)
                said += piece
                if not piece or len(said) > _MOST_ANSWER_BYTES:
                    most = f"{MOST_BYTES >> 20} MiB of memory, {_MOST_ANSWER_BYTES >> 20} MiB of text"
                    raise SilentError(f"the trial's server answered with more than is read ({most})")
        except BaseException:  # or the next order would get this one's answer
            self.close()
            raise
        answer = json.loads(said)
        if "failed" in answer:
            kind: type[psycopg.Error] = psycopg.OperationalError
            with suppress(KeyError):
                kind = psycopg.errors.lookup(answer["sqlstate"] or "")
            raise kind(answer["failed"])
        return answer["done"]


def stop_all() -> None:
    """End every wait that there is, also of other threads, to which no signal comes. Until :func:`allow` none begins:
    who connects raises psycopg.OperationalError."""
    with _BEGINNING:
        _ALL_END.set()
        for one in list(_OPEN):
            one.closed = True  # who is to end its clients asks it nothing more
            one._process.kill()


def allow() -> None:
    """Connections may be made again."""
    _ALL_END.clear()


_OPEN: Final = WeakSet[ControlConnection]()
_BEGINNING: Final = threading.Lock()
_ALL_END: Final = threading.Event()
