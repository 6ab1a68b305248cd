"""kill -9 of the server and of PostgreSQL at random under load; no acknowledged report is lost or stored twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from hugeplan import embedded
from tools.chaos.rig import Outcome, world


def kills(
    folder: Path,
    *,
    server_kills: int,
    postgres_kills: int,
    seed: int,
    progress: Path | None = None,
    seconds: float | None = None,
) -> Outcome:
    """Load and kill. With ``progress`` a run goes on where the one before ended, after at most ``seconds``."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible order of kills
    victims = ["server"] * server_kills + ["postgresql"] * postgres_kills
    chance.shuffle(victims)
    before = json.loads(progress.read_text()) if progress is not None and progress.is_file() else {"done": 0}
    done, recoveries = int(before["done"]), []
    with world(folder) as running, embedded.supervised(running.postgres):
        until = None if seconds is None else time.monotonic() + seconds
        for number, victim in enumerate(victims[done:], done + 1):
            if until is not None and time.monotonic() > until:
                break
            time.sleep(chance.uniform(0.1, 1.5))  # the moment of a kill is what chance decides here
            if victim == "server":
                running.server.kill()
                running.server.start()
            elif running.postgres.pid is not None:
                os.kill(running.postgres.pid, signal.SIGKILL)
            recoveries.append(running.server.wait_until_ready())
            done = number
            said = f"kill {number} of {len(victims)}: {victim}, ready after {recoveries[-1]:.2f} s"
            print(said, file=sys.stderr, flush=True)
        goes_on = running.wait_for_more(1)
        text, wrong = running.judge()
    if not goes_on:
        wrong.append("no report was acknowledged after the last kill")
    if progress is not None:
        progress.write_text(json.dumps({"done": done}))
    longest = max(recoveries, default=0.0)
    return Outcome(
        f"{done} of {len(victims)} kills ({victims[:done].count('server')} of the server): {text};"
        f" ready again after {longest:.2f} s at the longest",
        wrong,
    )
