"""The database goes away for a while: the server says so, keeps its memory, and goes on by itself."""

from __future__ import annotations

import time
from pathlib import Path

from tools.chaos.rig import Outcome, world

MAX_GROWTH_BYTES = 32 * 1024**2
MAX_RECOVERY_SECONDS = 15.0


def database_away(folder: Path, *, seconds: float) -> Outcome:
    """Stop PostgreSQL for ``seconds`` under load, and start it again."""
    wrong = []
    with world(folder) as running:
        server = running.server
        running.wait_for_more(20)
        running.postgres.stop()
        begun = time.monotonic()
        while server.status_of("/readyz") != 503:
            if time.monotonic() - begun > MAX_RECOVERY_SECONDS:
                wrong.append("readyz did not say that the database is away")
                break
            time.sleep(0.1)
        before = server.resident_bytes()
        acknowledged = running.acknowledged()
        while time.monotonic() - begun < seconds:
            if server.status_of("/healthz") != 200:
                wrong.append("healthz did not answer while the database was away")
                break
            time.sleep(min(1.0, seconds / 10))
        if running.acknowledged() != acknowledged:
            wrong.append("a report was acknowledged while the database was away")
        grown = server.resident_bytes() - before
        if grown > MAX_GROWTH_BYTES:
            wrong.append(f"the server grew by {grown} bytes")
        running.postgres.start()
        back = time.monotonic()
        if not running.wait_for_more(1, MAX_RECOVERY_SECONDS):
            wrong.append(f"no report was acknowledged within {MAX_RECOVERY_SECONDS:g} s of the database's return")
        recovery = time.monotonic() - back
        server.wait_until_ready()
        text, more = running.judge()
    away = f"database away for {seconds:g} s, first report {recovery:.2f} s after its return"
    return Outcome(f"{away}, {grown / 1024**2:.1f} MiB grown; {text}", [*wrong, *more])
