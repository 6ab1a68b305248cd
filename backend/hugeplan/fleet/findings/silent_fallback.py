"""A database runs on base pages although pages for it stand idle: huge_pages=try, and the start came too early."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, idle_pages_by_size, wrong
from hugeplan.planner.units import format_bytes

CODE = "silent_fallback"
_LEAST_SEGMENT_BYTES = 64 * 1024**2


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each database with a large shared segment on base pages, beside a pool that could hold it now."""
    idle = {size: pages * size for size, pages in idle_pages_by_size(observed.sample).items() if pages}
    for database in observed.sample.databases or ():
        if database.huge_pages_status not in {"off", "partial"}:
            continue
        segment = max((part.bytes or 0 for part in database.segments if part.backing == "base_pages"), default=0)
        fitting = [size for size, free in idle.items() if free >= segment]
        if segment < _LEAST_SEGMENT_BYTES or not fitting:
            continue
        size = max(fitting)
        yield wrong(
            CODE,
            database.key,
            "It runs on base pages beside an idle pool",
            f"{database.engine} has {format_bytes(segment)} of shared memory on base pages, while "
            f"{format_bytes(idle[size])} of {format_bytes(size)} pages are free.",
            "Restart it: it takes huge pages only when it starts. Set huge_pages=on (or the engine's equivalent) so "
            "that it refuses to start without them.",
        )
