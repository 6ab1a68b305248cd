"""The hypervisor backs the guest's 2M pages with smaller ones, so they reach no further in the TLB."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention
from hugeplan.planner.model import MIB
from hugeplan.planner.pages import page_label

CODE = "fractured_guest"
_PAGE_2M = 2 * MIB


def check(observed: Observed) -> Iterable[NodeFinding]:
    """The effective page size of 2M pages, where a run measured it."""
    granule = observed.effective_granule_bytes
    if granule is not None and granule < _PAGE_2M:
        yield attention(
            CODE,
            observed.name,
            "Its 2M pages are backed by smaller ones",
            f"One TLB entry covers {page_label(granule)} of a 2M page here: the hypervisor backs the guest's "
            "memory with smaller pages. Huge pages then shorten the page walk and give no more TLB reach.",
            "Ask for a machine type whose memory is backed by huge pages, or let the host's operator back it so.",
        )
