"""What an engine is to the planner, and the helpers that every engine's rule shares.

An engine is one file with one demand function and one row in ``registry.py``. No engine knows another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hugeplan.planner.demand.accesses import AccessProfile, generic_lookup
from hugeplan.planner.errors import PageSizeError, SettingValueError, UnknownVersionError
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    Demand,
    Explanation,
    FitSuggestion,
    NodeFacts,
    PublishedGain,
    Segment,
    SettingAdvice,
    Source,
    Term,
)
from hugeplan.planner.pages import ceil_pages, ceil_to_multiple, floor_to_multiple, page_label
from hugeplan.planner.units import format_bytes, format_mysql_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandContext:
    """What a demand may depend on besides the instance: the node's page sizes, processors and memory."""

    arch: str = "x86_64"
    base_page_bytes: int = 4 * KIB
    huge_page_sizes_bytes: tuple[int, ...] = (2 * MIB, GIB)
    default_huge_page_bytes: int = 2 * MIB
    cpus: int | None = None
    mem_total_bytes: int | None = None

    @classmethod
    def of_node(cls, node: NodeFacts) -> DemandContext:
        """The context that a node gives."""
        return cls(
            arch=node.arch,
            base_page_bytes=node.base_page_bytes,
            huge_page_sizes_bytes=tuple(sorted(node.huge_page_sizes_bytes)),
            default_huge_page_bytes=node.default_huge_page_bytes,
            cpus=node.cpus,
            mem_total_bytes=node.mem_total_bytes,
        )

    def memory_of(self, instance: DatabaseInstance) -> int | None:
        """The memory in bytes that an instance sees: the node's, or its container's limit where that is less."""
        sizes = (self.mem_total_bytes, instance.pod_memory_limit_bytes, instance.memory_limit_bytes)
        return min((size for size in sizes if size is not None), default=None)


class SettingKind(StrEnum):
    """How a setting is written."""

    BYTES = "bytes"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    ENUM = "enum"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting of an engine: its kind, range and default, as the interface offers it.

    ``minimum`` and ``maximum`` are bytes for BYTES and counts for INTEGER; ``default`` is written as the engine
    writes it, None where the engine computes it. ``matters`` is False for settings that do not change memory.
    """

    name: str
    kind: SettingKind = field(kw_only=True)
    summary: str
    default: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    unit_bytes: int = 1
    choices: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    matters: bool = True


class PageChoice(StrEnum):
    """Which of the node's huge page pools an engine draws from."""

    NAMED = "named"  # the size its own setting names, else the default size
    DEFAULT = "default"  # only the kernel's default huge page size
    LARGEST_FIRST = "largest_first"  # every size from the largest that fits downwards
    NONE = "none"  # no pool


class OnShortage(StrEnum):
    """What an engine does when a pool cannot hold a mapping."""

    BASE_PAGES = "base_pages"  # the mapping silently uses base pages
    REFUSE = "refuse"  # the engine does not start
    PARTIAL = "partial"  # takes what there is, the rest on base pages


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """How an instance takes pages: the sizes it tries in order, and what happens on a shortage.

    ``within_mapping``: a size above the mapping is not tried. Without it a small mapping takes a whole large page.
    ``all_or_none``: the setting with which it refuses a part of its pages, but starts where no page at all is free.
    """

    page_sizes_bytes: tuple[int, ...]
    on_shortage: OnShortage
    within_mapping: bool = False
    all_or_none: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PossibleMemory:
    """Ordinary memory that an instance may take beyond what is planned, in bytes, and the setting that allows it."""

    setting: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A database engine's entry in the registry: everything the planner knows of it hangs here.

    Attributes:
        demand: segments and pages at one page size.
        pool_use: which pools it draws from, and what happens on a shortage.
        pool_setting: the setting that sizes the buffer pool; None where there is none.
        pool_step: the unit in bytes to which the engine rounds a pool of this size up, on pages of a size; whole MiB
            where it takes each of them.
        also_read: settings that the demand reads beside ``settings``; all of them are numbers.
        sized_by: settings that say how much memory it takes, the usual one first.
        shares_memory: whether an instance's size is a share of the memory that it sees.
        shared_by: the setting that says which share of the memory that it sees it takes, where it has no size; None
            where that memory does not decide it.
        maps_as_it_grows: the switch with which it maps no more than it has needed yet; None where it maps all at start.
        has_default_size: False where it does not run without one of ``sized_by``.
        pool_maximum: a setting that maps the pool's maximum: it follows the pool where the planner sizes it.
        named_size: the page size in bytes that an instance's own settings name; None where they leave it open.
        size_setting: the setting that names it.
        ruled_out: the sentence why an instance's settings exclude huge pages; None when they do not.
        ends_with: the sentence why an instance does not start with pages of a size in bytes; None where it does.
        possible: memory that its settings allow beyond what is planned; None where they bound nothing.
        accesses: what one operation accesses in shared memory.
        published: published gains by operation class.
        refusal: the setting and the value with which a short pool is refused; None where no setting does that.
        locks_segment: whether a version maps System V segments or locks them, so that RLIMIT_MEMLOCK must cover the
            segment. MAP_HUGETLB needs no such limit: a JVM with 64 KiB of it runs on its pool.
        format_size: a size in bytes as the engine writes sizes.
    """

    name: str
    title: str
    versions: tuple[str, ...]
    settings: tuple[SettingSpec, ...]
    page_choice: PageChoice
    demand: Callable[[DatabaseInstance, int, DemandContext], Demand]
    pool_use: Callable[[DatabaseInstance, DemandContext], PoolUse]
    pool_setting: str | None
    pool_step: Callable[[DatabaseInstance, int, DemandContext], int] = lambda *_: MIB
    also_read: frozenset[str] = frozenset()
    sized_by: tuple[str, ...] = ()
    shares_memory: Callable[[DatabaseInstance], bool] = lambda _: False
    shared_by: str | None = None
    maps_as_it_grows: str | None = None
    has_default_size: bool = True
    pool_maximum: str | None = None
    named_size: Callable[[DatabaseInstance], int | None] = lambda _: None
    size_setting: str = ""
    process_per_connection: bool = False
    ruled_out: Callable[[DatabaseInstance], str | None] = lambda _: None
    ends_with: Callable[[DatabaseInstance, int], str | None] = lambda *_: None
    possible: Callable[[DatabaseInstance, DemandContext], PossibleMemory | None] = lambda *_: None
    accesses: Callable[[DatabaseInstance, Demand], AccessProfile] = generic_lookup
    published: Mapping[str, PublishedGain] = field(default_factory=dict)
    refusal: tuple[str, str] | None = None
    locks_segment: Callable[[str], bool] = lambda _: False
    format_size: Callable[[int], str] = format_mysql_bytes
    aliases: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """What a rule says beside its count: its error bar, settings to write, sizes that fit whole pages, notes.

    ``error_bytes``: by how much the segments may be larger; pages follow from it last, and the room in the last page is
    used first. ``error_pages``: further pages, of rules whose mappings are rounded one by one.
    """

    error_bytes: int = 0
    error_pages: int = 0
    settings: tuple[SettingAdvice, ...] = ()
    fits: tuple[FitSuggestion, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandParts:
    """What a rule found out; :func:`build_demand` turns it into a Demand.

    ``connections`` is what the settings say; a count given with the instance goes before it.
    """

    segments: tuple[Segment, ...]
    default_version: str | None
    buffer_pool_bytes: int | None
    remarks: Remarks
    wants_pool: bool = True
    private_bytes_per_connection: int | None = None
    connections: int | None = None
    process_per_connection: bool = False
    page_cache_bytes: int | None = None
    also_pages: tuple[tuple[int, int], ...] = ()
    private_fixed_bytes: int | None = None
    on_base_bytes: int = 0


def build_demand(instance: DatabaseInstance, page_bytes: int, parts: DemandParts) -> Demand:
    """A Demand whose totals are the sums of its segments."""
    segment_bytes = sum(segment.segment_bytes * segment.count for segment in parts.segments)
    pages = sum(segment.pages for segment in parts.segments)
    return Demand(
        engine=instance.engine,
        version=instance.version or parts.default_version,
        page_bytes=page_bytes,
        wants_pool=parts.wants_pool,
        segments=parts.segments,
        segment_bytes=segment_bytes,
        pages=pages,
        error_pages=parts.remarks.error_pages
        + pages_for_error(pages, segment_bytes, parts.remarks.error_bytes, page_bytes),
        waste_bytes=pages * page_bytes - segment_bytes,
        pool_bytes=parts.buffer_pool_bytes,
        private_bytes_per_connection=parts.private_bytes_per_connection,
        connections=parts.connections if instance.connections is None else instance.connections,
        process_per_connection=parts.process_per_connection,
        page_cache_bytes=parts.page_cache_bytes,
        settings=parts.remarks.settings,
        fits=parts.remarks.fits,
        notes=parts.remarks.notes,
        also_pages=parts.also_pages,
        private_fixed_bytes=parts.private_fixed_bytes,
        on_base_bytes=parts.on_base_bytes,
    )


def pages_for_error(pages: int, segment_bytes: int, error_bytes: int, page_bytes: int) -> int:
    """Pages beyond ``pages`` that a segment larger by its error needs: ``ceil((segment + error) / page) - pages``."""
    return max(0, ceil_pages(segment_bytes + error_bytes, page_bytes) - pages) if error_bytes else 0


def whole_mapping(name: str, size_bytes: int, page_bytes: int, explanation: Explanation, count: int = 1) -> Segment:
    """``count`` mappings, each rounded up to whole pages on its own."""
    return Segment(
        name=name,
        segment_bytes=size_bytes,
        count=count,
        pages=count * ceil_pages(size_bytes, page_bytes),
        explanation=explanation,
    )


def equal_mappings(name: str, size_bytes: int, count: int, page_bytes: int, reference: str) -> Segment:
    """``count`` mappings of one size, explained by nothing but that."""
    explanation = Explanation(
        formula="pages = mappings x ceil(mapping / page)",
        inputs=(
            computed("mapping", size_bytes),
            computed("mappings", count, is_bytes=False),
            given("page", page_bytes),
        ),
        reference=reference,
    )
    return whole_mapping(name, size_bytes, page_bytes, explanation, count)


def whole_page_fits(
    setting: str, what: str, size_bytes: int, page_bytes: int, format_size: Callable[[int], str]
) -> tuple[FitSuggestion, ...]:
    """Values of ``setting`` that leave no part of the last page of one mapping empty: the next below, the next above.

    Nothing where ``size_bytes`` is whole pages already. ``what`` names the mapping in the reason.
    """
    shrunk, grown = floor_to_multiple(size_bytes, page_bytes), ceil_to_multiple(size_bytes, page_bytes)
    if shrunk == grown:
        return ()
    return tuple(
        FitSuggestion(
            setting=setting,
            value=format_size(size),
            direction=direction,
            waste_before_bytes=grown - size_bytes,
            waste_after_bytes=0,
            reason=f"The {what} then fills whole pages of {page_label(page_bytes)}.",
        )
        for direction, size in (("shrink", shrunk), ("grow", grown))
        if size
    )


def given(name: str, value: int, *, is_bytes: bool = True) -> Term:
    """A setting's value as an input of an explanation."""
    return Term(name, format_bytes(value) if is_bytes else str(value), Source.GIVEN)


def computed(name: str, value: int, reference: str | None = None, *, is_bytes: bool = True) -> Term:
    """An intermediate result as an input of an explanation."""
    return Term(name, format_bytes(value) if is_bytes else str(value), Source.COMPUTED, reference)


def assumed(name: str, value: str, reference: str | None = None) -> Term:
    """A default or an assumption as an input of an explanation."""
    return Term(name, value, Source.ASSUMED, reference)


def require_page_size(page_bytes: int, context: DemandContext, field_name: str = "page_size") -> int:
    """``page_bytes`` if the node can map it: its base page size or one of its huge page sizes."""
    allowed = (context.base_page_bytes, *context.huge_page_sizes_bytes)
    if page_bytes not in allowed:
        labels = ", ".join(page_label(size) for size in allowed)
        raise PageSizeError(field_name, page_label(page_bytes), f"one of the node's page sizes: {labels}")
    return page_bytes


def closest_hint(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` when a known name is close."""
    import difflib  # noqa: PLC0415 - only on the error path

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def require_version(version: str | None, known: tuple[str, ...], default: str, engine: str) -> str:
    """The entry of ``known`` that ``version`` belongs to: itself, or its release line (``8.0.36`` -> ``8.0``)."""
    if version is None:
        return default
    text = str(version).strip()
    for candidate in sorted(known, key=len, reverse=True):
        if text == candidate or text.startswith(candidate + "."):
            return candidate
    raise UnknownVersionError("version", version, f"a version of {engine}: {', '.join(known)}")


def parse_boolean(text: str | bool, field_name: str) -> bool:
    """on/off, true/false, yes/no, 1/0 in either case."""
    value = str(text).strip().strip("'").lower()
    if value in {"on", "true", "yes", "1"}:
        return True
    if value in {"off", "false", "no", "0"}:
        return False
    raise SettingValueError(field_name, text, "on or off")


def parse_enum(text: str | bool, choices: tuple[str, ...], field_name: str) -> str:
    """One of ``choices``, in either case."""
    value = str(text).strip().strip("'").lower()
    for choice in choices:
        if value == choice.lower():
            return choice
    raise SettingValueError(field_name, text, f"one of {', '.join(choices)}")
