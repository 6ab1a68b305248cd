"""Option files of MySQL and MariaDB (my.cnf), as the server reads them, with the place of each part.

Source: MySQL mysys/my_default.cc (search_default_file_with_ext, find_end_comment); MySQL Reference Manual and MariaDB
documentation, "Option Files". ``#`` outside quotes ends a line anywhere, ``;`` only begins a comment line. A value may
stand in quotes. Names take hyphens for underscores, and ``loose-`` only forgives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_SECTION: Final = re.compile(r"\s*\[([^\]]*)\]")
_SERVER: Final = re.compile(r"(?:mysqld|server|mariadb|mariadbd|galera|embedded)(?:-\d[\d.]*|\d+)?")
_QUOTES: Final = "'\""


@dataclass(frozen=True, slots=True)
class Option:
    """One option line. ``value`` is without quotes and comment, None without ``=``; ``spelled`` is it with its quotes.

    Offsets count characters of the whole text; the value's are those of ``spelled``.
    """

    section: str | None
    key: str
    value: str | None
    spelled: str | None
    key_start: int
    value_start: int
    value_end: int
    line_start: int
    line_end: int

    @property
    def name(self) -> str:
        """The variable."""
        return variable(self.key)

    @property
    def is_of_server(self) -> bool:
        """Whether the server reads the line: its section is a server's, or the line stands before any section."""
        return self.section is None or is_server_section(self.section)


def variable(key: str) -> str:
    """``innodb_buffer_pool_size`` of ``loose-innodb-buffer-pool-size``."""
    return key.strip().lower().replace("-", "_").removeprefix("loose_")


def is_server_section(section: str) -> bool:
    """Whether a server reads ``[section]``: also one with a version or a number, and no client's or tool's."""
    return _SERVER.fullmatch(section.strip().lower()) is not None


def includes(text: str) -> bool:
    """Whether other files are read, too."""
    return any(line.lstrip().startswith("!include") for line in text.splitlines())


def sections(text: str) -> set[str]:
    """The names of all sections."""
    return {found[1].strip() for line in text.splitlines() if (found := _SECTION.match(line))}


def options(text: str) -> Iterator[Option]:
    """All options in order."""
    section: str | None = None
    start = 0
    for line in text.splitlines(keepends=True):
        begin, start = start, start + len(line)
        whole = line.rstrip("\r\n")
        if not whole.strip() or whole.lstrip()[0] in "#;!":
            continue
        header = _SECTION.match(whole)
        if header is not None:
            section = header[1].strip()
            continue
        said = _without_comment(whole)
        key, separator, rest = said.partition("=")
        if not key.strip():
            continue
        key_start = begin + len(key) - len(key.lstrip())
        spelled = rest.strip()
        value_start = begin + len(key) + 1 + len(rest) - len(rest.lstrip()) if separator else begin + len(said)
        yield Option(
            section=section,
            key=key.strip(),
            value=_unquoted(spelled) if separator else None,
            spelled=spelled if separator else None,
            key_start=key_start,
            value_start=value_start,
            value_end=value_start + len(spelled) if separator else value_start,
            line_start=begin,
            line_end=begin + len(whole),
        )


def _without_comment(line: str) -> str:
    quote, escaped = "", False
    for index, letter in enumerate(line):
        if letter in _QUOTES and not escaped:
            quote = "" if quote == letter else quote or letter
        elif letter == "#" and not quote and not escaped:
            return line[:index].rstrip()
        escaped = letter == "\\" and not escaped
    return line.rstrip()


def _unquoted(spelled: str) -> str:
    if len(spelled) > 1 and spelled[0] in _QUOTES and spelled[-1] == spelled[0]:
        return spelled[1:-1]
    return spelled
