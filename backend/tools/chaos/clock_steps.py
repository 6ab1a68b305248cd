"""The server's wall clock steps forwards and back under load: reports go on, and no node freezes."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import psycopg

from tools.chaos.rig import CLIENT, Outcome, World, world

SOURCE = Path(__file__).with_name("clock_offset.c")
STEP_SECONDS = 10.0
STEPS_HOURS = (6, -6, 20, 0, -20, 0)
"""Against true time. The agents' clocks stay true: a step back puts them ahead, within the day that is accepted."""


class _Clock:
    """The server's wall clock, as an offset in a file that its process has mapped."""

    def __init__(self, folder: Path, compiler: str) -> None:
        self._file = folder / "clock-offset"
        self._library = folder / "clock_offset.so"
        self.set(timedelta(0))
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(self._library), str(SOURCE)]
        subprocess.run(command, check=True)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET_FILE": str(self._file)}

    def set(self, offset: timedelta) -> None:
        # In place: a new file would not be the one that is mapped.
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", int(offset.total_seconds())))


def clock_steps(folder: Path, *, reports: int) -> Outcome:
    """Step the clock, and want ``reports`` more reports after each step, and every node to follow them."""
    compiler = shutil.which("cc")
    if compiler is None:
        return Outcome("clock steps", skipped="there is no C compiler (cc) to build the shim of the clock with")
    clock = _Clock(folder, compiler)
    wrong = []
    with world(folder, environment=clock.environment) as running:
        for hours in STEPS_HOURS:
            clock.set(timedelta(hours=hours))
            if not running.wait_for_more(reports):
                wrong.append(f"no report was acknowledged after the step to {hours:+} h")
            if not _has_stepped(running, timedelta(hours=hours)):
                wrong.append(f"the server's clock did not step to {hours:+} h")
            wrong += [f"{text} after the step to {hours:+} h" for text in _frozen(running)]
        text, more = running.judge()
    return Outcome(f"{len(STEPS_HOURS)} steps of the clock, up to 40 h at once: {text}", [*wrong, *more])


def _has_stepped(running: World, offset: timedelta) -> bool:
    """Whether the server dates its answers by the clock as it was set. It writes the date once per second."""
    until = time.monotonic() + STEP_SECONDS
    while time.monotonic() < until:
        dated = CLIENT.get(f"{running.server.url}/healthz", timeout=10).headers["date"]
        if abs(parsedate_to_datetime(dated) - datetime.now(UTC) - offset) < timedelta(minutes=1):
            return True
        time.sleep(0.1)
    return False


def _frozen(running: World) -> list[str]:
    """The nodes that do not follow their reports."""
    query = "SELECT name, sampled_at FROM nodes ORDER BY name"
    with psycopg.connect(running.server.database_url) as connection:
        before = dict(connection.execute(query).fetchall())
    running.wait_for_more(4 * len(running.agents))
    with psycopg.connect(running.server.database_url) as connection:
        after = dict(connection.execute(query).fetchall())
    return [f"{name} stays at {at}" for name, at in after.items() if before.get(name) == at]
