"""redis.conf of Redis and Valkey: one directive per line, its name in any case, a value perhaps in quotes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive with its name in lower case, its value without quotes, and the offsets of its line without its end.

    ``value`` is empty where the line has a name alone.
    """

    name: str
    value: str
    start: int
    end: int
    text: str


def directives(text: str) -> Iterator[Directive]:
    """All directives outside comments, in order; where one is written twice the server takes the last."""
    start = 0
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        words = body.split(None, 1)
        if words and not words[0].startswith("#"):
            value = words[1].strip().strip("'\"") if len(words) == 2 else ""
            yield Directive(words[0].lower(), value, start, start + len(body), body.strip())
        start += len(line)
