"""Others hold every connection that PostgreSQL has: the server answers 503, and goes on when there is room."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psycopg

from tools.chaos.rig import Outcome, World, world

MAX_CONNECTIONS = 12
ROOM_SECONDS = 15.0


def pool_exhausted(folder: Path, *, seconds: float) -> Outcome:
    """Hold all connections for ``seconds``. The server has lost its own, as after a restart of PostgreSQL."""
    limits = {"max_connections": str(MAX_CONNECTIONS), "superuser_reserved_connections": "0"}
    wrong = []
    with world(folder, postgres_settings=limits) as running, contextlib.ExitStack() as held:
        running.wait_for_more(10)
        taken = _take_all(running, held)
        before = _settled(running)
        until = time.monotonic() + seconds
        refused = set()
        while time.monotonic() < until:
            if running.server.status_of("/healthz") != 200:
                wrong.append("healthz did not answer")
                break
            refused.add(running.server.status_of("/readyz"))
            time.sleep(0.2)
        if running.acknowledged() != before:
            wrong.append("reports were acknowledged without a connection: nothing was exhausted")
        if refused - {503, None} or 503 not in refused:
            wrong.append(f"readyz answered {refused}, not 503")
        held.close()
        if not running.wait_for_more(1, ROOM_SECONDS):
            wrong.append(f"no report was acknowledged within {ROOM_SECONDS:g} s of there being room again")
        text, more = running.judge()
    return Outcome(f"no connection to be had for {seconds:g} s ({taken} held by others): {text}", [*wrong, *more])


def _settled(running: World) -> int:
    """Reports acknowledged once none came for half a second: answers to the last commits were still under way."""
    until, known = time.monotonic() + ROOM_SECONDS, running.acknowledged()
    while time.monotonic() < until:
        if not running.wait_for_more(1, 0.5):
            break
        known = running.acknowledged()
    return known


def _take_all(running: World, held: contextlib.ExitStack) -> int:
    """End the server's connections and take each place as it becomes free, until all are ours; how many those are."""
    url = running.server.database_url
    first = held.enter_context(psycopg.connect(url, autocommit=True))
    mine = [first.info.backend_pid]
    until = time.monotonic() + ROOM_SECONDS
    while len(mine) < MAX_CONNECTIONS:
        if time.monotonic() > until:
            raise TimeoutError(f"{len(mine)} of {MAX_CONNECTIONS} connections taken within {ROOM_SECONDS:g} s")
        with contextlib.suppress(psycopg.Error):
            while len(mine) < MAX_CONNECTIONS:
                found = held.enter_context(psycopg.connect(url, autocommit=True, connect_timeout=2))
                mine.append(found.info.backend_pid)
        others = first.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND NOT pid = ANY(%s)", [mine]
        ).fetchall()
        for (pid,) in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    return len(mine)
