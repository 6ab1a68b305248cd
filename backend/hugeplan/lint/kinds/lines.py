"""Reading files of lines: each line with its offset, and key = value lines with theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_KEY_VALUE: Final = re.compile(
    r"^(?P<lead>[ \t]*)(?P<key>[^\s=#;\[](?:[^=\n]*[^=\s])?)[ \t]*+(?:(?P<sep>=)[ \t]*+(?P<value>(?:.*\S)?))?[ \t]*+$"
)

_PARTS: Final = re.compile(r"\[[^\[\]]+\]|\*+|[^*?\[{},]+|.", re.S)
_PATH_MAX: Final = 4096


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


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern of glob(3), with alternatives in braces, finds this path: in time in proportion to it."""
    now, outer = {0}, list[tuple[set[int], set[int]]]()  # how much of the path the pattern so far may stand for
    for part in _PARTS.findall(pattern) if len(pattern) < _PATH_MAX else ("",):
        if part == "{":
            outer.append((now, set()))
        elif outer and part == ",":
            outer[-1][1].update(now)
            now = outer[-1][0]
        elif outer and part == "}":
            now = now | outer.pop()[1]
        elif part[:1] == "*":
            reached = set[int]()
            for place in sorted(now):
                if place not in reached:
                    reached.update(range(place, (path.find("/", place) + 1) or len(path) + 1))
            now = reached
        elif part == "?" or (len(part) > 1 and part[0] == "["):
            now = {place + 1 for place in now if path[place : place + 1] not in "/" and _is_of(path[place], part)}
        else:
            now = {place + len(part) for place in now if path.startswith(part, place)}
        if not now and not outer:
            return False
    return len(path) in now and not outer


def _is_of(character: str, part: str) -> bool:
    """Whether ``?`` or a set such as ``[!0-3a]`` has this character."""
    inverted = part[1:2] in {"!", "^"}
    ranges = re.findall(r"(.)-(.)|(.)", part[1 + inverted : -1], re.S)
    return part == "?" or inverted != any((a or one) <= character <= (b or one) for a, b, one in ranges)
