"""postgresql.conf as the server reads it, with the place of each part.

Source: PostgreSQL src/backend/utils/misc/guc-file.l. The ``=`` may be missing, a value may stand in single quotes, and
``#`` outside quotes begins a comment. A line with more than one value is refused, and the server does not start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_LINE: Final = re.compile(
    r"[ \t]*+(?P<name>[A-Za-z_][\w.-]*+)(?:[ \t]*+=[ \t]*+|[ \t]++)"
    r"(?P<value>'(?:[^'\\]|''|\\.)*+'|[^\s#]++)[ \t]*+(?:#.*)?"
)
_INCLUDES: Final = frozenset({"include", "include_dir", "include_if_exists"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting with the places of its name and value in the text; the value's is that of its spelling."""

    name: str
    value: str
    name_span: tuple[int, int]
    value_span: tuple[int, int]
    quoted: bool = False


def settings_of(text: str) -> Iterator[Setting]:
    """``name = value`` lines in order."""
    start = 0
    for line in text.splitlines(keepends=True):
        found = _LINE.fullmatch(line.rstrip("\r\n"))
        if found is not None:
            raw = found["value"]
            quoted = raw.startswith("'")
            yield Setting(
                name=found["name"],
                value=raw[1:-1].replace("''", "'").replace("\\'", "'") if quoted else raw,
                name_span=(start + found.start("name"), start + found.end("name")),
                value_span=(start + found.start("value"), start + found.end("value")),
                quoted=quoted,
            )
        start += len(line)


def values_of(text: str) -> tuple[dict[str, str], bool]:
    """Values by name in lower case, the last of a name counts; and whether other files are included."""
    values = {setting.name.lower(): setting.value for setting in settings_of(text)}
    includes = not _INCLUDES.isdisjoint(values)
    return {name: value for name, value in values.items() if name not in _INCLUDES}, includes
