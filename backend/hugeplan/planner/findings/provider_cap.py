"""Does the provider allow this much? GKE caps huge pages at 60 % of memory, 80 % from 30 GB on."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, computed, ok, wrong
from hugeplan.planner.kubernetes import gke_huge_page_cap_bytes
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "provider_cap"
TITLE = "Provider's cap on huge pages"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a GKE node with pools."""
    locked = inputs.net_memory.locked_bytes
    if inputs.request.reservations.provider != "gke" or not locked:
        return
    cap = gke_huge_page_cap_bytes(inputs.node.mem_total_bytes)
    evidence = (computed("cap", format_bytes(cap)), computed("pools", format_bytes(locked)))
    if locked > cap:
        reason = f"The pools take {format_bytes(locked)}, GKE allows {format_bytes(cap)} on this node."
        fix = "Take a larger node, or shrink the buffer pools."
        yield wrong(CODE, inputs.node.name, TITLE, reason, fix, evidence=evidence)
    else:
        yield ok(CODE, inputs.node.name, TITLE, f"Within GKE's {format_bytes(cap)}.", evidence=evidence)
