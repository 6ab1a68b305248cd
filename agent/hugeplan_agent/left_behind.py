"""A child that may be left behind: what it gives up when it begins, and which ones of our control group live on.

The agent and each command leave their own behind. They are counted together, by what the kernel shows of them.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

NAME = "hugeplan-look"
"""Of its process, in ``ps`` as well."""

_USER = re.compile(r"^Uid:[ \t]*(\d{1,20})", re.MULTILINE)


def begin(channel: int, lifeline: int) -> None:
    """In the child: take the name, hold these two files alone, and end with the parent."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    _hold_only(channel, lifeline)
    end_with_us(lifeline)


def _hold_only(*wanted: int) -> None:
    """Close all other files: the agent's connections, and locks, which would outlive it in a child left behind."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - names are all that is wanted
        if number > 2 and number not in wanted:
            with suppress(OSError):
                os.close(number)


def end_with_us(lifeline: int) -> None:
    """In the child: the kernel kills it when the pipe has no writer any more. One that cannot (gVisor) leaves it to the
    end of the requests."""
    with suppress(OSError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def living(proc: str = "/proc") -> set[int]:
    """The pids of children that were killed and live on, whoever left them in this process's control group: the agent
    before a restart, a command of the same session. Root of any container could make the like in its own."""
    users, group = {0, os.getuid()}, _read(f"{proc}/self/cgroup")
    pids = {int(name) for name in os.listdir(proc) if name.isdecimal()}  # noqa: PTH208 - names are all that is wanted
    named = [pid for pid in pids if _read(f"{proc}/{pid}/comm") == f"{NAME}\n"]
    return {pid for pid in named if _read(f"{proc}/{pid}/cgroup") == group and _is_left(proc, pid, users)}


def _is_left(proc: str, pid: int, users: set[int]) -> bool:
    """Anybody may call a process so: those of root and of this user count. The owner of its folder in /proc tells
    nothing, it is root for whoever makes his process unreadable."""
    # State and pending signals of stat(5) first: what a status costs its process chooses, by its groups.
    state = _read(f"{proc}/{pid}/stat").rpartition(")")[2].split()[:29]
    if len(state) < 29 or state[0] in "ZX" or not int(state[28]) & 1 << signal.SIGKILL - 1:
        return False
    user = _USER.search(_read(f"{proc}/{pid}/status"))
    return user is not None and int(user[1]) in users


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended
        return ""
