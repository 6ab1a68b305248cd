"""Reading a pasted table of buffer pool size and throughput.

Tables come out of spreadsheets, wikis and benchmark logs: split by comma, semicolon, tab, bars or blanks, with or
without a heading, quotes, a byte order mark, decimal commas. What could be read in two ways is refused, never guessed:
a wrong point would move the curve silently.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from typing import Final

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, BenefitPoint

#: Units of a pool size. ``GB`` and ``G`` are powers of 1024 here, as every engine reads its own settings.
_UNITS: Final = {
    "b": 1, "bytes": 1,
    "k": 2**10, "kb": 2**10, "kib": 2**10,
    "m": 2**20, "mb": 2**20, "mib": 2**20,
    "g": 2**30, "gb": 2**30, "gib": 2**30,
    "t": 2**40, "tb": 2**40, "tib": 2**40,
}  # fmt: skip
_HEADING_UNIT: Final = re.compile(r"(?:^|[^a-z])(bytes|[kmgt]i?b)(?:$|[^a-z])")
_NUMBER: Final = re.compile(r"((?:\d++(?:\.\d++)?|\.\d++)(?:[eE][+-]?\d++)?)\s*+([A-Za-z]*+)\Z")
_DECIMAL_COMMA: Final = re.compile(r"(?<!\d)(\d++),(\d++)")
_RULE: Final = re.compile(r"(?=[\s|:+]*+-)[\s|:+-]*+\Z")
_BLANKS: Final = re.compile(r"\s++(?=[0-9.])|\s{2,}")
_LARGEST_BYTES: Final = 2**62
_LINES_MAX: Final = 10_000


def parse_benefit_table(text: str, unit_bytes: int = GIB) -> tuple[BenefitPoint, ...]:
    """Points of a pasted table: a pool size and a throughput on each line.

    A size may carry a unit (``512MiB``), or the heading may (``pool (MiB)``); without either it is in ``unit_bytes``.
    Lines that start with ``#``, empty lines and rules are passed over. More than two columns need a heading for each;
    the first two are read. Raises PlannerError naming the line.
    """
    points: list[BenefitPoint] = []
    heading: list[str] | None = None
    separator: str | None = None
    columns = 2
    for number, line in _lines(text):
        separator = separator or _separator_of(line)
        cells = _cells(line, separator)
        if not points and heading is None and not any(_number(cell, separator) for cell in cells):
            heading, columns = cells, len(cells)
            unit_bytes = _unit_of(cells, number, unit_bytes)
            continue
        if len(cells) != max(columns, 2):
            raise PlannerError(f"line {number}", line, _columns_expected(columns))
        points.append(
            BenefitPoint(
                pool_bytes=_size(cells[0], separator, number, unit_bytes),
                throughput=_throughput(cells[1], separator, number),
            )
        )
    if not points:
        raise PlannerError("table", text.strip()[:40], "lines of a pool size and a throughput, such as 8GiB, 12000")
    return tuple(points)


def _lines(text: str) -> Iterable[tuple[int, str]]:
    lines = text.lstrip("\ufeff").splitlines()
    if len(lines) > _LINES_MAX:
        raise PlannerError("table", f"{len(lines)} lines", f"at most {_LINES_MAX}")
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#") and not _RULE.match(stripped):
            yield number, stripped


def _separator_of(line: str) -> str:
    """The strongest sign in the first line; blanks where there is none."""
    return next((sign for sign in ("|", "\t", ";", ",") if sign in line), " ")


def _cells(line: str, separator: str) -> list[str]:
    if separator == " ":
        return [cell.strip() for cell in _BLANKS.split(line)]
    if separator == "|":
        line = line.strip("|")
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]
    except csv.Error:
        return [line]


def _unit_of(heading: list[str], line: int, unit_bytes: int) -> int:
    """The unit that the size's heading names, else the one given."""
    units = [_HEADING_UNIT.search(cell.lower().replace("_", " ")) for cell in heading]
    if any(units[1:]) and not units[0]:
        raise PlannerError(f"line {line}", ", ".join(heading), "the pool size in the first column")
    return _UNITS[units[0][1]] if units and units[0] else unit_bytes


def _columns_expected(columns: int) -> str:
    if columns <= 2:
        return "a pool size and a throughput, without thousands separators; more columns need a heading for each"
    return f"{columns} columns, as in the heading"


def _number(cell: str, separator: str) -> re.Match[str] | None:
    """The number and its unit. A decimal comma is read where a comma does not part the columns."""
    if separator != ",":
        comma = re.match(r"(\d+),(\d{3})(?!\d)", cell)
        if comma is not None:
            return None  # 1,234 is two numbers to two people
        cell = _DECIMAL_COMMA.sub(r"\1.\2", cell, count=1)
    return _NUMBER.match(cell)


def _size(cell: str, separator: str, line: int, unit_bytes: int) -> int:
    found = _number(cell, separator)
    unit = found[2].lower() if found else ""
    size = math.inf
    if found is not None and (not unit or unit in _UNITS):
        size = float(found[1]) * (_UNITS[unit] if unit else unit_bytes)
    if not 0 < size <= _LARGEST_BYTES:
        raise PlannerError(f"line {line}", cell, "a pool size such as 8, 8GiB or 512MiB, more than 0")
    return round(size)


def _throughput(cell: str, separator: str, line: int) -> float:
    found = _number(cell, separator)
    value = math.inf if found is None or found[2] else float(found[1])
    if not 0 < value < math.inf:
        raise PlannerError(
            f"line {line}", cell, "a throughput: a number above 0, without a unit or thousands separators"
        )
    return value
