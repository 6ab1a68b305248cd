"""Text from outside (a server's answer, a file's content) as it is shown: without terminal codes, on one line."""

from __future__ import annotations

MOST_SHOWN = 500


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""``text`` with every control, format and separator character as JSON writes it (``\u001b``), and cut."""
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
