# SPDX-License-Identifier: Apache-2.0
"""tlbbench counters on the real kernel of this machine: what it counts, or exactly why it cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import suite

BUSY = "while True: pass"


def counted(*arguments: str) -> dict[str, Any]:
    made = suite.document("counters", *arguments)
    assert [section["name"] for section in made["sections"]] == ["counters"]
    found: dict[str, Any] = made["counters"]
    assert found["status"] == made["sections"][0]["status"]
    return found


def has_pmu() -> bool:
    """What the kernel itself says: it lists a PMU of the CPU by a name of its own on every architecture."""
    devices = {entry.name for entry in Path("/sys/bus/event_source/devices").iterdir()}
    return any(name.startswith(("cpu", "armv8", "armv9")) for name in devices)


def a_busy_process() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as busy:
        try:
            found = counted("--pid", str(busy.pid), "--seconds", "0.5")
        finally:
            busy.kill()
    if not has_pmu():
        assert found["status"] == "unsupported", found
        assert "no PMU here" in found["reason"], found["reason"]
        assert found["total"]["walk_fraction"] is None, found
        return
    assert found["status"] == "ok", found["reason"]
    assert found["user"]["cycles"] > 1e6
    assert found["overhead_fraction"] <= 0.01


def a_process_that_is_not_there() -> None:
    found = counted("--pid", "2147483647")
    assert (found["status"], found["reason"]) == ("failed", "--pid: there is no process 2147483647")


def a_group_that_is_not_there() -> None:
    found = counted("--cgroup", "no/such/group")
    assert found["status"] == "failed"
    assert "/sys/fs/cgroup/no/such/group" in found["reason"]


CASES: list[tuple[str, Callable[[], None]]] = [
    ("a busy process is counted, or the machine's lack is named", a_busy_process),
    ("a process that is not there is named", a_process_that_is_not_there),
    ("a group that is not there is named", a_group_that_is_not_there),
]

if __name__ == "__main__":
    suite.main("counters", CASES)
