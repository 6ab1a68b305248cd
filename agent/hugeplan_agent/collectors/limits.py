"""How much memory a process may lock."""

from __future__ import annotations

import re
from typing import Any

from hugeplan_agent.collectors.keyvalue import parse_limit
from hugeplan_agent.collectors.process_table import Process
from hugeplan_agent.host import Host

LINE = re.compile(r"^Max locked memory\s+(\S+)", re.MULTILINE)


def parse_memlock(text: str) -> dict[str, Any]:
    """The soft RLIMIT_MEMLOCK in bytes from /proc/PID/limits: a number, unlimited, or unknown."""
    match = LINE.search(text)
    limit, limited = parse_limit(match and match[1])
    return {"memlock_limit_bytes": limit, "memlock_limited": limited}


def memlock(host: Host, process: Process) -> dict[str, Any]:
    """The limit of a process; read once in its life, since hardly anything changes it afterwards."""
    kept = host.kept("memlock")
    if process.key not in kept:
        if len(kept) > 4096:
            kept.clear()
        kept[process.key] = parse_memlock(host.read_optional(f"proc/{process.pid}/limits") or "")
    found: dict[str, Any] = kept[process.key]
    return found
