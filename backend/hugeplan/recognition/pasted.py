"""What a database administrator pastes: a server's own list of its settings, recognised by its form.

PostgreSQL's ``SHOW ALL`` and ``pg_settings``, MySQL's and MariaDB's ``SHOW [GLOBAL] VARIABLES``, Oracle's ``show
parameter``, each as the usual clients print them: aligned or boxed columns, tabs, commas, or one column per line. A
configuration file is taken too. Values keep their units; a number of ``pg_settings`` gets the unit of its row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hugeplan.formats import postgresql_conf
from hugeplan.planner.demand import engine_named
from hugeplan.planner.demand.base import DemandContext, Engine, SettingKind, SettingSpec
from hugeplan.planner.errors import PlannerError, UnknownSettingError
from hugeplan.planner.model import MIB, DatabaseInstance
from hugeplan.recognition.config_files import my_cnf

MOST_CHARACTERS: Final = 500_000
# Of lines without blanks around them: a blank that two parts could take is tried at each of its places.
_BOX: Final = re.compile(r"^[-=+| ]{3,}$")
_FOOTER: Final = re.compile(r"^\(?\d+ (?:rows?|Zeilen?|lignes?)\b", re.IGNORECASE)
_RECORD: Final = re.compile(r"^(?:-\[ RECORD \d+ \]|\*+ \d+\. row \*+)")
_PROMPT: Final = re.compile(r"^(?:[\w\[\]() -]*(?:=[#>]|>)\s*)?(?:SHOW|SELECT)\b", re.IGNORECASE)
_NAME: Final = re.compile(r"^[A-Za-z_][\w.$@-]*$")
_NUMBER: Final = re.compile(r"^-?\d{1,20}(?:\.\d+)?$")
_UNIT: Final = re.compile(r"^(\d{0,9})\s*(B|kB|MB|GB|TB)$")
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_ORACLE_HEAD: Final = re.compile(r"^NAME\s+TYPE\s+VALUE\s*$", re.MULTILINE)
_OPTION_SECTION: Final = re.compile(r"^[ \t]*\[(?:mysqld|mariadb|server)", re.MULTILINE)
_POSTGRESQL_MARKS: Final = frozenset({"shared_buffers", "server_version", "wal_level", "max_wal_senders"})
_INNODB_MARKS: Final = frozenset({"innodb_buffer_pool_size", "version_comment", "innodb_page_size"})
_SAME: Final = {"on": ("1", "true", "yes"), "off": ("0", "false", "no")}
_LISTS_ITS_SETTINGS: Final = frozenset({"postgresql", "mysql", "mariadb"})
#: What a server prints beside settings: facts about itself, PostgreSQL's preset options among them.
_FACTS: Final = frozenset(
    [
        "version",
        "version_comment",
        "hostname",
        "server_uuid",
        "block_size",
        "data_checksums",
        "data_directory_mode",
        "debug_assertions",
        "huge_pages_status",
        "in_hot_standby",
        "integer_datetimes",
        "lc_collate",
        "lc_ctype",
        "max_function_args",
        "max_identifier_length",
        "max_index_keys",
        "num_os_semaphores",
        "segment_size",
        "server_encoding",
        "server_version",
        "server_version_num",
        "shared_memory_size",
        "shared_memory_size_in_huge_pages",
        "ssl_library",
        "wal_block_size",
        "wal_segment_size",
    ]
)
_NAME_COLUMNS: Final = ("name", "variable_name", "variable name")
_VALUE_COLUMNS: Final = ("setting", "value", "current_setting", "variable_value")


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting that was named and is not taken, with the reason."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """What a text says of one server.

    ``source`` is what the text was recognised as. ``settings`` change what the planner computes and differ from the
    default; ``at_default`` and ``without_effect`` are counts of those that do not. ``unknown`` are not settings of the
    engine, ``refused`` have a value that it would not take.
    """

    source: str
    engine: str
    version: str | None
    settings: Mapping[str, str]
    at_default: int
    without_effect: int
    unknown: tuple[str, ...]
    refused: tuple[Refused, ...]


def read_pasted(text: str) -> Pasted | None:
    """What the text says; None where it is none of the forms."""
    rows = dict(_rows(text))
    if _ORACLE_HEAD.search(text):
        return _sorted_out("Oracle show parameter", "oracle", None, _oracle_rows(text))
    if _POSTGRESQL_MARKS & rows.keys():
        form = "PostgreSQL SHOW ALL" if "unit" not in _header(text) else "PostgreSQL pg_settings"
        return _sorted_out(form, "postgresql", rows.get("server_version"), rows)
    if _INNODB_MARKS & rows.keys():
        version = rows.get("version")
        marks = f"{version} {rows.get('version_comment', '')}".lower()
        engine = "mariadb" if "mariadb" in marks or "aria_pagecache_buffer_size" in rows else "mysql"
        title = "MariaDB" if engine == "mariadb" else "MySQL"
        return _sorted_out(f"{title} SHOW VARIABLES", engine, version, rows)
    if _OPTION_SECTION.search(text):
        return _sorted_out("MySQL or MariaDB option file", "mysql", None, my_cnf(text)[0])
    found = postgresql_conf.values_of(text)[0]
    if {"shared_buffers", "max_connections", "huge_pages"} & found.keys() and "=" in text:
        return _sorted_out("postgresql.conf", "postgresql", None, found)
    return None


# --- rows of any client ---------------------------------------------------------------------------


def _cells(line: str) -> list[str]:
    """A line's columns: by tab, by box, by psql's bar, or as a row of CSV."""
    if "\t" in line:
        return [cell.strip() for cell in line.split("\t")]
    if "|" in line:
        return [cell.strip() for cell in line.strip().strip("|").split("|")]
    if "," in line:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    return [line.strip()]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not _BOX.match(line.strip()) and not _FOOTER.match(line.lstrip()):
            yield line


def _header(text: str) -> list[str]:
    """The names of the columns, in small letters; none where the first line is a row or each column has a line."""
    if any(_RECORD.match(line) for line in text.splitlines()):
        return [_cells(line)[0].rstrip(":").lower() for line in text.splitlines()[1:12] if "|" in line or ":" in line]
    for line in _lines(text):
        cells = [cell.lower() for cell in _cells(line)]
        if cells[0] in _NAME_COLUMNS:
            return cells
        if not _PROMPT.match(line.lstrip()):
            return []
    return []


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each row, the value with its unit where the row has one."""
    if any(_RECORD.match(line) for line in text.splitlines()):
        yield from _records(text)
        return
    header = _header(text)
    at_value = next((header.index(name) for name in _VALUE_COLUMNS if name in header), 1)
    at_unit = header.index("unit") if "unit" in header else None
    for line in _lines(text):
        cells = _cells(line)
        if len(cells) <= at_value or not _NAME.match(cells[0]) or cells[0].lower() in _NAME_COLUMNS:
            continue
        unit = cells[at_unit] if at_unit is not None and at_unit < len(cells) else ""
        yield cells[0].lower(), _with_unit(cells[at_value], unit)


def _records(text: str) -> Iterator[tuple[str, str]]:
    """psql's expanded form and MySQL's ``\\G``: one column per line."""
    found: dict[str, str] = {}
    for line in [*text.splitlines(), "-[ RECORD 0 ]"]:
        if _RECORD.match(line):
            name = next((found[column] for column in _NAME_COLUMNS if column in found), None)
            value = next((found[column] for column in _VALUE_COLUMNS if column in found), None)
            if name and value is not None:
                yield name.lower(), _with_unit(value, found.get("unit", ""))
            found = {}
            continue
        key, separator, value = line.partition("|" if "|" in line else ":")
        if separator:
            found[key.strip().lower()] = value.strip()


def _with_unit(value: str, unit: str) -> str:
    """``1048576`` of ``8kB`` is ``8GB``; units of time are left to the engine, whose default they are."""
    found = _UNIT.match(unit)
    if found is None or not _NUMBER.match(value) or value.startswith("-") or "." in value:
        return value
    number, unit = int(value) * int(found[1] or 1), found[2]
    for smaller, larger in pairwise(_UNITS):
        if unit == smaller and number and number % 1024 == 0:
            number, unit = number // 1024, larger
    return f"{number}{unit}"


def _oracle_rows(text: str) -> dict[str, str]:
    """SQL*Plus: the dashes under the head say where the columns begin; a long value goes on in the next line."""
    rows: dict[str, str] = {}
    starts: Sequence[int] = ()
    last = ""
    for line in text.splitlines():
        if re.match(r"^-{3,}\s+-{3,}\s+-{3,}\s*$", line):
            starts = [match.start() for match in re.finditer(r"-+", line)]
            continue
        if not starts or not line.strip() or _ORACLE_HEAD.match(line):
            continue
        name, value = line[: starts[1]].strip(), line[starts[2] :].strip()
        if name and _NAME.match(name):
            last = name.lower()
            rows[last] = value
        elif last and not name:
            rows[last] += value
    return rows


# --- what the engine makes of it ------------------------------------------------------------------


def _sorted_out(source: str, engine_name: str, version: str | None, rows: Mapping[str, str]) -> Pasted:
    engine = engine_named(engine_name)
    found = _version(engine, version)
    names = {spec.name: spec for spec in engine.settings}
    settings: dict[str, str] = {}
    unknown: list[str] = []
    refused: list[Refused] = []
    at_default, without_effect = 0, 0
    for name, value in rows.items():
        # A list of a server has settings without a value, and extensions' own, which no rule is about.
        if value in ("", "NULL") or "." in name:
            without_effect += 1
            continue
        spec = names.get(name)
        problem = _problem(engine, found, name, value)
        if isinstance(problem, UnknownSettingError):
            # Oracle's own list is not known here: a parameter without a rule is no mistake.
            if engine.name in _LISTS_ITS_SETTINGS and name not in _FACTS:
                unknown.append(name)
            else:
                without_effect += 1
        elif problem is not None:
            if spec is not None:
                refused.append(Refused(name, value, f"expected {problem.expected}"))
        elif spec is None or not spec.matters:
            without_effect += 1
        elif name != engine.pool_setting and _is_default(engine, found, spec, value):
            at_default += 1
        else:
            settings[name] = value
    return Pasted(
        source, engine.name, found, settings, at_default, without_effect, tuple(sorted(unknown)), tuple(refused)
    )


def _version(engine: Engine, text: str | None) -> str | None:
    """The engine's name of a version: ``17`` of ``17.2 (Debian 17.2-1)``; None where the text is of no known one."""
    number = re.match(r"\d+(?:\.\d+)*", text or "")
    if number is None:
        return None
    return next((v for v in engine.versions if number[0] == v or number[0].startswith(f"{v}.")), None)


def _problem(engine: Engine, version: str | None, name: str, value: str) -> PlannerError | None:
    """Why the engine's rule does not take a setting. That others are missing beside it is no fault of this one."""
    try:
        engine.demand(_instance(engine, version, name, value), 2 * MIB, DemandContext())
    except PlannerError as error:
        return error if error.field == f"settings.{name}" else None
    return None


def _is_default(engine: Engine, version: str | None, spec: SettingSpec, value: str) -> bool:
    """Whether a value asks for what the default asks for."""
    if spec.default is None:
        return False
    if spec.kind in (SettingKind.BOOLEAN, SettingKind.ENUM):
        default = spec.default.lower()
        return value.lower() in (default, *_SAME.get(default, ()))
    try:
        asked, usual = (
            engine.demand(_instance(engine, version, spec.name, text), 2 * MIB, DemandContext())
            for text in (value, spec.default)
        )
    except PlannerError:  # the rule needs other settings beside this one
        return False
    return asked == usual


def _instance(engine: Engine, version: str | None, name: str, value: str) -> DatabaseInstance:
    return DatabaseInstance(name="pasted", engine=engine.name, version=version, settings={name: value})
