"""Are the pools there: short of the plan, on which NUMA node, or not yet reserved?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import OnShortage
from hugeplan.planner.findings.base import FindingInputs, attention, computed, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_short"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each planned pool."""
    for pool in inputs.pools:
        if pool.pages == 0:
            continue
        label = page_label(pool.page_bytes)
        subject = f"{label} on NUMA node {pool.numa_node}"
        if pool.present_pages is None:
            yield unknown(
                CODE,
                subject,
                f"Whether the {pool.pages:,} planned pages are reserved is not known",
                "What the node has reserved today is not known.",
            )
            continue
        evidence = (computed("planned", pool.pages), measured("present", pool.present_pages))
        if pool.present_pages >= pool.pages:
            yield ok(
                CODE, subject, "The pool is reserved", f"All {pool.pages:,} pages are reserved.", evidence=evidence
            )
        elif pool.present_pages == 0:
            fix = "Apply the plan's files."
            yield attention(
                CODE,
                subject,
                "The pool is not reserved yet",
                f"None of {pool.pages:,} pages is reserved yet.",
                fix,
                evidence=evidence,
            )
        else:
            missing = pool.pages - pool.present_pages
            consequences = "".join(f" {text}" for text in _consequences(inputs, pool.page_bytes))
            yield wrong(
                CODE,
                subject,
                f"{missing:,} of {pool.pages:,} planned pages are missing",
                f"{pool.present_pages:,} are reserved.{consequences}",
                "Apply the plan's files. Where the kernel then gives fewer: reserve at boot, or compact memory"
                " (echo 1 > /proc/sys/vm/compact_memory) and write the count again.",
                evidence=evidence,
            )


def _consequences(inputs: FindingInputs, page_bytes: int) -> Iterable[str]:
    """What each engine does with the pages that are there, where they cannot hold all its mappings."""
    present = sum(p.present_pages or 0 for p in inputs.pools if p.page_bytes == page_bytes)
    idle = f"all {present:,} pages ({format_bytes(present * page_bytes)}) are idle"
    for instance, planned in inputs.with_pool:
        demand = planned.demand
        if demand.page_bytes != page_bytes or demand.pages <= present:
            continue
        shortage = inputs.pool_uses[instance.name].on_shortage
        mappings = sum(segment.count for segment in demand.segments)
        if shortage is OnShortage.REFUSE:
            yield f"{instance.name} will not start, and {idle}."
        elif shortage is OnShortage.PARTIAL:
            yield f"{instance.name} takes what there is and base pages for the rest."
        elif mappings == 1:
            yield f"{instance.name} falls back to base pages as a whole, and {idle}."
        else:
            yield f"{instance.name} falls back mapping by mapping: those that find no pages use base pages."
