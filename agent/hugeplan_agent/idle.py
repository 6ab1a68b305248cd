"""Is the node idle enough to be measured, and is now a time for it? Measuring a busy node disturbs and misleads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time

from hugeplan_agent.collectors.pools import global_pools
from hugeplan_agent.collectors.pressure import read as read_pressure
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host

MAX_LOAD_PER_CPU = 0.25
MAX_PRESSURE_PERCENT = {"cpu": 5.0, "memory": 1.0, "io": 5.0}
MAX_STEAL_FRACTION = 0.02
SAMPLE_SECONDS = 2.0
BOOTING_SECONDS = 900
"""As OnBootSec of hugeplan-agent-measure.timer."""
WINDOW = re.compile(r"(\d{2}):(\d{2})-(\d{2}):(\d{2})")


@dataclass(frozen=True)
class Window:
    """A time of day, local time; it may reach over midnight."""

    start: time
    end: time

    def holds(self, now: datetime) -> bool:
        """Whether ``now`` lies in it, start included and end not."""
        clock = now.time()
        if self.start <= self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end


def parse_window(text: str) -> Window:
    """``02:00-05:00``. Raises ValueError."""
    match = WINDOW.fullmatch(text.strip())
    try:
        if match:
            return Window(time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4])))
    except ValueError:
        pass
    raise ValueError("a time of day such as 02:00-05:00")


def parse_cpu_ticks(stat: str) -> tuple[int, int] | None:
    """Stolen ticks and all ticks since boot, over all processors, from the first line of /proc/stat."""
    words = stat.partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdecimal() for word in words[1:9]):
        return None
    ticks = [int(word) for word in words[1:9]]
    return ticks[7], sum(ticks)


def why_booting(host: Host) -> str | None:
    """Why a benchmark waits on a node that has booted lately and has huge pages: in that minute databases start, and
    those that a benchmark maps are missing to them. None where nothing speaks against it.
    """
    uptime = (host.read_optional("proc/uptime") or "").split(" ")[0]
    try:
        is_early = float(uptime) < BOOTING_SECONDS
        has_pages = any(pool["nr_hugepages"] for pool in global_pools(host))
    except (ValueError, NoData):
        return None
    return f"the node booted {uptime} s ago, and databases may still start" if is_early and has_pages else None


def why_busy(host: Host, wait: Callable[[float], object], cpus: int | None = None) -> str | None:
    """The first reason why the node is not idle, in words; None when it is.

    Load and pressure are the kernel's averages; steal is observed for two seconds through ``wait``.
    """
    return why_booting(host) or _why_loaded(host, wait, cpus)


def _why_loaded(host: Host, wait: Callable[[float], object], cpus: int | None) -> str | None:
    load = (host.read_optional("proc/loadavg") or "").split(" ")[0]
    count = cpus or os.cpu_count() or 1
    try:
        if float(load) > MAX_LOAD_PER_CPU * count:
            return f"the load is {load} on {count} processors"
    except ValueError:
        return "the load is not readable"
    for resource, limit in MAX_PRESSURE_PERCENT.items():
        some = (read_pressure(host, resource) or {}).get("some")
        if some is not None and some["avg10_percent"] > limit:
            return f"tasks wait for {resource} {some['avg10_percent']:g} % of the time"
    before = parse_cpu_ticks(host.read_optional("proc/stat") or "")
    wait(SAMPLE_SECONDS)
    after = parse_cpu_ticks(host.read_optional("proc/stat") or "")
    if before is None or after is None or after[1] <= before[1]:
        return "the time stolen by the hypervisor is not readable"
    stolen = (after[0] - before[0]) / (after[1] - before[1])
    if stolen > MAX_STEAL_FRACTION:
        return f"the hypervisor takes {stolen:.0%} of the processors' time"
    return None
