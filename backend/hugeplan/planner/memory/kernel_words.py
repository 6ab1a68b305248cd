"""The words of a kernel command line and the kernel's number readers (lib/cmdline.c, lib/vsprintf.c).

A word ends at a blank outside double quotes. ``-`` and ``_`` are the same in a name (kernel/params.c). ``--`` ends the
kernel's own words: what follows goes to init.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_SUFFIXES: Final = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "e": 2**60}
_WORD: Final = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_ULONG: Final = re.compile(r"\s*([0-9]+)")
_MEMPARSE: Final = re.compile(r"\s*(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)?([kKmMgGtTpPeE])?")


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its text, name and value (None without ``=``), and the offsets of its text in the source."""

    text: str
    name: str
    value: str | None
    start: int
    end: int


def words_of(line: str, offset: int = 0) -> list[Word]:
    """All words of a command line, ``--`` included."""
    found = []
    for match in _WORD.finditer(line):
        text = match[0].replace('"', "")
        name, separator, value = text.partition("=")
        found.append(
            Word(
                text=text,
                name=name.replace("-", "_") if text != "--" else "--",
                value=value if separator else None,
                start=offset + match.start(),
                end=offset + match.end(),
            )
        )
    return found


def memparse(text: str) -> int:
    """Bytes as memparse() reads them: digits with an optional K, M, G ...; what follows is not read."""
    match = _MEMPARSE.match(text)
    if match is None or not match[1]:
        return 0
    digits = match[1]
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
    return _in_64_bits(digits, base) * _SUFFIXES.get((match[2] or "").lower(), 1) % 2**64


def scan_count(text: str) -> tuple[int, int] | None:
    """``%lu%n`` of sscanf: the number and the characters it took; None when there is no digit."""
    match = _ULONG.match(text)
    return None if match is None else (_in_64_bits(match[1], 10), match.end())


def _in_64_bits(digits: str, base: int) -> int:
    """simple_strtoull() drops what is above 64 bits. 2**64 divides every base to the 64th: the last digits decide."""
    return int(digits.lower().removeprefix("0x")[-64:], base) % 2**64


class InvalidCountsError(ValueError):
    """A value of hugepages= that the kernel calls invalid, and why."""


@dataclass(slots=True)
class Counts:
    """What hugepages= of Linux 5.16 and later reads: one number or counts per node, and the text it leaves out."""

    plain: int | None = None
    by_node: dict[int, int] = field(default_factory=dict)
    rest: str = ""


def scan_counts(value: str, online: Sequence[int] | None) -> Counts:
    """The loop of hugepages_setup(). ``online`` None: any NUMA node is taken to be online."""
    found = Counts()
    rest = value
    while rest:
        number, taken = _scanned(rest)
        if rest[taken : taken + 1] != ":":
            if rest != value:
                raise InvalidCountsError(f"{rest!r} has no NUMA node, and a list of counts is per node throughout")
            return Counts(plain=number, rest=rest[taken:])
        if online is not None and number not in online:
            nodes = ", ".join(str(node) for node in online)
            raise InvalidCountsError(f"NUMA node {number} is not online (online: {nodes})")
        rest = rest[taken + 1 :]
        found.by_node[number], taken = _scanned(rest)
        rest = rest[taken:]
        if not rest.startswith(","):
            found.rest = rest
            break
        rest = rest[1:]
    return found


def _scanned(text: str) -> tuple[int, int]:
    scanned = scan_count(text)
    if scanned is None:
        raise InvalidCountsError(f"{text!r} is not a count")
    return scanned
