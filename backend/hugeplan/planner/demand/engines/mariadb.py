"""MariaDB: several mappings, each on the largest huge page size that fits it.

MariaDB tries, for every large mapping on its own, each size in /sys/kernel/mm/hugepages from the largest that is not
above the request downwards (``my_next_large_page_size``, mysys/my_largepage.c), and falls back to base pages after
the smallest. So a buffer pool of 10 GiB takes 1G pages meant for others if any are free. Besides the InnoDB buffer
pool these mappings are the MyISAM key cache, the Aria page cache and InnoDB's two log buffers; that was seen with
system call traces of servers 10.11.5, 10.11.19, 11.4.5 and 11.8.9 (``backend/tools/mapped_pages.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.demand import settings
from hugeplan.planner.demand.base import (
    DemandContext,
    DemandParts,
    Engine,
    OnShortage,
    PageChoice,
    PoolUse,
    Remarks,
    build_demand,
    equal_mappings,
    pages_for_error,
    require_version,
    whole_page_fits,
)
from hugeplan.planner.demand.engines.hashed_block_accesses import innodb_key_lookup
from hugeplan.planner.demand.engines.mysql import large_pages_off
from hugeplan.planner.demand.settings import Dialect, SettingTable, Value, integer, option_names, underscored
from hugeplan.planner.model import KIB, MIB, DatabaseInstance, Demand, FitSuggestion, SettingAdvice
from hugeplan.planner.pages import ceil_pages, ceil_to_multiple, counted_pages, floor_to_multiple, page_label
from hugeplan.planner.units import format_bytes, format_mysql_bytes, parse_mysql_bytes

VERSIONS: Final = (
    "12.2", "12.1", "12.0", "11.8", "11.7", "11.6", "11.5", "11.4", "11.3", "11.2", "11.1", "11.0",
    "10.11", "10.10", "10.9", "10.8", "10.7", "10.6", "10.5",
)  # fmt: skip
DEFAULT_VERSION: Final = "11.8"

#: The first minor of each line with one mapping for the whole pool (MDEV-29445); lines not named: 12 all, others none.
SINGLE_MAPPING_SINCE_MINOR: Final[Mapping[str, int]] = {"10.11": 12, "11.4": 6, "11.8": 2}
#: Lines whose chunk size is a 64th of the pool by default; before, 128 MiB.
_AUTOMATIC_CHUNKS_SINCE: Final = (10, 8)

_EXTENT_BYTES: Final = 8 * MIB
_POOL_BYTES: Final = 128 * MIB
_OLD_CHUNK_BYTES: Final = 128 * MIB
_CACHE_BYTES: Final = 128 * MIB
_CACHE_ERROR_BYTES: Final = 2 * MIB  # what measured caches differed by at most
_LOG_BUFFER_BYTES: Final = 16 * MIB
_LOG_BUFFER_MIN_BYTES: Final = 2 * MIB
_LOG_BUFFERS: Final = 2
_CONNECTIONS: Final = 151
_LARGE_PAGES_ON: Final = SettingAdvice(name="large_pages", value="ON", reason="Huge pages are asked for only with it.")
_REFERENCE: Final = "MariaDB mysys/my_largepage.c, my_large_malloc and my_large_virtual_alloc"

# What a cache keeps beside each block, so that fewer blocks fit; from traced sizes of the real server (see module).
_KEY_CACHE_OVERHEAD_BYTES: Final = 228
_ARIA_OVERHEAD_BYTES: Final = 384
_ARIA_BLOCK_BYTES: Final = 8192
_KEY_BLOCK_BYTES: Final = 1024

# Thread stack (292 KiB), net buffer and connection objects; sort, join and read buffers come on top when used.
_THREAD_PRIVATE_BYTES: Final = 292 * KIB + 16 * KIB + 256 * KIB


@dataclass(frozen=True, slots=True)
class LargeMapping:
    """A mapping that MariaDB asks large pages for: ``count`` of ``size_bytes`` each."""

    name: str
    size_bytes: int
    count: int = 1


def has_single_mapping(version: str | None) -> bool:
    """Whether the version maps the whole pool at once. A line without its minor counts as current."""
    line = require_version(version, VERSIONS, DEFAULT_VERSION, "MariaDB")
    if line.startswith("12."):
        return True
    since = SINGLE_MAPPING_SINCE_MINOR.get(line)
    minor = minor_of(version, line)
    return since is not None and (minor is None or minor >= since)


def minor_of(version: str | None, line: str) -> int | None:
    """19 of ``10.11.19``; None where it is not given."""
    match = re.match(rf"{re.escape(line)}\.(\d{{1,9}})", (version or "").strip())
    return int(match[1]) if match else None


def single_mapping_bytes(buffer_pool_bytes: int) -> int:
    """The pool in whole extents of 8 MiB; control blocks lie inside them.

    innodb_buffer_pool_size_max has no effect with large pages: servers 10.11.19 and 11.8.9 map the pool alone.
    """
    return ceil_to_multiple(buffer_pool_bytes, _EXTENT_BYTES)


def chunk_bytes_of(buffer_pool_bytes: int, given_chunk_bytes: int, line: str, page_sizes_bytes: tuple[int, ...]) -> int:
    """Size of one chunk in the versions that map chunks.

    Since 10.8 a 64th of the pool, cut to whole pages of the largest size that fits; before, 128 MiB. A given size is
    used as it is, cut to the pool.
    """
    if given_chunk_bytes:
        return min(given_chunk_bytes, buffer_pool_bytes)
    if tuple(int(part) for part in line.split(".")) < _AUTOMATIC_CHUNKS_SINCE:
        return min(_OLD_CHUNK_BYTES, buffer_pool_bytes)
    share = buffer_pool_bytes // 64
    page = largest_page_that_fits(share, page_sizes_bytes)
    return max(floor_to_multiple(share, page) if page else floor_to_multiple(share, MIB), MIB)


def largest_page_that_fits(size_bytes: int, page_sizes_bytes: tuple[int, ...]) -> int | None:
    """The largest huge page size not above the request; None when every size is larger."""
    fitting = [size for size in page_sizes_bytes if size <= size_bytes]
    return max(fitting) if fitting else None


def key_cache_bytes(key_buffer_bytes: int, block_bytes: int) -> int:
    """Blocks of the MyISAM key cache (init_simple_key_cache, mf_keycache.c): the setting less what it keeps aside."""
    return key_buffer_bytes // (block_bytes + _KEY_CACHE_OVERHEAD_BYTES) * block_bytes


def aria_page_cache_bytes(cache_bytes: int) -> int:
    """Blocks of the Aria page cache (init_pagecache, ma_pagecache.c): the setting less what it keeps aside."""
    return cache_bytes // (_ARIA_BLOCK_BYTES + _ARIA_OVERHEAD_BYTES) * _ARIA_BLOCK_BYTES


def log_buffer_bytes(values: Mapping[str, Value]) -> int:
    """innodb_log_buffer_size; the server raises less than 2 MiB to that."""
    return max(integer(values, "innodb_log_buffer_size", _LOG_BUFFER_BYTES), _LOG_BUFFER_MIN_BYTES)


def large_mappings(
    values: Mapping[str, Value], version: str | None, page_sizes_bytes: tuple[int, ...]
) -> tuple[LargeMapping, ...]:
    """All mappings that the server asks large pages for, the buffer pool first."""
    line = require_version(version, VERSIONS, DEFAULT_VERSION, "MariaDB")
    buffer_pool_bytes = integer(values, "innodb_buffer_pool_size", _POOL_BYTES)
    if has_single_mapping(version):
        pool = LargeMapping("InnoDB buffer pool", single_mapping_bytes(buffer_pool_bytes))
    else:
        given_chunk = integer(values, "innodb_buffer_pool_chunk_size", 0)
        chunk = chunk_bytes_of(buffer_pool_bytes, given_chunk, line, page_sizes_bytes)
        pool = LargeMapping("InnoDB buffer pool chunk", chunk, ceil_pages(buffer_pool_bytes, chunk))
    key_block = integer(values, "key_cache_block_size", _KEY_BLOCK_BYTES)
    return (
        pool,
        LargeMapping("InnoDB log buffer", log_buffer_bytes(values), _LOG_BUFFERS),
        LargeMapping("MyISAM key cache", key_cache_bytes(integer(values, "key_buffer_size", _CACHE_BYTES), key_block)),
        LargeMapping(
            "Aria page cache", aria_page_cache_bytes(integer(values, "aria_pagecache_buffer_size", _CACHE_BYTES))
        ),
    )


def _offered(page_bytes: int, context: DemandContext) -> tuple[int, ...]:
    """Huge page sizes that mappings may take when none above ``page_bytes`` is free."""
    if page_bytes <= context.base_page_bytes:
        return ()
    return tuple(size for size in context.huge_page_sizes_bytes if size <= page_bytes)


def pool_step(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> int:
    """An extent of 8 MiB where the pool is one mapping; before, a chunk, or a MiB of a pool below one."""
    values = _TABLE.read(instance.settings)
    if has_single_mapping(instance.version):
        return _EXTENT_BYTES
    pool = large_mappings(values, instance.version, _offered(page_bytes, context))[0]
    return MIB if pool.count == 1 else pool.size_bytes


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """What a MariaDB server needs at one page size; mappings below it are in ``also_pages``.

    Errors: UnknownVersionError, UnknownSettingError, SettingValueError or UnitError, naming the setting.
    """
    values = _TABLE.read(instance.settings)
    huge = page_bytes > context.base_page_bytes
    offered = _offered(page_bytes, context)
    mappings = large_mappings(values, instance.version, offered)
    segments = []
    smaller: dict[int, int] = {}
    for mapping in mappings:
        size = largest_page_that_fits(mapping.size_bytes, offered) if huge else page_bytes
        if size == page_bytes or mapping is mappings[0]:
            segments.append(equal_mappings(mapping.name, mapping.size_bytes, mapping.count, page_bytes, _REFERENCE))
        elif size is not None:
            smaller[size] = smaller.get(size, 0) + mapping.count * ceil_pages(mapping.size_bytes, size)
    also = tuple(sorted(smaller.items()))
    parts = DemandParts(
        segments=tuple(segments),
        default_version=DEFAULT_VERSION,
        buffer_pool_bytes=integer(values, "innodb_buffer_pool_size", _POOL_BYTES),
        remarks=Remarks(
            error_pages=_error_pages(mappings, page_bytes),
            settings=(_LARGE_PAGES_ON,),
            fits=fit_suggestions(mappings[0], page_bytes),
            notes=_notes(instance.version, mappings, values, page_bytes, also, context),
        )
        if huge
        else Remarks(settings=large_pages_off(values)),
        private_bytes_per_connection=_THREAD_PRIVATE_BYTES,
        connections=integer(values, "max_connections", _CONNECTIONS),
        page_cache_bytes=0,  # InnoDB keeps its own cache and does not count on the kernel's
        also_pages=also,
    )
    return build_demand(instance, page_bytes, parts)


def _error_pages(mappings: tuple[LargeMapping, ...], page_bytes: int) -> int:
    """Overhead of each cache, measured to 2 MiB, and up to 8 MiB of alignment for the pool; each rounded by itself."""
    caches = sum(
        pages_for_error(ceil_pages(mapping.size_bytes, page_bytes), mapping.size_bytes, _CACHE_ERROR_BYTES, page_bytes)
        for mapping in mappings[2:]
        if mapping.size_bytes >= page_bytes
    )
    return caches + (3 if page_bytes < _EXTENT_BYTES else 0)


def fit_suggestions(pool: LargeMapping, page_bytes: int) -> tuple[FitSuggestion, ...]:
    """innodb_buffer_pool_size in whole pages, down and up, where one mapping leaves a part of its last page empty."""
    if pool.count > 1 or page_bytes <= _EXTENT_BYTES:
        return ()
    return whole_page_fits("innodb_buffer_pool_size", "pool", pool.size_bytes, page_bytes, format_mysql_bytes)


def _notes(  # noqa: PLR0917 - one line for each fact a note can be about
    version: str | None,
    mappings: tuple[LargeMapping, ...],
    values: Mapping[str, Value],
    page_bytes: int,
    also: tuple[tuple[int, int], ...],
    context: DemandContext,
) -> tuple[str, ...]:
    notes = []
    pool = mappings[0]
    if not values.get("large_pages", False):
        notes.append("large_pages is OFF by default; without it no huge page is used.")
    if page_bytes >= MIB and "key_buffer_size" not in values:
        notes.append(
            f"The MyISAM key cache takes huge pages too, counted at its default of {format_bytes(_CACHE_BYTES)}: where "
            "only InnoDB is used, give the plan key_buffer_size = 8M."
        )
    larger = [s for s in context.huge_page_sizes_bytes if page_bytes < s <= pool.size_bytes]
    if larger:
        sizes = ", ".join(page_label(size) for size in reversed(larger))
        notes.append(
            f"Free pages of {sizes} are taken first, also those meant for others; the count assumes none are free."
        )
    if pool.size_bytes < page_bytes:
        notes.append(
            f"The pool's mapping of {format_bytes(pool.size_bytes)} is below {page_label(page_bytes)}; it will not use"
            " that size."
        )
    for size, pages in also:
        notes.append(f"The smaller mappings take {counted_pages(pages, size)} where such a pool exists.")
    line = require_version(version, VERSIONS, DEFAULT_VERSION, "MariaDB")
    if has_single_mapping(version):
        notes.append("With large pages the pool cannot be resized while the server runs.")
    if minor_of(version, line) is None and line in SINGLE_MAPPING_SINCE_MINOR:
        notes.append(
            f"Before {line}.{SINGLE_MAPPING_SINCE_MINOR[line]} the pool was mapped in chunks; give the minor version."
        )
    notes.append("A mapping that gets no pages tries the next smaller size, then base pages, with only a warning.")
    return tuple(notes)


def ruled_out(instance: DatabaseInstance) -> str | None:
    """Why the settings exclude huge pages; None when they do not. Not set is not off: the plan advises to set it."""
    off = _TABLE.read(instance.settings).get("large_pages") is False
    return "large_pages = OFF: the server asks for no huge page until it is ON" if off else None


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """Every size, the largest first."""
    values = _TABLE.read(instance.settings)
    off = instance.page_bytes == 0 or values.get("large_pages") is False
    sizes = tuple(sorted(context.huge_page_sizes_bytes, reverse=True))
    return PoolUse(page_sizes_bytes=() if off else sizes, on_shortage=OnShortage.BASE_PAGES, within_mapping=True)


SETTINGS: Final = (
    settings.size("innodb_buffer_pool_size", "The buffer pool, in whole extents of 8 MiB.", "128M", minimum=2 * MIB),
    settings.size(
        "innodb_buffer_pool_size_max", "How far the pool may grow; has no effect with large pages.", matters=False
    ),
    settings.size(
        "innodb_buffer_pool_chunk_size",
        "Unit in which older versions map the pool; 0 is a 64th of it. Newer versions ignore it.",
        "0",
    ),
    settings.size("innodb_log_buffer_size", "Each of two log buffers; both use huge pages.", "16M", minimum=256 * KIB),
    settings.size("key_buffer_size", "MyISAM key cache; uses huge pages.", "128M"),
    settings.size("key_cache_block_size", "Block of the MyISAM key cache.", "1024", minimum=512, maximum=16 * KIB),
    settings.size("aria_pagecache_buffer_size", "Aria page cache; uses huge pages.", "128M", minimum=128 * KIB),
    settings.switch("large_pages", "Whether huge pages are asked for.", "OFF"),
    settings.count("max_connections", "Client connections.", "151", minimum=1, maximum=100_000),
    settings.size(
        "innodb_page_size",
        "InnoDB's block size; not an OS page size.",
        "16K",
        minimum=4 * KIB,
        maximum=64 * KIB,
        matters=False,
    ),
    settings.count("innodb_buffer_pool_instances", "Ignored since 10.5.", minimum=0, maximum=64, matters=False),
)
_TABLE: Final = SettingTable(
    SETTINGS,
    Dialect(
        "MariaDB",
        parse_mysql_bytes,
        format_mysql_bytes,
        underscored,
        without_a_rule=lambda: option_names("mariadb_options.txt"),
    ),
)

ENGINE: Final = Engine(
    name="mariadb",
    title="MariaDB",
    versions=VERSIONS,
    settings=SETTINGS,
    page_choice=PageChoice.LARGEST_FIRST,
    demand=demand,
    pool_use=pool_use,
    pool_setting="innodb_buffer_pool_size",
    sized_by=("innodb_buffer_pool_size",),
    pool_step=pool_step,
    accesses=innodb_key_lookup,
    ruled_out=ruled_out,
    summary="The InnoDB buffer pool in one mapping, and three smaller caches, each on the largest size that fits.",
)
