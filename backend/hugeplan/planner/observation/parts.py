"""MemTotal of an observed node as parts that add up to it, from one sample's meminfo.

    MemTotal = kernel + page tables + reclaimable + ordinary + pools + MemFree + not accounted

``ordinary`` is anonymous plus shared memory on base pages (AnonPages + Shmem), ``reclaimable`` the page cache and slab
that the kernel gives back (Buffers + Cached - Shmem + SReclaimable). Lines that a sample lacks are filled from the
others on the safe side, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hugeplan.planner.model import Meminfo, NodeFacts
from hugeplan.planner.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """Bytes of each part; they sum to the node's MemTotal exactly, and none is negative."""

    kernel_bytes: int
    page_tables_bytes: int
    reclaimable_bytes: int
    ordinary_bytes: int
    hugetlb_pool_bytes: int
    free_bytes: int
    unaccounted_bytes: int
    notes: tuple[str, ...]


def node_parts(node: NodeFacts, memory: Meminfo, pool_pages: Mapping[tuple[int, int], int]) -> NodeParts | None:
    """The parts of ``node``; ``pool_pages`` are pages by (NUMA node, page size). None when no free memory is known."""
    total = node.mem_total_bytes
    pools = min(total, sum(pages * page_bytes for (_, page_bytes), pages in pool_pages.items()))
    notes: list[str] = []
    kernel = _kernel_bytes(memory)
    tables = memory.page_tables_bytes or 0
    free, reclaimable = _free_and_reclaimable(memory, notes)
    if free is None:
        return None
    if memory.anon_pages_bytes is None or memory.shmem_bytes is None:
        ordinary = total - pools - free - reclaimable - kernel - tables
        rest = min(0, ordinary)
        ordinary -= rest
        notes.append("AnonPages or Shmem was not reported: all that nothing else explains counts as workloads")
    else:
        ordinary = memory.anon_pages_bytes + memory.shmem_bytes
        rest = total - pools - free - reclaimable - kernel - tables - ordinary
    if rest < 0:
        # The kernel's counters are read one after another and batched per CPU: what they count twice is taken off the
        # parts that move fastest.
        notes.append(f"the sample's counters exceed MemTotal by {format_bytes(-rest)}: taken off the page cache first")
        reclaimable, rest = _take(reclaimable, rest)
        ordinary, rest = _take(ordinary, rest)
        free, rest = _take(free, rest)
        kernel, rest = _take(kernel, rest)
        tables, rest = _take(tables, rest)
    return NodeParts(
        kernel_bytes=kernel,
        page_tables_bytes=tables,
        reclaimable_bytes=reclaimable,
        ordinary_bytes=ordinary,
        hugetlb_pool_bytes=pools,
        free_bytes=free,
        unaccounted_bytes=rest,
        notes=tuple(notes),
    )


def _free_and_reclaimable(memory: Meminfo, notes: list[str]) -> tuple[int | None, int]:
    """MemFree, and page cache with reclaimable slab; what is missing comes from MemAvailable."""
    slab = memory.s_reclaimable_bytes
    if slab is None and memory.slab_bytes is not None and memory.s_unreclaim_bytes is not None:
        slab = max(0, memory.slab_bytes - memory.s_unreclaim_bytes)
    if memory.mem_free_bytes is None:
        if memory.mem_available_bytes is None:
            return None, 0
        notes.append("MemFree was not reported: MemAvailable counts as free, page cache included")
        return memory.mem_available_bytes, 0
    if memory.cached_bytes is None:
        if memory.mem_available_bytes is None:
            notes.append("neither Cached nor MemAvailable was reported: the page cache counts as workloads")
            return memory.mem_free_bytes, slab or 0
        notes.append("Cached was not reported: the page cache is MemAvailable - MemFree")
        return memory.mem_free_bytes, max(0, memory.mem_available_bytes - memory.mem_free_bytes)
    cache = max(0, memory.cached_bytes - (memory.shmem_bytes or 0)) + (memory.buffers_bytes or 0)
    return memory.mem_free_bytes, cache + (slab or 0)


def _take(size: int, missing: int) -> tuple[int, int]:
    """``size`` less what is missing (a negative number), and what is still missing."""
    left = size + missing
    return max(0, left), min(0, left)


def _kernel_bytes(memory: Meminfo) -> int:
    """What the kernel counts as its own, page tables of processes apart; lines it lacks end in "not accounted"."""
    lines = (memory.s_unreclaim_bytes, memory.kernel_stack_bytes, memory.sec_page_tables_bytes, memory.percpu_bytes)
    return sum(size for size in lines if size is not None)
