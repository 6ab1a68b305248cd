"""Did an instance fall back to base pages without saying so?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding, InstancePlan
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "fallback_to_base_pages"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance that the plan gives huge pages."""
    for instance, planned in inputs.with_pool:
        processes, server = inputs.processes_of(instance.name), inputs.request.server(planned.runs_as)
        status = None if server is None else server.huge_pages_status
        if status == "off" or any(p.huge_pages_status == "off" for p in processes or ()):
            yield _fallen(inputs, planned, "The server itself reports huge_pages_status = off.")
            continue
        sizes = [
            (p.shared_hugetlb_bytes or 0) + (p.private_hugetlb_bytes or 0)
            for p in processes or ()
            if p.shared_hugetlb_bytes is not None or p.private_hugetlb_bytes is not None
        ]
        segment = planned.demand.segment_bytes
        if processes is None and status == "on":
            yield ok(CODE, instance.name, "It runs on huge pages", "Its huge_pages_status is on.")
        elif not sizes:
            unread = "The processes' huge page use could not be read."
            why = "No running process of this instance was observed." if processes is None else unread
            yield unknown(CODE, instance.name, "Whether it runs on huge pages is not known", why)
        elif max(sizes) == 0:
            yield _fallen(inputs, planned, f"None of its {len(sizes)} observed processes maps a huge page.")
        elif max(sizes) < segment // 2:
            yield _fallen(
                inputs,
                planned,
                f"At most {format_bytes(max(sizes))} of {format_bytes(segment)} are on huge pages.",
            )
        else:
            evidence = (measured("on huge pages", format_bytes(max(sizes))),)
            yield ok(CODE, instance.name, "It runs on huge pages", "Its segment is on huge pages.", evidence=evidence)


def _fallen(inputs: FindingInputs, planned: InstancePlan, reason: str) -> Finding:
    base, demand = page_label(inputs.node.base_page_bytes), planned.demand
    title = f"It fell back to {base} pages: it needs {demand.pages:,} pages of {page_label(demand.page_bytes)}"
    fix = "Reserve the planned pages, set the engine to refuse a fallback, and restart it."
    return wrong(CODE, planned.name, title, reason, fix)
