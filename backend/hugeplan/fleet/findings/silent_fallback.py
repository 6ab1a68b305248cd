"""A database silently runs on base pages beside free huge pages: it started too early, or never asked."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, idle_pages_by_size, wrong
from hugeplan.fleet.observation import observed_database
from hugeplan.planner.findings.container_limits import silent_fallback as refused_by_limit
from hugeplan.planner.model import MIB
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "silent_fallback"
_LEAST_SEGMENT_BYTES = 64 * MIB


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each database with a large segment on base pages beside an idle pool, unless a limit keeps it from that."""
    default = observed.inventory.default_huge_page_bytes
    idle = {size: pages * size for size, pages in idle_pages_by_size(observed.sample).items() if pages}
    for database in observed.sample.databases or ():
        if database.huge_pages_status not in {"off", "partial"}:
            continue
        if default is not None and refused_by_limit(observed_database(database), default):
            continue  # a rule over the sample says so
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
            f"{format_bytes(idle[size])} of {page_label(size)} pages are free.",
            "Restart it: it takes huge pages only when it starts. Set huge_pages=on (or the engine's equivalent) so "
            "that it refuses to start without them.",
        )
