"""The Java virtual machine with -XX:+UseLargePages: the heap, the code cache and the collector's side tables.

Each region is reserved on its own, at the largest huge page size that is allowed and that divides or fits it, and
falls back to base pages on its own. What is reserved was read from the mappings of real JVMs 17, 21 and 25 with every
collector (``backend/tools/mapped_pages.py``) and from src/hotspot: the heap is always reserved up to Xmx, the
code cache as a whole, the side tables only where a table is at least one page.
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
    require_version,
    whole_page_fits,
)
from hugeplan.planner.demand.engines.jvm_heap import NOT_COUNTED, heap_of
from hugeplan.planner.demand.settings import Dialect, SettingTable, Value, integer
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    Demand,
    FitSuggestion,
    PublishedGain,
    Range,
    SettingAdvice,
)
from hugeplan.planner.pages import ceil_pages, ceil_to_multiple, counted_pages, floor_to_multiple, page_label
from hugeplan.planner.units import format_mysql_bytes, parse_jvm_bytes

VERSIONS: Final = ("25", "24", "23", "22", "21", "20", "19", "18", "17", "11", "8")
DEFAULT_VERSION: Final = "21"

SPECJBB: Final = PublishedGain(Range(0.0, 8.1, 10.0), "SPECjbb2005: +8 to +10 % (VMware)")
COLLECTORS: Final = ("G1", "Parallel", "Serial", "Z", "Shenandoah")

_CODE_CACHE_BYTES: Final = 240 * MIB
_CODE_CACHE_MIN_PAGES: Final = 8  # codeCache.cpp, page_size(min_pages)
_PARALLEL_MIN_PAGES: Final = 10  # parMarkBitMap.cpp, page_size_for_region_aligned(raw_bytes, 10)
_ONE_BITMAP_SINCE: Final = 20  # G1 dropped its second mark bitmap (JDK-8210708)
_ONE_PARALLEL_BITMAP_SINCE: Final = 23  # Parallel marks begins alone, no longer begins and ends (JDK-8329203)
_OLD_SHARE: Final = (2, 3)  # NewRatio = 2: two thirds of the heap are the old generation
_YOUNG_UNIT_BYTES: Final = 64 * KIB  # Serial: the young generation is whole units (Generation::GenGrain)
_CODE_SEGMENT_BYTES: Final = 128
_ALIGNED_CODE_HEAPS_SINCE: Final = 25  # each of the three default heaps in whole pages; traced in 25, not in 21
_SEGMENTED_CODE_CACHE_BYTES: Final = 240 * MIB
_NON_METHOD_CODE_BYTES: Final = 5_826_188
_CARDS_BYTES: Final = 2 * MIB  # CardTable::ct_max_alignment_constraint: 512 base pages of 4 KiB
_TARGET_REGIONS: Final = 2048
_REGION_MAX_BYTES: Final = 32 * MIB
_G1_REGION_MAX_BYTES: Final = 512 * MIB  # where it is set
_REGION_OF_MAXIMUM_SINCE: Final = 15  # before, of the mean of Xms and Xmx, rounded down
_NO_CARD_COUNTS_SINCE: Final = 21  # G1 dropped the hot card cache (JDK-8225409)
_THREAD_STACK_BYTES: Final = MIB
_READ_ONLY_ERROR_BYTES: Final = 4 * MIB
_REFERENCE: Final = "OpenJDK src/hotspot, Universe::reserve_heap, CodeCache::page_size, g1CollectedHeap.cpp"
_TRACED_MAJORS: Final = frozenset({17, 21, 25})


@dataclass(frozen=True, slots=True)
class Region:
    """A region that the JVM reserves with large pages, and the size of page it takes there; None for base pages."""

    name: str
    size_bytes: int
    count: int
    page_bytes: int | None


def largest_aligned_page(size_bytes: int, pages: int, sizes_bytes: tuple[int, ...]) -> int | None:
    """The largest page size that divides the region into at least ``pages`` (os::page_size_for_region_aligned)."""
    fitting = [size for size in sizes_bytes if size_bytes % size == 0 and size_bytes // size >= pages]
    return max(fitting) if fitting else None


def largest_unaligned_page(size_bytes: int, sizes_bytes: tuple[int, ...]) -> int | None:
    """The largest page size not above the region (os::page_size_for_region_unaligned)."""
    fitting = [size for size in sizes_bytes if size <= size_bytes]
    return max(fitting) if fitting else None


def heap_unit_bytes(collector: str, heap_bytes: int, major: int, values: Mapping[str, Value], page_bytes: int) -> int:
    """What the heap is raised to whole units of: the collector's regions, and at least 2 MiB (the cards of a page).

    G1: a 2048th of the heap as a power of two, 1 to 32 MiB, rounded up since 15 (JDK-8241670) and down before, where
    Xms counts by half. Shenandoah: up to whole pages, where ten fit, then down. MaxHeapSize of real JVMs 17 and 25.
    """
    if collector == "G1":
        since = major >= _REGION_OF_MAXIMUM_SINCE
        initial = heap_bytes if since else min(heap_bytes, integer(values, "Xms", heap_bytes))
        region = integer(values, "G1HeapRegionSize", 0) or (heap_bytes + initial) // 2 // _TARGET_REGIONS
        top = _G1_REGION_MAX_BYTES if values.get("G1HeapRegionSize") else _REGION_MAX_BYTES
        power = 1 << ((region - 1).bit_length() if since else region.bit_length() - 1)
        return max(_CARDS_BYTES, min(power, top))
    if collector == "Shenandoah":
        region = integer(values, "ShenandoahRegionSize", 0) or heap_bytes // _TARGET_REGIONS
        whole = ceil_to_multiple(region, page_bytes)
        region = whole if heap_bytes >= 10 * whole else region
        return max(_CARDS_BYTES, min(1 << max(0, region.bit_length() - 1), _REGION_MAX_BYTES))
    return _CARDS_BYTES


def heap_region(heap_bytes: int, alignment_bytes: int, page_bytes: int, sizes_bytes: tuple[int, ...]) -> Region:
    """The heap up to Xmx, raised to the collector's alignment and whole large pages (GCArguments, HeapAlignment)."""
    if page_bytes not in sizes_bytes:
        return Region("heap", ceil_to_multiple(heap_bytes, alignment_bytes), 1, None)
    return Region("heap", ceil_to_multiple(heap_bytes, max(alignment_bytes, page_bytes)), 1, page_bytes)


def pool_step(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> int:
    """The unit of the heap: its collector's alignment, or a large page where that is more."""
    values = _TABLE.read(instance.settings)
    major = int(require_version(release_of(instance.version), VERSIONS, DEFAULT_VERSION, "the JVM"))
    collector = collector_of(instance, values, context)
    heap = heap_of(instance, values, context, major, collector)
    return max(heap_unit_bytes(collector, heap.bytes, major, values, page_bytes), page_bytes)


def code_cache_regions(given_bytes: int | None, major: int, sizes_bytes: tuple[int, ...]) -> tuple[Region, ...]:
    """The code cache, raised to whole pages where at least eight fit, and from 240 MiB the maps of its segments.

    From 240 MiB it is three heaps (codeCache.cpp). Where no size was given, 25 rounds them up one by one: 242 MiB in 2M
    pages. The map of each of the two heaps of methods, a 128th of it, takes the whole pages in it.
    """
    code_bytes = _CODE_CACHE_BYTES if given_bytes is None else given_bytes
    page = max((size for size in sizes_bytes if code_bytes // size >= _CODE_CACHE_MIN_PAGES), default=None)
    if page is None:
        return (Region("code cache", code_bytes, 1, None),)
    heap = (code_bytes - _NON_METHOD_CODE_BYTES) // 2
    if given_bytes is None and major >= _ALIGNED_CODE_HEAPS_SINCE:
        code_bytes = ceil_to_multiple(_NON_METHOD_CODE_BYTES, page) + 2 * ceil_to_multiple(heap, page)
    cache = Region("code cache", ceil_to_multiple(code_bytes, page), 1, page)
    small = min(sizes_bytes)
    segments = floor_to_multiple(heap // _CODE_SEGMENT_BYTES, small)
    if code_bytes < _SEGMENTED_CODE_CACHE_BYTES or not segments:
        return (cache,)
    return (cache, Region("code cache segment maps", segments, 2, small))


def side_regions(collector: str, heap_bytes: int, major: int, sizes_bytes: tuple[int, ...]) -> tuple[Region, ...]:
    """The collector's own tables.

    G1: mark bitmaps of a 64th of the heap (two before 20), and block offset, card and card count tables of a 512th.
    Parallel: a mark bitmap of a 32nd (of a 64th since 23), if it divides into ten pages; since 23 also the whole pages
    of the object starts, a 512th of the old generation (traced in 25). Serial: the same whole pages (traced in 17 and
    25). Shenandoah: two bitmaps of a 32nd and a page for its regions. Z: none on large pages.
    """
    if collector == "G1":
        bitmaps = 1 if major >= _ONE_BITMAP_SINCE else 2
        tables = 2 if major >= _NO_CARD_COUNTS_SINCE else 3
        return (
            _table("G1 mark bitmap", heap_bytes // 64, bitmaps, sizes_bytes),
            _table("G1 card, block offset and count tables", heap_bytes // 512, tables, sizes_bytes),
        )
    if collector == "Parallel":
        single = major >= _ONE_PARALLEL_BITMAP_SINCE
        bitmap = heap_bytes // (64 if single else 32)
        page = largest_aligned_page(bitmap, _PARALLEL_MIN_PAGES, sizes_bytes)
        marks = Region("Parallel mark bitmap", bitmap, 1, page)
        small = min(sizes_bytes, default=None)
        old = heap_bytes * _OLD_SHARE[0] // _OLD_SHARE[1]
        starts = floor_to_multiple(old // 512, small) if small and single else 0
        return (marks, Region("Parallel object starts", starts, 1, small)) if starts else (marks,)
    if collector == "Serial":
        old = heap_bytes - floor_to_multiple(heap_bytes // 3, _YOUNG_UNIT_BYTES)
        table = ceil_to_multiple(old // 512 + 1, 4 * KIB)  # a byte past the last card, in pages of the allocator
        page = largest_unaligned_page(table, sizes_bytes)
        return () if page is None else (Region("Serial object starts", floor_to_multiple(table, page), 1, page),)
    if collector == "Shenandoah":
        pair = _table("Shenandoah bitmap", heap_bytes // 32, 2, sizes_bytes)
        smallest = min(sizes_bytes, default=None)
        if smallest is None:
            return (pair,)
        return (pair, Region("Shenandoah region table", smallest, 1, smallest))
    return ()


def _table(name: str, size_bytes: int, count: int, sizes_bytes: tuple[int, ...]) -> Region:
    page = largest_unaligned_page(size_bytes, sizes_bytes)
    return Region(name, ceil_to_multiple(size_bytes, page) if page else size_bytes, count, page)


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """What a JVM needs with ``page_bytes`` as its largest page size; regions on smaller pages are in ``also_pages``.

    Errors: UnknownVersionError, UnknownSettingError, SettingValueError or UnitError, naming the setting.
    """
    version = require_version(release_of(instance.version), VERSIONS, DEFAULT_VERSION, "the JVM")
    values = _TABLE.read(instance.settings)
    huge = page_bytes > context.base_page_bytes
    sizes = tuple(size for size in context.huge_page_sizes_bytes if size <= page_bytes) if huge else ()
    collector = collector_of(instance, values, context)
    heap_bytes, basis = heap_of(instance, values, context, int(version), collector)
    alignment = heap_unit_bytes(collector, heap_bytes, int(version), values, page_bytes)
    heap = heap_region(heap_bytes, alignment, page_bytes, sizes)
    regions = (
        heap,
        *code_cache_regions(integer(values, "ReservedCodeCacheSize", 0) or None, int(version), sizes),
        *side_regions(collector, heap.size_bytes, int(version), sizes),
    )
    wanted = [region for region in regions if region.page_bytes == page_bytes or not huge or region is heap]
    smaller: dict[int, int] = {}
    for region in regions:
        if region.page_bytes is not None and region.page_bytes != page_bytes:
            pages = region.count * ceil_pages(region.size_bytes, region.page_bytes)
            smaller[region.page_bytes] = smaller.get(region.page_bytes, 0) + pages
    also = tuple(sorted(smaller.items()))
    parts = DemandParts(
        segments=tuple(
            equal_mappings(region.name, region.size_bytes, region.count, page_bytes, _REFERENCE) for region in wanted
        ),
        default_version=DEFAULT_VERSION,
        buffer_pool_bytes=heap_bytes,
        remarks=Remarks(
            error_pages=_error_pages(collector, heap.size_bytes, int(version), page_bytes, sizes),
            settings=_advice(page_bytes, heap_bytes, basis),
            fits=_fits(heap_bytes, page_bytes),
            notes=_notes(collector, also, page_bytes, basis),
        )
        if huge
        else Remarks(),
        private_bytes_per_connection=_THREAD_STACK_BYTES,
        also_pages=also,
        on_base_bytes=sum(r.size_bytes * r.count for r in regions if r.page_bytes is None and huge and r is not heap),
    )
    return build_demand(instance, page_bytes, parts)


def release_of(version: str | None) -> str | None:
    """A release as it is counted since 9: 8 of ``1.8.0_392``, which older virtual machines print."""
    return None if version is None else re.sub(r"^1\.(\d+)", r"\1", version.strip())


def collector_of(instance: DatabaseInstance, values: Mapping[str, Value], context: DemandContext) -> str:
    """The collector that the options choose; else G1, or Serial on fewer than two processors or 1792 MiB."""
    chosen = values.get("gc")
    if chosen is not None:
        return str(chosen)
    for name in COLLECTORS:
        if values.get(f"Use{name}GC"):
            return name
    memory = context.memory_of(instance)
    return "Serial" if (memory is not None and memory < 1792 * MIB) or context.cpus == 1 else "G1"


def _error_pages(collector: str, heap_bytes: int, major: int, page_bytes: int, sizes_bytes: tuple[int, ...]) -> int:
    """Pages of this size that side tables may take: none where each of them lies on smaller huge pages.

    Nothing for what was traced (17, 21 and 25); two pages of 2M for what was only read.
    """
    side = {0 if major in _TRACED_MAJORS else _READ_ONLY_ERROR_BYTES}
    if collector == "Parallel":
        side.add(heap_bytes // 512)  # block table of the summary data
    if collector == "Shenandoah" and page_bytes == min(sizes_bytes, default=page_bytes):
        side.add(page_bytes)
    smaller = any(size < page_bytes for size in sizes_bytes)
    return sum(ceil_pages(size, page_bytes) for size in side if size >= page_bytes or not smaller)


def _advice(page_bytes: int, heap_bytes: int, basis: str | None) -> tuple[SettingAdvice, ...]:
    size = format_mysql_bytes(page_bytes).lower()
    heap = format_mysql_bytes(heap_bytes).lower()
    return (
        SettingAdvice(name="-XX:+UseLargePages", value="", reason="Huge pages are asked for only with it."),
        SettingAdvice(
            name="-XX:LargePageSizeInBytes",
            value=size,
            reason="The largest page size to use; smaller regions take smaller pages.",
        ),
        SettingAdvice(name="-Xms", value=heap, reason="Equal to -Xmx, so that the heap does not move in size."),
        SettingAdvice(name="-XX:+AlwaysPreTouch", value="", reason="A shortage shows at start, not under load."),
        SettingAdvice(name="-Xmx", value=heap, reason=f"The heap that the plan counts{f': {basis}' if basis else ''}."),
    )


def _fits(heap_bytes: int, page_bytes: int) -> tuple[FitSuggestion, ...]:
    if page_bytes < 16 * MIB:
        return ()
    return whole_page_fits("Xmx", "heap", heap_bytes, page_bytes, lambda size: format_mysql_bytes(size).lower())


def _notes(collector: str, also: tuple[tuple[int, int], ...], page_bytes: int, basis: str | None) -> tuple[str, ...]:
    notes = [f"Collector {collector}; the heap is reserved up to Xmx at start."]
    if basis is not None:
        notes.append(f"No Xmx is given, so the heap is {basis}.")
    for size, pages in also:
        notes.append(f"Code cache and side tables take {counted_pages(pages, size)} where such a pool exists.")
    if collector == "Z":
        notes.append("ZGC's wiki advises an eighth more than the heap (18 GiB for 16 GiB) for what is not heap.")
        notes.append("ZGC does not start with pages of another size than 2M, nor with a part of its pages.")
    elif page_bytes >= GIB:
        notes.append("Without the pages the JVM falls back to smaller pages with only a warning.")
    return tuple(notes)


def ruled_out(instance: DatabaseInstance) -> str | None:
    """Why the options exclude huge pages; None when they do not."""
    off = _TABLE.read(instance.settings).get("UseLargePages") is False
    return "-XX:-UseLargePages: the JVM asks for no huge page" if off else None


def ends_with(instance: DatabaseInstance, page_bytes: int) -> str | None:
    """ZGC takes pages of 2M alone: JDK 17 and 25 end with others (zPhysicalMemoryBacking_linux.cpp)."""
    is_z = collector_of(instance, _TABLE.read(instance.settings), DemandContext()) == "Z"
    said = f"ZGC does not start with pages of {page_label(page_bytes)}, it takes those of 2M alone"
    return said if is_z and page_bytes != 2 * MIB else None


def named_size(instance: DatabaseInstance) -> int | None:
    """LargePageSizeInBytes where it is set: the largest size that the JVM tries."""
    return integer(_TABLE.read(instance.settings), "LargePageSizeInBytes", 0) or None


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """LargePageSizeInBytes is the largest size tried, by default the kernel's; ZGC does not fall back (engines.md)."""
    values = _TABLE.read(instance.settings)
    largest = integer(values, "LargePageSizeInBytes", 0) or instance.page_bytes or context.default_huge_page_bytes
    off = instance.page_bytes == 0 or values.get("UseLargePages") is False
    sizes = tuple(sorted((s for s in context.huge_page_sizes_bytes if s <= largest), reverse=True))
    whole = collector_of(instance, values, context) == "Z"
    return PoolUse(
        page_sizes_bytes=() if off else sizes,
        on_shortage=OnShortage.REFUSE if whole else OnShortage.BASE_PAGES,
        within_mapping=True,
        all_or_none=("UseZGC", "on") if whole else None,
    )


def option_name(name: str) -> str:
    """``-Xmx``, ``-XX:ReservedCodeCacheSize`` and ``-XX:+UseG1GC`` without their dashes."""
    stripped = name.strip()
    for prefix in ("-XX:+", "-XX:", "-"):
        if stripped.startswith(prefix):
            return stripped.removeprefix(prefix)
    return stripped


SETTINGS: Final = (
    settings.size("Xmx", "Largest heap.", minimum=2 * MIB),
    settings.size("MaxHeapSize", "The same as Xmx.", minimum=2 * MIB),
    settings.size("Xms", "Heap at start; the largest heap is no smaller."),
    settings.size("InitialHeapSize", "The same as Xms."),
    settings.size("MinHeapSize", "Smallest heap; the largest heap is no smaller."),
    settings.size("MaxRAM", "The memory that a heap without Xmx is a share of.", minimum=MIB),
    settings.real("MaxRAMPercentage", "The heap's share of the memory that the JVM sees, 25 by default.", maximum=100),
    settings.real("MinRAMPercentage", "The share of less than 250 MiB, 50 by default.", maximum=100),
    settings.real("InitialRAMPercentage", "The share at start.", maximum=100),
    settings.switch("UseContainerSupport", "Off: it sees the node's memory, not its container's."),
    settings.switch("UseCompressedOops", "Whether pointers are compressed, which bounds a heap without Xmx."),
    *(settings.text(name, "Not counted: give Xmx beside it.") for name in NOT_COUNTED),
    settings.size("G1HeapRegionSize", "G1's region; the heap is whole regions.", minimum=MIB, maximum=512 * MIB),
    settings.size(
        "ShenandoahRegionSize", "Shenandoah's region; the heap is whole regions.", minimum=256 * KIB, maximum=32 * MIB
    ),
    settings.size("ReservedCodeCacheSize", "Code cache.", "240m", minimum=2 * MIB, maximum=2 * GIB),
    settings.size("LargePageSizeInBytes", "Largest page size to use.", minimum=64 * KIB),
    settings.choice("gc", "Garbage collector.", "G1", choices=COLLECTORS),
    *(settings.switch(f"Use{name}GC", f"Choose the {name} collector.") for name in COLLECTORS),
    settings.switch("UseLargePages", "Whether huge pages are asked for.", "off"),
    settings.switch("AlwaysPreTouch", "Touch the heap at start.", "off", matters=False),
)
_TABLE: Final = SettingTable(SETTINGS, Dialect("the JVM", parse_jvm_bytes, format_mysql_bytes, option_name))

ENGINE: Final = Engine(
    name="jvm",
    title="Java virtual machine",
    versions=VERSIONS,
    settings=SETTINGS,
    page_choice=PageChoice.NAMED,
    named_size=named_size,
    size_setting="LargePageSizeInBytes",
    demand=demand,
    pool_use=pool_use,
    pool_setting="Xmx",
    sized_by=("Xmx", "MaxHeapSize", "MaxRAM"),
    shared_by="MaxRAMPercentage",
    maps_as_it_grows="UseZGC",
    pool_step=pool_step,
    ruled_out=ruled_out,
    ends_with=ends_with,
    published={"oltp": SPECJBB},
    aliases=("java", "openjdk", "hotspot"),
    summary="Heap, code cache and the collector's tables.",
)
