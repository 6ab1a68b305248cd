"""From a tlbbench document to the planner's hardware facts: measured values first, catalogue for the gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hugeplan.hardware import catalogue
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


def hardware_facts_of(document: Mapping[str, Any]) -> HardwareFacts:
    """Hardware facts of the machine a tlbbench document was measured on (schema_version 1).

    Levels the document does not hold are filled from the catalogue and say so. Sections that are absent, skipped or
    failed leave their facts unknown.
    """
    environment = document.get("environment") or {}
    processor = environment.get("processor") or {}
    geometry = document.get("geometry") or {}
    entry = _catalogue_entry(processor)
    core_hz = _number((geometry.get("clock") or {}).get("core_hz"))
    levels = tuple(_levels(geometry.get("levels") or ()))
    return HardwareFacts(
        vendor=processor.get("vendor"),
        family=processor.get("family"),
        model=processor.get("model"),
        uarch=entry.uarch if entry else None,
        catalogue_id=entry.id if entry else processor.get("catalogue_id"),
        virtualised=(environment.get("hypervisor") or {}).get("present"),
        core_hz=core_hz,
        l2_hit_penalty_ns=_l2_hit_ns(geometry, entry, core_hz),
        levels=(*levels, *_missing_levels(levels, entry)),
        granules=tuple(_granules(geometry.get("effective_granule") or ())),
        curves=tuple(_curves((document.get("latency") or {}).get("curves") or ())),
        pressure=tuple(_pressure((document.get("latency") or {}).get("pressure") or {})),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _catalogue_entry(processor: Mapping[str, Any]) -> catalogue.CatalogueEntry | None:
    named = processor.get("catalogue_id")
    found = catalogue.by_id(named) if named else None
    return (
        found
        or catalogue.by_cpuid(
            processor.get("vendor"), processor.get("family"), processor.get("model"), processor.get("stepping")
        )
        or catalogue.by_midr(processor.get("midr"))
        or catalogue.by_pvr(processor.get("pvr"))
    )


def _levels(rows: Iterable[Mapping[str, Any]]) -> Iterable[TlbLevel]:
    for row in rows:
        yield TlbLevel(
            level=row["level"],
            kind=row["kind"],
            page_bytes=row["page_bytes"],
            entries=row.get("entries"),
            entries_min=row.get("entries_min"),
            entries_max=row.get("entries_max"),
            ways=row.get("ways"),
            source=_SOURCES.get(row.get("source", ""), Source.UNKNOWN),
            confidence=_CONFIDENCE.get(row.get("confidence", ""), Confidence.LOW),
        )


def _missing_levels(levels: tuple[TlbLevel, ...], entry: catalogue.CatalogueEntry | None) -> tuple[TlbLevel, ...]:
    """Catalogue levels that were not measured. What CPUID says stays beside them: in a guest it may be hidden."""
    if entry is None:
        return ()
    measured = {(v.level, v.page_bytes) for v in levels if v.source is Source.MEASURED and v.entries is not None}
    return tuple(v for v in entry.levels if (v.level, v.page_bytes) not in measured or v.kind in {"instr", "store"})


def _l2_hit_ns(
    geometry: Mapping[str, Any], entry: catalogue.CatalogueEntry | None, core_hz: float | None
) -> float | None:
    """Extra ns of a first-level miss that hits the second level: measured, else catalogue cycles at this clock."""
    measured = [_number(row.get("ns")) for row in geometry.get("penalty") or () if row.get("level") == "l2_hit"]
    values = [value for value in measured if value is not None]
    if values:
        return min(values)
    if entry is not None and entry.l2_hit_cycles and core_hz:
        return entry.l2_hit_cycles / core_hz * 1e9
    return None


def _granules(rows: Iterable[Mapping[str, Any]]) -> Iterable[EffectiveGranule]:
    for row in rows:
        yield EffectiveGranule(
            backing=row["backing"],
            page_bytes=row["page_bytes"],
            granule_bytes=row.get("granule_bytes"),
            status=row.get("status") or "unknown",
        )


def _curves(rows: Iterable[Mapping[str, Any]]) -> Iterable[LatencyCurve]:
    """Curves of ns over footprint whose backing was really granted, points sorted by footprint."""
    for row in rows:
        granted = row.get("granted_fraction")
        if row.get("x_name") != "footprint_bytes" or row.get("status") not in USABLE_STATUS:
            continue
        if granted is not None and granted < GRANTED_ENOUGH:
            continue
        if row.get("page_bytes") is None or row.get("layout") is None:
            continue  # nothing says what this curve could be compared with
        points = tuple(sorted(_points(row.get("points") or ()), key=lambda point: point.footprint_bytes))
        if points:
            yield LatencyCurve(
                backing=row["backing"], page_bytes=row["page_bytes"], layout=row["layout"], points=points
            )


def _points(rows: Iterable[Mapping[str, Any]]) -> Iterable[CurvePoint]:
    for row in rows:
        footprint, median = _number(row.get("x")), _number(row.get("ns_p50"))
        if footprint is None or median is None:
            continue
        low, high = _number(row.get("ns_p10")), _number(row.get("ns_p90"))
        yield CurvePoint(int(footprint), median, median if low is None else low, median if high is None else high)


def _pressure(section: Mapping[str, Any]) -> Iterable[PressurePoint]:
    """Paired differences under cache pressure. ``delta_ns`` is large minus base, so a saving is its opposite."""
    lines_per_page = _number(section.get("lines_per_page")) or 1.0
    for row in section.get("points") or ():
        delta, period = _number(row.get("delta_ns")), _number(row.get("period_ns"))
        low, high = _number(row.get("ci95_low_ns")), _number(row.get("ci95_high_ns"))
        if delta is None or period is None or low is None or high is None:
            continue
        yield PressurePoint(
            backing=row["backing"],
            page_bytes=row["page_bytes"],
            footprint_bytes=row["footprint_bytes"],
            lines_between=row["lines_between"],
            pages_between=row["lines_between"] / lines_per_page,
            period_ns=period,
            saving_ns=-delta,
            half_width_ns=(high - low) / 2.0,
        )
