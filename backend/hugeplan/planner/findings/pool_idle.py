"""Is reserved memory idle, or mapped by something that the scenario does not describe?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, measured, ok, unknown
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_idle"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each pool with more pages than planned, else one for the node."""
    present = [pool for pool in inputs.pools if pool.present_pages is not None]
    if any(numa.pools is None for numa in inputs.node.numa):
        yield unknown(
            CODE,
            inputs.node.name,
            "Whether reserved pages are idle is not known",
            "What the node has reserved today is not known.",
        )
    surplus = [pool for pool in present if (pool.present_pages or 0) > pool.pages]
    wanted = {planned.demand.page_bytes for _, planned in inputs.with_pool}
    wanted |= {size for _, planned in inputs.with_pool for size, _ in planned.demand.also_pages}
    unmanaged = [pool for pool in present if pool.pages and pool.page_bytes not in wanted]
    for pool in unmanaged:
        label = page_label(pool.page_bytes)
        yield attention(
            CODE,
            f"{label} on NUMA node {pool.numa_node}",
            f"{pool.pages:,} pages are in use by something unknown",
            f"{pool.pages:,} pages of {label} are in use by something that the scenario does not describe.",
            "Find out who maps them and add it to the scenario; the plan keeps these pages.",
            evidence=(measured("in use", pool.pages),),
        )
    for pool in surplus:
        more = (pool.present_pages or 0) - pool.pages
        label = page_label(pool.page_bytes)
        yield attention(
            CODE,
            f"{label} on NUMA node {pool.numa_node}",
            f"{more:,} reserved pages are not needed",
            f"{more:,} pages of {label} ({format_bytes(more * pool.page_bytes)}) are reserved beyond the plan.",
            f"If nothing else maps them, set nr_hugepages to {pool.pages}.",
            evidence=(computed("planned", pool.pages), measured("present", pool.present_pages)),
        )
    if not surplus and not unmanaged and all(numa.pools is not None for numa in inputs.node.numa):
        yield ok(CODE, inputs.node.name, "No more is reserved than planned", "No pool is larger than the plan.")
