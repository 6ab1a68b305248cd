"""What was observed on a node at one moment: global pools, processes, free memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalPool:
    """A huge page pool over all NUMA nodes, as /sys/kernel/mm/hugepages shows it. Counts are pages."""

    page_bytes: int
    nr_hugepages: int
    free_hugepages: int | None = None
    resv_hugepages: int | None = None
    surplus_hugepages: int | None = None
    nr_overcommit_hugepages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMemory:
    """One observed process. ``instance`` names the database instance it belongs to, where that is known."""

    name: str
    instance: str | None = None
    huge_pages_status: str | None = None  # PostgreSQL 17+: on | off | unknown
    shared_hugetlb_bytes: int | None = None
    private_hugetlb_bytes: int | None = None
    anon_huge_bytes: int | None = None
    vm_pte_bytes: int | None = None
    memlock_limit_bytes: int | None = None  # None: unknown; -1: unlimited


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaMemory:
    """Observed memory of one NUMA node. ``free_blocks`` maps a block size in bytes to free blocks of at least it."""

    id: int
    mem_free_bytes: int | None = None
    free_blocks: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """The memory state of a node at one moment, for findings. Every None is unknown; an empty tuple is known none."""

    taken_at_seconds: float | None = None
    mem_available_bytes: int | None = None
    page_tables_bytes: int | None = None
    hugetlb_bytes: int | None = None
    anon_huge_pages_bytes: int | None = None
    pools: tuple[GlobalPool, ...] | None = None
    processes: tuple[ProcessMemory, ...] | None = None
    numa: tuple[NumaMemory, ...] | None = None
    thp_enabled: str | None = None
    kubelet_capacity: Mapping[str, int] | None = None  # node.status.capacity, bytes by resource name
    non_default_pools_monitored: bool | None = None
