"""The scenario document: what a person writes and the API takes. Unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hugeplan.documents.bounds import SmallCount
from hugeplan.scenario_file.quantities import KubernetesQuantity, Memory, PageChoice, PageSize, Share, Verbatim

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Connections = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Pages = Annotated[int, Field(ge=0, le=2**40, strict=True)]
NumaId = Annotated[int, Field(ge=0, le=4095, strict=True)]


class Document(BaseModel):
    """Base of all parts: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolDocument(Document):
    """A huge page pool as it stands on one NUMA node; ``reserved`` of the free pages are promised (HugePages_Rsvd)."""

    page_size: PageSize
    nr_hugepages: Pages
    free: Pages | None = None
    reserved: Pages | None = None


class NumaNodeDocument(Document):
    """One NUMA node of an inline node description; ``cpulist`` is empty for memory without processors."""

    id: NumaId
    memory: Memory
    free: Memory | None = None
    cpulist: Annotated[str, StringConstraints(max_length=4096)] | None = None
    pools: Annotated[list[PoolDocument], Field(max_length=16)] | None = None


class CpuDocument(Document):
    """Which processor: enough to find it in the catalogue."""

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    catalogue_id: str | None = None


class HardwareDocument(Document):
    """Translation hardware: a catalogue entry, or a tlbbench document (``run``, command line only)."""

    cpu: CpuDocument | None = None
    virtualised: bool | None = None
    run: str | None = None


class NodeDocument(Document):
    """Inline facts of a node. Give ``memory``, or ``numa_nodes`` with the memory of each."""

    name: Name = "node"
    arch: str = "x86_64"
    base_page_size: PageSize | None = None
    huge_page_sizes: Annotated[list[PageSize], Field(max_length=8)] | None = None
    default_huge_page_size: PageSize | None = None
    memory: Memory | None = None
    numa_nodes: Annotated[list[NumaNodeDocument], Field(min_length=1, max_length=1024)] | None = None
    cpus: Annotated[int, Field(ge=1, le=65536, strict=True)] | None = None
    kernel_used: Memory | None = None
    thp: Literal["always", "madvise", "never"] | None = None
    hvo: bool | None = None
    kernel_release: str | None = None
    kernel_command_line: str | None = None
    hugetlb_cma: Memory | None = None
    hardware: HardwareDocument | None = None


class ReservationsDocument(Document):
    """Memory set aside before pods and databases. ``only_sum``: the three sizes are right as a sum, and how it is
    divided is not known.
    """

    kubernetes: bool = False
    provider: Literal["gke", "eks", "aks"] | None = None
    kube_reserved: KubernetesQuantity | None = None
    system_reserved: KubernetesQuantity | None = None
    eviction_hard: KubernetesQuantity | None = None
    max_pods: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    hugepage_aware_eviction: bool | None = None
    memory_manager_static: bool = False
    kubelet_version: Annotated[str, Field(max_length=64)] | None = None
    only_sum: bool = False


class HistoryDocument(Document):
    """Measured memory of one copy of a workload: seconds since the epoch, and bytes at that time."""

    times: Annotated[list[float], Field(max_length=100_000)]
    used: Annotated[list[KubernetesQuantity], Field(max_length=100_000)]


class TenantDocument(Document):
    """A workload beside the databases: another user of ordinary memory. Figures are per replica."""

    name: Name
    kind: Literal["pod", "service", "page_cache"] = "pod"
    count: Annotated[int, Field(ge=0, le=10_000, strict=True)] = 1
    request: KubernetesQuantity | None = None
    limit: KubernetesQuantity | None = None
    numa_node: NumaId | None = None
    history: HistoryDocument | None = None


class BenefitDocument(Document):
    """One measured throughput at one buffer pool size."""

    pool: Memory
    throughput: Annotated[float, Field(ge=1e-12, le=1e18, allow_inf_nan=False)]


class WorkloadDocument(Document):
    """What a database does; leave out what is not known.

    ``benefit_table`` is a pasted table of buffer pool size and throughput, in place of ``benefit``.
    """

    row_bytes: Annotated[int, Field(ge=1, le=2**30, strict=True)] | None = None
    working_set: Memory | None = None
    zipf_s: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    active_connections: Annotated[SmallCount, Field(strict=True)] | None = None
    cold_touches_per_operation: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None
    operations_per_second_per_busy_core: Annotated[float, Field(ge=1e-9, le=1e12, allow_inf_nan=False)] | None = None
    operation: Annotated[str, Field(max_length=50)] | None = None
    benefit: Annotated[list[BenefitDocument], Field(max_length=1000)] = []
    benefit_table: Annotated[str, Field(max_length=100_000)] | None = None


class PoolRangeDocument(Document):
    """The buffer pool may be sized between these by the planner."""

    min: Memory
    max: Memory


class OperatorObjectDocument(Document):
    """The custom resource that an operator makes a database's pods from: its patch is written for this object.

    ``instance_set`` is the database's set within it, for resources that hold several sets (PostgresCluster).
    """

    group: Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
    kind: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]{0,62}$")]
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    name: Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
    instance_set: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None


class DatabaseDocument(Document):
    """A database instance: its engine and settings as the engine spells them.

    ``runs_as`` names the observed database that this instance describes, where the planner cannot tell by itself.
    ``stateful_set`` (``namespace/name``) and ``container`` name the Kubernetes objects that its files patch.
    ``operator_object`` is the custom resource of an operator that makes the pods: the patch is written for it alone.
    ``pod_memory_request`` and ``pod_memory_limit`` are what the container has now: patches take the pages from them.
    ``unread_settings`` are settings that an import could not read: until ``settings`` has them, their defaults stand in
    and what rests on them is unknown.
    """

    name: Name
    engine: Annotated[str, Field(min_length=1, max_length=50)]
    version: Verbatim | None = None
    settings: Annotated[dict[str, Verbatim], Field(max_length=500)] = {}
    connections: Connections | None = None
    page_size: PageChoice = None
    numa_node: NumaId | None = None
    weight: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 1.0
    pool_range: PoolRangeDocument | None = None
    pod_hugepages_limit: KubernetesQuantity | None = None
    pod_memory_request: KubernetesQuantity | None = None
    pod_memory_limit: KubernetesQuantity | None = None
    runs_as: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    stateful_set: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}$")] | None = None
    container: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,63}$")] | None = None
    operator_object: OperatorObjectDocument | None = None
    unread_settings: Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=50)] = []
    workload: WorkloadDocument = WorkloadDocument()


class PolicyDocument(Document):
    """The reader's choices."""

    slack: Share = 0.01
    slack_min_pages: Annotated[int, Field(ge=0, le=10_000, strict=True)] | None = None
    risk: Share = 0.01
    page_sizes: Annotated[list[PageSize], Field(max_length=8)] | None = None
    reserve_at: Literal["boot", "runtime"] = "boot"
    free_margin: Memory | None = None


class ObservedDocument(Document):
    """What to take over from an observed node. ``workloads`` false plans without what runs there: the risk is then
    unknown. ``exclude`` holds names or keys of workloads that will not run there. A workload with the name of an
    observed one replaces it.
    """

    workloads: bool = True
    exclude: Annotated[list[Annotated[str, Field(min_length=1, max_length=512)]], Field(max_length=1000)] = []


class ScenarioDocument(Document):
    """A what-if: node facts, reservations, workloads, databases and policy."""

    schema_version: Literal[1] = 1
    node: NodeDocument | None = None
    reservations: ReservationsDocument = ReservationsDocument()
    tenants: Annotated[list[TenantDocument], Field(max_length=1000)] = []
    databases: Annotated[list[DatabaseDocument], Field(max_length=256)] = []
    policy: PolicyDocument = PolicyDocument()
    observed: ObservedDocument = ObservedDocument()
