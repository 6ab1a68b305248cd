"""The agent's report as the service reads it (schema_version 1). Null means unknown, never zero."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, StringConstraints, model_validator

from hugeplan.documents.bounds import (
    MAX_BYTES,
    ByteCount,
    DocumentModel,
    Label,
    Labels,
    MachineId,
    Moment,
    NameOfAny,
    PageBytes,
    PageCount,
    Seconds,
    SmallCount,
    Text,
    Word,
)
from hugeplan.documents.observed import (
    Buddyinfo,
    CloneHints,
    Database,
    HugePageMapping,
    HugetlbCgroup,
    Key,
    Kubelet,
    Pressure,
    Unit,
    Watermarks,
)
from hugeplan.documents.tlbbench import TlbbenchDocument

NumaId = Annotated[int, Field(ge=0, le=4095)]


class Processor(DocumentModel):
    """The processor as CPUID or /proc/cpuinfo names it."""

    vendor: Label | None = None
    family: SmallCount | None = None
    model: SmallCount | None = None
    stepping: SmallCount | None = None
    brand: Label | None = None
    online: SmallCount | None = None


class TransparentHugePages(DocumentModel):
    """The selected word of each file under transparent_hugepage; null where the file is absent."""

    enabled: Word | None = None
    defrag: Word | None = None
    shmem_enabled: Word | None = None


class InventoryNuma(DocumentModel):
    """One NUMA node's size and processors."""

    id: NumaId
    mem_total_bytes: ByteCount
    cpus: Text | None = None


class Inventory(DocumentModel):
    """What a node is: changes only with its hardware or its boot."""

    architecture: Word
    kernel_release: Label | None = None
    kernel_command_line: Annotated[str, StringConstraints(max_length=16384)] | None = None
    kernel_command_line_filtered: bool = False
    boot_id: Label | None = None
    booted_at: Moment | None = None
    clone_hints: CloneHints | None = None
    cpu: Processor | None = None
    hypervisor: Label | None = None
    virtualised: bool | None = None
    base_page_bytes: PageBytes
    huge_page_sizes_bytes: list[PageBytes] = Field(default=[], max_length=16)
    default_huge_page_bytes: PageBytes | None = None
    thp: TransparentHugePages | None = None
    hvo_enabled: bool | None = None
    cgroup_version: Annotated[int, Field(ge=1, le=9)] | None = None
    numa_nodes: list[InventoryNuma] = Field(default=[], max_length=1024)

    @model_validator(mode="after")
    def _numa_ids_differ(self) -> Self:
        ids = [numa.id for numa in self.numa_nodes]
        if len(set(ids)) != len(ids):
            raise ValueError("numa_nodes with different ids")
        return self


class SampleMemory(DocumentModel):
    """/proc/meminfo in bytes."""

    mem_total_bytes: Annotated[int, Field(gt=0, le=2**60)]
    mem_free_bytes: ByteCount | None = None
    mem_available_bytes: ByteCount | None = None
    buffers_bytes: ByteCount | None = None
    cached_bytes: ByteCount | None = None
    slab_bytes: ByteCount | None = None
    s_reclaimable_bytes: ByteCount | None = None
    s_unreclaim_bytes: ByteCount | None = None
    kernel_stack_bytes: ByteCount | None = None
    page_tables_bytes: ByteCount | None = None
    sec_page_tables_bytes: ByteCount | None = None
    percpu_bytes: ByteCount | None = None
    anon_pages_bytes: ByteCount | None = None
    anon_huge_pages_bytes: ByteCount | None = None
    shmem_bytes: ByteCount | None = None
    hugetlb_bytes: ByteCount | None = None
    committed_as_bytes: ByteCount | None = None
    swap_total_bytes: ByteCount | None = None
    swap_free_bytes: ByteCount | None = None
    direct_map_4k_bytes: ByteCount | None = None
    direct_map_2m_bytes: ByteCount | None = None
    direct_map_1g_bytes: ByteCount | None = None


class NumaPool(DocumentModel):
    """The pool of one page size on one NUMA node, in pages."""

    numa_node: NumaId
    page_bytes: PageBytes
    nr_hugepages: PageCount
    free_hugepages: PageCount | None = None
    surplus_hugepages: PageCount | None = None
    resv_hugepages: PageCount | None = None


class GlobalPool(DocumentModel):
    """The pool of one page size on the whole node, in pages."""

    page_bytes: PageBytes
    nr_hugepages: PageCount
    free_hugepages: PageCount | None = None
    resv_hugepages: PageCount | None = None
    surplus_hugepages: PageCount | None = None
    nr_overcommit_hugepages: PageCount | None = None


class SampleNuma(DocumentModel):
    """One NUMA node's memory at the moment of the sample."""

    id: NumaId
    mem_total_bytes: ByteCount | None = None
    mem_free_bytes: ByteCount | None = None
    anon_huge_pages_bytes: ByteCount | None = None
    file_pages_bytes: ByteCount | None = None
    anon_pages_bytes: ByteCount | None = None
    shmem_bytes: ByteCount | None = None
    s_reclaimable_bytes: ByteCount | None = None
    s_unreclaim_bytes: ByteCount | None = None
    kernel_stack_bytes: ByteCount | None = None
    page_tables_bytes: ByteCount | None = None
    sec_page_tables_bytes: ByteCount | None = None


class ProcessMemory(DocumentModel):
    """How one process's memory is backed. Identified by pid and start time."""

    pid: SmallCount
    start_time_ticks: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    name: Label
    rss_bytes: ByteCount | None = None
    pss_bytes: ByteCount | None = None
    anon_huge_bytes: ByteCount | None = None
    shmem_pmd_mapped_bytes: ByteCount | None = None
    private_hugetlb_bytes: ByteCount | None = None
    shared_hugetlb_bytes: ByteCount | None = None
    vm_pte_bytes: ByteCount | None = None
    hugetlb_bytes: ByteCount | None = None
    rss_anon_bytes: ByteCount | None = None
    rss_file_bytes: ByteCount | None = None
    rss_shmem_bytes: ByteCount | None = None
    huge_page_mappings: list[HugePageMapping] | None = Field(default=None, max_length=64)
    memlock_limit_bytes: ByteCount | None = None
    memlock_limited: bool | None = None
    unit: Key | None = None
    database: Key | None = None


def _largest_bytes(pool: NumaPool | GlobalPool) -> int:
    counts = (pool.nr_hugepages, pool.free_hugepages, pool.surplus_hugepages, pool.resv_hugepages)
    return pool.page_bytes * max(count or 0 for count in counts)


class Sample(DocumentModel):
    """The memory state of a node at one moment."""

    taken_at: Moment
    memory: SampleMemory
    pools: list[NumaPool] = Field(default=[], max_length=4096)
    global_pools: list[GlobalPool] = Field(default=[], max_length=16)
    numa: list[SampleNuma] = Field(default=[], max_length=1024)
    processes: list[ProcessMemory] = Field(default=[], max_length=8192)
    watermarks: Watermarks | None = None
    buddyinfo: list[Buddyinfo] | None = Field(default=None, max_length=4096)
    pressure: Pressure | None = None
    units: list[Unit] | None = Field(default=None, max_length=2048)
    databases: list[Database] | None = Field(default=None, max_length=256)
    hugetlb_cgroups: list[HugetlbCgroup] | None = Field(default=None, max_length=4096)
    kubelet: Kubelet | None = None

    @model_validator(mode="after")
    def _page_sizes_are_a_processors(self) -> Self:
        """Pools are added up over the fleet by page size, so that their number is no sender's choice."""
        sizes = {pool.page_bytes for pools in (self.pools, self.global_pools) for pool in pools}
        if len(sizes) > 16 or any(size & (size - 1) for size in sizes):
            raise ValueError("pools of at most 16 page sizes, each a power of two")
        for pools in (self.pools, self.global_pools):
            if sum(_largest_bytes(pool) for pool in pools) > MAX_BYTES:
                raise ValueError("pools of at most 1 EiB in all")
        return self


class CollectorResult(DocumentModel):
    """How one of the agent's collectors ended."""

    name: Word
    status: Word
    duration_seconds: Seconds | None = None
    reason: Text | None = None


class SpoolSummary(DocumentModel):
    """What waited in the agent's spool, was refused or was given up before this report; counts of reports."""

    pending: SmallCount | None = None
    pending_bytes: ByteCount | None = None
    rejected: SmallCount | None = None
    dropped_size: SmallCount | None = None
    dropped_age: SmallCount | None = None
    dropped_disk_full: SmallCount | None = None
    dropped_rejected: SmallCount | None = None


class Report(DocumentModel):
    """One document from an agent: inventory, a memory sample, and optionally a run."""

    schema_version: Literal[1]
    report_id: UUID
    agent_version: Word
    created_at: Moment
    machine_id: MachineId
    node_name: NameOfAny
    synthetic: bool = False
    inventory: Inventory
    sample: Sample
    run: TlbbenchDocument | None = None
    collectors: list[CollectorResult] = Field(default=[], max_length=256)
    spool: SpoolSummary | None = None
    labels: Labels = Field(default={})
