"""The words that every part uses: sizes, where a value comes from, verdicts, ranges, explanations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

KIB = 1024
MIB = 1024**2
GIB = 1024**3

EVERYTHING_IN_USE: Final = "everything in use"
"""Name of the workload that stands for all memory of a host in use, where a source could not read whose it is."""


_SERVER: Final = re.compile(
    r"(?P<engine>[^@]+)@(?:node|(?P<kind>cgroup|systemd|container|pod):(?P<unit>.+?))"
    r"(?::(?:(?P<port>\d{1,5})|(?P<tail>[0-9a-f]{12})))?(?:#(?P<own>[0-9a-f]{12}))?(?:#\d+)?"
)


#: Names in one sentence; more are a number.
MOST_NAMES = 5


def named(names: Iterable[str], between: str = ", ") -> str:
    """Names in a sentence: the first five, and how many more there are."""
    found = list(names)
    if len(found) <= MOST_NAMES:
        return between.join(found)
    return f"{', '.join(found[:MOST_NAMES])} and {len(found) - MOST_NAMES:,} more"


def subject_words(subject: str) -> str:
    """What a finding is about, as a person calls it; a running server's key becomes its engine, unit and port.

    The dashboard writes the same (``frontend/src/lib/units.golden.json``).
    """
    found = _SERVER.fullmatch(subject)
    if found is None:
        return subject
    words, unit = found["engine"], (found["unit"] or "").rpartition("/")[2]
    if found["kind"] == "container" and len(unit) >= 32:
        unit = f"container {unit[:12]}"
    if unit:
        words += f" in {'pod ' if found['kind'] == 'pod' else ''}{unit}"
    if found["port"]:
        words += f", port {found['port']}"
    if place := found["own"] or found["tail"]:
        words += f", data directory checksum {place}"
    return words


class Source(StrEnum):
    """Where a value comes from; the interface draws each of them differently."""

    MEASURED = "measured"
    CPUID = "cpuid"
    CATALOGUE = "catalogue"
    GIVEN = "given"
    COMPUTED = "computed"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class State(StrEnum):
    """The verdict of a finding. UNKNOWN is a verdict of its own, never OK."""

    OK = "ok"
    ATTENTION = "attention"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval with its most likely value, low <= likely <= high; one unit for all three."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Term:
    """One input of a computed number: its name, its value as printed, and where it came from."""

    name: str
    value: str
    source: Source
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a number came about: the formula in symbols, its inputs, and the rule's source."""

    formula: str
    inputs: tuple[Term, ...]
    reference: str


IDLE_CONNECTION_BYTES = 1_363_149
"""A connection that does nothing (A. Freund, Measuring the memory overhead of a Postgres connection, 2020: 1.3 MiB)."""

IDLE_THREAD_BYTES = 256 * 1024
"""A connection that does nothing and is a thread. MariaDB 10.11.19 with 800 of them: 62 KiB, and 176 to 194 KiB after a
query that sorted; MySQL was not measured, so with room above that."""
