"""KubeletConfiguration drop-in: reservations, the eviction threshold corrected by the pool, reservedMemory solved.

The Memory Manager's rule: reservedMemory over all NUMA nodes equals kubeReserved + systemReserved + evictionHard,
to the byte. A kubelet without HugepageAwareEviction takes the pool for available memory, so the threshold is raised
by the pool where that leaves the plan's tenants their memory (kubernetes#137984).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from hugeplan.artifacts.base import Artifact, Restart, all_of, node_checks, planned_pools, yaml_text
from hugeplan.planner.memory.kubernetes import NodeReserved, reserved_memory, resolve_reservations
from hugeplan.planner.model import LedgerKind, Plan, PlanRequest, Source
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

PATH = "/etc/kubernetes/kubelet.conf.d/60-hugeplan.conf"
_ORDINARY = (LedgerKind.TENANTS, LedgerKind.ENGINE_PRIVATE, LedgerKind.PAGE_TABLES)


def eviction_bytes(plan: Plan, request: PlanRequest, reserved: NodeReserved) -> tuple[int, str]:
    """The threshold to write, and why."""
    given = reserved.eviction.bytes
    pool = sum(p.pages * p.page_bytes for p in planned_pools(plan))
    if request.reservations.hugepage_aware_eviction:
        return given, "evictionHard is as it was: this kubelet leaves the pools out of memory.available."
    needed = sum(part.bytes for part in plan.ledger.parts if part.kind in _ORDINARY)
    left = request.node.mem_total_bytes - reserved.total_bytes - 2 * pool
    if needed <= left:
        return given + pool, (
            f"evictionHard is {format_bytes(given)} and the pools of {format_bytes(pool)}, "
            "which this kubelet takes for "
            "available memory. Allocatable memory falls by the pools once more."
        )
    return given, (
        f"evictionHard is NOT raised by the pools of {format_bytes(pool)}: allocatable "
        "memory would fall below what the "
        "plan's pods need. Eviction starts late: keep the sum of memory limits below MemTotal less the pools."
    )


def configuration(plan: Plan, request: PlanRequest) -> tuple[dict[str, Any], list[str]]:
    """The document and its comments."""
    reserved = resolve_reservations(request.reservations, request.node.mem_total_bytes)
    eviction, why = eviction_bytes(plan, request, reserved)
    comments = [f"{PATH}: {plan.node}; restart the kubelet after the pools are there.", why]
    document: dict[str, Any] = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    kube, system = reserved.kube, reserved.system
    for field, part in (("kubeReserved", kube), ("systemReserved", system)):
        if part.source is Source.ASSUMED:
            comments.append(f"{field}: left out, the plan does not hold it; the kubelet's default counts as 0 here.")
        else:
            document[field] = {"memory": format_kubernetes_bytes(part.bytes)}
    document["evictionHard"] = {"memory.available": format_kubernetes_bytes(eviction)}
    document["mergeDefaultEvictionSettings"] = True
    if request.reservations.memory_manager_static:
        total = kube.bytes + system.bytes + eviction
        room = {numa.id: numa.mem_total_bytes for numa in request.node.numa}
        for pool in planned_pools(plan):
            room[pool.numa_node] -= pool.pages * pool.page_bytes
        if total <= sum(max(0, size) for size in room.values()):
            entries = reserved_memory(total, room)
            document["memoryManagerPolicy"] = "Static"
            document["topologyManagerPolicy"] = "single-numa-node"
            document["reservedMemory"] = [
                {"numaNode": e["numa_node"], "limits": {"memory": format_kubernetes_bytes(e["memory"])}}
                for e in entries
            ]
        else:
            comments.append("reservedMemory: left out, the reservations do not fit beside the pools.")
    else:
        comments.append(
            "memoryManagerPolicy and reservedMemory: left out, the plan does not ask for the Static policy."
        )
    return document, comments


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The drop-in, on Kubernetes nodes whose plan changes pools."""
    if not request.reservations.kubernetes or not planned_pools(plan):
        return
    document, comments = configuration(plan, request)
    threshold = document["evictionHard"]["memory.available"]
    query = f"kubectl get --raw /api/v1/nodes/{shlex.quote(plan.node)}/proxy/configz"
    yield Artifact(
        kind="kubelet_configuration",
        filename="60-hugeplan-kubelet.conf",
        path=PATH,
        media_type="application/yaml",
        content=yaml_text(comments, document),
        summary="Makes the kubelet count the pools, and corrects its eviction threshold and reservedMemory for them.",
        install=(
            f"install -D -m 0644 60-hugeplan-kubelet.conf {PATH}  # kubelet with "
            f"--config-dir={PATH.rsplit('/', 1)[0]}\n"
            "rm -f /var/lib/kubelet/memory_manager_state\nsystemctl restart kubelet"
        ),
        verify=all_of([f'{query} | grep -q \'"memory.available":"{threshold}"\'', *node_checks(plan)]),
        rollback=f"rm -f {PATH} /var/lib/kubelet/memory_manager_state\nsystemctl restart kubelet",
        restart=Restart.KUBELET,
        avoid_when="The provider owns the kubelet's configuration (GKE, AKS, OpenShift), or there is no --config-dir.",
    )
