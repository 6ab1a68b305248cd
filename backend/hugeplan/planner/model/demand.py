"""What one database instance needs at one page size."""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.model.words import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingAdvice:
    """A setting to write into the engine's configuration, and why."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSuggestion:
    """A buffer pool setting that fills whole pages: the setting's new value and the waste before and after."""

    setting: str
    value: str
    direction: str  # grow | shrink
    waste_before_bytes: int
    waste_after_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One mapping the engine asks for: ``count`` mappings of ``segment_bytes``, each rounded up on its own."""

    name: str
    segment_bytes: int
    count: int
    pages: int
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one instance needs at one page size.

    ``pages`` = sum of the segments' pages; ``error_pages`` is the rule's stated error bar, +- pages.
    ``also_pages`` are (page_bytes, pages) of smaller huge page sizes that it takes too, where such a pool exists;
    without one those parts use base pages. ``private_fixed_bytes`` is base-page memory that no connection causes.
    ``on_base_bytes``: mappings beside the pool that stay on base pages whatever pools there are.
    ``wants_pool`` False: the right answer for this engine is no hugetlb pool (``notes`` says why).
    ``is_limit``: nobody can map more than this, as of a pod of which its limit alone is known; it gets no slack.
    """

    engine: str
    version: str | None
    page_bytes: int
    wants_pool: bool
    segments: tuple[Segment, ...]
    segment_bytes: int
    pages: int
    error_pages: int
    waste_bytes: int
    pool_bytes: int | None  # the engine's own buffer pool, by its published name
    private_bytes_per_connection: int | None
    connections: int | None
    process_per_connection: bool
    page_cache_bytes: int | None
    settings: tuple[SettingAdvice, ...] = ()
    fits: tuple[FitSuggestion, ...] = ()
    notes: tuple[str, ...] = ()
    also_pages: tuple[tuple[int, int], ...] = ()
    private_fixed_bytes: int | None = None
    on_base_bytes: int = 0
    is_limit: bool = False

    @property
    def without_connections_bytes(self) -> int:
        """What it takes before anybody is connected: its segments, and private memory that no connection causes."""
        return self.segment_bytes + (self.private_fixed_bytes or 0)
