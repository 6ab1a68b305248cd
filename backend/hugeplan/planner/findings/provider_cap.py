"""Does the provider allow this? GKE caps huge pages at 60 % of memory, 80 % from 30 GB on, and has 1G on few types."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok, wrong
from hugeplan.planner.memory.kubernetes import huge_page_cap_bytes
from hugeplan.planner.model import GIB, Finding
from hugeplan.planner.units import format_bytes

CODE = "provider_cap"
#: Machine families with 1G pages, by the help text of gcloud container node-pools create; the list grows.
GKE_1G_MACHINES = ("c3", "m2", "c2d", "c3d", "h3", "m3", "a2", "a3", "g2")


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a GKE node with pools."""
    locked = inputs.net_memory.locked_bytes
    cap = huge_page_cap_bytes(inputs.request)
    if cap is None or not locked:
        return
    if any(pool.page_bytes == GIB and pool.pages for pool in inputs.pools):
        reason = f"GKE offers 1G pages only on some machine types (in 2025: {', '.join(GKE_1G_MACHINES)})."
        fix = "Check the machine type, or plan 2M pages."
        yield attention(CODE, inputs.node.name, "GKE may not offer 1G pages on this machine", reason, fix)
    evidence = (computed("cap", format_bytes(cap)), computed("pools", format_bytes(locked)))
    if locked > cap:
        reason = f"The pools take {format_bytes(locked)}, GKE allows {format_bytes(cap)} on this node."
        fix = "Take a larger node, or shrink the buffer pools."
        title = f"The pools are {format_bytes(locked - cap)} larger than GKE allows"
        yield wrong(CODE, inputs.node.name, title, reason, fix, evidence=evidence)
    else:
        title, reason = "GKE allows pools of this size", f"Within GKE's {format_bytes(cap)}."
        yield ok(CODE, inputs.node.name, title, reason, evidence=evidence)
