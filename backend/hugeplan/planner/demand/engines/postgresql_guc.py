"""Reading PostgreSQL settings as the server reads them: names, units, ranges and defaults per version."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hugeplan.planner.demand.base import SettingKind, SettingSpec, closest_hint, parse_boolean, parse_enum
from hugeplan.planner.demand.settings import data_file
from hugeplan.planner.errors import SettingValueError, UnknownSettingError
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import (
    decimal_as_c_reads_it,
    format_bytes,
    format_postgresql_bytes,
    parse_postgresql_bytes,
    parse_whole_number,
)

#: Bytes of the units in which memory settings count.
UNIT_BYTES: Final[Mapping[str, int]] = {"B": 1, "kB": 1024, "8kB": 8192, "MB": 1024**2}

_TIME_UNITS_MS: Final[Mapping[str, float]] = {
    "us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip

_KINDS: Final = {
    "bool": SettingKind.BOOLEAN, "integer": SettingKind.INTEGER, "real": SettingKind.REAL,
    "enum": SettingKind.ENUM, "string": SettingKind.TEXT,
}  # fmt: skip

#: Choices that only builds with a library list: liburing, LZ4, Zstandard. The listed servers were built without them.
BUILD_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "io_method": ("io_uring",),
    "wal_compression": ("lz4", "zstd"),
    "default_toast_compression": ("lz4",),
}

#: Settings of 10 to 14 that 15 no longer has; none of them changes the segment by more than the older versions' error.
OLDER_SETTINGS: Final = frozenset(
    {
        "operator_precedence_warning",
        "replacement_sort_tuples",
        "stats_temp_directory",
        "vacuum_cleanup_index_scale_factor",
        "wal_keep_segments",
        "default_with_oids",
    }
)

#: Settings that change the segment, or what the planner says beside it, with what they do.
SUMMARIES: Final[Mapping[str, str]] = {
    "shared_buffers": "The buffer pool.",
    "max_connections": "Client connections; each reserves shared memory for its process.",
    "max_locks_per_transaction": "Size of the lock table, in locks per process.",
    "max_pred_locks_per_transaction": "Size of the predicate lock table, in locks per process.",
    "max_prepared_transactions": "Slots for two-phase transactions.",
    "max_worker_processes": "Background workers.",
    "autovacuum_max_workers": "Autovacuum workers; before 18 they reserve shared memory.",
    "autovacuum_worker_slots": "Slots for autovacuum workers, since 18.",
    "max_wal_senders": "Replication connections.",
    "max_replication_slots": "Replication slots.",
    "max_active_replication_origins": "Replication origins, since 18.",
    "max_logical_replication_workers": "Logical replication workers.",
    "wal_buffers": "WAL not yet written; -1 is 1/32 of shared_buffers, at most one WAL segment.",
    "wal_segment_size": "Size of a WAL file, chosen at initdb.",
    "track_activity_query_size": "Query text kept for each process.",
    "min_dynamic_shared_memory": "Memory for parallel queries inside the main segment.",
    "old_snapshot_threshold": "Snapshot age limit, before 17.",
    "hot_standby": "Whether a standby answers queries; reserves transaction ids.",
    "transaction_buffers": "Cache of transaction status, since 17; 0 follows shared_buffers.",
    "commit_timestamp_buffers": "Cache of commit timestamps, since 17; 0 follows shared_buffers.",
    "subtransaction_buffers": "Cache of subtransactions, since 17; 0 follows shared_buffers.",
    "multixact_offset_buffers": "Cache of multixact offsets, since 17.",
    "multixact_member_buffers": "Cache of multixact members, since 17.",
    "notify_buffers": "Cache of NOTIFY messages, since 17.",
    "serializable_buffers": "Cache of serializable transactions, since 17.",
    "io_max_concurrency": "I/O operations a process may have under way, since 18.",
    "io_max_combine_limit": "Largest combined I/O, since 18.",
    "io_method": "How asynchronous I/O is done, since 18.",
    "shared_preload_libraries": "Libraries that may reserve shared memory of their own.",
    "huge_pages": "Whether the segment uses huge pages.",
    "huge_page_size": "Which huge page size; 0 is the kernel's default.",
    "shared_memory_type": "How the segment is mapped; huge pages need mmap.",
    "work_mem": "Private memory of one sort or hash, on base pages.",
    "maintenance_work_mem": "Private memory of maintenance commands, on base pages.",
    "autovacuum_work_mem": "Private memory of an autovacuum worker, on base pages.",
    "effective_cache_size": "What the server expects of shared_buffers and the page cache together.",
}

#: Identifiers with dots between them (valid_custom_variable_name, guc.c); they go into files that root installs.
_OF_LIBRARY: Final = re.compile(r"[a-z_][a-z0-9_$]*(?:\.[a-z_][a-z0-9_$]*)+")

#: SLRU caches since 17: the server refuses what is not whole banks of 16 blocks (check_slru_buffers, slru.c).
_BANKED: Final = frozenset(
    {
        "transaction_buffers",
        "commit_timestamp_buffers",
        "subtransaction_buffers",
        "multixact_offset_buffers",
        "multixact_member_buffers",
        "notify_buffers",
        "serializable_buffers",
    }
)
_BANK_BLOCKS: Final = 16


class GucRow(NamedTuple):
    """One setting as a version of the server lists it; minimum, maximum and default count ``unit``."""

    name: str
    kind: SettingKind
    unit: str
    minimum: str
    maximum: str
    default: str
    choices: tuple[str, ...]
    first: int
    last: int


@remembered(1)
def _listed() -> Mapping[str, Sequence[Sequence[str]]]:
    """Every setting of 15 to 18 that a configuration file may hold, and ``wal_segment_size``, chosen at initdb.

    By lower-case name, with a row of columns per range of versions, the oldest first. The file is made by
    ``backend/tools/postgresql_oracle.py settings`` from pg_settings of 15.19, 16.15, 17.11 and 18.6, and has that
    view's columns, with the first and the last version that list the row as it is. A server of it asks for a few.
    """
    rows = csv.reader(data_file("postgresql_settings.csv").splitlines())
    next(rows)  # the names of the columns, which are those of GucRow in its order
    found: dict[str, list[Sequence[str]]] = {}
    for columns in rows:
        found.setdefault(columns[0].lower(), []).append(columns)
    return found


@remembered(1024)
def _rows_of(name: str) -> tuple[GucRow, ...]:
    """The rows of a setting by its lower-case name; none where no version has it."""
    return tuple(_row(columns) for columns in _listed().get(name, ()))


def _row(columns: Sequence[str]) -> GucRow:
    name, kind, unit, minimum, maximum, default, listed, first, last = columns
    choices = tuple(choice for choice in listed.split(",") if choice) + BUILD_CHOICES.get(name, ())
    return GucRow(name, _KINDS[kind], unit, minimum, maximum, default, choices, int(first), int(last))


def setting_of(name: str, major: int) -> GucRow | None:
    """A setting of a major version by its lower-case name; 10 to 14 are read with the list of 15."""
    listed = max(major, 15)
    return next((row for row in _rows_of(name) if row.first <= listed <= row.last), None)


def parse_guc(row: GucRow, text: str) -> int | float | bool | str:
    """The value of one setting: bytes for memory settings, else the count of its unit. -1 stays -1."""
    field = f"settings.{row.name}"
    raw = str(text).strip().strip("'").strip()
    if row.kind is SettingKind.BOOLEAN:
        return parse_boolean(raw, field)
    if row.kind is SettingKind.ENUM:
        return _parse_guc_enum(row, raw, field)
    if row.kind is SettingKind.TEXT:
        return raw
    if row.unit in UNIT_BYTES:
        return _parse_guc_bytes(row, raw, field)
    return _parse_guc_number(row, raw, field)


def _parse_guc_enum(row: GucRow, raw: str, field: str) -> str:
    # The server also takes spellings it does not list, such as yes for on; only on, off and try-like lists matter.
    spelled = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}.get(raw.lower(), raw)
    return parse_enum(spelled if spelled in row.choices else raw, row.choices, field)


def _parse_guc_bytes(row: GucRow, raw: str, field: str) -> int:
    unit_bytes = UNIT_BYTES[row.unit]
    low, high = int(row.minimum) * unit_bytes, int(row.maximum) * unit_bytes
    special = "-1 or " if low < 0 else ""
    # The largest value is often a block below a round one, which the server can only write as a long number of kB.
    about = f" (about {format_bytes(high)})" if high >= 1 << 40 else ""
    expected = f"{special}{format_postgresql_bytes(max(low, 0))} to {format_postgresql_bytes(high)}{about}"
    if raw == "-1" and low < 0:
        return -1
    if raw.startswith("-"):
        raise SettingValueError(field, raw, expected)
    value = parse_postgresql_bytes(raw, unit_bytes, field)
    if not max(low, 0) <= value <= high:
        raise SettingValueError(field, raw, expected)
    if row.name in _BANKED and value // unit_bytes % _BANK_BLOCKS:
        raise SettingValueError(field, raw, f"{expected}, a multiple of {_BANK_BLOCKS} blocks of 8kB")
    return value


def _parse_guc_number(row: GucRow, raw: str, field: str) -> int | float:
    expected = f"{row.minimum} to {row.maximum}{' ' + row.unit if row.unit else ''}"
    number, scale = raw if row.kind is SettingKind.REAL else decimal_as_c_reads_it(raw), 1.0
    if row.unit in _TIME_UNITS_MS:
        stripped = number.rstrip("abcdefghijklmnopqrstuvwxyz").rstrip()
        suffix = number[len(stripped) :].strip()
        if suffix:
            if suffix not in _TIME_UNITS_MS:
                raise SettingValueError(field, raw, f"{expected}; units us, ms, s, min, h, d")
            number, scale = stripped, _TIME_UNITS_MS[suffix] / _TIME_UNITS_MS[row.unit]
    try:
        value = float(number) * scale
        low, high = float(row.minimum), float(row.maximum)
    except ValueError as error:
        raise SettingValueError(field, raw, expected) from error
    if not low <= value <= high:
        raise SettingValueError(field, raw, expected)
    if row.kind is SettingKind.REAL:
        return value
    if row.name == "io_max_concurrency" and value == 0:
        raise SettingValueError(field, raw, "-1, or 1 to 1024")
    if scale == 1.0:
        return parse_whole_number(_as_integer_text(number), int(low), int(high), field)
    return round(value)


def _as_integer_text(number: str) -> str:
    """The server accepts 1e3 and 100.4 for integers and rounds half to even (parse_int, guc.c)."""
    return str(round(float(number)))


def parse_settings(settings: Mapping[str, str], major: int) -> dict[str, int | float | bool | str]:
    """All given settings by lower-case name. Unknown names are errors; ``extension.setting`` names pass as text."""
    values: dict[str, int | float | bool | str] = {}
    for name, text in settings.items():
        lower = name.strip().lower()
        row = setting_of(lower, major)
        if row is not None:
            values[lower] = parse_guc(row, text)
        elif _OF_LIBRARY.fullmatch(lower) or (major < 15 and lower in OLDER_SETTINGS):
            values[lower] = str(text)
        else:
            raise UnknownSettingError(
                f"settings.{name}",
                name,
                f"a setting of PostgreSQL {major}{_elsewhere(lower, major)}"
                f"{closest_hint(lower, [known for known in _listed() if setting_of(known, major)])}",
            )
    return values


def _elsewhere(name: str, major: int) -> str:
    """Which versions do have the setting, when some do."""
    ranges = [(row.first, row.last) for row in _rows_of(name)]
    if not ranges:
        return ""
    first, last = min(r[0] for r in ranges), max(r[1] for r in ranges)
    return f" ({name} exists in {first} to {last})" if major >= 15 else f" ({name} exists since {first})"


def setting_specs() -> tuple[SettingSpec, ...]:
    """The settings that matter, for the interface, in the order of :data:`SUMMARIES`."""
    return tuple(_spec(_rows_of(name.lower())[-1], summary) for name, summary in SUMMARIES.items())


def _spec(row: GucRow, summary: str) -> SettingSpec:
    unit_bytes = UNIT_BYTES.get(row.unit)
    is_number = row.kind is SettingKind.INTEGER
    factor = unit_bytes or 1
    default = row.default
    if unit_bytes and default not in {"", "-1", "0"}:
        default = format_postgresql_bytes(int(default) * unit_bytes)
    return SettingSpec(
        name=row.name,
        kind=SettingKind.BYTES if unit_bytes else row.kind,
        summary=summary,
        default=default or None,
        minimum=int(row.minimum) * factor if is_number else None,
        maximum=int(row.maximum) * factor if is_number else None,
        unit_bytes=factor,
        choices=row.choices,
        versions=tuple(str(v) for v in range(row.first, row.last + 1)),
    )
