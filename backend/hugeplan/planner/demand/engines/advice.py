"""Engines for which the right answer is no huge page pool: what to set instead, and the memory that they take.

None of them maps memory with MAP_HUGETLB, so every page reserved for one would stay idle. Their memory is ordinary
memory, which the ledger counts where a setting gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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
    require_version,
)
from hugeplan.planner.demand.settings import Dialect, SettingTable, Value
from hugeplan.planner.errors import UnitError
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, Demand, SettingAdvice
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_iec_bytes, parse_mysql_bytes

Thp = tuple[SettingAdvice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPoolEngine:
    """An engine without a pool: its memory setting, the unit of a bare number there, and its advice by version."""

    name: str
    title: str
    versions: tuple[str, ...]
    default_version: str
    aliases: tuple[str, ...]
    memory_setting: str
    memory_summary: str
    memory_unit_bytes: int
    default_memory: Callable[[int], int] | None
    advice: Callable[[str], Thp]
    note: str


def _thp(value: str, reason: str) -> SettingAdvice:
    return SettingAdvice(name="transparent_hugepage/enabled", value=value, reason=reason)


def hana_allocation_limit(mem_total_bytes: int) -> int:
    """HANA's default limit: 90 % of the first 64 GiB and 97 % of the rest (SAP HANA administration guide)."""
    first = min(mem_total_bytes, 64 * GIB)
    return first * 9 // 10 + (mem_total_bytes - first) * 97 // 100


def hana_advice(version: str) -> Thp:  # noqa: ARG001 - the same for both
    """THP madvise (SAP Note 2131662; TuneD profile sap-hana)."""
    return (_thp("madvise", "SAP Note 2131662: HANA asks for transparent huge pages where they help."),)


def redis_advice(version: str) -> Thp:  # noqa: ARG001 - the same for all
    """THP off for the process: a fork copies a whole huge page for every page written (redis.conf, disable-thp)."""
    return (
        SettingAdvice(
            name="disable-thp", value="yes", reason="While a snapshot is written, each write copies a whole page."
        ),
        _thp("madvise", "Redis does not ask for them; other programs of the node may."),
    )


def mongodb_advice(version: str) -> Thp:
    """THP on since 8.0, whose allocator uses it, off before (MongoDB manual, tcmalloc-performance)."""
    if int(version.split(".", maxsplit=1)[0]) >= 8:
        return (
            _thp("always", "Since 8.0 the allocator is built for transparent huge pages."),
            SettingAdvice(
                name="transparent_hugepage/defrag", value="defer+madvise", reason="Compact memory in the background."
            ),
            SettingAdvice(
                name="transparent_hugepage/khugepaged/max_ptes_none", value="0", reason="Do not join half empty pages."
            ),
            SettingAdvice(name="vm.overcommit_memory", value="1", reason="The allocator reserves address space ahead."),
        )
    return (_thp("never", "Before 8.0 the allocator fragments with transparent huge pages."),)


def sqlserver_advice(version: str) -> Thp:  # noqa: ARG001 - the same for all
    """THP always; madvise with several instances (Microsoft, performance best practices for SQL Server on Linux)."""
    return (_thp("always", "Microsoft's guide; madvise where several instances share the node."),)


_TABLE: Final = (
    NoPoolEngine(
        name="hana",
        title="SAP HANA",
        versions=("2.0", "1.0"),
        default_version="2.0",
        aliases=("sap hana",),
        memory_setting="global_allocation_limit",
        memory_summary="Memory limit; a bare number is MB.",
        memory_unit_bytes=MIB,
        default_memory=hana_allocation_limit,
        advice=hana_advice,
        note="SAP HANA maps no huge pages; reserved pages would stay idle.",
    ),
    NoPoolEngine(
        name="redis",
        title="Redis and Valkey",
        versions=("9", "8", "7", "6", "5"),
        default_version="8",
        aliases=("valkey",),
        memory_setting="maxmemory",
        memory_summary="Memory limit for data.",
        memory_unit_bytes=1,
        default_memory=None,
        advice=redis_advice,
        note="Redis maps no huge pages; reserved pages would stay idle.",
    ),
    NoPoolEngine(
        name="mongodb",
        title="MongoDB",
        versions=("8", "7", "6", "5", "4"),
        default_version="8",
        aliases=("mongo",),
        memory_setting="wiredTigerCacheSizeGB",
        memory_summary="WiredTiger cache; a bare number is GiB.",
        memory_unit_bytes=GIB,
        default_memory=lambda total: max((total - GIB) // 2, 256 * MIB),
        advice=mongodb_advice,
        note="MongoDB maps no huge pages; it uses transparent huge pages or none.",
    ),
    NoPoolEngine(
        name="sqlserver",
        title="SQL Server on Linux",
        versions=("2025", "2022", "2019", "2017"),
        default_version="2022",
        aliases=("mssql",),
        memory_setting="memorylimitmb",
        memory_summary="memory.memorylimitmb; a bare number is MB.",
        memory_unit_bytes=MIB,
        default_memory=lambda total: total * 8 // 10,
        advice=sqlserver_advice,
        note="SQL Server on Linux maps no huge pages; reserved pages would stay idle.",
    ),
)


def _parse_memory(unit_bytes: int, text: str | int, field: str) -> int:
    """A bare number, also a fraction, counts the setting's own unit; with a letter it is a size."""
    raw = str(text).strip().lower().removesuffix("b")
    try:
        bare = float(raw)
    except ValueError:
        return parse_mysql_bytes(raw, field)
    if not 0 <= bare * unit_bytes <= 2**62:
        raise UnitError(field, text, "a size of 0 or more, below 4 EiB")
    return int(bare * unit_bytes)


def _demand(engine: NoPoolEngine, instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """No pages at any size; the engine's memory is ordinary memory."""
    version = require_version(instance.version, engine.versions, engine.default_version, engine.title)
    values = _table(engine).read(instance.settings)
    memory = _memory_bytes(engine, instance, values, context)
    parts = DemandParts(
        segments=(),
        default_version=engine.default_version,
        buffer_pool_bytes=None,
        remarks=Remarks(settings=engine.advice(version), notes=(engine.note,)),
        wants_pool=False,
        private_fixed_bytes=memory,
    )
    return build_demand(instance, page_bytes, parts)


def _memory_bytes(
    engine: NoPoolEngine, instance: DatabaseInstance, values: Mapping[str, Value], context: DemandContext
) -> int | None:
    """The setting; else the engine's share of the node's memory, or of its container's where that is less."""
    if given := values.get(engine.memory_setting):  # each of them takes 0 for its default
        return int(given)
    seen = [size for size in (context.mem_total_bytes, instance.pod_memory_limit_bytes) if size is not None]
    return None if engine.default_memory is None or not seen else engine.default_memory(min(seen))


@remembered(16)
def _table(engine: NoPoolEngine) -> SettingTable:
    """The one setting that gives an engine's memory."""

    def canonical(name: str) -> str:
        return engine.memory_setting if name.strip().lower() == engine.memory_setting.lower() else name.strip()

    dialect = Dialect(engine.title, partial(_parse_memory, engine.memory_unit_bytes), format_iec_bytes, canonical)
    return SettingTable((settings.size(engine.memory_setting, engine.memory_summary),), dialect)


def _pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:  # noqa: ARG001 - one shape for all
    return PoolUse(page_sizes_bytes=(), on_shortage=OnShortage.BASE_PAGES)


def _engine(row: NoPoolEngine) -> Engine:
    return Engine(
        name=row.name,
        title=row.title,
        versions=row.versions,
        settings=_table(row).specs,
        page_choice=PageChoice.NONE,
        demand=partial(_demand, row),
        pool_use=_pool_use,
        pool_setting=None,
        sized_by=(row.memory_setting,),
        aliases=row.aliases,
        summary=row.note,
    )


ENGINES: Final = tuple(_engine(row) for row in _TABLE)
