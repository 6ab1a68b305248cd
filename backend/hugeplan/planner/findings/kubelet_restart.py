"""Has the kubelet seen the pool? It reads sysfs when it starts, and never again."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok, unknown, wrong
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_bytes

CODE = "kubelet_not_restarted"
_FIX = "systemctl restart kubelet, then check node.status.capacity."


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each page size with a pool on a Kubernetes node."""
    if not inputs.request.reservations.kubernetes:
        return
    sizes = sorted({pool.page_bytes for pool in inputs.pools})
    for page_bytes in sizes:
        pools = [pool for pool in inputs.pools if pool.page_bytes == page_bytes]
        resource = kubernetes_resource_name(page_bytes)
        seen = (
            None if inputs.sample is None or inputs.sample.kubelet_capacity is None else inputs.sample.kubelet_capacity
        )
        changed = inputs.request.policy.reserve_at == "runtime" and any(p.present_pages != p.pages for p in pools)
        unseen = seen is None or any(pool.present_pages is None for pool in pools)
        present = sum((pool.present_pages or 0) * page_bytes for pool in pools)
        capacity = 0 if seen is None else seen.get(resource, 0)
        evidence = (measured("reserved", format_bytes(present)), measured("capacity", format_bytes(capacity)))
        if not unseen and capacity != present:
            reason = f"The kubelet reports {format_bytes(capacity)}, the kernel has {format_bytes(present)}."
            yield wrong(
                CODE, resource, "The kubelet and the kernel disagree on the pool", reason, _FIX, evidence=evidence
            )
        elif changed:
            reason = "The plan changes the pool while the kubelet runs; it reads the pool only when it starts."
            yield attention(CODE, resource, "The kubelet will not see the new pool until it restarts", reason, _FIX)
        elif unseen:
            title = "Whether the kubelet sees the pool is not known"
            yield unknown(CODE, resource, title, "The node's capacity in Kubernetes is not known.", _FIX)
        else:
            yield ok(CODE, resource, "The kubelet sees the pool", "Kubelet and kernel agree.", evidence=evidence)
