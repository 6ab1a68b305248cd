"""What a plan is asked for: reservations, workloads, databases, policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hugeplan.planner.model.node import NodeFacts
from hugeplan.planner.model.observed import MemoryHistory, NodeSample, ObservedDatabase, WalkShare


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservations:
    """Memory set aside before any pod or database. Without Kubernetes only ``system_reserved_bytes`` counts.

    What is None is filled from the observed kubelet, else by the formula of ``provider`` (``gke``, ``eks``, ``aks`` or
    None), which may depend on ``kubelet_version`` (``v1.31.2``). ``only_sum``: the three sizes are right as a sum, and
    how it is divided is not known.
    """

    kubernetes: bool = False
    provider: str | None = None
    kube_reserved_bytes: int | None = None
    system_reserved_bytes: int | None = None
    eviction_hard_bytes: int | None = None
    max_pods: int | None = None
    hugepage_aware_eviction: bool | None = None
    memory_manager_static: bool = False
    kubelet_version: str | None = None
    only_sum: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Another workload on the node: ``count`` identical replicas; figures per replica in bytes. Named as scenarios do.

    ``observed`` says how a workload that the plan derived from the sample was measured; None for a described one.
    """

    name: str
    kind: str = "pod"  # pod | service | page_cache
    count: int = 1
    request_bytes: int | None = None
    limit_bytes: int | None = None
    history: MemoryHistory | None = None
    numa_node: int | None = None
    observed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenefitPoint:
    """One row of a throughput-over-pool-size table."""

    pool_bytes: int
    throughput: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a database instance does; every field may be unknown."""

    row_bytes: int | None = None
    working_set_bytes: int | None = None
    zipf_s: float | None = None
    active_connections: int | None = None
    cold_touches_per_operation: float | None = None
    operations_per_second_per_busy_core: float | None = None
    operation_class: str | None = None  # key_lookup | nested_loop | scan | oltp ...
    benefit_points: tuple[BenefitPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorObject:
    """The custom resource that an operator makes an instance's pods from: what a patch must name to change them.

    ``instance_set``: the instance's set within it, for resources that hold several sets; None where not known.
    """

    group: str
    kind: str
    namespace: str
    name: str
    instance_set: str | None = None

    @property
    def words(self) -> str:
        """``Cluster db/orders``, as messages name it."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInstance:
    """An engine with its settings, verbatim as the engine spells them (``shared_buffers`` -> ``8GB``).

    ``page_bytes``: None lets the planner choose; 0 forbids huge pages; else that size is used.
    ``pool_min_bytes``/``pool_max_bytes``: when both are set the optimiser may size the buffer pool between them.
    ``runs_as``: the key of the observed database that this instance describes; None lets the planner match them.
    ``extension_bytes``: shared memory of preloaded libraries that no rule knows, as measured on the running server.
    ``page_tables_now_bytes``: page tables of the running server, as measured while its segment is on base pages.
    ``walks_now``: its page walks, as its processor counted them while its segment is on base pages.
    ``pod_memory_request_bytes`` and ``pod_memory_limit_bytes`` are what its container has now, beside its huge pages.
    ``memory_limit_bytes``: the limit of the unit that it is seen to run in.
    ``stateful_set`` (``namespace/name``) and ``container`` are the Kubernetes objects it runs in, where they are known.
    ``operator_object`` is the custom resource that those are made from, where an operator makes them.
    ``unread_settings`` are settings that the server may have and nobody read: their defaults stand in for them.
    ``allowed_numa_nodes``: those that its running server may allocate from; empty: all, or not known.
    """

    name: str
    engine: str
    version: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int | None = None
    numa_node: int | None = None
    page_bytes: int | None = None
    weight: float = 1.0
    pool_min_bytes: int | None = None
    pool_max_bytes: int | None = None
    workload: Workload = field(default_factory=Workload)
    pod_hugepages_limit_bytes: int | None = None
    pod_memory_request_bytes: int | None = None
    pod_memory_limit_bytes: int | None = None
    memory_limit_bytes: int | None = None
    runs_as: str | None = None
    extension_bytes: int | None = None
    page_tables_now_bytes: int | None = None
    walks_now: WalkShare | None = None
    stateful_set: str | None = None
    container: str | None = None
    operator_object: OperatorObject | None = None
    unread_settings: tuple[str, ...] = ()
    allowed_numa_nodes: tuple[int, ...] = ()

    @property
    def within(self) -> tuple[int, ...]:
        """The NUMA nodes for its pages: the scenario's, else those of its running server; empty: all."""
        return self.allowed_numa_nodes if self.numa_node is None else (self.numa_node,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The reader's choices. ``slack_fraction`` applies to each pool's demand, rounded up to whole pages."""

    slack_fraction: float = 0.01
    slack_min_pages: int = 2
    risk: float = 0.01
    allowed_page_bytes: tuple[int, ...] | None = None
    reserve_at: Literal["boot", "runtime"] = "boot"
    free_margin_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorkloads:
    """Which of the observed workloads a plan counts. ``exclude`` holds names or keys of units that will not run here.

    A described workload with the name or key of an observed unit replaces it.
    """

    include: bool = True
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Everything ``plan()`` takes.

    ``sample`` is the latest observed state. With its memory the plan starts from the node as it is, with the
    workloads that were observed; without a sample, findings that need it are unknown.
    """

    node: NodeFacts
    reservations: Reservations = field(default_factory=Reservations)
    tenants: tuple[Tenant, ...] = ()
    databases: tuple[DatabaseInstance, ...] = ()
    policy: Policy = field(default_factory=Policy)
    sample: NodeSample | None = None
    observed: ObservedWorkloads = field(default_factory=ObservedWorkloads)

    def server(self, key: str | None) -> ObservedDatabase | None:
        """The running server of this key; None where none was observed."""
        running = () if self.sample is None else self.sample.databases or ()
        return next((server for server in running if server.key == key), None)
