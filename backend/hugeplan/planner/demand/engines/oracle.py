"""Oracle Database: the SGA in huge pages of one size, the PGA never.

Two counts exist and both are given: what the instance really takes, and what the often used script
``hugepages_settings.sh`` (My Oracle Support 401749.1) asks for, which is a few pages more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hugeplan.planner.demand import settings
from hugeplan.planner.demand.base import (
    DemandContext,
    DemandParts,
    Engine,
    OnShortage,
    PageChoice,
    PoolUse,
    PossibleMemory,
    Remarks,
    build_demand,
    computed,
    given,
    require_version,
    whole_mapping,
)
from hugeplan.planner.demand.engines.hashed_block_accesses import block_engine_key_lookup
from hugeplan.planner.demand.settings import Dialect, SettingTable, Value, integer, lowered, optional
from hugeplan.planner.errors import SettingValueError
from hugeplan.planner.model import GIB, KIB, MIB, DatabaseInstance, Demand, Explanation, SettingAdvice
from hugeplan.planner.pages import ceil_to_multiple, counted_pages, floor_pages
from hugeplan.planner.units import format_bytes, format_mysql_bytes, parse_oracle_bytes

VERSIONS: Final = ("23", "21", "19", "18", "12.2", "12.1", "11.2")
DEFAULT_VERSION: Final = "19"

#: Largest SGA for each granule size since 11.2 (My Oracle Support 947152.1); above the last, 512 MiB.
_GRANULES: Final = (
    (1 * GIB, 4 * MIB),
    (8 * GIB, 16 * MIB),
    (16 * GIB, 32 * MIB),
    (32 * GIB, 64 * MIB),
    (64 * GIB, 128 * MIB),
    (128 * GIB, 256 * MIB),
)
_LARGEST_GRANULE: Final = 512 * MIB
#: Database Reference, SGA_TARGET: 64 MB to the operating system's limit; 0 switches it off.
#: The aggregate memory of sessions (PGA): least limit and target, and the limit's share of each process.
_PGA_LIMIT_MIN_BYTES: Final = 2 * GIB
_PGA_TARGET_MIN_BYTES: Final = 10 * MIB
_PGA_PER_PROCESS_BYTES: Final = 3 * MIB
_WITHOUT_LIMIT: Final = frozenset({"11.2"})
_TARGET_MIN_BYTES: Final = 64 * MIB
_FIXED_SEGMENT_BYTES: Final = 2 * MIB  # the small fixed segment beside the granules takes a page of its own
_SCRIPT_REFUSES_BELOW_BYTES: Final = 100_000_000
_AIX_REGION_BYTES: Final = 16 * MIB
_USE_LARGE_PAGES: Final = ("TRUE", "FALSE", "AUTO", "ONLY", "AUTO_ONLY")


def granule_bytes(sga_bytes: int) -> int:
    """Unit in which the SGA is laid out, by its size (My Oracle Support 947152.1, since 11.2)."""
    return next((granule for limit, granule in _GRANULES if sga_bytes <= limit), _LARGEST_GRANULE)


def script_pages(segments_bytes: Sequence[int], page_bytes: int) -> int | None:
    """What hugepages_settings.sh prints for these segments; None where it refuses (below 100 MB).

    It starts at 1 and adds one page more than fits for each segment of at least a page, so it is a few too many.
    """
    pages = 1 + sum(floor_pages(size, page_bytes) + 1 for size in segments_bytes if size >= page_bytes)
    return None if pages * page_bytes < _SCRIPT_REFUSES_BELOW_BYTES else pages


def memlock_kilobytes(mem_total_bytes: int, *, huge_pages: bool = True) -> int:
    """memlock in kB for limits.d: 90 % of memory with huge pages, else 3145728 (installation guide, Linux)."""
    return mem_total_bytes // KIB * 9 // 10 if huge_pages else 3_145_728


def aix_large_page_regions(sga_bytes: int) -> int:
    """``lgpg_regions`` for ``vmo -o lgpg_size=16777216`` on AIX with LOCK_SGA: INT((SGA - 1) / 16 MiB) + 1."""
    return (sga_bytes - 1) // _AIX_REGION_BYTES + 1


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """What an Oracle instance needs at one page size.

    Errors: UnknownVersionError, UnknownSettingError, SettingValueError or UnitError, naming the setting.
    """
    version = require_version(release_of(instance.version), VERSIONS, DEFAULT_VERSION, "Oracle Database")
    values = _TABLE.read(instance.settings)
    sga_bytes = sga_of(values)
    huge = page_bytes > context.base_page_bytes
    granule = granule_bytes(sga_bytes)
    rounded = ceil_to_multiple(sga_bytes, granule)
    segments = (
        whole_mapping(
            "SGA",
            rounded,
            page_bytes,
            Explanation(
                formula="pages = ceil(ceil(SGA, granule) / page) + 1",
                inputs=(given("SGA", sga_bytes), computed("granule", granule), given("page", page_bytes)),
                reference="My Oracle Support 947152.1 (granules); instance alert log, Large Pages used",
            ),
        ),
        whole_mapping(
            "fixed SGA segment",
            _FIXED_SEGMENT_BYTES,
            page_bytes,
            Explanation("one page", (given("page", page_bytes),), "instance alert log, Large Pages used"),
        ),
    )
    parts = DemandParts(
        segments=segments,
        default_version=DEFAULT_VERSION,
        buffer_pool_bytes=integer(values, "db_cache_size", 0) or sga_bytes,
        remarks=Remarks(
            error_bytes=_error_bytes(sga_bytes, granule),
            settings=_advice(rounded, context),
            notes=_notes(version, values, rounded, page_bytes),
        )
        if huge
        else Remarks(),
        connections=optional(values, "processes"),
        process_per_connection=True,
        private_fixed_bytes=optional(values, "pga_aggregate_target"),
    )
    return build_demand(instance, page_bytes, parts)


def release_of(version: str | None) -> str | None:
    """A release without the letters that its marketing name ends with: 19 of ``19c``, 23 of ``23ai``."""
    return None if version is None else re.sub(r"^(\d+(?:\.\d+)?)(?:c|g|i|ai)$", r"\1", version.strip().lower())


def _error_bytes(sga_bytes: int, granule: int) -> int:
    """Two pages of 2M; a granule more where the SGA is not whole granules: components are rounded one by one."""
    return 4 * MIB + (granule if sga_bytes % granule else 0)


def sga_of(values: Mapping[str, Value]) -> int:
    """The SGA that is mapped: the larger of sga_max_size and sga_target, else all of memory_target.

    Under memory_target alone SGA and PGA share it as the instance likes, so the whole target is counted (on base pages:
    :func:`ruled_out`).
    """
    target = integer(values, "sga_target", 0)
    if 0 < target < _TARGET_MIN_BYTES:
        raise SettingValueError(
            "settings.sga_target", str(target) if target < KIB else format_mysql_bytes(target), "0, or 64M or more"
        )
    sga = max(integer(values, "sga_max_size", 0), target)
    sga = sga or max(integer(values, "memory_target", 0), integer(values, "memory_max_target", 0))
    if sga == 0:
        raise SettingValueError("settings.sga_target", "not set", "a size such as 8G, with memory_target = 0")
    return sga


def _advice(sga_bytes: int, context: DemandContext) -> tuple[SettingAdvice, ...]:
    size = format_mysql_bytes(sga_bytes)
    advice = [
        SettingAdvice(
            name="use_large_pages",
            value="ONLY",
            reason="The instance then refuses to start on a mixture or on base pages.",
        ),
        SettingAdvice(name="memory_target", value="0", reason="Automatic memory management cannot use huge pages."),
        SettingAdvice(
            name="sga_target", value=size, reason="Equal to sga_max_size, so that no reserved page stays idle."
        ),
        SettingAdvice(name="sga_max_size", value=size, reason="All of it is mapped at start."),
    ]
    if context.mem_total_bytes is not None:
        memlock = str(memlock_kilobytes(context.mem_total_bytes))
        advice.append(
            SettingAdvice(name="memlock", value=memlock, reason="limits.d, kB: 90 % of memory, soft and hard alike.")
        )
    return tuple(advice)


def _notes(version: str, values: Mapping[str, Value], sga_bytes: int, page_bytes: int) -> tuple[str, ...]:
    notes = ["The PGA stays on base pages."]
    if name := _automatic(values):
        notes.append(f"{name} is set: with automatic memory management no huge page is used.")
    mode = str(values.get("use_large_pages", "TRUE"))
    if mode == "FALSE":
        notes.append("use_large_pages = FALSE: no huge page is used until it is changed.")
    elif mode == "TRUE":
        mixed = (
            "falls back to base pages as a whole"
            if version == "11.2"
            else "takes what there is and base pages for the rest"
        )
        notes.append(f"use_large_pages = TRUE {mixed} when pages are short, with a line in the alert log only.")
    script = script_pages((sga_bytes,), page_bytes)
    if script is not None:
        notes.append(f"hugepages_settings.sh would ask for about {counted_pages(script, page_bytes)}.")
    notes.append(
        f"On AIX: vmo -r -o lgpg_regions={aix_large_page_regions(sga_bytes)} -o lgpg_size={_AIX_REGION_BYTES}."
    )
    notes.append(
        f"kernel.shmmax must be at least {sga_bytes} ({format_bytes(sga_bytes)}). An ASM instance needs about 200 MiB"
        " more."
    )
    return tuple(notes)


def _automatic(values: Mapping[str, Value]) -> str | None:
    """The parameter that puts the SGA into files of /dev/shm: either does (My Oracle Support, 749851.1)."""
    return next((name for name in ("memory_target", "memory_max_target") if integer(values, name, 0)), None)


def ruled_out(instance: DatabaseInstance) -> str | None:
    """Why the parameters exclude huge pages; None when they do not."""
    values = _TABLE.read(instance.settings)
    if name := _automatic(values):
        return f"{name} is set: automatic memory management works through /dev/shm, without huge pages"
    if values.get("use_large_pages") == "FALSE":
        return "use_large_pages = FALSE: the instance asks for no huge page"
    return None


def possible(instance: DatabaseInstance, context: DemandContext) -> PossibleMemory | None:
    """What sessions may take beyond pga_aggregate_target, which is an aim: up to pga_aggregate_limit.

    None where nothing limits them: before 12.1, and with a limit of 0.
    """
    version = require_version(release_of(instance.version), VERSIONS, DEFAULT_VERSION, "Oracle Database")
    values = _TABLE.read(instance.settings)
    if integer(values, "memory_target", 0):  # all that SGA and PGA may take together is planned
        return None
    target = integer(values, "pga_aggregate_target", 0)
    given_limit = optional(values, "pga_aggregate_limit")
    if given_limit is not None:
        return PossibleMemory("pga_aggregate_limit", given_limit - target) if given_limit > target else None
    limit = None if version in _WITHOUT_LIMIT else default_pga_limit(values, version, context)
    if limit is None or limit <= target:
        return None
    return PossibleMemory(f"pga_aggregate_limit, {format_bytes(limit)} by default", limit - target)


def default_pga_limit(values: Mapping[str, Value], version: str, context: DemandContext) -> int | None:
    """pga_aggregate_limit where it is not set; None where it follows from memory that is not known.

    Twice pga_aggregate_target, at least 2 GiB and 3 MiB per process (5 MiB in a cluster, which a plan does not see).
    12.1 goes below twice the target where 90 % of memory less the SGA is less, since 12.2 that is the limit of a target
    of 0. A target that is not set is a fifth of the SGA (Oracle Database Reference, PGA_AGGREGATE_LIMIT and
    PGA_AGGREGATE_TARGET).
    """
    sga = sga_of(values)
    target = optional(values, "pga_aggregate_target")
    beside_sga = None if context.mem_total_bytes is None else max(0, context.mem_total_bytes * 9 // 10 - sga)
    least = max(_PGA_LIMIT_MIN_BYTES, _PGA_PER_PROCESS_BYTES * integer(values, "processes", 0))
    if target == 0:
        return None if beside_sga is None else max(least, beside_sga)
    target = max(_PGA_TARGET_MIN_BYTES, sga // 5) if target is None else target
    twice = 2 * target
    if version == "12.1" and beside_sga is not None and beside_sga < max(twice, least):
        return max(target, beside_sga)
    return max(least, twice)


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """Only the default size (SHM_HUGETLB). ONLY refuses, TRUE takes what there is."""
    values = _TABLE.read(instance.settings)
    mode = str(values.get("use_large_pages", "TRUE"))
    off = mode == "FALSE" or instance.page_bytes == 0 or _automatic(values) is not None
    shortage = OnShortage.REFUSE if mode in {"ONLY", "AUTO_ONLY"} else OnShortage.PARTIAL
    return PoolUse(page_sizes_bytes=() if off else (context.default_huge_page_bytes,), on_shortage=shortage)


SETTINGS: Final = (
    settings.size("sga_max_size", "The SGA that is mapped."),
    settings.size("sga_target", "The SGA that is used."),
    settings.size("db_cache_size", "Least size of the buffer cache."),
    settings.size("memory_target", "Automatic memory management; excludes huge pages."),
    settings.size("memory_max_target", "Upper limit of memory_target; excludes huge pages, too."),
    settings.size("pga_aggregate_target", "Private memory of all sessions."),
    settings.size("pga_aggregate_limit", "Hard limit of the PGA."),
    settings.count("processes", "Processes, also of clients.", minimum=6, maximum=65_535),
    settings.choice("use_large_pages", "Whether the SGA uses huge pages.", "TRUE", choices=_USE_LARGE_PAGES),
)
_TABLE: Final = SettingTable(SETTINGS, Dialect("Oracle Database", parse_oracle_bytes, format_mysql_bytes, lowered))

ENGINE: Final = Engine(
    name="oracle",
    title="Oracle Database",
    versions=VERSIONS,
    settings=SETTINGS,
    page_choice=PageChoice.DEFAULT,
    demand=demand,
    pool_use=pool_use,
    pool_setting="sga_target",
    sized_by=("sga_target", "sga_max_size", "memory_target", "memory_max_target"),
    has_default_size=False,
    pool_maximum="sga_max_size",
    accesses=block_engine_key_lookup,
    ruled_out=ruled_out,
    possible=possible,
    refusal=("use_large_pages", "ONLY"),
    locks_segment=lambda _: True,
    process_per_connection=True,
    summary="The SGA in whole granules, and one page; the PGA stays on base pages.",
)
