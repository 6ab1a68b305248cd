"""What is kept of a run beside its document: the narrow row, and its wins by page size."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from hugeplan.api.schemas import JsonObject
from hugeplan.documents.tlbbench import Geometry, TlbbenchDocument
from hugeplan.hardware.curves import cases_of_run
from hugeplan.planner.evaluation.win_matrix import TIE, fastest, winner_beside
from hugeplan.planner.model import MIB, HardwareFacts

COMPLETE, PRESENT, ABSENT = 2, 1, 0
MOST_BACKINGS: Final = 20
"""Of a run: arm64 with base pages of 64K has these, THP of 12 sizes and of 512M, and three sizes of hugetlb."""
BACKING = re.compile(r"(?:THP-)?(?:1|2|4|8|16|32|64|128|256|512)[KMGT]|THP")
"""What tlbbench calls base pages, pools, THP and multi-size THP (src/memory/backing.c)."""


class RunRecord(msgspec.Struct, kw_only=True):
    """The columns of a run but its document."""

    node_id: UUID
    id: UUID
    started_at: datetime
    stored_at: datetime
    ordered_at: datetime
    command: str
    profile: str | None
    tool_version: str
    duration_seconds: float | None
    geometry_rank: int
    latency_rank: int
    pressure_rank: int
    sections: list[JsonObject]


class WinsRecord(msgspec.Struct, kw_only=True):
    """The columns of one backing's wins in a run."""

    node_id: UUID
    run_id: UUID
    backing: str
    cases: int
    wins: int
    lowest: int
    log_sum: float
    log_count: int


def run_record(document: TlbbenchDocument, *, node_id: UUID, run_id: UUID, received_at: datetime) -> RunRecord:
    """The narrow row of a run that arrived at ``received_at``."""
    ranks = {section.name: COMPLETE if section.status == "ok" else PRESENT for section in document.sections}
    has_pressure = document.latency and document.latency.pressure and document.latency.pressure.points
    return RunRecord(
        node_id=node_id,
        id=run_id,
        started_at=document.started_at,
        stored_at=received_at,
        ordered_at=min(document.started_at, received_at),
        command=document.command,
        profile=document.profile,
        tool_version=document.tool.version,
        duration_seconds=document.duration_seconds,
        geometry_rank=ranks.get("geometry", ABSENT) if document.geometry else ABSENT,
        latency_rank=ranks.get("latency", ABSENT) if document.latency else ABSENT,
        pressure_rank=ranks.get("latency", PRESENT) if has_pressure else ABSENT,
        sections=[
            {"name": section.name, "status": section.status, "reason": section.reason} for section in document.sections
        ],
    )


def wins_records(
    document: TlbbenchDocument, *, node_id: UUID, run_id: UUID, facts: HardwareFacts | None = None
) -> list[WinsRecord]:
    """One row per backing of a run, and one for ties. Sums of several runs are the win matrix over all their cases.

    ``facts`` are the hardware facts of the document, where they were made before.
    """
    found = cases_of_run(document, "", facts)
    # What the whole fleet is added up by is no word that one sender makes up, nor more than machines have.
    words = dict.fromkeys(name for case in found for name in case.timings if BACKING.fullmatch(name))
    names = set(list(words)[:MOST_BACKINGS])
    timings_of = [{name: one for name, one in case.timings.items() if name in names} for case in found]
    cases = [(case, timings) for case, timings in zip(found, timings_of, strict=True) if len(timings) >= 2]
    if not cases:
        return []
    wins: Counter[str] = Counter()
    lowest: Counter[str] = Counter()
    held: Counter[str] = Counter({TIE: len(cases)})
    logs: dict[str, list[float]] = defaultdict(list)
    for case, timings in cases:
        best = fastest(timings)
        lowest[best] += 1
        wins[winner_beside(best, timings)] += 1
        base = timings.get(case.base)
        for name, timing in timings.items():
            held[name] += 1
            if base is not None:
                # ln(time / time with base pages) of every case that has both
                logs[name].append(math.log(timing.value / base.value))
    return [
        WinsRecord(
            node_id=node_id,
            run_id=run_id,
            backing=name,
            cases=held[name],
            wins=wins[name],
            lowest=lowest[name],
            log_sum=math.fsum(logs[name]),
            log_count=len(logs[name]),
        )
        for name in sorted(held)
    ]


def granule_of_2m(geometry: Geometry | None) -> int | None:
    """What one TLB entry covers with 2M pages: from hugetlb pages if measured, else from THP."""
    if geometry is None:
        return None
    candidates = [g for g in geometry.effective_granule if g.page_bytes == 2 * MIB and g.granule_bytes]
    candidates.sort(key=lambda granule: granule.backing_kind != "hugetlb")
    return candidates[0].granule_bytes if candidates else None
