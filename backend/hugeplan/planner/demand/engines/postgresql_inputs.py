"""PostgreSQL: an instance's version and settings as the arithmetic of its shared memory segment takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hugeplan.planner.demand.engines import postgresql_shmem as shmem
from hugeplan.planner.demand.engines.postgresql_guc import parse_settings
from hugeplan.planner.errors import SettingValueError, UnknownVersionError
from hugeplan.planner.model import KIB
from hugeplan.planner.remembered import remembered

VERSIONS: Final = ("18", "17", "16", "15", "14", "13", "12", "11", "10")
DEFAULT_VERSION: Final = "18"
_MAX_BACKENDS: Final = 262_143
EXACT_SINCE: Final = 15
_NEWEST: Final = 18
#: Libraries whose shared memory is known; bytes for the defaults of their own settings.
_LIBRARIES_WITHOUT_SHARED_MEMORY: Final = frozenset(
    {"auto_explain", "passwordcheck", "auth_delay", "pgaudit", "sepgsql"}
)
#: What an agent says of those that it was told to load and that its process maps: no setting.
LOADED: Final = "loaded_libraries"
#: "no" where an agent knows that it runs with what its files say: no setting either.
CHANGED: Final = "changed_since_start"
Values = Mapping[str, int | float | bool | str]


def require_possible_processes(processes: int, settings: shmem.ShmemSettings) -> None:
    """The server refuses more than MAX_BACKENDS processes of all kinds (InitializeMaxBackends, postinit.c)."""
    if processes > _MAX_BACKENDS:
        raise SettingValueError(
            "settings.max_connections",
            settings.max_connections,
            f"with workers and WAL senders at most {_MAX_BACKENDS} processes; these settings make {processes}",
        )


@remembered(4096)
def read_settings(
    major: int, settings: tuple[tuple[str, str], ...]
) -> tuple[Values, tuple[str, ...], shmem.ShmemSettings]:
    """The settings as values, the preloaded libraries, and what changes the segment. Cached: a plan asks often.

    ``settings``: sorted, so that the order in which they are written makes no difference.
    """
    values = MappingProxyType(parse_settings(dict(settings), major))
    libraries = _preloaded(values)
    return values, libraries, shmem_settings(values, libraries, major)


def parse_version(version: str | None) -> tuple[int, int | None]:
    """Major and minor of ``18``, ``17.5`` or ``15.18``; the minor is None where it is not given."""
    text = (version or DEFAULT_VERSION).strip()
    match = re.match(r"(\d{1,9})(?:\.(\d{1,9}))?\Z", text)
    if match is None or not int(VERSIONS[-1]) <= int(match[1]) <= _NEWEST:
        raise UnknownVersionError(
            "version", version, f"a PostgreSQL version from {VERSIONS[-1]} to {VERSIONS[0]}, such as 17 or 17.5"
        )
    return int(match[1]), int(match[2]) if match[2] else None


def layout_of(major: int) -> int:
    """The layout a major is computed with: its own since 15, that of 15 before."""
    return max(major, EXACT_SINCE)


def checkpoint_queue_is_capped(major: int, minor: int | None) -> bool:
    """Whether this minor caps the checkpointer's queue; a minor that is not given counts as the current one."""
    since = shmem.CHECKPOINT_CAP_SINCE_MINOR.get(major)
    return since is not None and (minor is None or minor >= since)


_DEFAULTS: Final = shmem.ShmemSettings()


def _count(values: Values, name: str, field: str | None = None) -> int:
    """A count or bytes that was given, else the server's default; ``field``: its name there."""
    return int(values.get(name, getattr(_DEFAULTS, field or name)))


def _blocks(values: Values, name: str) -> int:
    value = values.get(name)
    return int(getattr(_DEFAULTS, name)) if value is None else int(value) // shmem.BLOCK_BYTES


def _automatic_blocks(values: Values, name: str) -> int | None:
    """Blocks of a cache that follows shared_buffers when it is 0 or not set: None then."""
    value = values.get(name)
    return None if value is None or int(value) <= 0 else int(value) // shmem.BLOCK_BYTES


def shmem_settings(values: Values, libraries: tuple[str, ...], major: int) -> shmem.ShmemSettings:
    """The given settings over the server's defaults."""
    _check_reserved_connections(values)
    io_max_concurrency = values.get("io_max_concurrency")
    wal_buffers = values.get("wal_buffers", -1)
    return shmem.ShmemSettings(
        shared_buffers=_blocks(values, "shared_buffers"),
        max_connections=_count(values, "max_connections"),
        max_locks_per_transaction=_count(values, "max_locks_per_transaction"),
        max_pred_locks_per_transaction=_count(values, "max_pred_locks_per_transaction"),
        max_prepared_transactions=_count(values, "max_prepared_transactions"),
        max_worker_processes=_count(values, "max_worker_processes"),
        autovacuum_max_workers=_count(values, "autovacuum_max_workers"),
        autovacuum_worker_slots=_count(values, "autovacuum_worker_slots"),
        max_wal_senders=_count(values, "max_wal_senders"),
        max_replication_slots=_count(values, "max_replication_slots"),
        max_active_replication_origins=_count(values, "max_active_replication_origins"),
        max_logical_replication_workers=_count(values, "max_logical_replication_workers"),
        # The server raises anything below 4 blocks to 4 (check_wal_buffers, xlog.c).
        wal_buffers=None if int(wal_buffers) < 0 else max(int(wal_buffers) // shmem.BLOCK_BYTES, 4),
        wal_segment_bytes=_count(values, "wal_segment_size", "wal_segment_bytes"),
        track_activity_query_bytes=_count(values, "track_activity_query_size", "track_activity_query_bytes"),
        min_dynamic_shared_memory_bytes=_count(values, "min_dynamic_shared_memory", "min_dynamic_shared_memory_bytes"),
        old_snapshot_threshold_minutes=_count(values, "old_snapshot_threshold", "old_snapshot_threshold_minutes"),
        hot_standby=bool(values.get("hot_standby", _DEFAULTS.hot_standby)),
        transaction_buffers=_automatic_blocks(values, "transaction_buffers"),
        commit_timestamp_buffers=_automatic_blocks(values, "commit_timestamp_buffers"),
        subtransaction_buffers=_automatic_blocks(values, "subtransaction_buffers"),
        multixact_offset_buffers=_blocks(values, "multixact_offset_buffers"),
        multixact_member_buffers=_blocks(values, "multixact_member_buffers"),
        notify_buffers=_blocks(values, "notify_buffers"),
        serializable_buffers=_blocks(values, "serializable_buffers"),
        io_max_concurrency=None if io_max_concurrency in {None, -1} else int(io_max_concurrency or 0),
        io_uring=values.get("io_method") == "io_uring",
        io_max_combine_limit=_blocks(values, "io_max_combine_limit"),
        addin_bytes=sum(library_bytes(name, major, values) or 0 for name in libraries),
    )


def _check_reserved_connections(values: Values) -> None:
    """The server refuses to start where the reserved connections leave none (``PostmasterMain``, postmaster.c)."""
    connections = int(values.get("max_connections", _DEFAULTS.max_connections))
    superuser = int(values.get("superuser_reserved_connections", 3))
    reserved = superuser + int(values.get("reserved_connections", 0))
    if connections <= reserved:
        expected = f"more than superuser_reserved_connections + reserved_connections ({reserved})"
        raise SettingValueError("settings.max_connections", connections, expected)


def _preloaded(values: Values) -> tuple[str, ...]:
    """Names in shared_preload_libraries."""
    text = str(values.get("shared_preload_libraries", ""))
    return tuple(name.strip().strip('"') for name in text.split(",") if name.strip())


def library_bytes(name: str, major: int, values: Values) -> int | None:
    """Shared memory a preloaded library asks for; None where no rule is known.

    pg_stat_statements (contrib/pg_stat_statements, ``pgss_memsize``): a hash table of pg_stat_statements.max entries.
    """
    short = name.rsplit("/", 1)[-1].removesuffix(".so")
    if short in _LIBRARIES_WITHOUT_SHARED_MEMORY:
        return 0
    if short == "pg_prewarm":
        return KIB
    if short == "pg_stat_statements":
        entries = _count_text(values.get("pg_stat_statements.max", "5000"), "settings.pg_stat_statements.max")
        return shmem.hash_table_bytes(entries, _PGSS_ENTRY_BYTES[layout_of(major)]) + 128
    return None


def libraries_of(text: str) -> list[str]:
    """Those of a shared_preload_libraries, by their names without a folder."""
    return [name.rsplit("/", 1)[-1].removesuffix(".so") for name in _preloaded({"shared_preload_libraries": text})]


def libraries_without_rule(text: str) -> tuple[str, ...]:
    """Those of a shared_preload_libraries whose shared memory no rule tells."""
    return tuple(name for name in libraries_of(text) if library_bytes(name, _NEWEST, {}) is None)


#: sizeof(pgssEntry) by major, from servers asked with two values of pg_stat_statements.max.
_PGSS_ENTRY_BYTES: Final = {15: 360, 16: 360, 17: 408, 18: 432}


def _count_text(value: int | float | bool | str, field: str) -> int:
    try:
        count = int(str(value))
    except ValueError as error:
        raise SettingValueError(field, value, "a whole number from 100") from error
    if count < 100:
        raise SettingValueError(field, value, "a whole number from 100")
    return count
