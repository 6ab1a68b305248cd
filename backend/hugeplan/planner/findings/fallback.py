"""Did an instance fall back to base pages without saying so?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, InstancePlan
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "fallback_to_base_pages"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance that the plan gives huge pages.

    A process's counters hold the pages that it has touched, so what they lack of the segment may be cold. Only its
    mappings tell, or that a mapping is on huge pages as a whole or not at all.
    """
    for instance, planned in inputs.with_pool:
        processes = inputs.processes_of(instance.name)
        server = inputs.request.server(planned.runs_as)
        if processes is None and server is None:
            yield unknown(
                CODE,
                instance.name,
                "Whether it runs on huge pages is not known",
                "No running process of this instance was observed.",
            )
            continue
        statuses = {p.huge_pages_status for p in processes or ()} | {server.huge_pages_status if server else None}
        sizes = [
            (p.shared_hugetlb_bytes or 0) + (p.private_hugetlb_bytes or 0)
            for p in processes or ()
            if p.shared_hugetlb_bytes is not None or p.private_hugetlb_bytes is not None
        ]
        touched = max(sizes, default=None)
        one_mapping = sum(segment.count for segment in planned.demand.segments) == 1
        if "off" in statuses:
            yield _on_base(inputs, planned, "The server's mappings or its own huge_pages_status say off.")
        elif "partial" in statuses:
            yield _on_base(inputs, planned, "Of its large mappings some are on huge pages and some are not.", part=True)
        elif "on" in statuses:
            yield ok(CODE, instance.name, "It runs on huge pages", "All its large mappings are on huge pages.")
        elif touched is None:
            yield unknown(
                CODE,
                instance.name,
                "Whether it runs on huge pages is not known",
                "The processes' huge page use could not be read.",
            )
        elif touched == 0:
            yield _on_base(inputs, planned, f"None of its {len(sizes)} observed processes maps a huge page.")
        elif one_mapping or touched >= planned.demand.segment_bytes:
            evidence = (measured("touched on huge pages", format_bytes(touched)),)
            yield ok(CODE, instance.name, "It runs on huge pages", "Its segment is on huge pages.", evidence=evidence)
        else:
            yield unknown(
                CODE,
                instance.name,
                "Whether all of it runs on huge pages is not known",
                f"{format_bytes(touched)} of {format_bytes(planned.demand.segment_bytes)} were touched on huge pages;"
                " the rest is cold or on base pages.",
            )


def _on_base(inputs: FindingInputs, planned: InstancePlan, reason: str, *, part: bool = False) -> Finding:
    """It fell back where it has a part of its pages, or a pool has room for all; else nobody gave it any."""
    base, demand = page_label(inputs.node.base_page_bytes), planned.demand
    size = page_label(demand.page_bytes)
    fix = "Reserve the planned pages, set the engine to refuse a fallback, and restart it."
    idle = Counter[int]()
    for (_, page_bytes), pool in inputs.in_use.pools.items():
        idle[page_bytes] += (pool.idle or 0) * page_bytes
    if part or any(free >= demand.segment_bytes for free in idle.values()):
        title = f"It fell back to {base} pages: it needs {demand.pages:,} pages of {size}"
        return wrong(CODE, planned.name, title, reason, fix)
    title = f"It runs on {base} pages: it needs {demand.pages:,} pages of {size}"
    return attention(CODE, planned.name, title, reason, fix)
