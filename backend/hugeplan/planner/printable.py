"""Text from outside (names of nodes, pods, databases, files) as it is shown: on one line, without control codes."""

from __future__ import annotations

import re

MOST_SHOWN = 253
# With letters that are printable and look like blanks. Fewer of them are an indentation, or align a number.
BLANKS = re.compile("(?<=[^ ])[ \u115f\u1160\u2800\u3164\uffa0]{6,}|[ \u115f\u1160\u2800\u3164\uffa0]{16,}")


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""``text`` with everything that is not a printable character or a blank written as JSON writes it (``\u2028``).

    Control characters (terminal escapes, new lines), format characters (text that changes its direction), line and
    paragraph separators, and surrogates: Unicode's categories C and Z but for the blank. Cut to ``most`` characters.
    """
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text if text.isprintable() else "".join(c if c.isprintable() else escaped(c) for c in text)


def one_line(value: object, most: int | None = None) -> str:
    """A value, or a line with values, of a server, a report or a file as commands print it: printable, and without a
    run of blanks, which fills a line of the terminal so that what follows looks like the next one.
    """
    text = BLANKS.sub("  ", str(value))
    text = printable(text, len(text))
    return text if most is None or len(text) <= most else text[: most - 1] + "…"


def escaped(character: str) -> str:
    r"""One character as JSON's escape: ``\u001b``, and a pair of them above U+FFFF."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
