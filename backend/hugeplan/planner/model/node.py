"""A node: its memory, its NUMA nodes and the huge page pools that stand on them."""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.model.hardware import HardwareFacts
from hugeplan.planner.model.trial import MeasuredTrial, TrialDifference
from hugeplan.planner.model.words import GIB, KIB, MIB, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The kernel's huge page pool of one size on one NUMA node, as observed. Counts are pages."""

    page_bytes: int
    nr_hugepages: int
    free_hugepages: int | None = None
    resv_hugepages: int | None = None
    surplus_hugepages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """One NUMA node's memory. ``pools`` is None when nothing is known of its pools.

    ``cpulist`` as the kernel writes it: empty for memory without processors (CXL, HBM), None where it is not known.
    """

    id: int
    mem_total_bytes: int
    mem_free_bytes: int | None = None
    pools: tuple[Pool, ...] | None = None
    cpulist: str | None = None

    @property
    def is_far(self) -> bool:
        """Memory without processors: pages go there only for a database that is bound to it."""
        return self.cpulist is not None and not self.cpulist.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """A node as the planner sees it. ``numa`` holds at least one node; their sum is MemTotal.

    ``kernel_used_source`` says how ``kernel_used_bytes`` is known. ``trials``: what was measured here, newest first.
    ``type_trials``: how far predictions were off on nodes of this machine type, this one among them, one per node.
    """

    name: str
    arch: str = "x86_64"
    base_page_bytes: int = 4 * KIB
    huge_page_sizes_bytes: tuple[int, ...] = (2 * MIB, GIB)
    default_huge_page_bytes: int = 2 * MIB
    numa: tuple[NumaNode, ...]
    cpus: int | None = None
    kernel_used_bytes: int | None = None
    kernel_used_source: Source = Source.GIVEN
    thp_enabled: str | None = None
    hvo_enabled: bool | None = None
    kernel_release: str | None = None
    kernel_command_line: str | None = None
    hugetlb_cma_bytes: int | None = None
    hardware: HardwareFacts | None = None
    trials: tuple[MeasuredTrial, ...] = ()
    type_trials: tuple[TrialDifference, ...] = ()

    @property
    def mem_total_bytes(self) -> int:
        """MemTotal: the sum over NUMA nodes."""
        return sum(n.mem_total_bytes for n in self.numa)

    @property
    def near_numa(self) -> tuple[NumaNode, ...]:
        """NUMA nodes that take the pages of databases that are not bound: those with processors, else all."""
        return tuple(n for n in self.numa if not n.is_far) or self.numa
