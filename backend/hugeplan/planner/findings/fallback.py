"""Did an instance fall back to base pages without saying so?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, measured, ok, unknown, wrong
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
            yield _fallen(inputs, planned, "The server's mappings or its own huge_pages_status say off.")
        elif "partial" in statuses:
            yield _fallen(inputs, planned, "Of its large mappings some are on huge pages and some are not.")
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
            yield _fallen(inputs, planned, f"None of its {len(sizes)} observed processes maps a huge page.")
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


def _fallen(inputs: FindingInputs, planned: InstancePlan, reason: str) -> Finding:
    base, demand = page_label(inputs.node.base_page_bytes), planned.demand
    title = f"It fell back to {base} pages: it needs {demand.pages:,} pages of {page_label(demand.page_bytes)}"
    fix = "Reserve the planned pages, set the engine to refuse a fallback, and restart it."
    return wrong(CODE, planned.name, title, reason, fix)
