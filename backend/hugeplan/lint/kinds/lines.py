"""Reading files of lines: each line with its offset, and key = value lines with theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_KEY_VALUE: Final = re.compile(
    r"^(?P<lead>[ \t]*)(?P<key>[^\s=#;\[](?:[^=\n]*[^=\s])?)[ \t]*+(?:(?P<sep>=)[ \t]*+(?P<value>(?:.*\S)?))?[ \t]*+$"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end, and the offset of its first character."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset behind the last character."""
        return self.start + len(self.text)

    @property
    def is_comment(self) -> bool:
        """Empty, or a comment by ``#`` or ``;``."""
        return not self.text.strip() or self.text.lstrip()[0] in "#;"


@dataclass(frozen=True, slots=True)
class Pair:
    """A ``key = value`` line; ``value`` is None without ``=``. ``section`` is the ``[section]`` it stands in."""

    key: str
    value: str | None
    line: Line
    key_start: int
    value_start: int
    value_end: int
    section: str | None = None


def lines_of(text: str) -> Iterator[Line]:
    """All lines with their offsets."""
    offset = 0
    for line in text.splitlines(keepends=True):
        yield Line(line.rstrip("\r\n"), offset)
        offset += len(line)


def pairs_of(text: str) -> Iterator[Pair]:
    """``key = value`` lines of an ini-like file, in order, with their sections."""
    section: str | None = None
    for line in lines_of(text):
        if line.is_comment:
            continue
        header = re.fullmatch(r"\s*+\[([^\]]*+)\]\s*+(?:[#;].*)?", line.text)
        if header:
            section = header[1].strip()
            continue
        found = _KEY_VALUE.match(line.text)
        if found is None:
            continue
        has_value = found["value"] is not None
        yield Pair(
            key=found["key"],
            value=found["value"],
            line=line,
            key_start=line.start + found.start("key"),
            value_start=line.start + found.start("value") if has_value else line.end,
            value_end=line.start + found.end("value") if has_value else line.end,
            section=section,
        )
