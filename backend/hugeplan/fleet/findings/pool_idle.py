"""A large part of a pool that nothing uses: memory that nothing else on the node can use."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention, idle_pages_by_size, pages_by_size
from hugeplan.planner.model import GIB
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_idle"
LEAST_IDLE_BYTES = GIB
LEAST_IDLE_FRACTION = 0.2


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each page size of which a fifth and at least 1 GiB is idle."""
    total = pages_by_size(observed.sample)
    for size, pages in idle_pages_by_size(observed.sample).items():
        if pages is None or pages * size < LEAST_IDLE_BYTES or pages < LEAST_IDLE_FRACTION * total[size]:
            continue
        yield attention(
            CODE,
            f"{page_label(size)} pool",
            "A large part of the pool is idle",
            f"{pages} of {total[size]} pages of {page_label(size)} are neither used nor reserved: "
            f"{format_bytes(pages * size)} that nothing else on the node can use.",
            "Give the pages back, or start what they were reserved for.",
        )
