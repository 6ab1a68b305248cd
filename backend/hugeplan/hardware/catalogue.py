"""The TLB catalogue: what is published about a processor's translation hardware, with sources.

The data is ``tlb_catalogue.json`` beside this file. It is a prior, never the answer: a node's own measurement wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hugeplan.planner.model import Confidence, HardwareFacts, Source, TlbLevel

_CONFIDENCE = {"high": Confidence.HIGH, "medium": Confidence.MEDIUM}


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One processor: its levels as planner facts, the penalty of an L2-TLB hit in cycles, walkers, sources.

    ``raw`` is the entry as it is in the file, for the evidence page.
    """

    id: str
    vendor: str
    uarch: str
    products: tuple[str, ...]
    levels: tuple[TlbLevel, ...]
    l2_hit_cycles: float | None
    walkers: int | None
    confidence: Confidence
    disagreements: tuple[str, ...]
    raw: Mapping[str, Any]


@lru_cache(maxsize=1)
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Every entry of the catalogue, in file order."""
    text = files("hugeplan.hardware").joinpath("tlb_catalogue.json").read_text(encoding="utf-8")
    return tuple(_entry(raw) for raw in json.loads(text)["entries"])


def by_id(catalogue_id: str) -> CatalogueEntry | None:
    """The entry of that id, or None."""
    return next((entry for entry in catalogue() if entry.id == catalogue_id), None)


def by_cpuid(
    vendor: str | None, family: int | None, model: int | None, stepping: int | None = None
) -> CatalogueEntry | None:
    """The entry of an x86 processor by CPUID vendor string, family and model.

    Two entries may share a model and differ in stepping (Skylake and Cascade Lake); without a stepping the first
    one is given, since both then have the same geometry.
    """
    for entry in catalogue():
        match = entry.raw["match"].get("cpuid")
        if match is None or vendor != match["vendor"] or family != match["family"] or model not in match["models"]:
            continue
        if stepping is None or match["stepping_min"] <= stepping <= match["stepping_max"]:
            return entry
    return None


def by_midr(midr: int | None) -> CatalogueEntry | None:
    """The entry of an Arm processor by its main id register: implementer in bits 31 to 24, part in bits 15 to 4."""
    if midr is None:
        return None
    implementer, part = midr >> 24 & 0xFF, midr >> 4 & 0xFFF
    for entry in catalogue():
        match = entry.raw["match"].get("midr")
        if match is not None and implementer == match["implementer"] and part in match["parts"]:
            return entry
    return None


def by_pvr(pvr: int | None) -> CatalogueEntry | None:
    """The entry of a POWER processor by its processor version register: version in the upper 16 bits."""
    if pvr is None:
        return None
    for entry in catalogue():
        match = entry.raw["match"].get("pvr")
        if match is not None and pvr >> 16 in match["versions"]:
            return entry
    return None


def hardware_facts(entry: CatalogueEntry, *, virtualised: bool | None, core_hz: float | None = None) -> HardwareFacts:
    """Facts of a node of which only the processor is known."""
    penalty = entry.l2_hit_cycles / core_hz * 1e9 if entry.l2_hit_cycles and core_hz else None
    return HardwareFacts(
        vendor=entry.vendor,
        uarch=entry.uarch,
        catalogue_id=entry.id,
        virtualised=virtualised,
        core_hz=core_hz,
        l2_hit_penalty_ns=penalty,
        levels=entry.levels,
    )


def complete(facts: HardwareFacts) -> HardwareFacts:
    """``facts`` with what the catalogue adds: TLB levels, name and L2-TLB penalty, where they are unknown."""
    entry = by_id(facts.catalogue_id) if facts.catalogue_id else by_cpuid(facts.vendor, facts.family, facts.model)
    if entry is None:
        return facts
    known = hardware_facts(entry, virtualised=facts.virtualised, core_hz=facts.core_hz)
    return replace(
        facts,
        vendor=facts.vendor or known.vendor,
        uarch=facts.uarch or known.uarch,
        catalogue_id=known.catalogue_id,
        l2_hit_penalty_ns=known.l2_hit_penalty_ns if facts.l2_hit_penalty_ns is None else facts.l2_hit_penalty_ns,
        levels=facts.levels or known.levels,
    )


def _entry(raw: Mapping[str, Any]) -> CatalogueEntry:
    confidence = _CONFIDENCE.get(raw["confidence"], Confidence.LOW)
    penalties, walkers = raw.get("penalties") or {}, raw.get("walkers") or {}
    return CatalogueEntry(
        id=raw["id"],
        vendor=raw["vendor"],
        uarch=raw["uarch"],
        products=tuple(raw["products"]),
        levels=_levels(raw["levels"], confidence),
        l2_hit_cycles=penalties.get("l2_hit_cycles"),
        walkers=walkers.get("count"),
        confidence=confidence,
        disagreements=tuple(raw.get("disagreements") or ()),
        raw=raw,
    )


def _levels(structures: list[Mapping[str, Any]], confidence: Confidence) -> tuple[TlbLevel, ...]:
    """One TlbLevel for each level, kind and page size: structures that hold the same size add up.

    Example: Ice Lake has two second-level arrays of 1024, one for 4K and 2M, one for 4K and 1G: 4K gets 2048.
    """
    totals: dict[tuple[int, str, int], tuple[int | None, Any]] = {}
    for structure in structures:
        kind = structure["access"] if structure["access"] in {"load", "store"} else structure["kind"]
        for page_bytes in structure["page_bytes"]:
            key = (structure["level"], kind, page_bytes)
            entries, ways = structure["entries"], structure["ways"]
            if key in totals:
                before = totals[key][0]
                entries = None if entries is None or before is None else entries + before
                ways = None
            totals[key] = (entries, ways)
    return tuple(
        TlbLevel(
            level=level,
            kind=kind,
            page_bytes=page_bytes,
            entries=entries,
            ways=ways,
            source=Source.CATALOGUE,
            confidence=confidence,
        )
        for (level, kind, page_bytes), (entries, ways) in sorted(totals.items())
    )
