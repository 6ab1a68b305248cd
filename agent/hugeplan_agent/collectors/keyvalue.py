"""Line formats of /proc that several collectors read. Pure functions; kB becomes bytes here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hugeplan_agent.schema import MAX_BYTES

KIB = 1024
MAX_DIGITS = 20
"""Of a number of the kernel's. Python refuses to read thousands of them."""
AMOUNT = re.compile(r"^(?:Node\s+\d+\s+)?([A-Za-z0-9_()]+):\s+(\d{1,20})(?:\s+(kB))?\s*$")


def parse_amounts(text: str) -> dict[str, int]:
    """Lines such as ``MemTotal: 24684084 kB`` or ``Node 0 MemFree: 8 kB``: bytes where a unit stands, else the number.

    Source: Documentation/filesystems/proc.rst of the kernel. The kernel's kB are 1,024 bytes.
    """
    amounts = {}
    for line in text.splitlines():
        match = AMOUNT.match(line)
        if match:
            amounts[match[1]] = int(match[2]) * (KIB if match[3] else 1)
    return amounts


def parse_counters(text: str) -> dict[str, int]:
    """Lines such as ``thp_fault_alloc 12``."""
    counters = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdecimal() and len(value) <= MAX_DIGITS:
            counters[name] = int(value)
    return counters


def parse_limit(text: str | None) -> tuple[int | None, bool | None]:
    """The limit in bytes and whether there is one; both None when it is not readable.

    One above every machine's memory is none. Version 1 of control groups has no word for unlimited, and whoever has a
    cgroup or an unlimited hard limit sets any number.
    """
    word = (text or "").strip()
    if word in ("max", "unlimited"):
        return None, False
    if not word.isdecimal():
        return None, None
    value = int(word) if len(word) <= MAX_DIGITS else MAX_BYTES + 1
    return (None, False) if value > MAX_BYTES else (value, True)


def parse_selected(text: str) -> str | None:
    """The bracketed word of a line such as ``always [madvise] never``; None when no word is selected."""
    match = re.search(r"\[([^\[\]\s]+)\]", text)
    return match[1] if match else None


def count_cpu_list(text: str) -> int:
    """How many processors a list such as ``0-3,8,10-11`` names. Raises ValueError on anything else."""
    total = 0
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def total(values: Iterable[int | None]) -> int | None:
    """The sum; None when one of the values is unknown."""
    result = 0
    for value in values:
        if value is None:
            return None
        result += value
    return result


def largest(values: Iterable[int | None]) -> int | None:
    """The largest known value; None when none is known."""
    return max((item for item in values if item is not None), default=None)
