"""Do the pods fit: their requests into what the kubelet can allocate, their limits into the memory that is left?

The kubelet subtracts pools from allocatable, so requests are checked by the scheduler. Limits are not, and the cgroup
of all pods may still grow by the pool's size (getNodeAllocatableAbsolute does not subtract it since v1.33): they are
safe only while limits + systemReserved + kubeReserved <= MemTotal - pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hugeplan.planner.findings.base import FindingInputs, attention, computed, ok, unknown, wrong
from hugeplan.planner.memory.kubernetes import regular_room_bytes
from hugeplan.planner.memory.ledger import sum_bytes
from hugeplan.planner.model import Finding, LedgerKind, Tenant, named
from hugeplan.planner.units import format_bytes

CODE = "pod_memory"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for a Kubernetes node with pods."""
    pods = [tenant for tenant in inputs.request.tenants if tenant.kind == "pod" and tenant.count]
    if inputs.kubernetes is None or not pods:
        return
    name = inputs.node.name
    databases = sum_bytes(inputs.ledger, LedgerKind.ENGINE_PRIVATE, LedgerKind.PAGE_TABLES)
    requested = _sum_requests(pods)
    allocatable = inputs.kubernetes.allocatable["memory"]
    if requested is None:
        missing = named(pod.name for pod in pods if pod.request_bytes is None and pod.limit_bytes is None)
        yield unknown(
            CODE, name, "Whether the pods fit is not known", f"Neither request nor limit is known of {missing}."
        )
        return
    evidence = (
        computed("requests of pods and databases", format_bytes(requested + databases)),
        computed("allocatable", format_bytes(allocatable)),
    )
    if requested + databases > allocatable:
        over = format_bytes(requested + databases - allocatable)
        reason = f"Requests are {over} above what is allocatable beside the pools: some pods stay pending."
        title, fix = (
            f"Pods will stay pending: requests are {over} too high",
            "Move pods to another node, or shrink the pools.",
        )
        yield wrong(CODE, name, title, reason, fix, evidence=evidence)
        return
    limits = _sum_limits(pods)
    room = regular_room_bytes(inputs.node.mem_total_bytes, inputs.net_memory.locked_bytes)
    reserved = inputs.reserved.kube.bytes + inputs.reserved.system.bytes
    if limits is None:
        reason = "A pod has no memory limit: nothing stops it from taking what the others requested."
        fix = "Give every pod beside a database a memory limit."
        yield attention(CODE, name, "A pod has no memory limit", reason, fix, evidence=evidence)
    elif limits + databases + reserved > room:
        over = format_bytes(limits + databases + reserved - room)
        reason = f"Limits and reservations are {over} above the memory outside the pools: they cannot all be used."
        title, fix = (
            f"The pods' limits promise {over} that are not there",
            "Lower limits, or accept what the risk says.",
        )
        yield attention(CODE, name, title, reason, fix, evidence=evidence)
    else:
        reason = "Requests fit allocatable, limits fit the memory outside the pools."
        yield ok(CODE, name, "The pods fit beside the pools", reason, evidence=evidence)


def _sum_requests(pods: Sequence[Tenant]) -> int | None:
    """Bytes requested; a limit without a request is also the request (Kubernetes). None when one has neither."""
    total = 0
    for pod in pods:
        request = pod.limit_bytes if pod.request_bytes is None else pod.request_bytes
        if request is None:
            return None
        total += pod.count * request
    return total


def _sum_limits(pods: Sequence[Tenant]) -> int | None:
    total = 0
    for pod in pods:
        if pod.limit_bytes is None:
            return None
        total += pod.count * pod.limit_bytes
    return total
