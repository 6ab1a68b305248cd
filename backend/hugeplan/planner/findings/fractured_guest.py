"""Does a TLB entry here cover the page it should? In a fractured guest the host maps it with smaller ones."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok, unknown
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label

CODE = "fractured_guest"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each planned page size."""
    hardware = inputs.node.hardware
    for page_bytes in sorted({planned.demand.page_bytes for _, planned in inputs.with_pool}):
        label = page_label(page_bytes)
        granules = [
            g
            for g in (hardware.granules if hardware else ())
            if g.page_bytes == page_bytes and g.granule_bytes is not None
        ]
        if not granules:
            if hardware is not None and hardware.virtualised is False:
                title = "A TLB entry covers a whole page"
                yield ok(CODE, label, title, "The node is not a guest: a TLB entry covers what the kernel maps.")
            else:
                why = "a guest" if hardware is not None and hardware.virtualised else "possibly a guest"
                reason = f"The node is {why}, and what a TLB entry covers was not measured."
                title = "What a TLB entry covers is not known"
                yield unknown(CODE, label, title, reason, "Run tlbbench geometry with free huge pages on the node.")
            continue
        granule = min(g.granule_bytes or 0 for g in granules)
        evidence = (measured("granule", page_label(granule)),)
        if granule < page_bytes:
            yield attention(
                CODE,
                label,
                f"The host maps {label} pages with smaller pages of {page_label(granule)}",
                f"A TLB entry covers {page_label(granule)} of a {label} page: the host maps it with smaller ones.",
                "Back the guest with huge pages on the host; until then expect shorter walks, not more TLB reach.",
                evidence=evidence,
            )
        else:
            why = f"A TLB entry covers the whole {label} page."
            yield ok(CODE, label, "A TLB entry covers a whole page", why, evidence=evidence)
