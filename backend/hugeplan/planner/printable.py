"""Text from outside (names of nodes, pods, databases, files) as it is shown: on one line, without control codes."""

from __future__ import annotations

MOST_SHOWN = 253


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""``text`` with everything that is not a printable character or a blank written as JSON writes it (``\u2028``).

    Control characters (terminal escapes, new lines), format characters (text that changes its direction), line and
    paragraph separators, and surrogates: Unicode's categories C and Z but for the blank. Cut to ``most`` characters.
    """
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else escaped(c) for c in text)


def escaped(character: str) -> str:
    r"""One character as JSON's escape: ``\u001b``, and a pair of them above U+FFFF."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
