"""Ordinary memory is nearly used up while pools hold pages."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, wrong
from hugeplan.planner.units import format_bytes

CODE = "memory_low"
LEAST_AVAILABLE_FRACTION = 0.03


def check(observed: Observed) -> Iterable[NodeFinding]:
    """MemAvailable below 3 % of MemTotal."""
    memory = observed.sample.memory
    available, total = memory.mem_available_bytes, memory.mem_total_bytes
    if available is None or available >= LEAST_AVAILABLE_FRACTION * total:
        return
    pools = f", {format_bytes(memory.hugetlb_bytes)} are in huge page pools" if memory.hugetlb_bytes else ""
    yield wrong(
        CODE,
        observed.name,
        "Ordinary memory is nearly used up",
        f"{format_bytes(available)} of {format_bytes(total)} are available{pools}. "
        "Pages in a pool cannot be used for anything else.",
        "Give idle huge pages back, or move tenants to another node.",
    )
