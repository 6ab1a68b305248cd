r"""Standard output and error without terminal codes: names that a command prints come from strangers.

A name with an escape sequence could recolour, hide or retype lines of the terminal, or rename its window. What is not a
printable character leaves as JSON writes it (``\u001b``), which a JSON document reads back as the same character.
"""

from __future__ import annotations

import re
from typing import Any, TextIO

from hugeplan.planner.printable import escaped, one_line

#: New lines and tabs lay a table out; everything else that is not printable is looked at one by one.
_PLAIN = str.maketrans("", "", "\n\t")
_SUSPECT = re.compile(r"[^\x20-\x7e\n\t]")


def tame(text: str) -> str:
    """``text`` with every control, format and separator character but new line and tab escaped. U+00A0 is a blank."""
    if text.isascii() and text.translate(_PLAIN).isprintable():
        return text
    return _SUSPECT.sub(
        lambda found: found[0] if found[0].isprintable() or found[0] == "\xa0" else escaped(found[0]), text
    )


class TameText:
    """A text stream that tames what is written to it (``by_line``: one line at a time), and is the stream else."""

    def __init__(self, stream: TextIO, *, by_line: bool = False) -> None:
        self._stream, self._by_line = stream, by_line

    def write(self, text: str) -> int:
        """Write ``text``, tamed."""
        line = text
        if self._by_line:
            line = one_line(text[:-1]) + text[-1:]
        self._stream.write(tame(line))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each line, tamed."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
