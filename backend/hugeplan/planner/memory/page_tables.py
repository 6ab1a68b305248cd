"""Page-table bytes of a mapping: what each page size costs in memory, per process and in total.

Radix tables of 8-byte entries. On x86-64, AArch64 and RISC-V a table fills one base page: 512
entries for 4K base pages, 2048 for 16K, 8192 for 64K. POWER's radix and IBM Z have table sizes of
their own. A page larger than the base page sits at the level whose entry covers it, or fills
several entries of a lower level (Arm's contiguous bit), which saves no page-table memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import Demand, NodeFacts, Workload
from hugeplan.planner.remembered import remembered

ENTRY_BYTES = 8
"""Size of one page-table entry on every 64-bit architecture planned for."""


ADDRESS_BITS = 48
"""Four-level address space; a fifth level adds one table a process at the very top and is left out."""

# Entries per table, leaf level upwards, where a table is not simply one base page of entries.
# POWER9 radix (Linux arch/powerpc, book3s/64/radix-{4k,64k}.h): index bits 5/9/9/13 and 9/9/9/13.
# IBM Z (Principles of Operation, dynamic address translation): 256-entry page tables, 2048 entries in those above.
_FANOUTS: dict[tuple[str, int], tuple[int, ...]] = {
    ("ppc64le", 64 * 1024): (32, 512, 512, 8192),
    ("ppc64le", 4 * 1024): (512, 512, 512, 8192),
    ("s390x", 4 * 1024): (256, 2048, 2048, 2048),
}


@dataclass(frozen=True, slots=True)
class TableLevel:
    """One level of a process's tree: entries in use, whole tables, bytes of one table."""

    entries: int
    tables: int
    table_bytes: int


@remembered(64)
def entry_spans(base_page_bytes: int = 4096, arch: str = "x86_64") -> tuple[tuple[int, int], ...]:
    """(bytes covered by one entry, entries per table) of every level below the root, leaf level first."""
    if base_page_bytes < 4096 or base_page_bytes & (base_page_bytes - 1):
        raise PlannerError("base_page_bytes", base_page_bytes, "a power of two of at least 4096")
    usual = base_page_bytes // ENTRY_BYTES
    fanouts = _FANOUTS.get((arch, base_page_bytes), (usual,) * 4)
    spans: list[tuple[int, int]] = []
    span = base_page_bytes
    for fanout in fanouts:
        if span * fanout > 1 << ADDRESS_BITS or (spans and span * fanout >= 1 << ADDRESS_BITS):
            break
        spans.append((span, fanout))
        span *= fanout
    if not spans:
        raise PlannerError("base_page_bytes", base_page_bytes, "at most 32 MiB: one table of larger ones covers all")
    return tuple(spans)


def leaf_entry_bytes(page_bytes: int, base_page_bytes: int = 4096, arch: str = "x86_64") -> int:
    """Bytes covered by one leaf entry for ``page_bytes``: the largest entry span that is not above the page.

    64K pages over 4K base pages (Arm contiguous PTEs) use sixteen 4K entries, so their leaf entry covers 4096 bytes.
    """
    if page_bytes < base_page_bytes:
        raise PlannerError("page_bytes", page_bytes, f"at least the base page size ({base_page_bytes})")
    return max(span for span, _ in entry_spans(base_page_bytes, arch) if span <= page_bytes)


@remembered(4096)
def table_levels(
    segment_bytes: int, page_bytes: int, base_page_bytes: int = 4096, arch: str = "x86_64"
) -> tuple[TableLevel, ...]:
    """Every level of one process's tree for a mapping that starts on a table boundary, leaf first.

    The root table is left out: a process has one whether the segment exists or not.
    """
    if segment_bytes < 0:
        raise PlannerError("segment_bytes", segment_bytes, "0 or more")
    leaf_span = leaf_entry_bytes(page_bytes, base_page_bytes, arch)
    levels: list[TableLevel] = []
    for span, fanout in entry_spans(base_page_bytes, arch):
        if span < leaf_span:
            continue
        entries = math.ceil(segment_bytes / span)
        levels.append(TableLevel(entries, math.ceil(entries / fanout), fanout * ENTRY_BYTES))
    return tuple(levels)


def page_table_bytes(
    segment_bytes: int,
    page_bytes: int,
    base_page_bytes: int = 4096,
    processes: int = 1,
    *,
    touched_fraction: float = 1.0,
    shared_leaf: bool = False,
    arch: str = "x86_64",
) -> int:
    """Page-table bytes, whole tables at every level, of ``processes`` private mappings of one segment.

    Args:
        segment_bytes: bytes of the mapping.
        page_bytes: page size it is mapped with; the base page size for ordinary memory.
        base_page_bytes: the kernel's base page, also the size of one table.
        processes: address spaces that map it: 1 for a threaded engine, connections for PostgreSQL or Oracle.
        touched_fraction: share of the segment that each process has touched, 0 to 1; entries appear on touch.
        shared_leaf: hugetlbfs mappings of at least 1 GiB may share their 2M-level tables between
            processes (Linux, x86 and AArch64); then the leaf tables are counted once.

    Source: translation sheet section 3; the leaf term alone is ``processes * 8 F / P``.
    """
    if not 0.0 <= touched_fraction <= 1.0:
        raise PlannerError("touched_fraction", touched_fraction, "0 to 1")
    if processes < 0:
        raise PlannerError("processes", processes, "0 or more")
    if processes == 0 or segment_bytes == 0:
        return 0
    touched = math.ceil(segment_bytes * touched_fraction)
    levels = [level.tables * level.table_bytes for level in table_levels(touched, page_bytes, base_page_bytes, arch)]
    leaf, upper = levels[0], sum(levels[1:])
    return leaf * (1 if shared_leaf else processes) + upper * processes


@dataclass(frozen=True, slots=True)
class InstanceTables:
    """Page tables of one instance: all its processes', each having touched ``touched_fraction`` of the segments."""

    processes: int
    touched_fraction: float
    bytes: int


def instance_tables(node: NodeFacts, demand: Demand, workload: Workload) -> InstanceTables:
    """Page tables of an instance's segments, for ledger, choice, gains, findings and files alike.

    One set per process for process-per-connection engines: the active connections where they are known, else all that
    may connect; each has touched the working set where it is known, else the whole segment. Never capped: what a node
    has no room for is what the plan lacks.
    """
    processes = 1
    if demand.process_per_connection:
        connections = max(1, demand.connections or workload.active_connections or 1)
        active = workload.active_connections
        processes = connections if active is None else max(1, min(connections, active))
    touched = 1.0
    if workload.working_set_bytes is not None and demand.pool_bytes:
        touched = min(1.0, workload.working_set_bytes / demand.pool_bytes)
    size = sum(
        page_table_bytes(
            segment.segment_bytes * segment.count,  # equal mappings are made one after another and lie side by side
            demand.page_bytes,
            node.base_page_bytes,
            processes,
            touched_fraction=touched,
            arch=node.arch,
        )
        for segment in demand.segments
    )
    return InstanceTables(processes, touched, size)


def returned_tables_bytes(base_bytes: int, huge_bytes: int, room_bytes: int) -> int:
    """Page tables that huge pages give back: never more than ``room_bytes``, which is all that could be built."""
    return max(0, min(base_bytes, max(0, room_bytes)) - huge_bytes)
