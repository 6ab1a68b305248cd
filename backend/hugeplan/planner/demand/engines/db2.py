"""IBM Db2: the database's shared memory in large pages, on Linux and on AIX.

DB2_LARGE_PAGE_MEM names the regions: ``DB`` is the database's memory, ``*`` all that can use large pages. With large
pages the memory is pinned and no longer tuned by itself, so DATABASE_MEMORY has to be a number. On AIX 64K pages are
used without any reservation; 16M and 16G pages are reserved.
"""

from __future__ import annotations

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
    given,
    require_version,
    whole_mapping,
)
from hugeplan.planner.demand.engines.hashed_block_accesses import block_engine_key_lookup
from hugeplan.planner.demand.settings import Dialect, SettingTable, Value, integer, lowered
from hugeplan.planner.errors import SettingValueError
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    Demand,
    Explanation,
    PublishedGain,
    Range,
    SettingAdvice,
)
from hugeplan.planner.pages import ceil_pages, page_label
from hugeplan.planner.units import format_mysql_bytes, parse_mysql_bytes

VERSIONS: Final = ("12.1", "11.5", "11.1", "10.5")
DEFAULT_VERSION: Final = "11.5"

PUBLISHED_OLTP: Final = PublishedGain(
    Range(0.0, 9.0, 25.7), "DB2 9 OLTP on POWER5+: +5 to +13 % at 64K, up to +25.7 % at 16G (IBM)"
)

_DB2_PAGE_BYTES: Final = 4096
_IPCMNI: Final = 32_768
_AIX_LARGE_PAGE_BYTES: Final = 16 * MIB
_AIX_HUGE_PAGE_BYTES: Final = 16 * GIB
_PLATFORMS: Final = ("linux", "aix")


@dataclass(frozen=True, slots=True)
class IpcMinimums:
    """Least kernel settings for Db2 on Linux: shmmni, shmmax (bytes), shmall (base pages), semmni, msgmni."""

    shmmni: int
    shmmax_bytes: int
    shmall_pages: int
    semmni: int
    msgmni: int


def linux_ipc_minimums(mem_total_bytes: int, base_page_bytes: int = 4 * KIB) -> IpcMinimums:
    """The vendor's least values for a machine's memory (IBM, Kernel parameter requirements, Linux).

    shmmni and semmni: 256 for each GiB; shmmax: all memory; shmall: twice all memory in pages; msgmni: 1024 a GiB.
    """
    gigabytes = ceil_pages(mem_total_bytes, GIB)
    return IpcMinimums(
        shmmni=256 * gigabytes,
        shmmax_bytes=mem_total_bytes,
        shmall_pages=2 * mem_total_bytes // base_page_bytes,
        semmni=256 * gigabytes,
        msgmni=1024 * gigabytes,
    )


def aix_large_page_regions(memory_bytes: int, page_bytes: int = _AIX_LARGE_PAGE_BYTES) -> int:
    """``lgpg_regions`` for ``vmo -o lgpg_size=16777216``; 16G pages are counted the same way, at the console."""
    return ceil_pages(memory_bytes, page_bytes)


def parse_database_memory(text: str | int, field: str) -> int:
    """DATABASE_MEMORY in bytes: a bare number counts 4 kB pages, as in the configuration; ``8G`` is a size."""
    raw = str(text).strip()
    if raw.upper() in {"AUTOMATIC", "COMPUTED"}:
        raise SettingValueError(
            field, raw, "a number of 4 kB pages or a size such as 8G; with large pages Db2 does not tune it by itself"
        )
    if raw.isdecimal() and len(raw) <= 20:
        return int(raw) * _DB2_PAGE_BYTES
    return parse_mysql_bytes(raw, field)


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """What a Db2 database needs at one page size.

    Errors: UnknownVersionError, UnknownSettingError, SettingValueError or UnitError, naming the setting.
    """
    require_version(instance.version, VERSIONS, DEFAULT_VERSION, "Db2")
    values = _TABLE.read(instance.settings)
    memory_bytes = integer(values, "database_memory", 0)
    if memory_bytes == 0:
        raise SettingValueError("settings.database_memory", "not set", "a number of 4 kB pages or a size such as 8G")
    huge = page_bytes > context.base_page_bytes
    segment = whole_mapping(
        "database memory",
        memory_bytes,
        page_bytes,
        Explanation(
            formula="pages = ceil(DATABASE_MEMORY / page)",
            inputs=(given("DATABASE_MEMORY", memory_bytes), given("page", page_bytes)),
            reference="IBM Db2 documentation, DB2_LARGE_PAGE_MEM and Enabling large page support",
        ),
    )
    parts = DemandParts(
        segments=(segment,),
        default_version=DEFAULT_VERSION,
        buffer_pool_bytes=memory_bytes,
        remarks=_remarks(values, memory_bytes, page_bytes, context) if huge else Remarks(),
        private_bytes_per_connection=MIB,
    )
    return build_demand(instance, page_bytes, parts)


def _remarks(values: Mapping[str, Value], memory_bytes: int, page_bytes: int, context: DemandContext) -> Remarks:
    aix = values.get("platform") == "aix"
    regions = str(values.get("db2_large_page_mem", "DB"))
    return Remarks(
        error_bytes=_error_bytes(regions),
        settings=_advice(memory_bytes, page_bytes, context, aix=aix),
        notes=_notes(regions, memory_bytes, page_bytes, context, aix=aix),
    )


def _error_bytes(regions: str) -> int:
    """The vendor does not publish every region: 64 MiB for the named database, 256 MiB for all regions."""
    return (256 if "*" in regions else 64) * MIB


def _advice(memory_bytes: int, page_bytes: int, context: DemandContext, *, aix: bool) -> tuple[SettingAdvice, ...]:
    suffix = ":16GB" if page_bytes == _AIX_HUGE_PAGE_BYTES else ""
    advice = [
        SettingAdvice(
            name="DB2_LARGE_PAGE_MEM", value=f"DB{suffix}", reason="Puts the database's memory on large pages."
        ),
        SettingAdvice(
            name="DATABASE_MEMORY",
            value=str(memory_bytes // _DB2_PAGE_BYTES),
            reason="With large pages it is not tuned by itself; give it as a number of 4 kB pages.",
        ),
    ]
    if context.mem_total_bytes is not None and not aix:
        least = linux_ipc_minimums(context.mem_total_bytes, context.base_page_bytes)
        # Between the kernel's own defaults (ipc/shm.c, ipc/msg.c), which no file lowers, and what it takes (IPCMNI).
        # Its shmmax and shmall are above all memory as they are.
        rows = (
            ("kernel.shmmni", min(_IPCMNI, max(4096, least.shmmni)), "256 for each GiB of memory, 32,768 at most."),
            ("kernel.msgmni", min(_IPCMNI, max(32_000, least.msgmni)), "1,024 for each GiB of memory, 32,768 at most."),
        )
        advice += [SettingAdvice(name=name, value=str(value), reason=reason) for name, value, reason in rows]
    return tuple(advice)


def _notes(regions: str, memory_bytes: int, page_bytes: int, context: DemandContext, *, aix: bool) -> tuple[str, ...]:
    notes = ["Large pages are pinned; memory that is reserved for them is gone for everything else."]
    if "*" in regions:
        notes.append(
            "DB2_LARGE_PAGE_MEM = * also takes regions of the instance, which are in the error, not in the count."
        )
    if aix and page_bytes == _AIX_LARGE_PAGE_BYTES:
        count = aix_large_page_regions(memory_bytes)
        notes.append(f"On AIX: vmo -r -o lgpg_regions={count} -o lgpg_size={page_bytes}, and v_pinshm=1.")
    elif aix and page_bytes == _AIX_HUGE_PAGE_BYTES:
        notes.append("On AIX 16G pages are given to the partition at the hardware management console.")
    elif not aix and page_bytes != context.default_huge_page_bytes:
        notes.append(
            f"On Linux the default huge page size is used, here {page_label(context.default_huge_page_bytes)}."
        )
    return tuple(notes)


def named_size(instance: DatabaseInstance) -> int | None:
    """16 GiB where DB2_LARGE_PAGE_MEM names it; else the choice is open."""
    regions = str(_TABLE.read(instance.settings).get("db2_large_page_mem", "DB"))
    return _AIX_HUGE_PAGE_BYTES if ":16GB" in regions.upper() else None


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """The default size only; on a shortage Db2 starts with base pages."""
    values = _TABLE.read(instance.settings)
    off = instance.page_bytes == 0 or not str(values.get("db2_large_page_mem", "DB"))
    return PoolUse(
        page_sizes_bytes=() if off else (context.default_huge_page_bytes,), on_shortage=OnShortage.BASE_PAGES
    )


SETTINGS: Final = (
    settings.size("database_memory", "Shared memory of the database; a bare number counts 4 kB pages.", minimum=MIB),
    settings.text("db2_large_page_mem", "Regions on large pages: DB, DB:16GB or *.", "DB"),
    settings.choice("platform", "Operating system.", "linux", choices=_PLATFORMS),
)
_TABLE: Final = SettingTable(SETTINGS, Dialect("Db2", parse_database_memory, format_mysql_bytes, lowered))

ENGINE: Final = Engine(
    name="db2",
    title="IBM Db2",
    versions=VERSIONS,
    settings=SETTINGS,
    page_choice=PageChoice.DEFAULT,
    named_size=named_size,
    size_setting="db2_large_page_mem",
    demand=demand,
    pool_use=pool_use,
    pool_setting="database_memory",
    sized_by=("database_memory",),
    has_default_size=False,
    pool_step=lambda *_: _DB2_PAGE_BYTES,
    accesses=block_engine_key_lookup,
    published={"oltp": PUBLISHED_OLTP, "key_lookup": PUBLISHED_OLTP},
    locks_segment=lambda _: True,
    summary="DATABASE_MEMORY, pinned; 64K, 16M and 16G pages on POWER.",
)
