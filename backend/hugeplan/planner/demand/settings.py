"""Reading the settings of an engine that is described by a table of :class:`SettingSpec`.

The data files beside the engines list what the servers have of settings of their own. They are part of the package, as
the modules are, and never change while it runs; the planner reads no other file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pkgutil import get_data
from types import MappingProxyType
from typing import Final

from hugeplan.planner.demand.base import SettingKind, SettingSpec, closest_hint, parse_boolean, parse_enum
from hugeplan.planner.errors import SettingValueError, UnknownSettingError
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import decimal_as_c_reads_it, format_iec_bytes, parse_iec_bytes, parse_whole_number

Value = int | float | bool | str
_UNBOUNDED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes its settings: its name, its size reader and printer, and how it spells names.

    ``without_a_rule``: settings that the engine has and that change nothing here; their values are not read.
    It is a function, because the names are read from a file when a setting without a rule is first met.
    """

    engine: str
    parse_bytes: Callable[[str | int, str], int] = parse_iec_bytes
    format_bytes: Callable[[int], str] = format_iec_bytes
    canonical_name: Callable[[str], str] = str.strip
    without_a_rule: Callable[[], frozenset[str]] = frozenset


class SettingTable:
    """An engine's settings and its dialect: reads what is given, remembering it, because a plan asks often."""

    def __init__(self, specs: tuple[SettingSpec, ...], dialect: Dialect) -> None:
        self.specs = specs
        self._dialect = dialect
        self._by_name = {spec.name: spec for spec in specs}
        self._read = remembered(1024)(self._read_items)

    def read(self, settings: Mapping[str, str]) -> Mapping[str, Value]:
        """The given settings by canonical name, each in its kind: bytes, count, boolean or text.

        Errors: UnknownSettingError for a name that is not in the table, SettingValueError or UnitError for a value.
        """
        return self._read(tuple(settings.items()))

    def _read_items(self, settings: tuple[tuple[str, str], ...]) -> Mapping[str, Value]:
        values: dict[str, Value] = {}
        for given_name, text in settings:
            name = self._dialect.canonical_name(given_name)
            spec = self._by_name.get(name)
            if spec is not None:
                values[name] = read_value(spec, text, self._dialect)
            elif name not in self._dialect.without_a_rule():
                hint = closest_hint(name, self._by_name)
                raise UnknownSettingError(
                    f"settings.{given_name}", given_name, f"a setting of {self._dialect.engine}{hint}"
                )
        return MappingProxyType(values)


#: Rows of an engine's table by kind: name, summary and default, then bounds. A size has its bounds in bytes.
size = partial(SettingSpec, kind=SettingKind.BYTES, minimum=0)
count = partial(SettingSpec, kind=SettingKind.INTEGER)
real = partial(SettingSpec, kind=SettingKind.REAL)
switch = partial(SettingSpec, kind=SettingKind.BOOLEAN)
text = partial(SettingSpec, kind=SettingKind.TEXT)
choice = partial(SettingSpec, kind=SettingKind.ENUM)


def read_value(spec: SettingSpec, text: str, dialect: Dialect) -> Value:
    """One setting's value within its range."""
    field = f"settings.{spec.name}"
    if spec.kind is SettingKind.BOOLEAN:
        return parse_boolean(text, field)
    if spec.kind is SettingKind.ENUM:
        return parse_enum(text, spec.choices, field)
    if spec.kind is SettingKind.TEXT:
        return str(text).strip()
    low = spec.minimum if spec.minimum is not None else 0
    high = spec.maximum if spec.maximum is not None else _UNBOUNDED
    if spec.kind is SettingKind.INTEGER:
        return parse_whole_number(text, low, high, field)
    if spec.kind is SettingKind.REAL:
        number = float(text) if re.fullmatch(r"\d{1,9}(\.\d{0,9})?(e[+-]?\d{1,2})?", text.strip().lower()) else -1.0
        if not low <= number <= high:
            raise SettingValueError(field, text, f"a number from {low} to {high}")
        return number
    value = dialect.parse_bytes(text, field)
    if not low <= value <= high:
        limit = f"{dialect.format_bytes(low)} or more" if high == _UNBOUNDED else None
        raise SettingValueError(field, text, limit or f"{dialect.format_bytes(low)} to {dialect.format_bytes(high)}")
    return value


def integer(values: Mapping[str, Value], name: str, default: int) -> int:
    """A count or a size that was given, else its default."""
    value = values.get(name, default)
    return int(value)


def underscored(name: str) -> str:
    """MySQL's and MariaDB's names: options may be written with dashes."""
    return name.strip().lower().replace("-", "_")


def bare(value: str) -> str:
    """A value without its quotes."""
    return value.strip().strip("'\"").strip()


_SAME: Final = dict.fromkeys(("true", "t", "yes", "1"), "on") | dict.fromkeys(("false", "f", "no", "0"), "off")


def plain(value: str, unit_bytes: int = 1) -> str:
    """A value in one spelling: a switch is on or off, a size in bytes; a number alone counts ``unit_bytes``."""
    text = bare(value).lower()
    text = decimal_as_c_reads_it(text) if text.startswith("0x") else text
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?) ?([bkmgtp]?)b?", text)
    if text in _SAME or found is None:
        return _SAME.get(text, text)
    size = int(Decimal(found[1]) * (1024 ** "bkmgtp".index(found[2]) if found[2] else unit_bytes))
    return str(size or "off")


def optional(values: Mapping[str, Value], name: str) -> int | None:
    """A count or a size that was given; None where it was not."""
    value = values.get(name)
    return None if value is None else int(value)


def lowered(name: str) -> str:
    """Names that count in either case, as Oracle's and Db2's."""
    return name.strip().lower()


def data_file(name: str) -> str:
    """The text of a file of ``planner/demand/engines``. Error: FileNotFoundError."""
    content = get_data("hugeplan.planner.demand.engines", name)
    if content is None:
        raise FileNotFoundError(name)
    return content.decode("utf-8")


@remembered(8)
def option_names(name: str) -> frozenset[str]:
    """The names in a file with one option per line; a line that starts with # is a comment."""
    return frozenset(line for line in data_file(name).splitlines() if not line.startswith("#"))
