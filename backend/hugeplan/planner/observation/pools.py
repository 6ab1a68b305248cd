"""Huge pages of an observed node: how many there are, and how many are in use, by NUMA node and page size.

A page is in use when something maps it or has reserved it: ``nr - free + resv``. The kernel counts reservations for
the whole node only; they are spread over NUMA nodes by their free pages.
Source: Documentation/admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hugeplan.planner.model import GlobalPool, NodeFacts, NodeSample, Pool
from hugeplan.planner.pages import split_exactly

PoolKey = tuple[int, int]
"""(NUMA node, page size in bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """Pages of one pool. ``in_use`` is None where the free count is not known: then no page may be released.

    ``idle``: pages that are free and promised to nobody; None where the free or the reserved count is not known.
    """

    pages: int
    in_use: int | None
    idle: int | None = None

    @property
    def kept(self) -> int:
        """Pages that a plan must keep unless it knows whose they are."""
        return self.pages if self.in_use is None else self.in_use


def pool_states(node: NodeFacts, sample: NodeSample | None = None) -> dict[PoolKey, PoolState]:
    """All pools that are known to have pages. Where only the node's total is known it is spread evenly."""
    totals = {pool.page_bytes: pool for pool in (sample.pools or ())} if sample is not None else {}
    found: dict[PoolKey, PoolState] = {}
    sizes = {pool.page_bytes for numa in node.numa for pool in numa.pools or ()} | totals.keys()
    for size in sorted(sizes):
        by_node = {n.id: pool for n in node.numa for pool in n.pools or () if pool.page_bytes == size}
        if not by_node and any(n.pools is None for n in node.numa) and size in totals:
            by_node = _spread(node, totals[size])
        reserved, known = _reserved(by_node, totals.get(size))
        for numa_id, pool in by_node.items():
            if pool.nr_hugepages:
                free = pool.free_hugepages
                used = None if free is None else min(pool.nr_hugepages, pool.nr_hugepages - free + reserved[numa_id])
                idle = pool.nr_hugepages - used if used is not None and (known or not free) else None
                found[(numa_id, size)] = PoolState(pages=pool.nr_hugepages, in_use=used, idle=idle)
    return found


def _spread(node: NodeFacts, total: GlobalPool) -> dict[int, Pool]:
    even = [1] * len(node.numa)
    pages = split_exactly(total.nr_hugepages, even)
    free = None if total.free_hugepages is None else split_exactly(total.free_hugepages, even)
    return {
        numa.id: Pool(
            page_bytes=total.page_bytes,
            nr_hugepages=count,
            free_hugepages=None if free is None else min(count, free[i]),
        )
        for i, (numa, count) in enumerate(zip(node.numa, pages, strict=True))
    }


def _reserved(by_node: Mapping[int, Pool], total: GlobalPool | None) -> tuple[dict[int, int], bool]:
    """Reserved pages of each NUMA node, as reported, else what is left of the total over free pages; whether known."""
    own = {numa_id: pool.resv_hugepages for numa_id, pool in by_node.items()}
    told = {numa_id: count for numa_id, count in own.items() if count is not None}
    if len(told) == len(own):
        return told, True
    everywhere = total.resv_hugepages if total is not None else None
    free = {numa_id: pool.free_hugepages or 0 for numa_id, pool in by_node.items() if numa_id not in told}
    rest = min(max(0, (everywhere or 0) - sum(told.values())), sum(free.values()))
    shares = split_exactly(rest, list(free.values()))
    return {**told, **dict(zip(free, shares, strict=True))}, everywhere is not None
