"""Reserved pages that no pod may use: taken from the node and used by nothing."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import NodeNow, finding
from hugeplan.planner.model import Finding, State
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

CODE = "pool_idle"


def check(now: NodeNow) -> Iterable[Finding]:
    """One finding per pool whose pages exceed the limits of all pods on the node."""
    for size, held in now.pool_bytes.items():
        limited = now.limited_bytes(size)
        # Databases that ask for them and lack the limit have a finding of their own, which tells them to take it.
        limited += sum(
            database.needed_bytes
            for database in now.databases
            if database.wants_pages
            and database.demand is not None
            and database.demand.page_bytes == size
            and not database.found.huge_pages_limit_bytes
        )
        idle = held - limited
        if idle < size:
            continue
        whose = (
            "no pod has a limit for them" if not limited else f"pods may use or ask for {format_bytes(limited)} of them"
        )
        yield finding(
            CODE,
            State.ATTENTION,
            now.name,
            f"{idle // size:,} reserved pages of {page_label(size)} cannot be used by any pod",
            f"{format_bytes(held)} are reserved in pages of {page_label(size)}; {whose}."
            " Processes outside pods are not seen here.",
            fix=f"Release them: reserve {limited // size:,} of {held // size:,} pages of {page_label(size)}. It "
            f"gives {format_bytes(idle)} back to pods. Or give databases a limit for them.",
            reserved=format_bytes(held),
            limits=format_bytes(limited),
        )
