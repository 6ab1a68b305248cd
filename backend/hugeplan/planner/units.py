"""Sizes as people write them: one reader for each dialect, and one way to print bytes.

The same letters mean different things to different programs, so nothing here guesses:

==============  =======================================================  =====================
dialect         what it accepts                                          bare number
==============  =======================================================  =====================
IEC             ``64GiB`` ``500 MiB`` ``1.5GiB``                         bytes
Kubernetes      ``512Mi`` ``2Gi`` ``1G`` (decimal) ``1e9`` ``500m``      bytes
PostgreSQL      ``8GB`` ``512MB`` ``64kB`` (powers of 1024, case counts) the setting's own unit
MySQL/MariaDB   ``64G`` ``512m`` ``1T`` (powers of 1024)                 bytes
JVM             ``8g`` ``512M`` (powers of 1024)                         bytes
Oracle          ``8G`` ``512M`` (powers of 1024)                         bytes
kernel          ``2M`` ``1G`` ``2048kB`` (page sizes)                    bytes
==============  =======================================================  =====================

All results are bytes as integers. Every refusal is a :class:`UnitError` that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final

from hugeplan.formats.quantities import parse_quantity
from hugeplan.planner.errors import UnitError
from hugeplan.planner.remembered import remembered

_NUMBER: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![A-Za-z]))?)\s*(?P<unit>[A-Za-z]*)\Z"
)
_BYTES_MAX: Final = 2**63 - 1
_LENGTH_MAX: Final = 64

_IEC: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_POSTGRESQL: Final = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_MYSQL: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "e": 2**60}
_JVM: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_ORACLE: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_KERNEL: Final = {"": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}

IEC_EXPECTED: Final = "a size such as 64GiB, 500MiB or a whole number of bytes"
KUBERNETES_EXPECTED: Final = "a Kubernetes quantity such as 512Mi, 2Gi or a whole number of bytes"


def _split(text: str, field: str, expected: str) -> tuple[Fraction, str]:
    """The number, exactly, and the unit as written."""
    stripped = text.strip()
    match = _NUMBER.match(stripped) if len(stripped) <= _LENGTH_MAX else None
    if match is None:
        raise UnitError(field, text, expected)
    number = match["number"]
    exponent = re.search(r"[eE]([+-]?\d+)$", number)
    if exponent and abs(int(exponent[1])) > 18:
        raise UnitError(field, text, f"{expected}, below 8 EiB")
    return Fraction(number), match["unit"]


def _scaled(text: str | int, units: Mapping[str, int], field: str, expected: str, *, fold: bool = False) -> int:
    """Bytes of ``text`` by a table of units; a fraction must come out as whole bytes."""
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise UnitError(field, text, expected)
    number, unit = _split(str(text), field, expected)
    factor = units.get(unit.lower() if fold else unit)
    if factor is None:
        raise UnitError(field, text, expected)
    value = number * factor
    if value.denominator != 1 or not 0 <= value <= _BYTES_MAX:
        raise UnitError(field, text, f"{expected}; whole bytes from 0 to {_BYTES_MAX}")
    return int(value)


def parse_iec_bytes(text: str | int, field: str) -> int:
    """Bytes of an IEC size (``64GiB``). ``GB`` is refused: it means two things."""
    return _scaled(text, _IEC, field, IEC_EXPECTED)


def parse_kubernetes_bytes(text: str | int, field: str) -> int:
    """Bytes of a Kubernetes quantity (``512Mi`` binary, ``512M`` decimal, ``512m`` thousandths: rounded up)."""
    value = None if isinstance(text, bool) or not isinstance(text, str | int) else parse_quantity(text)
    if value is None or value > _BYTES_MAX:
        raise UnitError(field, text, KUBERNETES_EXPECTED)
    return value


def parse_mysql_bytes(text: str | int, field: str) -> int:
    """Bytes as MySQL and MariaDB read them: K, M, G, T, P, E of either case, powers of 1024, no fraction."""
    return _whole(text, _MYSQL, field, "a size such as 64G, 512M or a whole number of bytes")


def parse_jvm_bytes(text: str | int, field: str) -> int:
    """Bytes as the JVM reads them: k, m, g, t of either case, powers of 1024, no fraction."""
    return _whole(text, _JVM, field, "a size such as 8g, 512m or a whole number of bytes")


def _whole(text: str | int, units: Mapping[str, int], field: str, expected: str) -> int:
    if isinstance(text, str) and "." in text:
        raise UnitError(field, text, expected)
    return _scaled(text, units, field, expected, fold=True)


def parse_oracle_bytes(text: str | int, field: str) -> int:
    """Bytes as an Oracle parameter file reads them: K, M, G, T of either case, powers of 1024."""
    return _scaled(text, _ORACLE, field, "a size such as 8G, 512M or a whole number of bytes", fold=True)


#: PostgreSQL takes no other spelling of a unit: 8G is refused, 8GB is a size.
_POSTGRESQL_MEANT = {"k": "kB", "m": "MB", "g": "GB", "t": "TB"}
#: What strtol() of base 0 reads as another base; a point or an exponent behind it makes the number decimal again.
_C_BASES: Final = re.compile(r"([+-]?)0(?:[xX]([0-9a-fA-F]+)|([0-7]+))(?![.eE0-9])")


def decimal_as_c_reads_it(text: str) -> str:
    """The number at the start of a text in base 10: ``0x200`` and ``01000`` are 512 (parse_int, guc.c)."""
    found = _C_BASES.match(text)
    if found is None or len(text) > _LENGTH_MAX:
        return text
    sign, hexadecimal, octal = found.groups()
    return f"{sign}{int(hexadecimal, 16) if hexadecimal else int(octal, 8)}{text[found.end() :]}"


def parse_postgresql_bytes(text: str | int, unit_bytes: int, field: str) -> int:
    """Bytes of a PostgreSQL memory setting whose own unit is ``unit_bytes`` (1, 1024, 8192 or 1 MiB).

    A bare number counts that unit (``shared_buffers = 16384`` is 16384 blocks of 8 kB). With a unit, case
    counts (``kB``, ``MB``; ``KB`` is refused). A fraction is rounded to the next smaller unit (``0.2TB``: 205 GB), then
    to the setting's, half to even and in floating point, as the server does it (convert_to_base_unit and parse_int,
    src/backend/utils/misc/guc.c). ``-1`` is not a size; callers handle it.
    """
    expected = "a size such as 8GB, 512MB, 64kB or a whole number of the setting's own unit"
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise UnitError(field, text, expected)
    raw = decimal_as_c_reads_it(str(text).strip().strip("'"))
    number, unit = _split(raw, field, expected)
    factor = unit_bytes if unit == "" else _POSTGRESQL.get(unit)
    if factor is None:
        meant = _POSTGRESQL_MEANT.get(unit[:1].lower())
        raise UnitError(field, text, f"{expected}{f'; did you mean {raw[: -len(unit)]}{meant}?' if meant else ''}")
    if number.denominator == 1:
        value = round(number * factor / unit_bytes) * unit_bytes
    else:
        scaled = float(number) * (factor / unit_bytes)
        smaller = max((size for size in _POSTGRESQL.values() if size < factor), default=None) if unit else None
        if smaller is not None:
            scaled = round(scaled / (smaller / unit_bytes)) * (smaller / unit_bytes)
        value = round(scaled) * unit_bytes
    if not 0 <= value <= _BYTES_MAX:
        raise UnitError(field, text, f"{expected}, from 0 to {_BYTES_MAX} bytes")
    return value


def parse_page_size(text: str | int, field: str) -> int:
    """Bytes of a page size: ``2M``, ``2MiB``, ``2MB``, ``2048kB`` and ``2097152`` are the same page."""
    expected = "a page size such as 4K, 64K, 2M, 16M, 1G or 2097152"
    normalised = text.strip() if isinstance(text, str) else text
    if isinstance(normalised, str) and normalised.lower().endswith(("kib", "mib", "gib")):
        normalised = normalised[:-2]
    value = _scaled(normalised, _KERNEL, field, expected, fold=True)
    if value == 0 or value & (value - 1):
        raise UnitError(field, text, f"{expected}, a power of two")
    return value


def parse_whole_number(text: str | int, low: int, high: int, field: str) -> int:
    """A whole number from ``low`` to ``high``."""
    expected = f"a whole number from {low} to {high}"
    try:
        value = int(str(text).strip())
    except ValueError as error:
        raise UnitError(field, text, expected) from error
    if isinstance(text, bool) or not low <= value <= high:
        raise UnitError(field, text, expected)
    return value


def parse_fraction(text: str | float, field: str) -> float:
    """A share from 0 to 1: ``1%``, ``0.01`` and 0.01 are the same."""
    expected = "a share such as 1% or 0.01, from 0 to 1"
    raw = str(text).strip()
    try:
        value = float(raw[:-1]) / 100 if raw.endswith("%") else float(raw)
    except ValueError as error:
        raise UnitError(field, text, expected) from error
    if isinstance(text, bool) or not 0 <= value <= 1:
        mistyped = not isinstance(text, bool) and 1 < value <= 100
        hint = f"; {raw} means {100 * value:g} %; did you mean {value / 100:g}?" if mistyped else ""
        raise UnitError(field, text, f"{expected}{hint}")
    return value


# --- printing -----------------------------------------------------------------------------------

#: The sign of negative numbers in sentences: findings, statements and the dashboard write one form.
MINUS: Final = "\u2212"


def format_chance(probability: float) -> str:
    """A probability in per cent with two digits: ``1 %``, ``0.25 %``, ``88 %``. Only 0 and 1 print as 0 and 100 %."""
    percent = 100.0 * probability
    if 99.5 <= percent < 100.0:
        return "more than 99 %"
    if 0.0 < percent < 0.01:
        return "less than 0.01 %"
    return f"{_rounded(percent, '1')} %" if percent >= 10.0 else f"{percent:.2g} %"


def format_change(fraction: float, unit: str = " %") -> str:
    """A change with its sign and one decimal: 0.312 -> ``+31.2 %``; what rounds to nothing has no sign (``0.0 %``)."""
    percent = _rounded(100.0 * fraction, "0.1")
    return f"{with_minus(f'{percent:+z}')}{unit}" if percent else f"0.0{unit}"


def with_minus(number: str) -> str:
    """A number for a sentence with the minus sign that the dashboard writes beside it, not a hyphen."""
    return number.replace("-", MINUS, 1)


def format_share(fraction: float) -> str:
    """A share of a whole: 0.4213 -> ``42.1 %``, 1 -> ``100 %``; what is not zero does not print as zero."""
    if 0.0 < fraction < 0.001:
        return "<0.1 %"
    return f"{float(_rounded(100.0 * fraction, '0.1')):g} %"


def _rounded(value: float, step: str) -> Decimal:
    """To a step as the dashboard rounds: the number as it is written, halves away from zero."""
    return Decimal(repr(value)).quantize(Decimal(step), ROUND_HALF_UP)


_STEPS: Final = (("PiB", 2**50), ("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


#: 64 bits of pages of 16 GiB: a number beyond is a slip of somebody's keyboard, and may be too long to divide.
_NO_MEMORY_BYTES: Final = 2**98


@remembered(8192)
def format_bytes(count: int) -> str:
    """Bytes with three significant digits in an IEC unit: ``1.50 GiB``, ``97.7 MiB``; exact below 1 KiB.

    What rounds to a whole number prints without decimals (``64 GiB``); negative values keep their sign.
    """
    sign, size = (MINUS if count < 0 else ""), abs(count)
    if size >= _NO_MEMORY_BYTES:
        return f"{sign}over {format_bytes(_NO_MEMORY_BYTES - 1)}"
    for index, (unit, factor) in enumerate(_STEPS):
        if size >= factor:
            value = size / factor
            if value >= 999.5 and index > 0:  # 1023.7 MiB reads as 1 GiB, not 1.02e3 MiB
                unit, factor = _STEPS[index - 1]  # noqa: PLW2901 - the next unit up takes over
                value = size / factor
            return f"{sign}{_three_digits(value)} {unit}"
    return f"{sign}{size} B"


def exact_bytes(count: int) -> str:
    """Bytes without rounding: whole or quarter units of the largest that serves (``60.5 GiB``, ``61,888 MiB``)."""
    for unit, factor in _STEPS:
        if count >= factor and 4 * count % factor == 0:
            return f"{f'{count / factor:,.2f}'.rstrip('0').rstrip('.')} {unit}"
    return f"{count:,} B"


def _three_digits(value: float) -> str:
    text = f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
    return text.removesuffix(".00").removesuffix(".0")


def format_in_units(count: int, units: tuple[tuple[str, int], ...]) -> str:
    """``count`` exactly, in the largest of ``units`` (largest first) that divides it; else in the last one."""
    for unit, factor in units:
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}{units[-1][0]}" if units[-1][1] == 1 else str(count)


def format_postgresql_bytes(count: int) -> str:
    """A size as postgresql.conf takes it, exactly: ``8GB``, ``8191MB``, ``24kB``."""
    return format_in_units(count, (("TB", 2**40), ("GB", 2**30), ("MB", 2**20), ("kB", 2**10), ("B", 1)))


def format_mysql_bytes(count: int) -> str:
    """A size as my.cnf takes it, exactly: ``64G``, ``1000M``."""
    return format_in_units(count, (("T", 2**40), ("G", 2**30), ("M", 2**20), ("K", 2**10), ("", 1)))


def format_iec_bytes(count: int) -> str:
    """A size that :func:`parse_iec_bytes` reads back exactly: ``64GiB``, ``1000MiB``."""
    return format_in_units(count, (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)))


def format_kubernetes_bytes(count: int) -> str:
    """The most compact binary quantity, as Kubernetes prints it: ``2Mi``, ``1Gi``, ``512Mi``."""
    return format_in_units(count, (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10), ("", 1)))
