"""What was observed on a node: its meminfo, pools, units of work, databases and processes at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """One observed process.

    ``instance`` names the scenario's database that it belongs to, ``database`` the key of the observed one.
    """

    name: str
    instance: str | None = None
    huge_pages_status: str | None = None  # PostgreSQL 17+: on | off | unknown
    shared_hugetlb_bytes: int | None = None
    private_hugetlb_bytes: int | None = None
    anon_huge_bytes: int | None = None
    vm_pte_bytes: int | None = None
    memlock_limit_bytes: int | None = None  # None: unknown; -1: unlimited
    database: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaMemory:
    """Observed memory of one NUMA node. ``free_blocks`` maps a block size in bytes to free blocks of at least it."""

    id: int
    mem_free_bytes: int | None = None
    free_blocks: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meminfo:
    """/proc/meminfo in bytes; a line that the kernel or the agent does not have is None."""

    mem_total_bytes: int
    mem_free_bytes: int | None = None
    mem_available_bytes: int | None = None
    buffers_bytes: int | None = None
    cached_bytes: int | None = None
    slab_bytes: int | None = None
    s_reclaimable_bytes: int | None = None
    s_unreclaim_bytes: int | None = None
    kernel_stack_bytes: int | None = None
    page_tables_bytes: int | None = None
    sec_page_tables_bytes: int | None = None
    percpu_bytes: int | None = None
    anon_pages_bytes: int | None = None
    shmem_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHistory:
    """Measured use: parallel tuples of seconds since the epoch and bytes, sorted by time.

    ``values_are`` says what one value is, in the plural and as an operator reads it: ``hourly maxima``.
    """

    times_seconds: tuple[float, ...]
    used_bytes: tuple[int, ...]
    values_are: str = "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedUnit:
    """A pod, container, service, other cgroup or process group. Units whose ``parent`` is None do not overlap.

    ``ordinary_bytes`` is anonymous plus shared memory: its claim on memory outside pools and page cache.
    ``source`` says how it was measured: cgroup_v2, cgroup_v1, pss, or rss (shared pages counted once per process).
    ``cgroup_path`` says whose a container is.
    """

    key: str
    kind: str
    name: str
    parent: str | None = None
    source: str = ""
    ordinary_bytes: int | None = None
    limit_bytes: int | None = None
    cgroup_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSegment:
    """One large mapping of a database and what backs it: hugetlb, thp, base, or None where that is unknown."""

    bytes: int
    backing: str | None = None
    page_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedHugetlbLimit:
    """A limit of huge pages that acts on a database; ``counter`` is usage (touched pages) or reservation (mapped)."""

    page_bytes: int
    counter: str
    limit_bytes: int
    cgroup_path: str
    usage_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkShare:
    """Page walks of a server as its processor counted them.

    ``fraction`` of its cycles had a walk in progress. ``bound_fraction`` adds hits of the second-level TLB, at the most
    that a core takes for one: no page size saves more. Only where the processor counts such cycles.
    """

    fraction: float
    bound_fraction: float
    counted_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlace:
    """Where a server of this very node lies: its user, its folders, its main file of settings, and its programs.

    ``uid`` is the process's own, ``user`` its name where it has one. ``refused`` is what others than root and that user
    could change on the way to the files, ``programs_refused`` what any other user than who asks could on the way to the
    programs, each with its owner. ``programs_directory`` is unknown where others than root, who asks and ``uid`` could.
    """

    data_directory: str
    config_file: str | None = None
    socket_directory: str | None = None
    programs_directory: str | None = None
    programs_refused: str | None = None
    uid: int | None = None
    user: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDatabase:
    """A database server that runs on the node, with the settings that could be read.

    ``private_bytes`` and ``shared_bytes`` lie in the ordinary memory of ``unit``, ``hugetlb_bytes`` in the pools.
    ``hugetlb_limits``: None is unknown, empty is known to be unlimited. ``memory_limit_bytes``: its unit's, None where
    it is unknown, -1 where there is none. ``port``, ``pid`` and ``place`` name it to a person; its paths are known on
    its own node alone. ``sources``: where each setting was read. ``owner_uid``: the user that it runs as.
    ``allowed_numa_nodes``: those that it may allocate from, by its cpuset and memory policy; empty is unknown.
    """

    key: str
    engine: str
    version: str | None = None
    unit: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    settings_complete: bool | None = None
    clients: int | None = None
    private_bytes: int | None = None
    shared_bytes: int | None = None
    hugetlb_bytes: int | None = None
    page_tables_bytes: int | None = None
    segments: tuple[ObservedSegment, ...] = ()
    huge_pages_status: str | None = None  # on | off | partial, read from its mappings
    hugetlb_limits: tuple[ObservedHugetlbLimit, ...] | None = None
    memory_limit_bytes: int | None = None
    port: int | None = None
    walks: WalkShare | None = None
    owner_uid: int | None = None
    allowed_numa_nodes: tuple[int, ...] = ()
    # Nodes that are alike but for these are alike: they are planned once.
    pid: int | None = field(default=None, compare=False)
    place: ServerPlace | None = field(default=None, compare=False)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedKubelet:
    """What the node's kubelet sets aside, in bytes; None is unknown, and 0 is known to be nothing.

    ``reserved_bytes`` is the sum of all three, from what the kubelet reports: capacity less pools less allocatable.
    ``source`` says where the three were read: ``api`` or ``file``, perhaps with ``command line``. ``provider`` is what
    the node's labels tell.
    """

    version: str | None = None
    kube_reserved_bytes: int | None = None
    system_reserved_bytes: int | None = None
    eviction_hard_bytes: int | None = None
    reserved_bytes: int | None = None
    max_pods: int | None = None
    source: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSample:
    """The memory state of a node at one moment. Every None is unknown; an empty tuple is known none.

    ``memory`` is what a plan of the observed node starts from; without it the sample only serves findings.
    ``ordinary_history`` is AnonPages plus Shmem of the whole node over time.
    """

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
    kubelet: ObservedKubelet | None = None  # None: none runs here, as far as it is known
    non_default_pools_monitored: bool | None = None
    memory: Meminfo | None = None
    units: tuple[ObservedUnit, ...] | None = None
    databases: tuple[ObservedDatabase, ...] | None = None
    ordinary_history: MemoryHistory | None = None
