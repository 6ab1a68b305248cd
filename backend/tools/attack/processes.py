"""What a family of processes has used, as the kernel counts it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
_EVERY_SECONDS = 0.02
_LOOK_SECONDS = 0.03
_QUIET_SECONDS = 0.1


def family(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, [])
    return found


def leaders(pid: int, words: Sequence[str]) -> list[int]:
    """Those of a family that lead a session, as none does that they forked, with one of the words in the command."""
    found = []
    for one in family(pid):
        with suppress(OSError):
            command = (Path("/proc") / str(one) / "cmdline").read_bytes().decode(errors="replace")
            if os.getsid(one) == one and any(word in command for word in words):
                found.append(one)
    return sorted(found)


def without(pid: int, words: Sequence[str]) -> list[int]:
    """A family without those leaders, and all below them, whose command has one of the words."""
    apart = {below for leader in (leaders(pid, words) if words else ()) for below in family(leader)}
    return [one for one in family(pid) if one not in apart]


def cpu_seconds(pid: int, apart: Sequence[str] = ()) -> float:
    """Processor time of a family: of those that live, and of those that ended and were waited for.

    With words of ``apart``: without those leaders, and without whatever the first process has waited for.
    """
    total = 0
    for one in without(pid, apart):
        with suppress(OSError):
            fields = (Path("/proc") / str(one) / "stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11 : 13 if apart and one == pid else 15])
    return total * TICK_SECONDS


def threads_of(pid: int) -> list[int]:
    """The threads of a process."""
    with suppress(OSError):
        return [int(thread.name) for thread in (Path("/proc") / str(pid) / "task").iterdir()]
    return []


def waited_seconds(threads: list[int]) -> dict[int, float]:
    """How long each thread could have run and had no processor, so far; nothing where the kernel does not count it."""
    found: dict[int, float] = {}
    for thread in threads:
        with suppress(OSError, IndexError):
            found[thread] = int((Path("/proc") / str(thread) / "schedstat").read_text().split()[1]) / 1e9
    return found


def longest_wait(before: dict[int, float], after: dict[int, float]) -> float:
    """The longest wait for a processor of one thread between two looks.

    One thread's, and no sum: those who wait at the same time do not make a client wait twice.
    """
    return max((seconds - before.get(thread, 0.0) for thread, seconds in after.items()), default=0.0)


def memory_bytes(pid: int, apart: Sequence[str] = ()) -> int:
    """Proportional share of memory of a family: pages that processes have in common count once."""
    total = 0
    for one in without(pid, apart):
        with suppress(OSError):
            for line in (Path("/proc") / str(one) / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def has_work(pid: int) -> bool:
    """Whether a thread of a family runs, waits for a processor, or waits for a disk."""
    for one in family(pid):
        for thread in threads_of(one):
            with suppress(OSError):
                stat = (Path("/proc") / str(one) / "task" / str(thread) / "stat").read_text()
                if stat.rpartition(")")[2].split()[0] in {"R", "D"}:
                    return True
    return False


def wait_until_idle(pids: Sequence[int], seconds: float) -> None:
    """Wait until families have nothing to do: what a request started may outlive its answer, or wait for its database.

    On a busy machine, processor time alone tells no family that rests from one that gets no processor.
    """
    until = time.monotonic() + seconds
    before, since = sum(map(cpu_seconds, pids)), time.monotonic()
    while time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        now = sum(map(cpu_seconds, pids))
        if now - before > TICK_SECONDS or any(map(has_work, pids)):
            before, since = now, time.monotonic()
        elif time.monotonic() - since >= _QUIET_SECONDS:
            return


class MemoryPeak(threading.Thread):
    """The largest memory of a family while a block runs, looked at fifty times per second."""

    def __init__(self, pid: int, apart: Sequence[str] = ()) -> None:
        super().__init__(daemon=True)
        self._asked, self._ending = (pid, apart), threading.Event()
        self.before = self.peak = memory_bytes(*self._asked)

    def run(self) -> None:
        """Look until the block ends."""
        while not self._ending.wait(_EVERY_SECONDS):
            self.peak = max(self.peak, memory_bytes(*self._asked))

    def __enter__(self) -> MemoryPeak:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self.join()

    @property
    def grown_bytes(self) -> int:
        """How much more than before the block."""
        return self.peak - self.before
