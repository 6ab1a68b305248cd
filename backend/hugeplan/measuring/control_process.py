"""The process that holds connections to a trial's server: ``python -m hugeplan.measuring.control_process MOST COUNT
CONNINFO``, whose parent (hugeplan.measuring.control) ends it when an answer takes too long.

What libpq and psycopg compute and keep is the word of whoever answers. Here no signal and no other work waits for it,
and MOST bytes are all the memory that there is. Each order and answer is a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg

_MOST_TEXT, _MOST_WHY = 2000, 200
_Connection = psycopg.Connection[tuple[object, ...]]


def main(most_bytes: int, count: int, conninfo: str) -> None:
    """Connect so many times and say the backends; then do orders until there are none. What is too large ends it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    most = most_bytes if soft == resource.RLIM_INFINITY else min(soft, most_bytes)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    threading.stack_size(1 << 20)  # each counts as a whole
    connections = list[_Connection]()

    def connect() -> list[int]:
        for _ in range(count):
            connections.append(psycopg.connect(conninfo, autocommit=True))
            connections[-1].add_notify_handler(lambda _: None)  # what nobody asked for is not kept
        return [one.info.backend_pid for one in connections]

    with ThreadPoolExecutor(count) as threads:

        def work(query: str, is_asked: bool, of_each: Any) -> object:
            begun = time.perf_counter()
            found = list(threads.map(partial(_run, query, is_asked), connections, of_each))
            return found[0] if is_asked else time.perf_counter() - begun

        _say(connect)
        for line in sys.stdin.buffer:
            _say(partial(work, *json.loads(line)))


def _run(query: str, is_asked: bool, connection: _Connection, of_each: Sequence[Any]) -> list[list[str | None]]:
    """Once with each of these parameters; what is asked for are the last one's rows, as text."""
    rows = list[tuple[object, ...]]()
    for parameters in of_each:
        cursor = connection.execute(query.encode(), parameters)
        rows = cursor.fetchall() if cursor.description else []
    return [[None if one is None else str(one) for one in row] for row in rows] if is_asked else []


def _say(work: Callable[[], object]) -> None:
    try:
        answer = {"done": work()}
    except psycopg.Error as problem:
        answer = {"failed": str(problem)[:_MOST_TEXT], "sqlstate": problem.sqlstate}
    except MemoryError:
        raise  # to its end: nothing more fits
    except Exception as problem:
        why = f"{type(problem).__name__}: {str(problem)[:_MOST_WHY]}"
        answer = {"failed": f"the trial's server answered with what cannot be read ({why})", "sqlstate": None}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    finally:
        os._exit(0)  # no thread is waited for
