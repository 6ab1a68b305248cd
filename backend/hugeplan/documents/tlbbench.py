"""The tlbbench document as the service reads it (schema_version 1).

Read leniently: an absent or null field is unknown. Extra fields stay in the stored document.
Bytes, nanoseconds and seconds are in the field names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hugeplan.documents.bounds import (
    ByteCount,
    DocumentModel,
    FiniteFloat,
    Label,
    Moment,
    Nanoseconds,
    PageBytes,
    Seconds,
    SmallCount,
    Text,
    Word,
)

MAX_CURVES = 512
MAX_POINTS = 4096
MAX_MEASUREMENTS = 8192

CurveX = Annotated[int, Field(ge=0, le=2**60, description="What was varied; the unit is in x_name")]
RegisterValue = Annotated[int, Field(ge=0, le=2**64 - 1)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class CurvePointDocument(DocumentModel):
    """One point of a curve: nanoseconds per access over ``batches`` batches."""

    x: CurveX
    ns_min: Nanoseconds | None = None
    ns_p10: Nanoseconds | None = None
    ns_p50: Nanoseconds | None = None
    ns_p90: Nanoseconds | None = None
    ns_mad: Nanoseconds | None = None
    batches: SmallCount | None = None
    dropped: SmallCount | None = None


class Curve(DocumentModel):
    """One measured series: what was varied, on which backing, with which result."""

    name: Label
    x_name: Word
    backing: Word
    backing_kind: Word | None = None
    page_bytes: PageBytes | None = None
    layout: Word | None = None
    footprint_bytes: ByteCount | None = Field(default=None, description="Of every point, where it was not varied")
    granted_fraction: Fraction | None = None
    status: Word
    reason: Text | None = None
    points: list[CurvePointDocument] = Field(default=[], max_length=MAX_POINTS)


class TlbLevelDocument(DocumentModel):
    """Entries of one TLB level for one page size, with their source."""

    level: Annotated[int, Field(ge=1, le=9)]
    kind: Word
    page_bytes: PageBytes
    entries: SmallCount | None = None
    entries_min: SmallCount | None = None
    entries_max: SmallCount | None = None
    ways: SmallCount | Word | None = None
    source: Word | None = None
    confidence: Word | None = None
    note: Text | None = None


class Granule(DocumentModel):
    """What one TLB entry covers for a backing on this node; ``fractured`` when it is less than the page."""

    backing: Word
    backing_kind: Word | None = None
    page_bytes: PageBytes
    granule_bytes: ByteCount | None = None
    status: Word


class Penalty(DocumentModel):
    """What a miss costs, at a level and page size."""

    level: Word
    page_bytes: PageBytes
    ns: Nanoseconds | None = None
    ns_min: Nanoseconds | None = None
    ns_max: Nanoseconds | None = None
    cycles: FiniteFloat | None = None


class Clock(DocumentModel):
    """The core's frequency and the latency of a first-level hit."""

    core_hz: Annotated[float, Field(ge=0, le=1e13, allow_inf_nan=False)] | None = None
    l1_hit_ns: Nanoseconds | None = None
    l1_hit_cycles: FiniteFloat | None = None


class Disagreement(DocumentModel):
    """Two sources that give different values for the same field."""

    level: Annotated[int, Field(ge=1, le=9)] | None = None
    page_bytes: PageBytes | None = None
    field: Word
    values: dict[str, Any] = Field(default={}, max_length=16)
    text: Text | None = None


class SectionPart(DocumentModel):
    """What every measured part of the document begins with."""

    status: Word | None = None
    reason: Text | None = None


class Geometry(SectionPart):
    """TLB levels with sources, granules, penalties, and the curves they were read from."""

    levels: list[TlbLevelDocument] = Field(default=[], max_length=256)
    effective_granule: list[Granule] = Field(default=[], max_length=64)
    penalty: list[Penalty] = Field(default=[], max_length=64)
    clock: Clock | None = None
    disagreements: list[Disagreement] = Field(default=[], max_length=256)
    curves: list[Curve] = Field(default=[], max_length=MAX_CURVES)


class PairedDelta(DocumentModel):
    """The difference of a backing to base pages at one x, measured in interleaved batches."""

    backing: Word
    layout: Word | None = None
    x: CurveX
    delta_ns: FiniteFloat | None = None
    ci95_low_ns: FiniteFloat | None = None
    ci95_high_ns: FiniteFloat | None = None


class PressurePointDocument(DocumentModel):
    """One access timed alone after ``lines_between`` other lines were read and ``wait_ns`` passed.

    ``delta_ns`` is this backing minus base pages; negative is faster. Documents of earlier programs never waited.
    """

    backing: Word
    backing_kind: Word | None = None
    page_bytes: PageBytes
    footprint_bytes: ByteCount
    lines_between: SmallCount
    wait_ns: Annotated[int, Field(ge=0, le=10**12)] = 0
    period_ns: Nanoseconds | None = None
    base_ns_p50: Nanoseconds | None = None
    ns_p50: Nanoseconds | None = None
    delta_ns: FiniteFloat | None = None
    ci95_low_ns: FiniteFloat | None = None
    ci95_high_ns: FiniteFloat | None = None
    pairs: SmallCount | None = None


class Pressure(SectionPart):
    """What an access costs when a program reads other cache lines, or time passes, between two of them."""

    region_bytes: ByteCount | None = None
    region_backing: Word | None = None
    lines_per_page: SmallCount | None = None
    points: list[PressurePointDocument] = Field(default=[], max_length=MAX_POINTS)


class Walks(SectionPart):
    """Page walks by ``x_name`` of the curve: chases side by side, NUMA nodes, tables in the caches, strides.

    ``cpu_node`` is the NUMA node of the CPU that measured: memory of any other is remote.
    """

    cpu_node: SmallCount | None = None
    curves: list[Curve] = Field(default=[], max_length=MAX_CURVES)


class Latency(SectionPart):
    """Latency over footprint for each backing. Documents of earlier programs have no ``pressure`` or ``walks``."""

    curves: list[Curve] = Field(default=[], max_length=MAX_CURVES)
    paired_deltas: list[PairedDelta] = Field(default=[], max_length=MAX_MEASUREMENTS)
    pressure: Pressure | None = None
    walks: Walks | None = None


class RowMeasurement(DocumentModel):
    """Rows read per second from a shared segment by a number of workers."""

    row_bytes: ByteCount | None = None
    keys: Word | None = None
    read: Word | None = None
    workers: SmallCount | None = None
    mode: Word | None = None
    backing: Word
    page_bytes: PageBytes | None = None
    segment_bytes: ByteCount | None = None
    rows_per_second: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)] | None = None
    ns_p50: Nanoseconds | None = None
    ns_p90: Nanoseconds | None = None
    ns_p99: Nanoseconds | None = None
    vm_pte_bytes_per_process: ByteCount | None = None
    vm_pte_bytes_total: ByteCount | None = None
    first_touch_seconds: Seconds | None = None
    status: Word | None = None
    reason: Text | None = None


class BreakEven(DocumentModel):
    """From how many connections on the page tables saved outweigh the pages reserved."""

    page_bytes: PageBytes
    segment_bytes: ByteCount | None = None
    connections: FiniteFloat | None = None
    text: Text | None = None


class Rows(SectionPart):
    """The row-reading part of a run."""

    measurements: list[RowMeasurement] = Field(default=[], max_length=MAX_MEASUREMENTS)
    break_even: list[BreakEven] = Field(default=[], max_length=256)


class Crossing(DocumentModel):
    """The number of scattered hot lines from which huge pages lose to base pages."""

    backing: Word | None = None
    hot_lines: SmallCount | None = None
    status: Word | None = None
    tested_min: SmallCount | None = None
    tested_max: SmallCount | None = None


class Scatter(SectionPart):
    """Huge pages that hurt: few large entries and a scattered working set."""

    crossing: Crossing | None = None
    curves: list[Curve] = Field(default=[], max_length=MAX_CURVES)


class Section(DocumentModel):
    """How one part of a run ended."""

    name: Word
    status: Word
    reason: Text | None = None
    duration_seconds: Seconds | None = None


class Tool(DocumentModel):
    """Name and version of the program that measured."""

    name: Word
    version: Word


class ProcessorDocument(DocumentModel):
    """The processor a run was measured on. ``midr`` and ``pvr`` are the identification registers of Arm and POWER."""

    architecture: Word | None = None
    vendor: Label | None = None
    family: SmallCount | None = None
    model: SmallCount | None = None
    stepping: SmallCount | None = None
    brand: Label | None = None
    midr: RegisterValue | None = None
    pvr: RegisterValue | None = None
    cpus_online: SmallCount | None = None
    catalogue_id: Label | None = None


class HypervisorDocument(DocumentModel):
    """Whether the run was measured in a guest."""

    present: bool | None = None
    name: Label | None = None


class KernelDocument(DocumentModel):
    """The kernel a run was measured under."""

    release: Label | None = None


class Environment(DocumentModel):
    """Where a run was measured; the rest of the document's environment stays in the stored document."""

    processor: ProcessorDocument | None = None
    hypervisor: HypervisorDocument | None = None
    kernel: KernelDocument | None = None
    base_page_bytes: PageBytes | None = None


class TlbbenchDocument(DocumentModel):
    """One execution of tlbbench."""

    schema_version: Literal[1]
    tool: Tool
    command: Word
    profile: Word | None = None
    seed: Annotated[int, Field(ge=0, le=2**64 - 1)] | None = None
    started_at: Moment
    duration_seconds: Seconds | None = None
    exit_status: Annotated[int, Field(ge=0, le=255)] | None = None
    sections: list[Section] = Field(default=[], max_length=64)
    environment: Environment | None = None
    geometry: Geometry | None = None
    latency: Latency | None = None
    rows: Rows | None = None
    scatter: Scatter | None = None

    @model_validator(mode="after")
    def _bound_curves(self) -> Self:
        count = len(curves_of(self))
        if count > MAX_CURVES:
            raise ValueError(f"at most {MAX_CURVES} curves in all sections, got {count}")
        return self


def curves_of(document: TlbbenchDocument) -> list[tuple[str, Curve]]:
    """All curves of a run with the section they belong to, in document order."""
    found: list[tuple[str, Curve]] = []
    for section, part in (
        ("geometry", document.geometry),
        ("latency", document.latency),
        ("walks", document.latency.walks if document.latency else None),
        ("scatter", document.scatter),
    ):
        found.extend((section, curve) for curve in (part.curves if part else []))
    return found
