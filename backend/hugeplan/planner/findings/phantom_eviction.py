"""Does the kubelet's memory.available count the pool as free?

The threshold has to rise by the pool. evictionHard is also subtracted from allocatable, which already lacks the pool,
so raising it there takes the pool away twice; evictionSoft evicts at the same level and is not subtracted
(kubernetes pkg/kubelet/cm/node_container_manager, hardEvictionReservation).
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok
from hugeplan.planner.memory.kubernetes import may_have_eviction_gate
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

CODE = "phantom_eviction"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a Kubernetes node with pools."""
    view = inputs.kubernetes
    if view is None or not inputs.net_memory.locked_bytes:
        return
    name = inputs.node.name
    if not view.phantom_eviction_bytes:
        yield ok(CODE, name, "Eviction counts the pool", "HugepageAwareEviction is on: eviction counts the pool.")
        return
    known = inputs.request.reservations.hugepage_aware_eviction is not None
    corrected = inputs.reserved.eviction.bytes + view.phantom_eviction_bytes
    allocatable = view.allocatable["memory"]
    twice = max(0, allocatable - view.phantom_eviction_bytes)
    kubelet = None if inputs.request.sample is None else inputs.request.sample.kubelet
    version = inputs.request.reservations.kubelet_version or (kubelet.version if kubelet else None)
    # A kubelet that does not know a gate does not start with it.
    gate = "Turn HugepageAwareEviction on, or set" if may_have_eviction_gate(version) else "Set"
    assumed = "" if known else " The feature gate is not given and is taken as off."
    yield attention(
        CODE,
        name,
        f"Eviction takes {format_bytes(view.phantom_eviction_bytes)} of the pool for free memory",
        f"memory.available lies {format_bytes(view.phantom_eviction_bytes)} too high, the size of the pool:"
        f" pods are evicted late or not at all.{assumed}",
        f"{gate} evictionSoft memory.available to {format_kubernetes_bytes(corrected)}"
        f" with a short grace period. In evictionHard the same value would also lower allocatable memory from"
        f" {format_bytes(allocatable)} to {format_bytes(twice)}.",
        evidence=(
            computed("pool", format_bytes(view.phantom_eviction_bytes)),
            computed("corrected threshold", format_bytes(corrected)),
        ),
    )
