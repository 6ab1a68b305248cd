"""A node's translation hardware: TLB levels, what an entry covers, measured latency."""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.model.words import Confidence, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class TlbLevel:
    """Entries of one TLB level for one page size. ``kind``: data, instr, unified, load or store."""

    level: int
    kind: str
    page_bytes: int
    entries: int | None
    entries_min: int | None = None
    entries_max: int | None = None
    ways: int | str | None = None
    source: Source = Source.UNKNOWN
    confidence: Confidence = Confidence.LOW


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveGranule:
    """What one TLB entry covers for a backing here. Smaller than ``page_bytes``: the guest is fractured."""

    backing: str
    page_bytes: int
    granule_bytes: int | None
    status: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Nanoseconds per access (median, with an interval) at one footprint."""

    footprint_bytes: int
    ns: float
    ns_low: float
    ns_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """ns per dependent access over footprint for one backing.

    ``backing`` is the tlbbench label (``4K``, ``THP``, ``2M``, ``1G``, ``64K`` ...), ``layout`` is
    ``line_per_page`` or ``random_64b``. Points are sorted by footprint.
    """

    backing: str
    page_bytes: int
    layout: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PressurePoint:
    """What a large page saved one random access while other cache lines were read, or time passed, in between.

    Attributes:
        backing, page_bytes: the large page, compared with base pages.
        footprint_bytes: memory the accesses are spread over.
        lines_between, pages_between: other cache lines read between two accesses, and the base pages they lie in.
        period_ns: mean time from one access to the next.
        saving_ns, half_width_ns: ns less per access with the large page, and half of its 95 % interval.
    """

    backing: str
    page_bytes: int
    footprint_bytes: int
    lines_between: int
    pages_between: float
    period_ns: float
    saving_ns: float
    half_width_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFacts:
    """What is known of a node's translation hardware, measured first, catalogue second."""

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    uarch: str | None = None
    catalogue_id: str | None = None
    virtualised: bool | None = None
    core_hz: float | None = None
    l2_hit_penalty_ns: float | None = None
    levels: tuple[TlbLevel, ...] = ()
    granules: tuple[EffectiveGranule, ...] = ()
    curves: tuple[LatencyCurve, ...] = ()
    pressure: tuple[PressurePoint, ...] = ()
