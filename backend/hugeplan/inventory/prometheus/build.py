"""From series to an inventory. Kubernetes nodes come from kube-state-metrics, other hosts from node_exporter alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hugeplan.inventory.instances import database_instance, free_name, tenant_of_unread, within_most
from hugeplan.inventory.kubernetes.nodes import facts_of_resources, pools_of
from hugeplan.inventory.kubernetes.pods import MAX_CONTAINERS
from hugeplan.inventory.model import FoundDatabase, FoundNode, HugePageUser, Inventory, InventoryError, alone
from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.believed import Believed, PodKey
from hugeplan.inventory.prometheus.client import PrometheusClient, Series
from hugeplan.inventory.prometheus.clusters import Tables, clusters_of
from hugeplan.inventory.prometheus.hosts import Host, host_node, read_hosts
from hugeplan.inventory.prometheus.machines import machines_of, not_in_clusters, of_clusters
from hugeplan.inventory.prometheus.pods import (
    Pod,
    exported_settings,
    histories,
    largest,
    note_differing,
    read_pods,
    resource_of,
)
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.host_names import HostNames
from hugeplan.planner.model import MemoryHistory, NodeFacts, NumaNode, Tenant, named
from hugeplan.recognition import ContainerView, Objects, PodView, Recognised, recognise

HISTORY_DAYS: Final = 7.0
STEP_SECONDS: Final = 3600.0
#: Of all pods: their histories stay below a quarter of a GiB. Of 14,800 pods that is a week of hours.
MOST_POINTS: Final = 2_500_000
_POD_UNKNOWN: Final = (
    "command lines, variables and ConfigMaps of pods: kube-state-metrics has images alone, so engine settings are known"
    " only where a database exporter reports them, or who makes PodMonitors says that it does",
    "labels of operators: kube-state-metrics does not report them unless it is told to",
)
_ALWAYS_UNKNOWN: Final = ("translation hardware: not in metrics, so gains are ranges over all known processors",)


def read_prometheus(url: str, *, token: str | None = None, days: float = HISTORY_DAYS) -> Inventory:
    """The inventory that a Prometheus server holds. InventoryError where it cannot be asked or knows no node."""
    with PrometheusClient(url, token) as client:
        end = client.now()
        notes: list[str] = []
        pods = len(client.query(queries.PODS))
        hours = max(1, math.ceil(pods * days * 24 / MOST_POINTS))
        if hours > 1:
            notes.append(f"memory in use is the most of each {hours} hours, not of each hour: there are {pods} pods")
        span = _Span(end - days * 86_400, end, hours)
        nodes: list[FoundNode] = []
        clusters = clusters_of(client)
        if len(clusters) > 1:
            told = named(cluster for cluster, _ in clusters if cluster)
            notes.append(f"the series are of clusters {told}, as any scraped program may say: names begin with them")
        for cluster, tables in clusters:
            found = _nodes_of(tables, span, None if cluster or len(clusters) == 1 else client, notes)
            nodes += [_in_cluster(node, cluster) for node in found] if cluster else found
        nodes = _of_one_name(nodes, notes)
        if not nodes:
            why = (
                "no series of kube_node_status_capacity (kube-state-metrics) or node_memory_MemTotal_bytes"
                " (node_exporter) says a size"
            )
            raise InventoryError(f"{client.shown}: no node: {'; '.join(notes[:3]) or why}")
        unknown = (*(_POD_UNKNOWN if client.query(queries.CAPACITY) else ()), *_ALWAYS_UNKNOWN)
        return Inventory(
            source=f"Prometheus {client.shown}",
            nodes=tuple(sorted(nodes, key=lambda node: node.facts.name)),
            pods=sum(node.pods for node in nodes),
            notes=tuple(notes),
            unknown=unknown,
        )


@dataclass(frozen=True, slots=True)
class _Span:
    """The time that histories are asked for, in seconds since the epoch, and of how many hours each value is the most.

    Any program makes pods. So many of them make values fewer, and hide no peak.
    """

    start: float
    end: float
    hours: int

    def of(self, tables: Tables, expression: str) -> list[Series]:
        """The series of an expression over this time."""
        return tables.query_range(
            queries.over_hours(expression, self.hours), self.start, self.end, self.hours * STEP_SECONDS
        )


def _nodes_of(tables: Tables, span: _Span, server: Tables | None, notes: list[str]) -> list[FoundNode]:
    """The nodes of one cluster, and hosts beside it. ``server``: all clusters, of whose nodes these may be hosts."""
    believed = Believed(tables)
    twice = believed.contradicted(notes)
    machines = machines_of(read_hosts(tables), tables, twice, notes, is_rest=server is not None)
    told = _by_node(believed.query(queries.CAPACITY))
    out = twice | machines.out
    if server is not None:
        out |= of_clusters(told.keys() - out, server, notes)
    capacity = {name: held for name, held in told.items() if name not in out}
    nodes: list[FoundNode] = []
    if capacity:
        history = histories(span.of(tables, queries.POD_USE), notes)
        nodes += _kubernetes_nodes(believed, capacity, machines.of, history, notes)
        believed.note(notes)
    beside = machines.beside if server is None else not_in_clusters(machines.beside, server, notes)
    if beside:
        nodes += _hosts(beside, span.of(tables, queries.HOST_USE), notes)
    return nodes


def _hosts(hosts: Iterable[Host], used: Iterable[Series], notes: list[str]) -> list[FoundNode]:
    """Hosts outside Kubernetes, of all who tell of one with the largest use."""
    told: dict[str, list[Series]] = {}
    for one in used:
        told.setdefault(one.labels.get("instance", ""), []).append(one)
    found, differing = [], []
    for host in hosts:
        series = [one for at in sorted(host.instances) for one in told.get(at, ())]
        history, differ = largest(series) if series else (None, False)
        found.append(host_node(host, history))
        differing += [host.name] * differ
    note_differing("hosts", differing, notes)
    return found


def _of_one_name(nodes: list[FoundNode], notes: list[str]) -> list[FoundNode]:
    """The nodes whose host no other has: a host, a node and one of a cluster may be told of under its names."""
    hosts = HostNames[FoundNode]()
    for node in nodes:
        hosts.add(node.facts.name, node)
    twice = {node.facts.name for node in nodes if len(hosts.of(node.facts.name)) > 1}
    if twice:
        notes.append(f"nodes {named(sorted(twice))} are left out: two are told of under one host's name")
    return [node for node in nodes if node.facts.name not in twice]


def _in_cluster(node: FoundNode, cluster: str) -> FoundNode:
    """The node under a name that no other cluster has."""
    name = f"{cluster}/{node.facts.name}"
    databases = tuple(replace(found, node=name) for found in node.databases)
    return replace(node, facts=replace(node.facts, name=name), databases=databases)


def _by_node(series: Iterable[Series]) -> dict[str, dict[str, int]]:
    """Quantities by node and by resource, spelled as Kubernetes spells it."""
    found: dict[str, dict[str, int]] = {}
    for one in series:
        node, resource = one.labels.get("node"), one.labels.get("resource")
        if node and resource and one.value >= 0:
            found.setdefault(node, {})[resource_of(resource)] = int(one.value)
    return found


def _kubernetes_nodes(
    tables: Believed,
    capacity: Mapping[str, Mapping[str, int]],
    machines: Mapping[str, Host],
    history: Mapping[PodKey, MemoryHistory],
    notes: list[str],
) -> list[FoundNode]:
    allocatable = _by_node(tables.query(queries.ALLOCATABLE))
    infos = {one.labels.get("node", ""): one.labels for one in tables.query(queries.NODE_INFO)}
    pods = read_pods(tables)
    doubtful = sorted({"/".join(key) for (_, key), pod in pods.items() if pod.doubtful})
    if doubtful:
        notes.append(f"pods {named(doubtful)} count with their larger sizes: the series say different things of them")
    settings = exported_settings(tables.all)
    known = {key for _, key in pods}
    refused = sorted(f"{'/'.join(key)} ({of})" for (key, of), said in settings.items() if key in known and not said)
    if refused:
        notes.append(f"settings of {named(refused)} are not used: two differ, or no target (up) there says them")
    by_node: dict[str, dict[PodKey, Pod]] = {}
    for (_, key), pod in pods.items():
        for name in pod.nodes:
            by_node.setdefault(name, {})[key] = pod
    found: list[FoundNode] = []
    for name, held in sorted(capacity.items()):
        info = infos.get(name, {})
        own = by_node.get(name, {})
        node = _kubernetes_node(name, held, allocatable.get(name, {}), info, machines.get(name))
        if not isinstance(node, str):
            node = _with_pods(node, own, history, settings, notes)
        if isinstance(node, str):
            notes.append(f"node {name} is left out: {node}")
        else:
            found.append(node)
    return found


def _kubernetes_node(
    name: str,
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    info: Mapping[str, str],
    host: Host | None,
) -> FoundNode | str:
    machine = None if host is None else host.machine
    built = facts_of_resources(
        name,
        capacity,
        allocatable,
        architecture=machine,
        kernel_release=info.get("kernel_version"),
        labels={},
        kubelet_version=info.get("kubelet_version"),
    )
    if isinstance(built, str):
        return built
    facts, reservations, doubts = built
    unknown = list(doubts)
    if host is None:
        unknown.append("kernel memory and free pages: no node_exporter of this node was found")
    else:
        facts = _with_host(facts, host)
    unknown.append("NUMA nodes: not in these metrics, so the plan is for the node as a whole")
    return FoundNode(
        facts=facts,
        reservations=reservations,
        allocatable_bytes=allocatable.get("memory"),
        hugetlb_pool_bytes=pools_of(capacity) or None,
        kubelet_version=info.get("kubelet_version"),
        unknown=tuple(unknown),
    )


def _with_host(facts: NodeFacts, host: Host) -> NodeFacts:
    """What node_exporter adds: the kernel's memory, and free pages of the default size."""
    (numa,) = facts.numa
    pools = numa.pools
    if pools is not None and host.pool is not None:
        # The kernel's own counts where it is the same size: the kubelet counts once, at its start.
        pools = tuple(host.pool if pool.page_bytes == host.pool.page_bytes else pool for pool in pools)
    return replace(
        facts,
        numa=(NumaNode(id=numa.id, mem_total_bytes=numa.mem_total_bytes, pools=pools),),
        kernel_used_bytes=host.kernel_used_bytes,
        kernel_used_source=host.kernel_used_source,
    )


def _with_pods(
    node: FoundNode,
    pods: Mapping[PodKey, Pod],
    history: Mapping[PodKey, MemoryHistory],
    settings: Mapping[tuple[PodKey, str], Mapping[str, str]],
    notes: list[str],
) -> FoundNode | str:
    databases: list[FoundDatabase] = []
    names: set[str] = set()
    tenants: list[Tenant] = []
    users: list[HugePageUser] = []
    requested = without = 0
    odd: dict[str, None] = {}
    failed: list[str] = []
    for (namespace, name), pod in sorted(pods.items()):
        huge: Counter[int] = Counter()
        for limits in pod.huge.values():
            huge.update(limits)
        found: list[FoundDatabase] = []
        with alone(f"pod {namespace}/{name} counts as a workload", failed):
            found = [] if pod.doubtful else _databases(node.facts.name, (namespace, name), pod, settings, names)
        if sum(pod.requests.values()) + huge.total() > node.facts.mem_total_bytes * (2 if found else 1):
            if pod.doubtful:  # without it the pod that is there would take no memory
                return f"the series say different sizes of pod {namespace}/{name}, one larger than the node"
            odd[f"{namespace}/{name}"] = None
            continue
        databases += found
        if huge:
            users.append(
                HugePageUser(
                    subject=f"{namespace}/{name}", owner_kind=None, limit_bytes=huge, hugetlbfs_mounts=tuple(huge),
                    is_database=bool(found),
                )
            )  # fmt: skip
        requested += sum(pod.requests.values())
        without += not pod.requests.keys() >= pod.images.keys()
    notes += failed
    node = replace(node, databases=tuple(databases), huge_page_users=tuple(users))
    node, _ = within_most(node)
    planned: dict[PodKey, list[FoundDatabase]] = {}
    for one in node.databases:
        planned.setdefault((one.namespace, one.workload), []).append(one)
    for key, pod in sorted(pods.items()):
        if "/".join(key) not in odd:
            tenants += _tenants(node, "/".join(key), pod, planned.get(key, []), history.get(key))
    unknown = list(node.unknown)
    if odd:
        unknown.append(f"pods {named(odd)}: they ask for more memory than the node has, so they are left out")
    measured = sum(tenant.history is not None for tenant in tenants)
    if tenants and measured < len(tenants):
        unknown.append(f"memory in use of {len(tenants) - measured:,} pods: no working set is recorded")
    return replace(
        node,
        tenants=tuple(tenants),
        pods=len(pods),
        pods_without_memory_request=without,
        requested_bytes=requested,
        unknown=tuple(unknown),
    )


def _databases(
    node: str,
    key: PodKey,
    pod: Pod,
    settings: Mapping[tuple[PodKey, str], Mapping[str, str]],
    names: set[str],
) -> list[FoundDatabase]:
    namespace, name = key
    view = PodView(
        namespace=namespace,
        name=name,
        labels={},
        containers=tuple(
            ContainerView(name=container, image=image, memory_limit_bytes=pod.limits.get(container))
            for container, image in sorted(pod.images.items())[:MAX_CONTAINERS]
        ),
    )
    found = []
    for seen in recognise(view, Objects()):
        exported = settings.get((key, seen.engine), {})
        recognised = _with_settings(seen, exported)
        limits = pod.huge.get(seen.container, {})
        own = free_name(names, name, f"{namespace}.{name}", f"{namespace}.{name}.{seen.container}")
        instance, refused = database_instance(own, recognised, limits, pod.limits.get(seen.container))
        found.append(
            FoundDatabase(
                instance=instance,
                recognised=replace(recognised, unknown=(*recognised.unknown, *refused)),
                namespace=namespace,
                workload=name,
                node=node,
                memory_request_bytes=pod.requests.get(seen.container),
                memory_limit_bytes=pod.limits.get(seen.container),
                huge_pages_limit_bytes=limits,
            )
        )
    return found


def _with_settings(recognised: Recognised, exported: Mapping[str, str]) -> Recognised:
    if not exported:
        return recognised
    unknown = tuple(text for text in recognised.unknown if text.partition(":")[0] not in exported)
    return replace(recognised, settings=exported, sources=dict.fromkeys(exported, "database exporter"), unknown=unknown)


def _tenants(
    node: FoundNode, name: str, pod: Pod, databases: list[FoundDatabase], history: MemoryHistory | None
) -> list[Tenant]:
    """The pod with its history. A database's own container is counted by its engine's rule, so its pod has none.

    Where a database's size was not read, what the pod is seen to use stands in for it: the history is the whole pod's.
    """
    unread = [found for found in databases if found.instance.unread_settings]
    if unread and history is not None:
        use = _tenant(name, pod, list(pod.images), history)
        return list(filter(None, [tenant_of_unread(name, unread[0].instance, use, DemandContext.of_node(node.facts))]))
    excluded = {found.recognised.container for found in databases}
    others = [container for container in pod.images if container not in excluded]
    found = [_tenant(name + (" (beside the database)" if excluded else ""), pod, others, None if excluded else history)]
    asked = [
        tenant_of_unread(
            name,
            database.instance,
            _tenant(name, pod, [database.recognised.container], None),
            DemandContext.of_node(node.facts),
        )
        for database in unread
    ]
    return [*(found if others else ()), *filter(None, asked)]


def _tenant(name: str, pod: Pod, containers: list[str], history: MemoryHistory | None) -> Tenant:
    requests = [pod.requests.get(container) for container in containers]
    limits = [pod.limits.get(container) for container in containers]
    request = None if None in requests else sum(one for one in requests if one is not None)
    limit = None if None in limits else sum(one for one in limits if one is not None)
    if request is None and limit is not None:
        request = limit
    if limit is not None and request is not None:
        limit = max(limit, request)
    return Tenant(name=name, request_bytes=request, limit_bytes=limit, history=history)
