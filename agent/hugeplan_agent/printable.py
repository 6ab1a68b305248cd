"""Text from outside (a server's answer, a file's content) as it is shown: without terminal codes, on one line."""

from __future__ import annotations

import re
from typing import Any

MOST_SHOWN = 500
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""NUL, and halves of pairs: what bytes in a file's name that are no UTF-8 become. Servers refuse a report with one."""


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""``text`` with every control, format and separator character as JSON writes it (``\u001b``), and cut."""
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def storable(value: Any) -> Any:
    """A JSON document with U+FFFD for each character that no server stores."""
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {storable(name): storable(member) for name, member in value.items()}
    return [storable(member) for member in value] if isinstance(value, (list, tuple)) else value


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
