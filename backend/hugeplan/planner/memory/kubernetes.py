"""Kubernetes arithmetic: what the kubelet reserves, reports, and gets wrong about huge pages.

Sources: kubernetes v1.33 pkg/kubelet/nodestatus/setters.go (allocatable), pkg/kubelet/cm/memorymanager
(reservedMemory), the providers' published reservation formulas. Quantities are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Demand,
    Explanation,
    InstancePlan,
    KubernetesView,
    NodeFacts,
    NodeSample,
    ObservedKubelet,
    Plan,
    PlanRequest,
    PoolPlan,
    Reservations,
    Source,
    Term,
)
from hugeplan.planner.pages import ceil_to_multiple, kubernetes_resource_name
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes

#: The kubelet's own default of ``evictionHard`` (memory.available), Kubernetes documentation.
KUBELET_EVICTION_BYTES = 100 * MIB
#: AKS before 1.29 sets ``--eviction-hard=memory.available<750Mi``, AKS documentation.
AKS_EVICTION_BYTES = 750 * MIB
#: EKS and the kubelet both default to 110 pods where nothing limits them further.
DEFAULT_MAX_PODS = 110

#: Shares of memory reserved by GKE and by AKS before 1.29: (width of the tier, numerator per cent).
_TIERS: tuple[tuple[int | None, int], ...] = ((4 * GIB, 25), (4 * GIB, 20), (8 * GIB, 10), (112 * GIB, 6), (None, 2))
_GKE_SMALL_NODE_BYTES = 255 * MIB

PROVIDERS = ("gke", "eks", "aks")


@dataclass(frozen=True, slots=True)
class Reserved:
    """One reservation in bytes with where the figure comes from."""

    bytes: int
    source: Source
    reference: str


@dataclass(frozen=True, slots=True)
class NodeReserved:
    """What is set aside before pods: kube-reserved, system-reserved and the hard eviction threshold.

    ``only_sum``: their sum is known, how it is divided is not.
    """

    kube: Reserved
    system: Reserved
    eviction: Reserved
    only_sum: bool = False

    @property
    def total_bytes(self) -> int:
        """The sum that the kubelet subtracts from capacity."""
        return self.kube.bytes + self.system.bytes + self.eviction.bytes


def tiered_reserve_bytes(mem_bytes: int) -> int:
    """25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % above.

    Source: GKE documentation "Plan node sizes"; AKS documentation for versions below 1.29.
    """
    left, total = mem_bytes, 0
    for width, percent in _TIERS:
        part = left if width is None else min(left, width)
        total += part * percent // 100
        left -= part
    return total


def gke_kube_reserved_bytes(mem_bytes: int) -> int:
    """GKE's kube-reserved memory: 255 MiB below 1 GiB of memory, else the tiers."""
    return _GKE_SMALL_NODE_BYTES if mem_bytes < GIB else tiered_reserve_bytes(mem_bytes)


def aks_kube_reserved_bytes(mem_bytes: int) -> int:
    """AKS's kube-reserved memory below version 1.29: the tiers. 7 GiB -> 1.6 GiB."""
    return tiered_reserve_bytes(mem_bytes)


def aks_kube_reserved_since_1_29_bytes(mem_bytes: int, max_pods: int) -> int:
    """AKS's kube-reserved memory since version 1.29: 20 MB per pod + 50 MB, a quarter of memory at most.

    Source: AKS documentation, "Node reservations". 8 GB and 30 pods -> 650 MB.
    """
    return min((20 * max_pods + 50) * MIB, mem_bytes // 4)


def eks_kube_reserved_bytes(max_pods: int) -> int:
    """EKS (AL2) kube-reserved memory: 11 MiB per pod + 255 MiB. 17 pods -> 442 MiB.

    Source: amazon-eks-ami bootstrap.sh.
    """
    return (11 * max_pods + 255) * MIB


def gke_huge_page_cap_bytes(mem_bytes: int) -> int:
    """The most that GKE lets huge pages take: 60 % of memory up to 30 GB, 80 % above.

    Source: gcloud container node-pools create --help. 8 GB -> 4.8 GB, 32 GB -> 25.6 GB.
    """
    return mem_bytes * (60 if mem_bytes < 30 * 10**9 else 80) // 100


def huge_page_cap_bytes(request: PlanRequest) -> int | None:
    """The most that the node's provider lets huge pages take; None where it names no limit."""
    if request.reservations.provider != "gke":
        return None
    return gke_huge_page_cap_bytes(request.node.mem_total_bytes)


def observed_reservations(sample: NodeSample | None) -> Reservations:
    """What is asked of a node that nobody described: to count its kubelet's reservations where one runs there."""
    kubelet = None if sample is None else sample.kubelet
    return Reservations() if kubelet is None else Reservations(kubernetes=True, provider=kubelet.provider)


def resolve_reservations(
    reservations: Reservations, mem_bytes: int, kubelet: ObservedKubelet | None = None
) -> NodeReserved:
    """Every reservation with its source: what is given, else what the node's kubelet says, else the provider's formula,
    else the kubelet's default.

    Without Kubernetes only ``system_reserved_bytes`` counts. An unknown provider raises PlannerError.
    """
    if reservations.provider is not None and reservations.provider not in PROVIDERS:
        raise PlannerError("reservations.provider", reservations.provider, f"one of {', '.join(PROVIDERS)}, or none")
    given = reservations
    system = _given(given.system_reserved_bytes) or Reserved(0, Source.ASSUMED, "no systemReserved given: 0")
    if not given.kubernetes:
        nothing = Reserved(0, Source.GIVEN, "not a Kubernetes node")
        return NodeReserved(kube=nothing, system=system, eviction=nothing)
    said = _of_kubelet(given, kubelet)
    kube, eviction = _by_provider(given, mem_bytes, kubelet) if said is None else (said.kube, said.eviction)
    return NodeReserved(
        kube=_given(given.kube_reserved_bytes) or kube,
        system=_given(given.system_reserved_bytes) or (system if said is None else said.system),
        eviction=_given(given.eviction_hard_bytes) or eviction,
        only_sum=given.only_sum or (said is not None and said.only_sum),
    )


def _given(value: int | None) -> Reserved | None:
    return None if value is None else Reserved(value, Source.GIVEN, "given")


def _of_kubelet(reservations: Reservations, kubelet: ObservedKubelet | None) -> NodeReserved | None:
    """What the kubelet runs with; None where it is not known. Its sum alone counts only while no part is given."""
    if kubelet is None:
        return None
    parts = (kubelet.kube_reserved_bytes, kubelet.system_reserved_bytes, kubelet.eviction_hard_bytes)
    kube, system, eviction = parts
    if kube is not None and system is not None and eviction is not None:
        reference = f"the kubelet's configuration ({kubelet.source or 'as reported'})"
        parts_of = [Reserved(size, Source.MEASURED, reference) for size in (kube, system, eviction)]
        return NodeReserved(kube=parts_of[0], system=parts_of[1], eviction=parts_of[2])
    given = (reservations.kube_reserved_bytes, reservations.system_reserved_bytes, reservations.eviction_hard_bytes)
    if kubelet.reserved_bytes is None or any(size is not None for size in given):
        return None
    eviction = min(kubelet.reserved_bytes, KUBELET_EVICTION_BYTES)
    reference = "capacity - pools - allocatable, as the kubelet reports them: the sum is known, its parts are not"
    return NodeReserved(
        kube=Reserved(kubelet.reserved_bytes - eviction, Source.MEASURED, reference),
        system=Reserved(0, Source.MEASURED, reference),
        eviction=Reserved(eviction, Source.MEASURED, reference),
        only_sum=True,
    )


def reserved_of_allocatable(capacity: Mapping[str, int], allocatable: Mapping[str, int]) -> int | None:
    """kubeReserved + systemReserved + evictionHard = capacity - pools - allocatable, from bytes by resource name.

    None where memory is not reported, or the pool changed after the kubelet had counted it.
    """
    memory, offered = capacity.get("memory"), allocatable.get("memory")
    if memory is None or not offered:
        return None
    total = memory - sum(size for name, size in capacity.items() if name.startswith("hugepages-")) - offered
    return total if total >= 0 else None


def _by_provider(
    reservations: Reservations, mem_bytes: int, kubelet: ObservedKubelet | None
) -> tuple[Reserved, Reserved]:
    """kube-reserved and the eviction threshold by formula."""
    provider = reservations.provider
    max_pods = reservations.max_pods or (kubelet.max_pods if kubelet else None)
    pods = DEFAULT_MAX_PODS if max_pods is None else max_pods
    source = Source.ASSUMED if provider is None else Source.CATALOGUE
    eviction = Reserved(KUBELET_EVICTION_BYTES, source, "kubelet default: memory.available<100Mi")
    if provider == "gke":
        return Reserved(gke_kube_reserved_bytes(mem_bytes), Source.COMPUTED, "GKE: tiers over MemTotal"), eviction
    if provider == "eks":
        reference = f"EKS: 11 MiB x {pods} pods + 255 MiB"
        return Reserved(eks_kube_reserved_bytes(pods), Source.COMPUTED, reference), eviction
    if provider == "aks":
        return _aks(reservations.kubelet_version or (kubelet.version if kubelet else None), mem_bytes, pods, eviction)
    return Reserved(0, Source.ASSUMED, "no kubeReserved given: the kubelet's default is none"), eviction


def _aks(version: str | None, mem_bytes: int, pods: int, default: Reserved) -> tuple[Reserved, Reserved]:
    """AKS by version; where it is not known, the older and larger of the two."""
    minor = _minor(version)
    if minor is not None and minor >= 29:
        size = aks_kube_reserved_since_1_29_bytes(mem_bytes, pods)
        reference = f"AKS since 1.29: 20 MiB x {pods} pods + 50 MiB, a quarter of MemTotal at most"
        return Reserved(size, Source.COMPUTED, reference), default
    known = "AKS below 1.29" if minor is not None else "AKS of an unknown version, as below 1.29"
    return (
        Reserved(aks_kube_reserved_bytes(mem_bytes), Source.COMPUTED, f"{known}: tiers over MemTotal"),
        Reserved(AKS_EVICTION_BYTES, Source.CATALOGUE, f"{known}: memory.available<750Mi"),
    )


def _minor(version: str | None) -> int | None:
    """29 of ``v1.29.4``; None for what is not a version of Kubernetes 1."""
    found = re.match(r"v?1\.(\d{1,9})", version or "")
    return int(found[1]) if found else None


def allocatable_memory_bytes(capacity_bytes: int, reserved_bytes: int, huge_page_bytes: int) -> int:
    """allocatable[memory] = max(0, max(0, capacity - reserved) - all huge page capacity).

    Source: pkg/kubelet/nodestatus/setters.go (v1.33). 32Gi - 2Gi - 1Gi - 500Mi -> 29196Mi.
    """
    return max(0, max(0, capacity_bytes - reserved_bytes) - huge_page_bytes)


def reserved_memory(reserved_bytes: int, room_bytes: Mapping[int, int]) -> tuple[dict[str, int], ...]:
    """``reservedMemory`` whose sum equals kubeReserved + systemReserved + evictionHard exactly.

    The static Memory Manager refuses to start on any other sum (validateReservedMemory). Everything goes to the
    lowest NUMA node, as OpenShift renders it, unless that node lacks the room (``room_bytes``: memory without
    pools, by node id); the rest then goes to the next. Zero entries are left out, because the kubelet refuses them.
    """
    room_total = sum(max(0, room) for room in room_bytes.values())
    if reserved_bytes > room_total:
        raise PlannerError("reservations", reserved_bytes, f"at most {room_total} bytes outside the pools")
    left = reserved_bytes
    entries: list[dict[str, int]] = []
    for node in sorted(room_bytes):
        part = min(left, max(0, room_bytes[node]))
        if part > 0:
            entries.append({"numa_node": node, "memory": part})
            left -= part
    return tuple(entries)


def phantom_eviction_bytes(hugetlb_pool_bytes: int, hugepage_aware_eviction: bool | None) -> int:
    """Bytes by which the kubelet's ``memory.available`` lies too high: the whole pool, unless the gate is on.

    memory.available = capacity - working set, and the working set knows nothing of hugetlb (kubernetes#137984;
    feature gate HugepageAwareEviction). An unknown gate is read as off: kubelets up to 1.35 do not have it.
    """
    return 0 if hugepage_aware_eviction else hugetlb_pool_bytes


#: The first minor version of Kubernetes 1 whose kubelet may know the gate HugepageAwareEviction.
EVICTION_GATE_MINOR: Final = 36


def may_have_eviction_gate(kubelet_version: str | None) -> bool:
    """Whether a kubelet may know HugepageAwareEviction; one that does not refuses to start with the gate set."""
    minor = _minor(kubelet_version)
    return minor is not None and minor >= EVICTION_GATE_MINOR


def regular_room_bytes(mem_bytes: int, hugetlb_pool_bytes: int) -> int:
    """Ordinary memory for pods and system together: MemTotal - pools, whatever the kubelet reports."""
    return mem_bytes - hugetlb_pool_bytes


#: Server processes and caches beside the connections, on top of what the plan counts.
SERVER_BYTES: Final = 256 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMemory:
    """Ordinary memory of an instance's container under the plan; None where neither its rule nor its pod says it."""

    request_bytes: int | None
    limit_bytes: int | None
    why: str


def pod_memory(plan: Plan, instance: DatabaseInstance, planned: InstancePlan) -> PodMemory:
    """The old request and limit less the pages that move out of them, never below what the engine uses by its rule.

    Without an old one only a request, by the rule alone: connections, page tables and 256 MiB. A pod with huge pages
    must request cpu or memory; a limit that nobody asked for would only end its server.
    """
    demand = planned.demand
    rule = None
    if demand.connections is not None and demand.private_bytes_per_connection is not None:
        # Its private memory is what the ledger holds for it, so that pods and ledger never differ.
        own = {f"{planned.name}: connections", f"{planned.name}: memory outside pools"}
        smaller = f"{planned.name}: smaller mappings on "
        private = sum(part.bytes for part in plan.ledger.parts if part.name in own or part.name.startswith(smaller))
        rule = ceil_to_multiple(private + planned.page_tables_huge_bytes + SERVER_BYTES, MIB)
    pages = demand.pages * demand.page_bytes + sum(size * count for size, count in demand.also_pages)
    moved = max(0, pages - (instance.pod_hugepages_limit_bytes or 0))
    least = SERVER_BYTES if rule is None else rule
    old_request, old_limit = instance.pod_memory_request_bytes, instance.pod_memory_limit_bytes
    if old_limit is None and old_request is None:
        why = (
            "the request is from the engine's rule: connections, page tables and 256 MiB (a pod with huge pages needs a"
            " request of cpu or memory); no limit is written, because none is known that the pod has now"
        )
        return PodMemory(request_bytes=rule, limit_bytes=None, why=why)
    limit = None if old_limit is None else max(least, old_limit - moved)
    request = None if old_request is None else max(least, old_request - moved)
    if request is not None and limit is not None:
        limit = max(limit, request)
    olds = [
        f"{name} {format_kubernetes_bytes(old)} becomes {format_kubernetes_bytes(new)}"
        for name, old, new in (("request", old_request, request), ("limit", old_limit, limit))
        if old is not None and new is not None
    ]
    why = f"{', '.join(olds)}: less {format_bytes(moved)} that move to huge pages"
    floor = f", never below the {format_bytes(least)} that the engine uses outside them"
    return PodMemory(request_bytes=request, limit_bytes=limit, why=why + floor)


def huge_page_limits(
    planned: InstancePlan, pools: Sequence[PoolPlan], instances: Sequence[InstancePlan]
) -> dict[str, int]:
    """Limits of one instance's pod in bytes by resource: its own size with the rule's error bar, then smaller ones.

    The error bar is covered as far as the pools hold pages beyond all demands; they are granted in the order of
    ``instances``, so that the pods together never ask for more than the plan reserves for them. The smaller huge pages
    are those that it takes too and that the plan reserves: a size without a limit in the pod cannot be used there, even
    when the node has free pages of it.
    """
    demand = planned.demand
    reserved: dict[int, int] = {}
    for pool in pools:
        reserved[pool.page_bytes] = reserved.get(pool.page_bytes, 0) + pool.pages - pool.held_pages
    pooled = [item.demand for item in instances if item.page_bytes]
    spare = reserved.get(demand.page_bytes, 0) - sum(_pages_of(own, demand.page_bytes) for own in pooled)
    granted = 0
    for item in instances:
        if item.page_bytes == demand.page_bytes:
            granted = max(0, min(item.demand.error_pages, spare))
            spare -= granted
        if item.name == planned.name:
            break
    limits = {kubernetes_resource_name(demand.page_bytes): (demand.pages + granted) * demand.page_bytes}
    for size, pages in demand.also_pages:
        if reserved.get(size):
            limits[kubernetes_resource_name(size)] = size * pages
    return limits


def _pages_of(demand: Demand, page_bytes: int) -> int:
    """Pages of one size that an instance takes, for its largest mappings or for smaller ones."""
    own = demand.pages if demand.page_bytes == page_bytes else 0
    return own + sum(pages for size, pages in demand.also_pages if size == page_bytes)


def kubernetes_view(
    node: NodeFacts, reservations: Reservations, pools: Sequence[PoolPlan], reserved: NodeReserved
) -> KubernetesView:
    """What the kubelet reports once ``pools`` stand and it was restarted."""
    by_size = dict.fromkeys(node.huge_page_sizes_bytes, 0)
    by_node = {numa.id: numa.mem_total_bytes for numa in node.numa}
    for pool in pools:
        by_size[pool.page_bytes] = by_size.get(pool.page_bytes, 0) + pool.pages * pool.page_bytes
        by_node[pool.numa_node] -= pool.pages * pool.page_bytes
    hugetlb_pool_bytes = sum(by_size.values())
    huge = {kubernetes_resource_name(size): count for size, count in sorted(by_size.items())}
    memory = allocatable_memory_bytes(node.mem_total_bytes, reserved.total_bytes, hugetlb_pool_bytes)
    fits = reserved.total_bytes <= sum(max(0, room) for room in by_node.values())
    wanted = reservations.memory_manager_static and fits
    return KubernetesView(
        capacity={"memory": node.mem_total_bytes, **huge},
        allocatable={"memory": memory, **huge},
        reserved_memory=reserved_memory(reserved.total_bytes, by_node) if wanted else (),
        phantom_eviction_bytes=phantom_eviction_bytes(hugetlb_pool_bytes, reservations.hugepage_aware_eviction),
        explanation=Explanation(
            "allocatable = max(0, max(0, capacity - kubeReserved - systemReserved - evictionHard) - pools)",
            (
                Term("capacity", format_bytes(node.mem_total_bytes), Source.GIVEN),
                Term("kubeReserved", format_bytes(reserved.kube.bytes), reserved.kube.source, reserved.kube.reference),
                Term(
                    "systemReserved",
                    format_bytes(reserved.system.bytes),
                    reserved.system.source,
                    reserved.system.reference,
                ),
                Term(
                    "evictionHard",
                    format_bytes(reserved.eviction.bytes),
                    reserved.eviction.source,
                    reserved.eviction.reference,
                ),
                Term("pools", format_bytes(hugetlb_pool_bytes), Source.COMPUTED),
            ),
            "kubernetes v1.33 pkg/kubelet/nodestatus/setters.go",
        ),
    )
