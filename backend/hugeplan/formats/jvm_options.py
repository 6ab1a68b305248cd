"""Options of a Java virtual machine, one word each: ``-Xmx8g``, ``-XX:+UseLargePages``, ``-XX:MaxHeapSize=8g``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SIZED: Final = re.compile(r"-(X(?:mx|ms|mn|ss))(\S+)")
_NAMED: Final = re.compile(r"-XX:([+-]?)([A-Za-z]\w*)(?:=(\S*))?")


@dataclass(frozen=True, slots=True)
class JvmOption:
    """One option. ``sign`` is ``+`` or ``-`` before a switch's name, else empty; ``value`` None where there is none.

    A JVM starts with a sign or a value, never with both or neither; a linter says so, a reader passes such a word over.
    """

    name: str
    sign: str
    value: str | None

    @property
    def setting(self) -> str | None:
        """Its value, ``on`` or ``off``; None where the JVM would not start with it."""
        if self.sign:
            return {"+": "on", "-": "off"}[self.sign] if self.value is None else None
        return self.value or None


def option_of(word: str) -> JvmOption | None:
    """A word of a command line as an option; None for any other word."""
    if found := _SIZED.fullmatch(word):
        return JvmOption(found[1], "", found[2])
    found = _NAMED.fullmatch(word)
    return None if found is None else JvmOption(found[2], found[1], found[3])
