"""KubeletConfiguration drop-in: reservations, eviction corrected for the pool, reservedMemory solved.

Three sums meet here, all of the kubelet's (v1.34):

* allocatable = max(0, capacity - kubeReserved - systemReserved - evictionHard) - pools
  (pkg/kubelet/nodestatus/setters.go). It lacks the pool already, so evictionHard stays as it is: raised by the pool it
  would take the pool from the pods a second time.
* memory.available, which eviction compares with its threshold, counts the pool as free (kubernetes#137984) unless
  HugepageAwareEviction is on. evictionSoft is corrected instead: it evicts at the same level and is subtracted nowhere
  (pkg/kubelet/cm/node_container_manager_linux.go takes the hard thresholds alone).
* reservedMemory over all NUMA nodes = kubeReserved + systemReserved + evictionHard, to the byte
  (pkg/kubelet/cm/memorymanager/memory_manager.go validateReservedMemory).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from hugeplan.artifacts.base import Artifact, Restart, all_of, node_checks, planned_pools, put, put_back, yaml_text
from hugeplan.planner.memory.kubernetes import NodeReserved, reserved_memory, resolve_reservations
from hugeplan.planner.model import Plan, PlanRequest, Source
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

PATH = "/etc/kubernetes/kubelet.conf.d/60-hugeplan.conf"
SIGNAL = "memory.available"
#: A soft threshold must hold this long before pods are evicted; the kubelet refuses a threshold without it.
GRACE_PERIOD = "10s"


def soft_eviction_bytes(plan: Plan, request: PlanRequest, reserved: NodeReserved) -> tuple[int | None, str]:
    """evictionSoft's memory.available, None where the threshold needs no correction; and why."""
    pool = sum(p.pages * p.page_bytes for p in planned_pools(plan))
    if request.reservations.hugepage_aware_eviction:
        return None, "evictionSoft: left out, this kubelet leaves the pools out of memory.available."
    if not pool:
        return None, "evictionSoft: left out, the plan reserves no pages."
    return reserved.eviction.bytes + pool, (
        f"evictionSoft is evictionHard, {format_bytes(reserved.eviction.bytes)}, and the pools of "
        f"{format_bytes(pool)}, which this kubelet takes for available memory. evictionHard is not raised: allocatable "
        "memory, which lacks the pools already, would fall by them once more."
    )


def configuration(plan: Plan, request: PlanRequest) -> tuple[dict[str, Any], list[str]]:
    """The document and its comments."""
    kubelet = None if request.sample is None else request.sample.kubelet
    reserved = resolve_reservations(request.reservations, request.node.mem_total_bytes, kubelet)
    soft, why = soft_eviction_bytes(plan, request, reserved)
    comments = [f"{PATH}: {plan.node}; restart the kubelet after the pools are there.", why]
    document: dict[str, Any] = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    kube, system = reserved.kube, reserved.system
    is_split = not reserved.only_sum
    if not is_split:
        comments.append(
            "kubeReserved, systemReserved, evictionHard: left out, only their sum is known, "
            f"{format_bytes(reserved.total_bytes)}; the node keeps its own."
        )
    for field, part in (("kubeReserved", kube), ("systemReserved", system)) if is_split else ():
        if part.source is Source.ASSUMED:
            comments.append(f"{field}: left out, the plan does not hold it; the kubelet's default counts as 0 here.")
        else:
            document[field] = {"memory": format_kubernetes_bytes(part.bytes)}
    if is_split:
        document["evictionHard"] = {SIGNAL: format_kubernetes_bytes(reserved.eviction.bytes)}
    document["mergeDefaultEvictionSettings"] = True
    if soft is not None:
        document["evictionSoft"] = {SIGNAL: format_kubernetes_bytes(soft)}
        document["evictionSoftGracePeriod"] = {SIGNAL: GRACE_PERIOD}
    if request.reservations.memory_manager_static:
        total = reserved.total_bytes
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


def is_ours(request: PlanRequest) -> bool:
    """Whether an operator may write the kubelet's configuration: on GKE and AKS it is the provider's."""
    return request.reservations.kubernetes and request.reservations.provider not in {"gke", "aks"}


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The drop-in, on Kubernetes nodes whose plan changes pools."""
    if not is_ours(request) or not planned_pools(plan):
        return
    document, comments = configuration(plan, request)
    checked = [
        f'"{SIGNAL}":"{document[field][SIGNAL]}"' for field in ("evictionHard", "evictionSoft") if field in document
    ]
    query = f"kubectl get --raw /api/v1/nodes/{shlex.quote(plan.node)}/proxy/configz"
    content = yaml_text(comments, document)
    yield Artifact(
        kind="kubelet_configuration",
        filename="60-hugeplan-kubelet.conf",
        path=PATH,
        media_type="application/yaml",
        content=content,
        summary="Makes the kubelet evict in time beside the pools, and gives its Memory Manager the sum it demands.",
        install=f"# for a kubelet with --config-dir={PATH.rsplit('/', 1)[0]}\n"
        + all_of(
            [
                put("60-hugeplan-kubelet.conf", PATH, content),
                "rm -f /var/lib/kubelet/memory_manager_state",
                "systemctl restart kubelet",
            ]
        ),
        verify=all_of([*(f"{query} | grep -qF '{words}'" for words in checked), *node_checks(plan)]),
        rollback=put_back(PATH, content, "rm -f /var/lib/kubelet/memory_manager_state", "systemctl restart kubelet"),
        restart=Restart.KUBELET,
        avoid_when="The provider owns the kubelet's configuration (as on OpenShift), or there is no --config-dir.",
    )
