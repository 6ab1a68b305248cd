"""Reading the settings of an engine that is described by a table of :class:`SettingSpec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.engines.base import SettingKind, SettingSpec, closest_hint, parse_boolean, parse_enum
from hugeplan.planner.errors import SettingValueError, UnknownSettingError
from hugeplan.planner.units import parse_whole_number

Value = int | float | bool | str
_UNBOUNDED: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes its settings: its name, its size reader and printer, and how it spells names.

    ``without_a_rule``: settings that the engine has and that change nothing here; their values are not read.
    """

    engine: str
    parse_bytes: Callable[[str | int, str], int]
    format_bytes: Callable[[int], str]
    canonical_name: Callable[[str], str] = str.strip
    without_a_rule: frozenset[str] = frozenset()


def read_settings(specs: tuple[SettingSpec, ...], settings: Mapping[str, str], dialect: Dialect) -> dict[str, Value]:
    """The given settings by canonical name, each in its kind: bytes, count, boolean or text.

    Errors: UnknownSettingError for a name that is not in the table, SettingValueError or UnitError for a value.
    """
    table = {spec.name: spec for spec in specs}
    values: dict[str, Value] = {}
    for given_name, text in settings.items():
        name = dialect.canonical_name(given_name)
        spec = table.get(name)
        if spec is None and name in dialect.without_a_rule:
            continue
        if spec is None:
            raise UnknownSettingError(
                f"settings.{given_name}", given_name, f"a setting of {dialect.engine}{closest_hint(name, table)}"
            )
        values[name] = read_value(spec, text, dialect)
    return values


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
