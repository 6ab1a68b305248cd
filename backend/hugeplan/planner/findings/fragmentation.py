"""Are the missing pages available now? Free blocks of the page size on each NUMA node, when reserving at runtime."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.choice.page_size_candidate import is_gigantic
from hugeplan.planner.findings.base import FindingInputs, attention, computed, measured, ok, unknown
from hugeplan.planner.model import Finding, PoolPlan
from hugeplan.planner.pages import page_label

CODE = "fragmentation"
_FIX = "Reserve at boot, or stop what fills the page cache, compact memory and write the count again."


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each pool that must still grow."""
    at_boot = inputs.request.policy.reserve_at == "boot"
    for pool in inputs.pools:
        missing = pool.pages - (pool.present_pages or 0)
        if missing <= 0:
            continue
        subject = f"{page_label(pool.page_bytes)} on NUMA node {pool.numa_node}"
        if at_boot:
            title = "The pages are reserved before memory is fragmented"
            yield ok(CODE, subject, title, "Reserved at boot, before memory is fragmented.")
            continue
        free = _free_blocks(inputs, pool)
        if is_gigantic(pool.page_bytes, inputs.node.base_page_bytes):
            reason = "Gigantic pages after boot come only from CMA or by moving what lies in the way."
            title = f"{missing:,} gigantic pages are hard to get after boot"
            yield attention(CODE, subject, title, reason, "Reserve this size at boot, or boot with hugetlb_cma=.")
        elif free is None:
            title = f"Whether {missing:,} pages are available now is not known"
            yield unknown(CODE, subject, title, "Free blocks of this size are not known (/proc/buddyinfo).", _FIX)
        elif free < missing:
            evidence = (measured("free blocks", free), computed("missing pages", missing))
            reason = f"{free:,} free blocks for {missing:,} pages: the kernel must compact memory, and may fail."
            title = f"Only {free:,} of {missing:,} missing pages are available at once"
            yield attention(CODE, subject, title, reason, _FIX, evidence=evidence)
        else:
            evidence = (measured("free blocks", free), computed("missing pages", missing))
            title = f"The {missing:,} missing pages are available now"
            yield ok(CODE, subject, title, f"{free:,} free blocks for {missing:,} pages.", evidence=evidence)


def _free_blocks(inputs: FindingInputs, pool: PoolPlan) -> int | None:
    if inputs.sample is None or inputs.sample.numa is None:
        return None
    for numa in inputs.sample.numa:
        if numa.id == pool.numa_node and numa.free_blocks is not None:
            return numa.free_blocks.get(pool.page_bytes, 0)
    return None
