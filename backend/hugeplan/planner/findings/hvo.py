"""Would HVO give struct page memory back? hugetlb_free_vmemmap returns 28 KiB of each 2M page."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok, unknown
from hugeplan.planner.memory.ledger import hvo_returned_bytes
from hugeplan.planner.model import MIB, Finding
from hugeplan.planner.units import format_bytes

CODE = "hvo_off"
#: A return below this is not worth a boot parameter.
NOTABLE_BYTES = 64 * MIB


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a node with pools."""
    base = inputs.node.base_page_bytes
    returned = sum(hvo_returned_bytes(pool.pages, pool.page_bytes, base) for pool in inputs.pools)
    if not returned:
        return
    name = inputs.node.name
    evidence = (computed("HVO returns", format_bytes(returned)),)
    fix = "Boot with hugetlb_free_vmemmap=on, or set vm.hugetlb_optimize_vmemmap=1 before reserving."
    if inputs.node.hvo_enabled is None:
        title = "Whether struct page memory is returned is not known"
        yield unknown(CODE, name, title, f"Whether HVO is on is not known; it returns {format_bytes(returned)}.", fix)
    elif inputs.node.hvo_enabled:
        title = f"The kernel returns {format_bytes(returned)} of struct page memory"
        yield ok(CODE, name, title, f"HVO is on and returns {format_bytes(returned)}.", evidence=evidence)
    elif returned >= NOTABLE_BYTES:
        title = f"{format_bytes(returned)} of struct page memory are not returned"
        why = f"HVO is off; it would return {format_bytes(returned)}."
        yield attention(CODE, name, title, why, fix, evidence=evidence)
    else:
        why = f"HVO is off; it would return only {format_bytes(returned)}."
        yield ok(CODE, name, "Struct page memory is not worth a change", why, evidence=evidence)
