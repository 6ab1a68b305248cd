"""Which boot this is, and when it began."""

from __future__ import annotations

from datetime import datetime, timezone

from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import MOMENT, TEXT, about, optional


def parse_boot_time(stat: str) -> int | None:
    """Seconds since the epoch at boot, from ``btime`` of /proc/stat."""
    for line in stat.splitlines():
        name, _, value = line.partition(" ")
        if name == "btime" and value.strip().isdecimal():
            return int(value)
    return None


def boot_seconds(host: Host) -> int | None:
    """When the kernel started, in seconds since the epoch; None when it is not readable."""
    return parse_boot_time(host.read_optional("proc/stat") or "")


def moment(seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def collect(host: Host) -> Fragment:
    seconds = boot_seconds(host)
    return Fragment(
        {
            "boot_id": host.read("proc/sys/kernel/random/boot_id").strip() or None,
            "booted_at": None if seconds is None else moment(seconds),
        }
    )


COLLECTOR = Collector(
    collect,
    inventory={
        "boot_id": about(TEXT, "/proc/sys/kernel/random/boot_id: another value after each boot"),
        "booted_at": about(optional(MOMENT), "btime of /proc/stat"),
    },
)
