"""Text in columns, for a terminal or a page with letters of one width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from hugeplan.planner.printable import one_line

#: Tables are narrower, sentences are wrapped.
WIDTH: Final = 120


class Row(str):
    """A line of a table, whose blanks are its own."""

    __slots__ = ()


def wrapped(line: str, indent: str = "") -> list[str]:
    """A long line in several of at most WIDTH columns, the later ones two columns further in. Commands stay whole."""
    line = indent + (line if isinstance(line, Row) else one_line(line))
    if len(line) <= WIDTH or line.lstrip().startswith("check: "):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line.strip(),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: Iterable[Sequence[str]], right: frozenset[int]) -> list[str]:
    """Rows as aligned columns; columns in ``right`` are aligned right."""
    lines = [[one_line(cell, WIDTH) for cell in row] for row in rows]
    if not lines:
        return []
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    out: list[str] = []
    for row in lines:
        cells = [
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        out.append(Row("  ".join(cells).rstrip()))
    return out
