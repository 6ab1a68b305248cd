"""Was a pool sized to the buffer pool alone? The segment is 2 to 12 % larger, and the engine then fits nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, computed, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, named
from hugeplan.planner.pages import ceil_pages

CODE = "buffer_pool_mistaken_for_segment"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each page size with demand."""
    sizes = sorted({planned.demand.page_bytes for _, planned in inputs.with_pool})
    for page_bytes in sizes:
        own = [planned.demand for _, planned in inputs.with_pool if planned.demand.page_bytes == page_bytes]
        besides = sum(dict(planned.demand.also_pages).get(page_bytes, 0) for _, planned in inputs.with_pool)
        demand = sum(d.pages for d in own) + besides
        buffers = sum(ceil_pages(d.pool_bytes, page_bytes) for d in own if d.pool_bytes is not None)
        pools = [pool for pool in inputs.pools if pool.page_bytes == page_bytes]
        subject = named(i.name for i, p in inputs.with_pool if p.demand.page_bytes == page_bytes)
        if any(pool.present_pages is None for pool in pools):
            title = "Whether the pool holds the whole segment is not known"
            yield unknown(CODE, subject, title, "What the node has reserved today is not known.")
            continue
        present = sum(pool.present_pages or 0 for pool in pools)
        evidence = (
            measured("present", present),
            computed("buffer pools alone", buffers),
            computed("segments", demand),
        )
        if buffers <= present < demand and abs(present - buffers) <= max(2, buffers // 100):
            title = f"The pool is {demand - present:,} pages short: it was sized to the buffer pool alone"
            reason = f"{present:,} pages hold the buffer pools ({buffers:,}) but not the segments ({demand:,})."
            fix = f"Reserve {demand:,} pages and slack, not buffer pool / page size."
            yield wrong(CODE, subject, title, reason, fix, evidence=evidence)
        else:
            title = "No pool is sized to the buffer pool alone"
            yield ok(CODE, subject, title, "The pool was not sized to the buffer pool alone.", evidence=evidence)
