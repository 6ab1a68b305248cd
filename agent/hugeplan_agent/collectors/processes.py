"""The processes that matter for huge pages: what backs their memory, and what their page tables cost.

Only numbers and the command's short name leave the node; never its arguments or environment.
"""

from __future__ import annotations

import time
from typing import Any

from hugeplan_agent.collectors.keyvalue import parse_amounts
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Fragment
from hugeplan_agent.host import Host

MAX_PROCESSES = 256
"""A database with a thousand backends fits a report only if the largest are chosen; the note counts the rest."""

ROLLUP_SECONDS = 2.0
"""smaps_rollup walks page tables under the process's lock, so the whole pass is bounded; later ones stay unknown."""

MIN_INTERESTING_BYTES = 16 * 1024 * 1024


def parse_start_time(text: str) -> int | None:
    """Field 22 of /proc/PID/stat, in clock ticks since boot. The name in field 2 may hold spaces and parentheses."""
    _, _, after_name = text.rpartition(")")
    fields = after_name.split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else None


def parse_name(status: str) -> str | None:
    """The kernel's 15-byte command name from /proc/PID/status."""
    for line in status.splitlines():
        if line.startswith("Name:"):
            return line[5:].strip() or None
    return None


def read_process(host: Host, pid: str) -> dict[str, Any] | None:
    """What /proc/PID/status says; None for a kernel thread, a small process, or one that has just ended."""
    status = host.read_optional(f"proc/{pid}/status")
    if status is None:
        return None
    amounts = parse_amounts(status)
    rss_bytes = amounts.get("VmRSS")
    if rss_bytes is None:
        return None
    hugetlb_bytes = amounts.get("HugetlbPages", 0)
    weight = rss_bytes + hugetlb_bytes + amounts.get("VmPTE", 0)
    if weight < MIN_INTERESTING_BYTES:
        return None
    return {
        "pid": int(pid),
        "start_time_ticks": parse_start_time(host.read_optional(f"proc/{pid}/stat") or ""),
        "name": parse_name(status) or f"pid {pid}",
        "rss_bytes": rss_bytes,
        "hugetlb_bytes": amounts.get("HugetlbPages"),
        "vm_pte_bytes": amounts.get("VmPTE"),
        "weight": weight,
    }


def parse_rollup(text: str) -> dict[str, int | None]:
    """Proportional and huge memory of one process, from smaps_rollup. What the text does not say is unknown."""
    amounts = parse_amounts(text)
    return {
        "pss_bytes": amounts.get("Pss"),
        "anon_huge_bytes": amounts.get("AnonHugePages"),
        "shmem_pmd_mapped_bytes": amounts.get("ShmemPmdMapped"),
        "private_hugetlb_bytes": amounts.get("Private_Hugetlb"),
        "shared_hugetlb_bytes": amounts.get("Shared_Hugetlb"),
    }


def collect(host: Host) -> Fragment:
    pids = [child for child, _ in host.children("proc", r"\d+")]
    if not pids:
        raise NoData(f"{host.path('proc')} holds no process")
    found = [process for process in (read_process(host, pid) for pid in pids) if process]
    found.sort(key=lambda process: (-int(process["weight"]), int(process["pid"])))
    kept, left_out = found[:MAX_PROCESSES], max(0, len(found) - MAX_PROCESSES)
    deadline = time.monotonic() + ROLLUP_SECONDS
    late = 0
    for process in kept:
        del process["weight"]
        is_late = time.monotonic() > deadline
        late += is_late
        process.update(parse_rollup("" if is_late else host.read_optional(f"proc/{process['pid']}/smaps_rollup") or ""))
    unread = sum(process["pss_bytes"] is None for process in kept) - late
    notes = [
        f"{left_out} smaller processes are left out" if left_out else "",
        f"{late} processes were not looked into within {ROLLUP_SECONDS:g} seconds" if late else "",
        f"{unread} processes may not be looked into by this user" if unread else "",
    ]
    return Fragment(sample={"processes": kept}, note="; ".join(filter(None, notes)) or None)
