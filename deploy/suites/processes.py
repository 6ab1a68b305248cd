"""The processes of test suites: what they used, and their end. Nothing that a suite started stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

# In the environment of everything that a runner starts: what left its process group is found by it.
MARK = "TEST_RUNNER_MARK"


def processor_seconds(pid: int) -> float | None:
    """User and system time of a child that ends, and of all that it waited for; None when that cannot be read."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its entry in /proc stays until it is waited for
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """End everything that the command started and that is still in its process group."""
    stop_groups((process,))


def stop_groups(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """End several commands at once: ten seconds of grace for all of them, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        deadline = time.monotonic() + 10
        while any(group_lives(process.pid) for process in processes):
            if time.monotonic() > deadline:
                break
            for process in processes:
                process.poll()
            time.sleep(0.05)
        else:
            return


def group_ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until nothing of the command's process group lives; False when something still does after so long."""
    deadline = time.monotonic() + seconds
    while group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not group_lives(process.pid)


def end_marked(mark: str) -> None:
    """Kill what a test started in a session of its own and left behind: it still has the suite's mark."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
