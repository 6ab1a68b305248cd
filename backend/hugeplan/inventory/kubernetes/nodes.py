"""A Node object as facts: memory, page sizes, pools as the kubelet counted them, reservations from allocatable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from hugeplan.formats.kubelet import provider_of
from hugeplan.formats.quantities import huge_page_size, parse_quantity
from hugeplan.inventory.kubernetes.objects import Node, Resources
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.kubernetes import KUBELET_EVICTION_BYTES, reserved_of_allocatable
from hugeplan.planner.model import KIB, NodeFacts, NodeSample, NumaNode, Pool, Reservations
from hugeplan.planner.pages import (
    base_page_sizes,
    canonical_architecture,
    huge_page_sizes,
    kernel_page_sizes,
    usual_default_size,
)

#: What a Node object never says, whatever the cluster.
ALWAYS_UNKNOWN: Final = (
    "NUMA nodes: a Node object does not list them, so the plan is for the node as a whole",
    "translation hardware: not in a Node object, so gains are ranges over all known processors",
    "free pages of a pool: the kubelet reports what is reserved, not what is in use",
    "the kernel's own memory and page cache: assumed",
)


def resources(found: Resources | None) -> dict[str, int]:
    """Quantities that can be read, in whole units."""
    sizes = ((name, parse_quantity(value)) for name, value in (found or {}).items())
    return {name: size for name, size in sizes if size is not None}


def pools_of(capacity: Mapping[str, int]) -> dict[int, int]:
    """Bytes by page size of the ``hugepages-`` resources."""
    found = {}
    for name, count in capacity.items():
        size = huge_page_size(name)
        if size:
            found[size] = count
    return dict(sorted(found.items()))


@lru_cache(maxsize=64)
def base_page_of(arch: str, sizes: tuple[int, ...]) -> tuple[int, bool]:
    """The base page size that offers exactly these huge pages, and whether that is certain."""
    bases = base_page_sizes(arch)
    fitting = [base for base in bases if sizes and set(sizes) <= set(huge_page_sizes(arch, base))]
    exact = [base for base in fitting if set(sizes) == set(huge_page_sizes(arch, base))]
    if len(exact) == 1:
        return exact[0], True
    if len(fitting) == 1 or len(bases) == 1:
        return (fitting or list(bases))[0], True
    return (exact or fitting or [4 * KIB])[0], False


def node_facts(node: Node) -> tuple[NodeFacts, Reservations, tuple[str, ...]] | str:
    """Facts, reservations and what is unknown besides :data:`ALWAYS_UNKNOWN`; or why the node cannot be planned."""
    status = node.status
    if status is None or not status.capacity:
        return "its status has no capacity yet (the kubelet has not reported)"
    info = status.nodeInfo
    if info is not None and info.operatingSystem not in {None, "", "linux"}:
        return f"its operating system is {info.operatingSystem}; only Linux has huge page pools"
    return facts_of_resources(
        node.metadata.name,
        resources(status.capacity),
        resources(status.allocatable),
        architecture=(info.architecture if info is not None else None)
        or (node.metadata.labels or {}).get("kubernetes.io/arch"),
        kernel_release=info.kernelVersion if info is not None else None,
        labels=node.metadata.labels or {},
        kubelet_version=info.kubeletVersion if info is not None else None,
        unreadable={n: str(v) for n, v in status.capacity.items() if huge_page_size(n) and parse_quantity(v) is None},
    )


def facts_of_resources(
    name: str,
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    *,
    architecture: str | None,
    kernel_release: str | None,
    labels: Mapping[str, str],
    kubelet_version: str | None = None,
    unreadable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[NodeFacts, Reservations, tuple[str, ...]] | str:
    """The same from the two lists of resources, as kube-state-metrics has them too.

    ``unreadable`` are pools whose size is no quantity: the node has the page size, how many pages is not known.
    """
    memory = capacity.get("memory")
    if not memory:
        return "its memory capacity is missing or is not a quantity"
    unknown: list[str] = []
    try:
        arch = canonical_architecture(architecture or "amd64")
    except PlannerError:
        return f"its architecture {architecture} is not known here"
    if not architecture:
        unknown.append("architecture: not reported, x86_64 is assumed")
    pools = pools_of(capacity)
    sizes = tuple(sorted({*pools, *(size for name in unreadable if (size := huge_page_size(name)))}))
    unknown += [
        f"{name}: {value} is no Kubernetes quantity, so the pool is not known" for name, value in unreadable.items()
    ]
    base, certain = base_page_of(arch, sizes)
    if not certain:
        unknown.append(f"base page size: {base // KIB} KiB is assumed on {arch}")
    if not sizes:
        sizes = kernel_page_sizes(arch, base)
        unknown.append("huge page sizes: the kubelet reports none, the architecture's are assumed")
    facts = NodeFacts(
        name=name,
        arch=arch,
        base_page_bytes=base,
        huge_page_sizes_bytes=sizes,
        default_huge_page_bytes=usual_default_size(base, sizes),
        numa=(
            NumaNode(
                id=0,
                mem_total_bytes=memory,
                pools=tuple(Pool(page_bytes=size, nr_hugepages=held // size) for size, held in pools.items())
                if pools and not unreadable
                else None,
            ),
        ),
        cpus=capacity.get("cpu"),
        kernel_release=kernel_release,
    )
    reservations, doubt = _reservations(labels, capacity, allocatable, kubelet_version)
    return facts, reservations, (*unknown, *doubt)


def _reservations(
    labels: Mapping[str, str], capacity: Mapping[str, int], allocatable: Mapping[str, int], kubelet_version: str | None
) -> tuple[Reservations, tuple[str, ...]]:
    """kubeReserved + systemReserved + evictionHard = capacity - pools - allocatable; only their sum can be told."""
    told = Reservations(
        kubernetes=True,
        provider=provider_of(labels),
        max_pods=capacity.get("pods"),
        kubelet_version=kubelet_version,
    )
    if not allocatable.get("memory"):
        return told, ("reservations of the kubelet: allocatable memory is not reported",)
    total = reserved_of_allocatable(capacity, allocatable)
    if total is None:
        return told, ("reservations of the kubelet: allocatable memory does not agree with capacity and pools",)
    eviction = min(total, KUBELET_EVICTION_BYTES)
    told = replace(
        told,
        kube_reserved_bytes=total - eviction,
        system_reserved_bytes=0,
        eviction_hard_bytes=eviction,
        only_sum=True,
    )
    return told, (
        "how the kubelet's reservation is divided into kubeReserved, systemReserved and evictionHard: only the sum is"
        " reported",
    )


def sample_of(node: Node) -> NodeSample:
    """What the kubelet reports of the node's capacity, for the plan's findings."""
    capacity = resources(node.status.capacity if node.status is not None else None)
    return NodeSample(kubelet_capacity={name: size for name, size in capacity.items() if name != "cpu"})
