"""From the scenario document to the planner's dataclasses.

Contradictions that the document's own types cannot see (a free count above the pool, a workload on a NUMA node that
does not exist) are PlannerErrors with the field's path.
"""

from __future__ import annotations

from collections.abc import Callable

from hugeplan.planner.errors import NodeFactsError, PageSizeError, PlannerError, TenantError, WorkloadError
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    BenefitPoint,
    DatabaseInstance,
    HardwareFacts,
    MemoryHistory,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedWorkloads,
    OperatorObject,
    PlanRequest,
    Policy,
    Pool,
    Reservations,
    Tenant,
    Workload,
)
from hugeplan.planner.pages import (
    POWER_HASH_SIZES,
    canonical_architecture,
    huge_page_sizes,
    page_label,
    require_huge_page_size,
    usual_default_size,
)
from hugeplan.planner.pool_benefit.throughput_table import parse_benefit_table
from hugeplan.scenario_file.documents import (
    DatabaseDocument,
    HardwareDocument,
    NodeDocument,
    NumaNodeDocument,
    PolicyDocument,
    ReservationsDocument,
    ScenarioDocument,
    TenantDocument,
    WorkloadDocument,
)
from hugeplan.scenario_file.hardware import with_catalogue

#: Reads a tlbbench document by its path; the command line has one, the API does not.
RunReader = Callable[[str], HardwareFacts]
#: Finds a processor in the catalogue: (facts as given) -> facts with what the catalogue adds.
CatalogueReader = Callable[[HardwareFacts], HardwareFacts]

#: POWER radix has 2M and 1G, hash 16M and 16G; current Linux on POWER9 and later uses radix unless told otherwise.
_PPC64_RADIX = (2 * MIB, GIB)


def to_request(
    document: ScenarioDocument,
    node_facts: NodeFacts | None = None,
    *,
    sample: NodeSample | None = None,
    read_run: RunReader | None = None,
    from_catalogue: CatalogueReader = with_catalogue,
) -> PlanRequest:
    """What ``plan()`` takes. The node comes from ``node_facts`` or from the document, never from both.

    ``read_run`` opens a tlbbench document named in the scenario; without it naming one is an error.
    Raises PlannerError with the field's path.
    """
    if node_facts is not None and document.node is not None:
        raise PlannerError("node", "inline node facts", "either a stored node or inline facts, not both")
    if node_facts is None and document.node is None:
        raise PlannerError("node", "nothing", "the node's facts: at least node.memory")
    if node_facts is None:
        assert document.node is not None
        node_facts = _node(document.node, read_run, from_catalogue)
    ids = {numa.id for numa in node_facts.numa}
    _require_unique_names(document)
    tenants = tuple(_tenant(tenant, i, ids) for i, tenant in enumerate(document.tenants))
    databases = tuple(_database(database, i, ids) for i, database in enumerate(document.databases))
    return PlanRequest(
        node=node_facts,
        reservations=_reservations(document.reservations),
        tenants=tenants,
        databases=databases,
        policy=_policy(document.policy),
        sample=sample,
        observed=ObservedWorkloads(include=document.observed.workloads, exclude=tuple(document.observed.exclude)),
    )


def _reservations(said: ReservationsDocument) -> Reservations:
    return Reservations(
        kubernetes=said.kubernetes,
        provider=said.provider,
        kube_reserved_bytes=said.kube_reserved,
        system_reserved_bytes=said.system_reserved,
        eviction_hard_bytes=said.eviction_hard,
        max_pods=said.max_pods,
        hugepage_aware_eviction=said.hugepage_aware_eviction,
        memory_manager_static=said.memory_manager_static,
        kubelet_version=said.kubelet_version,
        only_sum=said.only_sum,
    )


def _require_unique_names(document: ScenarioDocument) -> None:
    names = {
        "databases": [database.name for database in document.databases],
        "tenants": [tenant.name for tenant in document.tenants],
    }
    for section, given in names.items():
        for i, name in enumerate(given):
            if name in given[:i]:
                raise PlannerError(f"{section}[{i}].name", name, "a name used once")


def _node(document: NodeDocument, read_run: RunReader | None, from_catalogue: CatalogueReader) -> NodeFacts:
    arch = canonical_architecture(document.arch, "node.arch")
    base = document.base_page_size or 4 * KIB
    allowed = _offered_sizes(arch, base)
    sizes = document.huge_page_sizes
    if sizes is not None:
        for i, size in enumerate(sizes):
            require_huge_page_size(size, arch, base, f"node.huge_page_sizes[{i}]")
    elif arch == "ppc64le":
        named = {document.default_huge_page_size}
        named |= {pool.page_size for numa in document.numa_nodes or () for pool in numa.pools or ()}
        sizes = sorted(POWER_HASH_SIZES) if named & POWER_HASH_SIZES else list(_PPC64_RADIX)
    known = tuple(sorted(set(allowed if sizes is None else sizes)))
    numa = _numa(document, known)
    total = sum(item.mem_total_bytes for item in numa)
    if document.kernel_used is not None and document.kernel_used > total:
        raise NodeFactsError("node.kernel_used", document.kernel_used, f"at most the node's memory ({total})")
    return NodeFacts(
        name=document.name,
        arch=arch,
        base_page_bytes=base,
        huge_page_sizes_bytes=known,
        default_huge_page_bytes=_default_size(document, base, known),
        numa=numa,
        cpus=document.cpus,
        kernel_used_bytes=document.kernel_used,
        thp_enabled=document.thp,
        hvo_enabled=document.hvo,
        kernel_release=document.kernel_release,
        kernel_command_line=document.kernel_command_line,
        hugetlb_cma_bytes=document.hugetlb_cma,
        hardware=None if document.hardware is None else hardware_of(document.hardware, read_run, from_catalogue),
    )


def _offered_sizes(arch: str, base: int) -> tuple[int, ...]:
    try:
        return huge_page_sizes(arch, base)
    except PlannerError as error:
        raise error.within("node") from error


def _default_size(document: NodeDocument, base: int, known: tuple[int, ...]) -> int:
    given = document.default_huge_page_size
    if given is not None:
        if given not in known:
            labels = ", ".join(page_label(size) for size in known)
            raise PageSizeError("node.default_huge_page_size", page_label(given), f"one of {labels}")
        return given
    return usual_default_size(base, known)


def _numa(document: NodeDocument, sizes: tuple[int, ...]) -> tuple[NumaNode, ...]:
    if document.numa_nodes is None:
        if document.memory is None:
            raise NodeFactsError("node.memory", "nothing", "the node's memory, such as 64GiB, or node.numa_nodes")
        _require_memory("node.memory", document.memory)
        return (NumaNode(id=0, mem_total_bytes=document.memory),)
    seen: set[int] = set()
    nodes = []
    for i, numa in enumerate(document.numa_nodes):
        where = f"node.numa_nodes[{i}]"
        if numa.id in seen:
            raise NodeFactsError(f"{where}.id", numa.id, "each NUMA node once")
        seen.add(numa.id)
        if numa.memory:
            _require_memory(f"{where}.memory", numa.memory)
        nodes.append(
            NumaNode(
                id=numa.id,
                mem_total_bytes=numa.memory,
                mem_free_bytes=numa.free,
                pools=_pools(numa, sizes, where),
                cpulist=numa.cpulist,
            )
        )
    total = sum(numa.mem_total_bytes for numa in nodes)
    if document.memory is not None and document.memory != total:
        raise NodeFactsError("node.memory", document.memory, f"the sum of node.numa_nodes ({total}), or left out")
    return tuple(nodes)


def _require_memory(field: str, value: int) -> None:
    if value < MIB:
        raise NodeFactsError(field, value, "at least 1 MiB")


def _pools(numa: NumaNodeDocument, sizes: tuple[int, ...], where: str) -> tuple[Pool, ...] | None:
    if numa.pools is None:
        return None
    pools = []
    for j, pool in enumerate(numa.pools):
        if pool.page_size not in sizes:
            labels = ", ".join(page_label(size) for size in sizes)
            raise PageSizeError(f"{where}.pools[{j}].page_size", page_label(pool.page_size), f"one of {labels}")
        if pool.free is not None and pool.free > pool.nr_hugepages:
            raise NodeFactsError(f"{where}.pools[{j}].free", pool.free, f"0 to {pool.nr_hugepages} (nr_hugepages)")
        if pool.nr_hugepages * pool.page_size > numa.memory:
            raise NodeFactsError(
                f"{where}.pools[{j}].nr_hugepages", pool.nr_hugepages, f"at most {numa.memory // pool.page_size}"
            )
        if pool.reserved is not None and (pool.free is None or pool.reserved > pool.free):
            expected = "given together with free" if pool.free is None else f"0 to {pool.free} (free)"
            raise NodeFactsError(f"{where}.pools[{j}].reserved", pool.reserved, expected)
        pools.append(
            Pool(
                page_bytes=pool.page_size,
                nr_hugepages=pool.nr_hugepages,
                free_hugepages=pool.free,
                resv_hugepages=pool.reserved,
            )
        )
    if len({pool.page_bytes for pool in pools}) != len(pools):
        raise PageSizeError(f"{where}.pools", "a page size given twice", "each page size once")
    return tuple(pools)


def hardware_of(
    document: HardwareDocument, read_run: RunReader | None = None, from_catalogue: CatalogueReader = with_catalogue
) -> HardwareFacts:
    """Hardware facts of the document: measured ones from ``run``, else what the catalogue knows of ``cpu``."""
    if document.run is not None:
        if read_run is None:
            raise PlannerError("node.hardware.run", document.run, "cpu facts: a file is read only on the command line")
        return read_run(document.run)
    cpu = document.cpu
    facts = HardwareFacts(
        vendor=None if cpu is None else cpu.vendor,
        family=None if cpu is None else cpu.family,
        model=None if cpu is None else cpu.model,
        catalogue_id=None if cpu is None else cpu.catalogue_id,
        virtualised=document.virtualised,
    )
    return from_catalogue(facts)


def _require_numa(field: str, numa_node: int | None, ids: set[int]) -> None:
    if numa_node is not None and numa_node not in ids:
        raise PlannerError(field, numa_node, f"one of the node's NUMA nodes: {', '.join(map(str, sorted(ids)))}")


def _tenant(document: TenantDocument, index: int, ids: set[int]) -> Tenant:
    where = f"tenants[{index}]"
    _require_numa(f"{where}.numa_node", document.numa_node, ids)
    if document.request is not None and document.limit is not None and document.limit < document.request:
        raise TenantError(f"{where}.limit", document.limit, f"at least the request ({document.request})")
    return Tenant(
        name=document.name,
        kind=document.kind,
        count=document.count,
        request_bytes=document.request,
        limit_bytes=document.limit,
        history=_history(document, where),
        numa_node=document.numa_node,
    )


def _history(document: TenantDocument, where: str) -> MemoryHistory | None:
    history = document.history
    if history is None:
        return None
    if len(history.times) != len(history.used):
        raise TenantError(f"{where}.history.used", len(history.used), f"as many values as times ({len(history.times)})")
    pairs = sorted(zip(history.times, history.used, strict=True))
    return MemoryHistory(times_seconds=tuple(t for t, _ in pairs), used_bytes=tuple(u for _, u in pairs))


def _database(document: DatabaseDocument, index: int, ids: set[int]) -> DatabaseInstance:
    where = f"databases[{index}]"
    _require_numa(f"{where}.numa_node", document.numa_node, ids)
    pools = document.pool_range
    if pools is not None and pools.max < pools.min:
        raise PlannerError(f"{where}.pool_range.max", pools.max, f"at least pool_range.min ({pools.min})")
    return DatabaseInstance(
        name=document.name,
        engine=document.engine,
        version=document.version,
        settings=dict(document.settings),
        connections=document.connections,
        numa_node=document.numa_node,
        page_bytes=document.page_size,
        weight=document.weight,
        pool_min_bytes=None if pools is None else pools.min,
        pool_max_bytes=None if pools is None else pools.max,
        workload=_workload(document.workload, where),
        pod_hugepages_limit_bytes=document.pod_hugepages_limit,
        pod_memory_request_bytes=document.pod_memory_request,
        pod_memory_limit_bytes=document.pod_memory_limit,
        runs_as=document.runs_as,
        stateful_set=document.stateful_set,
        container=document.container,
        operator_object=(
            None if document.operator_object is None else OperatorObject(**document.operator_object.model_dump())
        ),
        unread_settings=tuple(document.unread_settings),
    )


def _workload(document: WorkloadDocument, where: str) -> Workload:
    points = _benefit_points(document, f"{where}.workload")
    return Workload(
        row_bytes=document.row_bytes,
        working_set_bytes=document.working_set,
        zipf_s=document.zipf_s,
        active_connections=document.active_connections,
        cold_touches_per_operation=document.cold_touches_per_operation,
        operations_per_second_per_busy_core=document.operations_per_second_per_busy_core,
        operation_class=document.operation,
        benefit_points=points,
    )


def _benefit_points(document: WorkloadDocument, where: str) -> tuple[BenefitPoint, ...]:
    """The measured table by rising pool size, from the list or from the pasted text."""
    if document.benefit_table is None:
        field = f"{where}.benefit"
        found = tuple(BenefitPoint(pool_bytes=p.pool, throughput=p.throughput) for p in document.benefit)
    elif document.benefit:
        raise WorkloadError(f"{where}.benefit_table", "given beside benefit", "one of the two")
    else:
        field = f"{where}.benefit_table"
        try:
            found = parse_benefit_table(document.benefit_table)
        except PlannerError as error:
            raise WorkloadError(field, error.value, f"{error.field}: {error.expected}") from error
    if len({point.pool_bytes for point in found}) != len(found):
        raise WorkloadError(field, "a pool size given twice", "each pool size once")
    return tuple(sorted(found, key=lambda point: point.pool_bytes))


def _policy(document: PolicyDocument) -> Policy:
    return Policy(
        slack_fraction=document.slack,
        slack_min_pages=_least_slack_pages(document),
        risk=document.risk,
        allowed_page_bytes=None if document.page_sizes is None else tuple(sorted(set(document.page_sizes))),
        reserve_at=document.reserve_at,
        free_margin_bytes=document.free_margin,
    )


def _least_slack_pages(document: PolicyDocument) -> int:
    """As written, else the policy's default; none where the scenario asks for no slack at all."""
    if document.slack_min_pages is not None:
        return document.slack_min_pages
    return Policy().slack_min_pages if document.slack else 0
