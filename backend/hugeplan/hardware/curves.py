"""From a tlbbench document to the planner's hardware facts: measured values first, catalogue for the gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from hugeplan.documents.tlbbench import (
    Curve,
    CurvePointDocument,
    Geometry,
    Granule,
    Pressure,
    ProcessorDocument,
    TlbbenchDocument,
    TlbLevelDocument,
)
from hugeplan.hardware import catalogue
from hugeplan.planner.evaluation.win_matrix import Timing, WinCase, cases_of, cases_of_curves
from hugeplan.planner.model import (
    Confidence,
    CurvePoint,
    EffectiveGranule,
    HardwareFacts,
    LatencyCurve,
    PressurePoint,
    Source,
    TlbLevel,
)

# A noisy curve is kept: its scatter is in its points and widens the prediction.
USABLE_STATUS = frozenset({"ok", "fractured", "noisy", "stopped"})
GRANTED_ENOUGH = 0.9
"""Share of a huge-page mapping that must really be huge for its curve to stand for the size."""

_SOURCES = {"measured": Source.MEASURED, "cpuid": Source.CPUID, "catalogue": Source.CATALOGUE}
_CONFIDENCE = {"high": Confidence.HIGH, "medium": Confidence.MEDIUM, "low": Confidence.LOW}


def hardware_facts_of(document: TlbbenchDocument) -> HardwareFacts:
    """Hardware facts of the machine a tlbbench document was measured on (schema_version 1).

    Levels the document does not hold are filled from the catalogue and say so. Sections that are absent, skipped or
    failed leave their facts unknown.
    """
    environment = document.environment
    processor = environment.processor if environment else None
    geometry, latency = document.geometry, document.latency
    entry = _catalogue_entry(processor) if processor else None
    core_hz = geometry.clock.core_hz if geometry and geometry.clock else None
    levels = tuple(_level(row) for row in geometry.levels) if geometry else ()
    return HardwareFacts(
        vendor=processor.vendor if processor else None,
        family=processor.family if processor else None,
        model=processor.model if processor else None,
        uarch=entry.uarch if entry else None,
        catalogue_id=entry.id if entry else (processor.catalogue_id if processor else None),
        virtualised=environment.hypervisor.present if environment and environment.hypervisor else None,
        core_hz=core_hz,
        l2_hit_penalty_ns=_l2_hit_ns(geometry, entry, core_hz),
        levels=(*levels, *_missing_levels(levels, entry)),
        granules=tuple(_granule(row) for row in geometry.effective_granule) if geometry else (),
        curves=tuple(_curves(latency.curves)) if latency else (),
        pressure=tuple(_pressure(latency.pressure)) if latency and latency.pressure else (),
    )


def _catalogue_entry(processor: ProcessorDocument) -> catalogue.CatalogueEntry | None:
    found = catalogue.by_id(processor.catalogue_id) if processor.catalogue_id else None
    return (
        found
        or catalogue.by_cpuid(processor.vendor, processor.family, processor.model, processor.stepping)
        or catalogue.by_midr(processor.midr)
        or catalogue.by_pvr(processor.pvr)
    )


def _level(row: TlbLevelDocument) -> TlbLevel:
    return TlbLevel(
        level=row.level,
        kind=row.kind,
        page_bytes=row.page_bytes,
        entries=row.entries,
        entries_min=row.entries_min,
        entries_max=row.entries_max,
        ways=row.ways,
        source=_SOURCES.get(row.source or "", Source.UNKNOWN),
        confidence=_CONFIDENCE.get(row.confidence or "", Confidence.LOW),
    )


def _missing_levels(levels: tuple[TlbLevel, ...], entry: catalogue.CatalogueEntry | None) -> tuple[TlbLevel, ...]:
    """Catalogue levels that were not measured. What CPUID says stays beside them: in a guest it may be hidden."""
    if entry is None:
        return ()
    measured = {(v.level, v.page_bytes) for v in levels if v.source is Source.MEASURED and v.entries is not None}
    return tuple(v for v in entry.levels if (v.level, v.page_bytes) not in measured or v.kind in {"instr", "store"})


def _l2_hit_ns(
    geometry: Geometry | None, entry: catalogue.CatalogueEntry | None, core_hz: float | None
) -> float | None:
    """Extra ns of a first-level miss that hits the second level: measured, else catalogue cycles at this clock."""
    rows = geometry.penalty if geometry else []
    values = [row.ns for row in rows if row.level == "l2_hit" and row.ns is not None]
    if values:
        return min(values)
    if entry is not None and entry.l2_hit_cycles and core_hz:
        return entry.l2_hit_cycles / core_hz * 1e9
    return None


def _granule(row: Granule) -> EffectiveGranule:
    return EffectiveGranule(
        backing=row.backing,
        page_bytes=row.page_bytes,
        granule_bytes=row.granule_bytes,
        status=row.status or "unknown",
    )


def _curves(rows: Iterable[Curve]) -> Iterable[LatencyCurve]:
    """Curves of ns over footprint whose backing was really granted, points sorted by footprint."""
    for row in rows:
        if row.x_name != "footprint_bytes" or row.status not in USABLE_STATUS:
            continue
        if row.granted_fraction is not None and row.granted_fraction < GRANTED_ENOUGH:
            continue
        if row.page_bytes is None or row.layout is None:
            continue  # nothing says what this curve could be compared with
        points = tuple(sorted(_points(row.points), key=lambda point: point.footprint_bytes))
        if points:
            yield LatencyCurve(backing=row.backing, page_bytes=row.page_bytes, layout=row.layout, points=points)


def _points(rows: Iterable[CurvePointDocument]) -> Iterable[CurvePoint]:
    for row in rows:
        median = row.ns_p50
        if median is None:
            continue
        low, high = row.ns_p10, row.ns_p90
        yield CurvePoint(row.x, median, median if low is None else low, median if high is None else high)


def _pressure(section: Pressure) -> Iterable[PressurePoint]:
    """Paired differences under cache pressure. ``delta_ns`` is large minus base, so a saving is its opposite."""
    lines_per_page = section.lines_per_page or 1
    for row in section.points:
        delta, period, low, high = row.delta_ns, row.period_ns, row.ci95_low_ns, row.ci95_high_ns
        if delta is None or period is None or low is None or high is None:
            continue
        yield PressurePoint(
            backing=row.backing,
            page_bytes=row.page_bytes,
            footprint_bytes=row.footprint_bytes,
            lines_between=row.lines_between,
            pages_between=row.lines_between / lines_per_page,
            period_ns=period,
            saving_ns=-delta,
            half_width_ns=(high - low) / 2.0,
        )


#: Rows read come as one rate without an interval: rates closer than twice this share are taken as equal.
ROW_RATE_FRACTION: Final = 0.01
_USABLE: Final = frozenset({None, "ok", "noisy", "fractured"})


def cases_of_run(document: TlbbenchDocument, machine: str, facts: HardwareFacts | None = None) -> tuple[WinCase, ...]:
    """Every point of a run that was measured with two or more page sizes.

    A point is one layout at one footprint, or rows of one width read in one way by so many workers. Backings that
    were not granted are left out. ``facts`` are those of the document, where they were made before.
    """
    curves = (facts or hardware_facts_of(document)).curves
    return (*cases_of_curves(machine, curves), *_cases_of_rows(document, machine))


def _cases_of_rows(document: TlbbenchDocument, machine: str) -> tuple[WinCase, ...]:
    timings: dict[tuple[object, ...], dict[str, Timing]] = defaultdict(dict)
    page_bytes: dict[str, int] = {}
    for row in document.rows.measurements if document.rows else ():
        rate, size = row.rows_per_second, row.page_bytes
        if not rate or size is None or row.status not in _USABLE:
            continue
        page_bytes[row.backing] = size
        ns = 1e9 / rate
        case = (row.row_bytes, row.keys, row.read, row.workers, row.mode, row.segment_bytes)
        timings[case][row.backing] = Timing(ns, ns * (1 - ROW_RATE_FRACTION), ns * (1 + ROW_RATE_FRACTION))
    named = {
        f"rows of {row_bytes} bytes, {keys} {read}, {workers} {mode}, {segment_bytes} bytes": own
        for (row_bytes, keys, read, workers, mode, segment_bytes), own in timings.items()
        if len(own) >= 2
    }
    return cases_of(machine, named, page_bytes)
