"""Does the kubelet's memory.available count the pool as free?"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

CODE = "phantom_eviction"
TITLE = "Eviction threshold"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a Kubernetes node with pools."""
    view = inputs.kubernetes
    if view is None or not inputs.net_memory.locked_bytes:
        return
    name = inputs.node.name
    if not view.phantom_eviction_bytes:
        yield ok(CODE, name, TITLE, "HugepageAwareEviction is on: eviction counts the pool.")
        return
    known = inputs.request.reservations.hugepage_aware_eviction is not None
    corrected = inputs.reserved.eviction.bytes + view.phantom_eviction_bytes
    assumed = "" if known else " The feature gate is not given and is taken as off."
    yield attention(
        CODE,
        name,
        TITLE,
        f"memory.available lies {format_bytes(view.phantom_eviction_bytes)} too high, the size of the pool:"
        f" pods are evicted late or not at all.{assumed}",
        f"Set evictionHard memory.available to {format_kubernetes_bytes(corrected)}, or turn HugepageAwareEviction on.",
        evidence=(
            computed("pool", format_bytes(view.phantom_eviction_bytes)),
            computed("corrected evictionHard", format_bytes(corrected)),
        ),
    )
