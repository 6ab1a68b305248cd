"""The database's disk is full: nothing is acknowledged that is not stored, and service returns with the space."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from hugeplan import embedded
from tools.chaos.rig import Outcome, world

DISK_MIB = 320
LIMITS = {"max_wal_size": "64MB", "min_wal_size": "32MB", "shared_buffers": "16MB"}


def disk_full(folder: Path, *, seconds: float) -> Outcome:
    """Fill the small file system that the database is on for ``seconds``, and empty it again."""
    if os.geteuid() != 0:
        return Outcome("disk full", skipped="a file system can be mounted by root only")
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0711", "hugeplan-chaos", str(disk)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        return Outcome("disk full", skipped=f"no file system can be mounted here: {made.stderr.strip()}")
    wrong = []
    try:
        with (
            world(folder, data_dir=disk / "postgresql", postgres_settings=LIMITS) as running,
            embedded.supervised(running.postgres),
        ):
            running.wait_for_more(20)
            with _filled(disk):
                before = running.acknowledged()
                until = time.monotonic() + seconds
                stopped = False
                while time.monotonic() < until:
                    if running.server.status_of("/healthz") != 200:
                        wrong.append("healthz did not answer on a full disk")
                        break
                    seen = running.acknowledged()
                    time.sleep(0.5)
                    stopped = running.acknowledged() == seen
                on_full = running.acknowledged() - before
            if not running.wait_for_more(5, 60.0):
                wrong.append("no report was acknowledged within 60 s of there being space again")
            text, more = running.judge()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)  # noqa: S607 - root's own path
        shutil.rmtree(disk, ignore_errors=True)
    state = "reports stopped" if stopped else "the space that PostgreSQL keeps for its log lasted"
    text = f"disk full for {seconds:g} s ({state}, {on_full} acknowledged meanwhile): {text}"
    return Outcome(text, [*wrong, *more])


@contextlib.contextmanager
def _filled(disk: Path) -> Iterator[None]:
    """A file that takes all that is left, and again what becomes free meanwhile."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 65536)
    try:
        yield
    finally:
        ballast.unlink()
