"""Pod resources: the huge page limit and the ordinary memory of each database on a Kubernetes node.

Rules: huge page request equals limit, the quantity is whole pages, cpu or memory must be set as well
(kubernetes pkg/apis/core/validation); a limit below the mapping is SIGBUS or a fallback.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, one_line, slug, unique_kinds, with_pool
from hugeplan.planner.memory.kubernetes import huge_page_limits
from hugeplan.planner.model import MIB, InstancePlan, Plan, PlanRequest
from hugeplan.planner.pages import ceil_to_multiple
from hugeplan.planner.units import format_kubernetes_bytes

#: Server processes and caches beside the connections, on top of what the plan counts.
SERVER_BYTES = 256 * MIB


def memory_limit_bytes(planned: InstancePlan) -> int | None:
    """Ordinary memory for one instance: connections, page tables and 256 MiB; None when connections are unknown."""
    demand = planned.demand
    if demand.connections is None or demand.private_bytes_per_connection is None:
        return None
    private = demand.connections * demand.private_bytes_per_connection
    return ceil_to_multiple(private + planned.page_tables_huge_bytes + SERVER_BYTES, MIB)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One fragment for each database with a pool, on Kubernetes nodes only."""
    if not request.reservations.kubernetes:
        return
    found = with_pool(plan, request)
    kinds = unique_kinds("pod", (planned.name for _, planned in found))
    for kind, (_, planned) in zip(kinds, found, strict=True):
        limits = huge_page_limits(planned.demand, plan.pools)
        resource = next(iter(limits))
        pages = [f"    {name}: {format_kubernetes_bytes(size)}" for name, size in limits.items()]
        memory = memory_limit_bytes(planned)
        lines = [
            f"# Container resources of {one_line(planned.name)}; restart the kubelet after the pool changes.",
            "resources:",
            "  requests:",
            *pages,
            *_memory_lines(memory),
            "  limits:",
            *pages,
            *_memory_lines(memory),
            "",
        ]
        yield Artifact(
            kind=kind,
            filename=f"{slug(planned.name)}-resources.yaml",
            media_type="application/yaml",
            content="\n".join(lines),
            verify=f"kubectl get node -o custom-columns=NAME:.metadata.name,PAGES:.status.allocatable.{resource}",
            rollback=f"# remove the {' and '.join(limits)} lines and set huge_pages back before the pod restarts",
        )


def _memory_lines(memory: int | None) -> list[str]:
    if memory is None:
        return ["    # memory: set it; the connections of this engine are not known to the plan"]
    return [f"    memory: {format_kubernetes_bytes(memory)}"]
