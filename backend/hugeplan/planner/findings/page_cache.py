"""Is there page cache for the engines that count on it?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "page_cache_short"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance whose settings count on page cache."""
    for name, (wanted, granted) in inputs.page_cache_demands.items():
        evidence = (computed("counted on", format_bytes(wanted)), computed("there", format_bytes(granted)))
        if granted < wanted:
            reason = f"It counts on {format_bytes(wanted)} of page cache; {format_bytes(granted)} are left for it."
            fix = "Lower effective_cache_size to what is there, or free memory."
            title = f"It counts on {format_bytes(wanted - granted)} of page cache that is not there"
            yield attention(CODE, name, title, reason, fix, evidence=evidence)
        else:
            title, reason = "The page cache it counts on is there", f"{format_bytes(granted)} are left for it."
            yield ok(CODE, name, title, reason, evidence=evidence)
