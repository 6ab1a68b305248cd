"""Is a pod's huge page limit smaller than the segment? Then the server dies with SIGBUS or falls back."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, computed, given, ok, unknown, wrong
from hugeplan.planner.memory.kubernetes import huge_page_limits
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

CODE = "pod_limit_below_segment"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance with a pool on a Kubernetes node."""
    if not inputs.request.reservations.kubernetes:
        return
    for instance, planned in inputs.with_pool:
        demand = planned.demand
        limits = huge_page_limits(planned, inputs.pools, inputs.instances)
        resource, need = next(iter(limits.items()))
        limit = instance.pod_hugepages_limit_bytes
        wanted = ", ".join(f"{name}: {format_kubernetes_bytes(size)}" for name, size in limits.items())
        fix = f"Set {wanted} as request and limit of the container."
        evidence = (
            computed("needed", format_bytes(need)),
            given("limit", limit if limit is None else format_bytes(limit)),
        )
        if limit is None:
            yield unknown(
                CODE,
                instance.name,
                "Whether the pod may use the segment's pages is not known",
                "The pod's huge page limit is not given.",
                fix,
            )
        elif limit < demand.pages * demand.page_bytes:
            reason = (
                f"The limit {format_bytes(limit)} is below the segment's {demand.pages:,} pages: SIGBUS or fallback."
            )
            yield wrong(
                CODE,
                instance.name,
                f"The pod needs {demand.pages:,} huge pages, its limit allows {limit // demand.page_bytes:,}",
                reason,
                fix,
                evidence=evidence,
            )
        elif limit % demand.page_bytes:
            reason = (
                f"The limit is not a whole number of {resource.removeprefix('hugepages-')} pages: the pod is refused."
            )
            yield wrong(
                CODE, instance.name, "The pod will be refused for its huge page limit", reason, fix, evidence=evidence
            )
        else:
            yield ok(
                CODE,
                instance.name,
                "The pod may use all pages of the segment",
                "The limit covers the segment.",
                evidence=evidence,
            )
        others = [name for name in limits if name != resource]
        if others and limit is not None:
            yield unknown(
                CODE,
                instance.name,
                "Whether the pod may use its smaller huge pages is not known",
                f"Its smaller mappings take {' and '.join(others)}; what the pod may use of these is not given.",
                fix,
            )
