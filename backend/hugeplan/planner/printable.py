"""Text from outside (names of nodes, pods, databases, files) as it is shown: on one line, without control codes."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate, pairwise
from unicodedata import category, east_asian_width

MOST_SHOWN = 253
# With letters that are printable and look like blanks. Fewer of them are an indentation, or align a number.
_BLANK = " \u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U0001d159"
BLANKS = re.compile(f"(?<=[^ ])[{_BLANK}]{{6,}}|[{_BLANK}]{{16,}}")
_UNSEEN = re.compile(f"[{_BLANK[1:]}\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U00016fe4\U000e0100-\U000e01ef]")
"""Letters that look like blanks, and marks that nobody sees (Unicode's Default_Ignorable_Code_Point, and one of no
width), of those that are printable."""

_NOT_SHOWN = re.compile("^ | $|(?<= ) |[\u02d7\u2010\u2011\u2212\ufe63\uff0d]")


def printable(text: str, most: int = MOST_SHOWN) -> str:
    r"""``text`` with everything that is not a printable character or a blank written as JSON writes it (``\u2028``).

    Control characters (terminal escapes, new lines), format characters (text that changes its direction), line and
    paragraph separators, and surrogates: Unicode's categories C and Z but for the blank. Marks that nobody sees
    and letters that look like blanks, too: two names that look the same would be two nodes. Cut to ``most`` characters.
    """
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(c if c.isprintable() and not _UNSEEN.match(c) else escaped(c) for c in text)


def printable_name(name: str) -> str:
    r"""``name`` printable, and with what a page does not show of it as JSON writes it: blanks at its ends and after
    another (``\u0020``), and letters that look like the hyphen.
    """
    return _NOT_SHOWN.sub(lambda found: escaped(found[0]), printable(name))


def one_line(value: object, most: int | None = None) -> str:
    """A value, or a line with values, of a server, a report or a file as commands print it: printable, and without a
    run of blanks, which fills a line of the terminal so that what follows looks like the next one. Marks without a
    width are escaped between blanks. Cut to ``most`` columns.
    """
    text = BLANKS.sub("  ", str(value))
    if not text.isascii():
        text = "".join(escaped(c) if _is_hidden(before, c) else c for before, c in pairwise(f" {text}"))
    text = printable(text, len(text))
    columns = [] if most is None else [*accumulate(1 + (east_asian_width(c) in "WF") for c in text[: most + 1])]
    if most is None or not columns or columns[-1] <= most:
        return text
    return text[: bisect_left(columns, most)] + "…"


def _is_hidden(before: str, character: str) -> bool:
    return before in _BLANK and category(character) in {"Mn", "Me"}


def escaped(character: str) -> str:
    r"""One character as JSON's escape: ``\u001b``, and a pair of them above U+FFFF."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
