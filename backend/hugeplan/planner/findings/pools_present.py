"""Are the pools there: short of the plan, on which NUMA node, or not yet reserved?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hugeplan.planner.demand import OnShortage
from hugeplan.planner.findings.base import FindingInputs, attention, computed, measured, ok, unknown, wrong
from hugeplan.planner.model import MOST_NAMES, Finding, PoolPlan
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_short"
WHERE_FEWER = (
    "Apply the plan's files. Where the kernel then gives fewer: reserve at boot, or compact memory"
    " (echo 1 > /proc/sys/vm/compact_memory) and write the count again."
)


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each planned pool."""
    for pool in inputs.pools:
        if pool.pages == 0:
            continue
        label = page_label(pool.page_bytes)
        subject = f"{label} on NUMA node {pool.numa_node}"
        if pool.present_pages is None:
            title = f"Whether the {pool.pages:,} planned pages are reserved is not known"
            yield unknown(CODE, subject, title, "What the node has reserved today is not known.")
            continue
        evidence = (computed("planned", pool.pages), measured("present", pool.present_pages))
        state = inputs.state_of(pool)
        count = "free" if state is None or state.in_use is None else "reserved"
        own = pool.pages - pool.held_pages
        if pool.present_pages >= pool.pages and (own or count == "free") and state is not None and state.idle is None:
            title = f"{pool.present_pages:,} pages are reserved, whether they are free is not known"
            reason = f"The plan counts on {own:,} of them, and the pool's {count} count is not known."
            fix = f"Give the pool's {count} count, or let the agent report it."
            yield unknown(CODE, subject, title, reason, fix, evidence=evidence)
        elif pool.present_pages >= pool.pages > pool.present_pages - (surplus := _surplus(inputs, pool)) and (
            state is None or (state.idle or 0) < pool.pages - pool.held_pages
        ):
            title = f"{surplus:,} of its pages vanish when they are freed"
            reason = f"Of {pool.present_pages:,} pages {surplus:,} are surplus: a restart finds fewer than the plan's."
            fix = f"Set nr_hugepages to {pool.pages}, so that none is surplus."
            yield attention(CODE, subject, title, reason, fix, evidence=evidence)
        elif pool.present_pages >= pool.pages:
            reason = f"All {pool.pages:,} pages are reserved."
            yield ok(CODE, subject, "The pool is reserved", reason, evidence=evidence)
        elif pool.present_pages == 0:
            fix = "Apply the plan's files."
            reason = f"None of {pool.pages:,} pages is reserved yet."
            yield attention(CODE, subject, "The pool is not reserved yet", reason, fix, evidence=evidence)
        else:
            missing = pool.pages - pool.present_pages
            texts = list(_consequences(inputs, pool.page_bytes))
            more = [f"{len(texts) - MOST_NAMES:,} more databases lack pages."] if len(texts) > MOST_NAMES else []
            consequences = "".join(f" {text}" for text in (*texts[:MOST_NAMES], *more))
            title = f"{missing:,} of {pool.pages:,} planned pages are missing"
            reason = f"{pool.present_pages:,} are reserved.{consequences}"
            yield wrong(CODE, subject, title, reason, WHERE_FEWER, evidence=evidence)


def _surplus(inputs: FindingInputs, pool: PoolPlan) -> int:
    """Surplus pages of a planned pool: they are among those that are there, and beyond nr_hugepages as it was set."""
    there = next((numa.pools or () for numa in inputs.node.numa if numa.id == pool.numa_node), ())
    return next((one.surplus_hugepages or 0 for one in there if one.page_bytes == pool.page_bytes), 0)


def _consequences(inputs: FindingInputs, page_bytes: int) -> Iterable[str]:
    """What each engine does with the pages that are there, where they cannot hold all its mappings."""
    pools = [p for p in inputs.pools if p.page_bytes == page_bytes]
    present = sum((p.present_pages or 0) - p.held_pages for p in pools)
    idle = _idle(inputs, pools)
    for instance, planned in inputs.with_pool:
        demand = planned.demand
        if demand.page_bytes != page_bytes or demand.pages <= present:
            continue
        shortage = inputs.pool_uses[instance.name].on_shortage
        mappings = sum(segment.count for segment in demand.segments)
        if shortage is OnShortage.REFUSE:
            yield f"{instance.name} will not start{idle}."
        elif shortage is OnShortage.PARTIAL:
            yield f"{instance.name} takes what there is and base pages for the rest."
        elif mappings == 1:
            yield f"{instance.name} falls back to base pages as a whole{idle}."
        else:
            yield f"{instance.name} falls back mapping by mapping: those that find no pages use base pages."


def _idle(inputs: FindingInputs, pools: Sequence[PoolPlan]) -> str:
    """That pages are idle, of those only that are free and promised to nobody; nothing where that is not known."""
    counts = [state.idle for pool in pools if (state := inputs.state_of(pool)) is not None]
    known = [count for count in counts if count is not None]
    pages = sum(known)
    if len(known) < len(counts) or not pages:
        return ""
    size = format_bytes(pages * pools[0].page_bytes)
    every = pages == sum(pool.present_pages or 0 for pool in pools)
    return f", and {'all ' if every else ''}{pages:,} pages ({size}) are idle"
