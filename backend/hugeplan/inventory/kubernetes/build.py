"""From decoded objects to an inventory: pods onto their nodes, databases out of pods, the rest as workloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from hugeplan.formats.quantities import parse_quantity
from hugeplan.inventory.instances import database_instance, free_name, tenant_of_unread, within_most
from hugeplan.inventory.kubernetes.config_maps import ConfigMaps
from hugeplan.inventory.kubernetes.documents import Read, read_documents
from hugeplan.inventory.kubernetes.nodes import ALWAYS_UNKNOWN, node_facts, pools_of, resources, sample_of
from hugeplan.inventory.kubernetes.objects import Claim, Node, Pod, PodMetrics
from hugeplan.inventory.kubernetes.pods import (
    MAX_CONTAINERS,
    PodMemory,
    container_share,
    custom_maker,
    ended_above_pool,
    holds_memory,
    huge_pages_of,
    hugetlbfs_mounts,
    not_scheduled_because,
    plain_pod,
    pod_memory,
    pod_view,
    refused_for_pages,
    unreadable_quantities,
)
from hugeplan.inventory.model import MAX_NOTES, FoundDatabase, FoundNode, HugePageUser, Inventory, InventoryError, alone
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import MemoryHistory, OperatorObject, Tenant
from hugeplan.planner.units import format_bytes
from hugeplan.recognition import Objects, PodView, Recognised, recognise
from hugeplan.recognition.operators import with_sound_names

#: More workloads than these on a node are put together by request and limit.
NAMED_TENANTS = 15


@dataclass(slots=True)
class _NodeParts:
    """What is gathered for a node while pods are walked. ``memory`` is all that it has; None: unknown."""

    memory: int | None = None
    databases: list[FoundDatabase] = field(default_factory=list)
    tenants: dict[tuple[str, int | None, int | None], int] = field(default_factory=dict)
    measured: list[Tenant] = field(default_factory=list)
    unread: list[tuple[FoundDatabase, int | None]] = field(default_factory=list)
    users: list[HugePageUser] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    pods: int = 0
    without_request: int = 0
    large: int = 0
    requested: int = 0


@dataclass(slots=True)
class _Input:
    """The objects that pods refer to."""

    objects: Objects
    config_maps: ConfigMaps
    claims: Mapping[tuple[str, str], Claim]
    usage: Mapping[tuple[str, str], PodMetrics]


def read_kubernetes(data: bytes, name: str = "standard input") -> Inventory:
    """The inventory of one or more lists of objects. InventoryError where the input as a whole cannot be read."""
    read = read_documents(data, name)
    return build_inventory(read, f"Kubernetes objects of {name}")


def build_inventory(read: Read, source: str) -> Inventory:
    """Nodes with their databases and workloads, in the order of the nodes' names."""
    notes = list(read.problems)
    if read.unread > len(read.problems):
        notes.append(f"{read.unread - len(read.problems)} more objects were not read")
    nodes = _unique_nodes(read.of("Node"), notes)
    pods = _unique_pods(read.of("Pod"), notes)
    given = _given(read)
    parts = {name: _NodeParts(memory=_capacity(node).get("memory")) for name, node in nodes.items()}
    waiting: list[FoundDatabase] = []
    elsewhere: dict[str, int] = {}
    out: list[Pod] = []
    for pod in pods:
        if not holds_memory(pod):
            with _alone(pod, notes):
                waiting += _ended_for_pages(pod, nodes.get(pod.spec.nodeName or ""), given)
            continue
        notes += _unreadable(pod)[: max(0, MAX_NOTES - len(notes))]
        home = pod.spec.nodeName
        if home is None:
            with _alone(pod, notes):
                waiting += _databases(pod, pod_view(pod, given.config_maps), given, set())
            continue
        out.append(pod)
        if home in parts:
            with _alone(pod, notes):
                _add_pod(parts[home], pod, given, notes)
                out.pop()
        else:
            elsewhere[home] = elsewhere.get(home, 0) + 1
    for home, count in sorted(elsewhere.items())[:MAX_NOTES]:
        notes.append(f"node {home} is not in the input; its {count:,} pods are left out")
    found = []
    for name, node in sorted(nodes.items()):
        built = _found_node(node, parts[name])
        if isinstance(built, str):
            notes.append(f"node {name} is left out: {built}")
        else:
            found.append(built)
    if not pods:
        found = [replace(node, pods_are_known=False) for node in found]
    return Inventory(
        source=source,
        nodes=tuple(found),
        not_scheduled=tuple(waiting),
        not_planned=_not_planned(found, parts.values(), out, given),
        pods=len(pods),
        notes=tuple(notes),
        unknown=_unknown_of_source(read, given),
    )


def _not_planned(
    nodes: Sequence[FoundNode], parts: Iterable[_NodeParts], out: Sequence[Pod], given: _Input
) -> tuple[FoundDatabase, ...]:
    """Databases that run and are in no node's plan; ``out`` are pods that were added to no node."""
    planned = {id(one) for node in nodes for one in node.databases}
    found = [one for own in parts for one in own.databases if id(one) not in planned]
    for pod in out:
        with _alone(pod, []):
            found += [] if plain_pod(pod) else _databases(pod, pod_view(pod, given.config_maps), given, set())
    return tuple(found)


def _unreadable(pod: Pod) -> list[str]:
    return [
        f"{_name(pod)}, {text} is no Kubernetes quantity (512Mi, 2Gi): it counts as not given, and the API server"
        " refuses the pod"
        for text in unreadable_quantities(pod)
    ]


@dataclass(frozen=True, slots=True)
class Workloads:
    """What pods alone say of one node: ``elsewhere`` counts the pods of other nodes by their node's name, ``waiting``
    those that are on no node yet, ``ended`` those that hold no memory.
    """

    tenants: tuple[Tenant, ...]
    databases: tuple[FoundDatabase, ...]
    pods: int
    elsewhere: Mapping[str, int]
    waiting: int
    ended: int
    notes: tuple[str, ...]


def read_workloads(data: bytes, name: str, node: str | None) -> Workloads:
    """The workloads of one node out of pods, by the rules of :func:`build_inventory`; ``node`` None: of all pods."""
    read = read_documents(data, name)
    notes = list(read.problems)
    given = _given(read)
    parts = _NodeParts()
    elsewhere: dict[str, int] = {}
    waiting = ended = 0
    for pod in _unique_pods(read.of("Pod"), notes):
        home = pod.spec.nodeName
        if not holds_memory(pod):
            ended += 1
        elif node is None or home == node:
            with _alone(pod, notes):
                _add_pod(parts, pod, given, notes)
        elif home is None:
            waiting += 1
        else:
            elsewhere[home] = elsewhere.get(home, 0) + 1
    return Workloads(
        tenants=_tenants(parts, DemandContext()),
        databases=tuple(parts.databases),
        pods=parts.pods,
        elsewhere=elsewhere,
        waiting=waiting,
        ended=ended,
        notes=tuple(notes),
    )


def _given(read: Read) -> _Input:
    return _Input(
        objects=_custom_resources(read),
        config_maps=ConfigMaps(read.of("ConfigMap")),
        claims={
            (one.metadata.namespace or "default", one.metadata.name): one for one in read.of("PersistentVolumeClaim")
        },
        usage={(one.metadata.namespace or "default", one.metadata.name): one for one in read.of("PodMetrics")},
    )


def _ended_for_pages(pod: Pod, node: Node | None, given: _Input) -> list[FoundDatabase]:
    """Databases of a pod that has ended for lack of huge pages; none for other ended pods."""
    pools = None if node is None or node.status is None else pools_of(resources(node.status.capacity))
    because = None if pools is None else ended_above_pool(pod, pools)
    if because is None and not refused_for_pages(pod):
        return []
    found = _databases(pod, pod_view(pod, given.config_maps), given, set())
    return found if because is None else [replace(one, not_scheduled_because=because) for one in found]


def _unique_nodes(nodes: Iterable[Node], notes: list[str]) -> dict[str, Node]:
    """Nodes by name, the last of a name counts; two uids are two clusters and are said to be."""
    found: dict[str, Node] = {}
    for node in nodes:
        name = node.metadata.name
        earlier = found.get(name)
        if not name:
            notes.append("a node without a name is left out")
            continue
        if earlier is not None and len(notes) < MAX_NOTES:
            other = earlier.metadata.uid != node.metadata.uid
            notes.append(
                f"node {name} is in the input twice"
                + (" with different uids, as if from two clusters" if other else "")
                + "; the later one is taken"
            )
        found[name] = node
    return found


def _unique_pods(pods: Iterable[Pod], notes: list[str]) -> list[Pod]:
    found: dict[tuple[str, str], Pod] = {}
    twice = 0
    for pod in pods:
        key = (pod.metadata.namespace or "default", pod.metadata.name)
        twice += key in found
        found[key] = pod
    if twice:
        notes.append(f"{twice:,} pods are in the input twice; the later one of each is taken")
    return list(found.values())


def _custom_resources(read: Read) -> Objects:
    objects = Objects()
    for group, kind, one in read.custom:
        namespace = one.metadata.namespace or "default"
        objects.add(group, kind, namespace, one.metadata.name, {"kind": kind, "spec": one.spec or {}})
    return objects


def _databases(pod: Pod, view: PodView, given: _Input, names: set[str]) -> list[FoundDatabase]:
    return [_found_database(pod, view, recognised, given, names) for recognised in recognise(view, given.objects)]


def _found_database(pod: Pod, view: PodView, recognised: Recognised, given: _Input, names: set[str]) -> FoundDatabase:
    container = next(one for one in view.containers if one.name == recognised.container)
    beside = pod_memory(pod, frozenset({recognised.container}))
    own_request, own_limit = container_share(pod, container, beside)
    of_pod_alone = huge_pages_of(pod.spec.resources)
    limits = dict(container.huge_pages_limit_bytes) or of_pod_alone
    of_pod = f"{view.namespace}.{view.name}"
    name = free_name(names, view.name, of_pod, f"{of_pod}.{recognised.container}")
    instance, refused = database_instance(name, recognised, limits, container.memory_limit_bytes)
    resource = recognised.resource
    maker = custom_maker(view) if resource is None else None
    is_set = (view.owner_group, view.owner_kind) == ("apps", "StatefulSet") and maker is None
    own_set = f"{view.namespace}/{view.owner_name}" if is_set else None
    instance = replace(
        instance,
        stateful_set=own_set,
        container=recognised.container,
        operator_object=maker
        if resource is None
        else OperatorObject(
            group=resource.group,
            kind=resource.kind,
            namespace=view.namespace,
            name=resource.name,
            instance_set=recognised.instance_set,
        ),
        pod_memory_request_bytes=own_request,
        pod_memory_limit_bytes=own_limit,
    )
    return FoundDatabase(
        instance=with_sound_names(instance),
        recognised=replace(recognised, unknown=(*recognised.unknown, *refused)),
        namespace=view.namespace,
        workload=view.name,
        node=pod.spec.nodeName,
        owner_kind=view.owner_kind,
        memory_request_bytes=own_request,
        memory_limit_bytes=own_limit,
        beside_request_bytes=beside.request_bytes,
        huge_pages_limit_bytes=limits,
        limits_are_the_pods=bool(of_pod_alone),
        hugetlbfs_mounts=hugetlbfs_mounts(pod, recognised.container),
        volume_bytes=_volume_bytes(pod, view.namespace, given.claims),
        not_scheduled_because=not_scheduled_because(pod),
    )


def _volume_bytes(pod: Pod, namespace: str, claims: Mapping[tuple[str, str], Claim]) -> int | None:
    """Capacity of the pod's persistent volumes together; None when none of them is in the input."""
    sizes = []
    for volume in pod.spec.volumes or ():
        if volume.persistentVolumeClaim is None:
            continue
        claim = claims.get((namespace, volume.persistentVolumeClaim.claimName))
        if claim is None:
            continue
        held = (claim.status.capacity if claim.status is not None else None) or {}
        asked = claim.spec.resources.requests if claim.spec is not None and claim.spec.resources is not None else None
        size = parse_quantity(held.get("storage") or (asked or {}).get("storage") or "")
        if size is not None:
            sizes.append(size)
    return sum(sizes) if sizes else None


def _alone(pod: Pod, notes: list[str]) -> AbstractContextManager[None]:
    return alone(f"{_name(pod)} is left out", notes)


def _name(pod: Pod) -> str:
    return f"pod {pod.metadata.namespace or 'default'}/{pod.metadata.name}"


def _require_room(memory: PodMemory, held: int | None) -> None:
    """InventoryError for a pod that no kubelet of a node with so much memory starts, so it holds none there."""
    asked = (memory.request_bytes or 0) + sum(memory.huge_pages_bytes.values())
    if held is not None and asked > held:
        raise InventoryError(f"it asks for {format_bytes(asked)}, more than its node may have")


def _add_pod(parts: _NodeParts, pod: Pod, given: _Input, notes: list[str]) -> None:
    plain = view = None
    databases: list[FoundDatabase] = []
    unread = " (settings not read)"
    # What it asks for is known, and counts, whatever its owner wrote into a file of its engine.
    with alone(f"{_name(pod)} counts as a workload, settings not read", notes):
        plain = plain_pod(pod)
        if plain is None:
            view = pod_view(pod, given.config_maps)
            databases = _databases(pod, view, given, parts.names)
        unread = ""
    if plain is not None:
        _require_room(plain, parts.memory)
        _add_plain_pod(parts, pod, plain, given)
        return
    view = view or pod_view(pod, None)
    whole = pod_memory(pod)
    # One that is a little too large for its node may be planned for another.
    _require_room(whole, parts.memory and parts.memory * (2 if databases else 1))
    parts.pods += 1
    parts.large += len(pod.spec.containers or ()) > MAX_CONTAINERS
    parts.databases += databases
    if whole.request_bytes is None:
        parts.without_request += 1
    parts.requested += whole.request_bytes or 0
    if whole.huge_pages_bytes:
        parts.users.append(
            HugePageUser(
                subject=f"{view.namespace}/{view.name}",
                owner_kind=view.owner_kind,
                limit_bytes=whole.huge_pages_bytes,
                hugetlbfs_mounts=hugetlbfs_mounts(pod),
                is_database=bool(databases),
            )
        )
    usage = given.usage.get((view.namespace, view.name))
    named = (view.namespace, view.name)
    if not databases:
        _add_tenant(parts, named, whole, f"{view.owner_name or view.name}{unread}", _used_bytes(usage, frozenset()))
        return
    containers = frozenset(database.recognised.container for database in databases)
    for database in databases:
        others = frozenset(one.name for one in view.containers if one.name != database.recognised.container)
        parts.unread += [(database, _used_bytes(usage, others))] if database.instance.unread_settings else []
    beside = pod_memory(pod, containers)
    if len(view.containers) > len(containers) or beside.request_bytes or beside.limit_bytes:
        name = f"{view.owner_name or view.name} (beside the database)"
        _add_tenant(parts, named, beside, name, _used_bytes(usage, containers))


def _add_plain_pod(parts: _NodeParts, pod: Pod, memory: PodMemory, given: _Input) -> None:
    """A pod that is nothing but a workload, without the views that recognition needs."""
    meta = pod.metadata
    namespace = meta.namespace or "default"
    owner = next((one.name for one in meta.ownerReferences or () if one.controller), meta.name)
    used = _used_bytes(given.usage.get((namespace, meta.name)), frozenset()) if given.usage else None
    parts.pods += 1
    if memory.request_bytes is None:
        parts.without_request += 1
    parts.requested += memory.request_bytes or 0
    _add_tenant(parts, (namespace, meta.name), memory, owner, used)


def _add_tenant(parts: _NodeParts, pod: tuple[str, str], memory: PodMemory, owner: str, used: int | None) -> None:
    """The pod, or what is left of it beside its databases, as a workload; equal copies of a workload together."""
    limit = memory.limit_bytes
    if limit is not None and memory.request_bytes is not None and limit < memory.request_bytes:
        limit = memory.request_bytes
    if used is not None:
        parts.measured.append(
            Tenant(
                name="/".join(pod),
                request_bytes=memory.request_bytes,
                limit_bytes=limit,
                history=MemoryHistory(times_seconds=(0.0,), used_bytes=(used,)),
            )
        )
        return
    key = (f"{pod[0]}/{owner}", memory.request_bytes, limit)
    parts.tenants[key] = parts.tenants.get(key, 0) + 1


def _used_bytes(usage: PodMetrics | None, excluded: frozenset[str]) -> int | None:
    """Memory use that metrics.k8s.io reports at one moment, without the databases' containers."""
    if usage is None or not usage.containers:
        return None
    sizes = [
        parse_quantity((one.usage or {}).get("memory", "")) for one in usage.containers if one.name not in excluded
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _capacity(node: Node) -> dict[str, int]:
    return resources(node.status.capacity if node.status is not None else None)


def _found_node(node: Node, parts: _NodeParts) -> FoundNode | str:
    facts = node_facts(node)
    if isinstance(facts, str):
        return facts
    base, reservations, doubts = facts
    status = node.status
    capacity = _capacity(node)
    allocatable = resources(status.allocatable if status is not None else None)
    info = status.nodeInfo if status is not None else None
    unknown = list(doubts)
    if parts.without_request:
        unknown.append(f"memory of {parts.without_request:,} pods without a memory request")
    if parts.large:
        unknown.append(f"databases of {parts.large:,} pods beyond their first {MAX_CONTAINERS} containers")
    found = FoundNode(
        facts=base,
        reservations=reservations,
        databases=tuple(parts.databases),
        huge_page_users=tuple(parts.users),
        pods=parts.pods,
        pods_without_memory_request=parts.without_request,
        requested_bytes=parts.requested,
        allocatable_bytes=allocatable.get("memory"),
        hugetlb_pool_bytes=None if base.numa[0].pools is None else pools_of(capacity) or None,
        kubelet_version=info.kubeletVersion if info is not None else None,
        labels=node.metadata.labels or {},
        machine_id=info.machineID if info is not None else None,
        sample=sample_of(node),
        unknown=tuple(unknown),
    )
    found, left = within_most(found)
    for one in left:
        request, limit = one.memory_request_bytes, one.memory_limit_bytes
        key = (one.subject, request, limit if limit is None or request is None else max(limit, request))
        parts.tenants[key] = parts.tenants.get(key, 0) + 1
    gone = {id(one) for one in left}
    parts.unread = [one for one in parts.unread if id(one[0]) not in gone]
    return replace(found, tenants=_tenants(parts, DemandContext.of_node(base)))


def _tenants(parts: _NodeParts, context: DemandContext) -> tuple[Tenant, ...]:
    """All workloads of a node, and what databases whose size was not read use or ask for."""
    found = [*_grouped(parts.tenants), *parts.measured]
    for database, used in parts.unread:
        history = None if used is None else MemoryHistory(times_seconds=(0.0,), used_bytes=(used,))
        request, limit = database.memory_request_bytes, database.memory_limit_bytes
        if limit is not None and request is not None:
            limit = max(limit, request)
        use = Tenant(name=database.subject, request_bytes=request, limit_bytes=limit, history=history)
        tenant = tenant_of_unread(database.subject, database.instance, use, context)
        found += [] if tenant is None else [tenant]
    return tuple(found)


def _grouped(found: Mapping[tuple[str, int | None, int | None], int]) -> list[Tenant]:
    """One row per workload; where there are many, one per request and limit, which the plan cannot tell apart."""
    if len(found) <= NAMED_TENANTS:
        return [
            Tenant(name=name, count=count, request_bytes=request, limit_bytes=limit)
            for (name, request, limit), count in found.items()
        ]
    counts: dict[tuple[int | None, int | None], int] = {}
    for (_, request, limit), count in found.items():
        counts[request, limit] = counts.get((request, limit), 0) + count
    return [
        Tenant(name=_tenant_name(request, limit), count=count, request_bytes=request, limit_bytes=limit)
        for (request, limit), count in counts.items()
    ]


def _tenant_name(request: int | None, limit: int | None) -> str:
    asked = "without a memory request" if request is None else f"with a request of {format_bytes(request)}"
    return f"pods {asked}, {'no limit' if limit is None else f'limit {format_bytes(limit)}'}"


def _unknown_of_source(read: Read, given: _Input) -> tuple[str, ...]:
    """What the input as a whole does not say; facts that no Node object has come last."""
    found = []
    if not read.of("Pod"):
        found.append("pods: none are in the input, so whether a pool is used is not known (add pods to kubectl get)")
    if not given.usage:
        found.append("memory in use: requests and limits are all that pods say (add PodMetrics, or use --prometheus)")
    for namespace in sorted(given.config_maps.exhausted)[:MAX_NOTES]:
        found.append(f"engine settings in ConfigMaps of namespace {namespace}: its pods take more than is read")
    if not given.config_maps:
        found.append("engine settings in ConfigMaps: none are in the input (add configmaps to kubectl get)")
    if not len(given.objects):
        found.append("engine settings in operators' resources: none are in the input (add them to kubectl get)")
    if not read.of("PersistentVolumeClaim"):
        found.append("sizes of volumes: no persistent volume claims are in the input")
    return (*found, *ALWAYS_UNKNOWN)
