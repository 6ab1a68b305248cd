"""Pages taken above the pool: they go when they are freed, and the next start may not get them."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention
from hugeplan.planner.pages import page_label

CODE = "surplus_pages"


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each page size with surplus pages in use."""
    for pool in observed.sample.global_pools:
        if pool.surplus_hugepages:
            size = page_label(pool.page_bytes)
            yield attention(
                CODE,
                f"{size} pool",
                "It lives on surplus pages",
                f"{pool.surplus_hugepages} pages of {size} were taken above nr_hugepages (nr_overcommit_hugepages). "
                "They are freed with their last user, and fragmentation may keep the next start from getting them.",
                "Reserve the pages with nr_hugepages, best at boot.",
            )
