"""From series to an inventory. Kubernetes nodes come from kube-state-metrics, other hosts from node_exporter alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from hugeplan.inventory.instances import database_instance, free_name, tenant_of_unread, within_most
from hugeplan.inventory.kubernetes.nodes import facts_of_resources, pools_of
from hugeplan.inventory.kubernetes.pods import MAX_CONTAINERS
from hugeplan.inventory.model import FoundDatabase, FoundNode, HugePageUser, Inventory, InventoryError, alone
from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.client import PrometheusClient, Series
from hugeplan.inventory.prometheus.clusters import OwnSeries, Tables, clusters_of, mixed_nodes
from hugeplan.inventory.prometheus.hosts import Host, history_of, host_node, read_hosts
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import MemoryHistory, NodeFacts, NumaNode, Tenant, named
from hugeplan.recognition import ContainerView, Objects, PodView, Recognised, recognise

HISTORY_DAYS: Final = 7.0
STEP_SECONDS: Final = 3600.0
_POD_UNKNOWN: Final = (
    "command lines, variables and ConfigMaps of pods: kube-state-metrics has images alone, so engine settings are known"
    " only where a database exporter reports them, or who makes PodMonitors says that it does",
    "labels of operators: kube-state-metrics does not report them unless it is told to",
)
_ALWAYS_UNKNOWN: Final = ("translation hardware: not in metrics, so gains are ranges over all known processors",)

PodKey = tuple[str, str]


@dataclass(slots=True)
class _Pod:
    """What metrics say of a pod's containers; ``doubtful`` where they say two things."""

    nodes: set[str] = field(default_factory=set)
    doubtful: bool = False
    images: dict[str, str] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    huge: dict[str, dict[int, int]] = field(default_factory=dict)

    def keep(self, held: dict[Any, Any], of: Any, said: Any) -> None:
        """Of two sizes the larger counts: whoever says the other takes nothing from the pod."""
        self.doubtful |= held.get(of, said) != said
        held[of] = max(held.get(of, said), said)


def read_prometheus(
    url: str, *, token: str | None = None, days: float = HISTORY_DAYS, step_seconds: float = STEP_SECONDS
) -> Inventory:
    """The inventory that a Prometheus server holds. InventoryError where it cannot be asked or knows no node."""
    with PrometheusClient(url, token) as client:
        end = client.now()
        span = _Span(end - days * 86_400, end, step_seconds)
        notes: list[str] = []
        nodes: list[FoundNode] = []
        known: set[str] = set()
        for cluster, tables in clusters_of(OwnSeries(client)):
            twice = mixed_nodes(tables, notes)
            found = [node for node in _nodes_of(tables, span, known, notes) if node.facts.name not in twice]
            known |= {node.facts.name for node in found} | twice | _addresses(tables)
            nodes += [_in_cluster(node, cluster) for node in found] if cluster else found
        if not nodes:
            why = (
                "neither kube_node_status_capacity (kube-state-metrics) nor node_memory_MemTotal_bytes (node_exporter)"
                " has a series"
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
    """The time that histories are asked for, in seconds since the epoch."""

    start: float
    end: float
    step_seconds: float

    def of(self, tables: Tables, expression: str) -> list[Series]:
        """The series of an expression over this time."""
        return tables.query_range(expression, self.start, self.end, self.step_seconds)


def _nodes_of(tables: Tables, span: _Span, known: Collection[str], notes: list[str]) -> list[FoundNode]:
    """The nodes of one cluster, and hosts beside it. ``known``: names and addresses of nodes that were found before."""
    hosts = read_hosts(tables, notes)
    capacity = _by_node(tables.query(queries.CAPACITY))
    nodes: list[FoundNode] = []
    if capacity:
        nodes += _kubernetes_nodes(tables, capacity, hosts, histories(span.of(tables, queries.POD_USE), notes), notes)
    seen = {*known, *_addresses(tables), *(node.facts.name for node in nodes)}
    alone = [host for host in hosts if host.name not in seen and host.address not in seen]
    if alone:
        found = sorted(span.of(tables, queries.HOST_USE), key=attrgetter("value"))
        use = {(one.labels.get("instance"), one.labels.get("job", "")): one for one in found}
        nodes += [host_node(host, use.get((host.instance, host.job))) for host in alone]
    return nodes


def _addresses(tables: Tables) -> set[str]:
    """By address an exporter's host is a node that kube-state-metrics knows under another name."""
    return {one.labels["internal_ip"] for one in tables.query(queries.NODE_INFO) if one.labels.get("internal_ip")}


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
            found.setdefault(node, {})[_resource(resource)] = int(one.value)
    return found


def _resource(name: str) -> str:
    """kube-state-metrics writes ``hugepages_2Mi`` for ``hugepages-2Mi``."""
    return name.replace("hugepages_", "hugepages-", 1)


def histories(series: Iterable[Series], notes: list[str]) -> dict[PodKey, MemoryHistory]:
    """By pod. Of several jobs the largest use counts; where they differ by a quarter, the largest of all moments does.

    A stranger's many moments of little use would make the few moments of the pod's own job improbable.
    """
    told: dict[PodKey, list[Series]] = {}
    for one in series:
        told.setdefault(_key(one), []).append(one)
    found, differing = {}, []
    for key, jobs in told.items():
        uses = [dict(one.points) for one in jobs] if len(jobs) > 1 else []
        used = {at: max(use.get(at, 0) for use in uses) for at in sorted(set().union(*uses))}
        if any(use.get(at, 0) < most * 0.75 for use in uses for at, most in used.items()):
            differing.append("/".join(key))
            used = dict.fromkeys(used, max(used.values()))
        found[key] = history_of(Series({}, tuple(used.items())) if uses else jobs[0])
    if differing:
        notes.append(f"memory in use of pods {named(sorted(differing))}: jobs of Prometheus differ, the largest counts")
    return found


def _kubernetes_nodes(
    tables: Tables,
    capacity: Mapping[str, Mapping[str, int]],
    hosts: Sequence[Host],
    history: Mapping[PodKey, MemoryHistory],
    notes: list[str],
) -> list[FoundNode]:
    allocatable = _by_node(tables.query(queries.ALLOCATABLE))
    infos = {one.labels.get("node", ""): one.labels for one in tables.query(queries.NODE_INFO)}
    pods = _pods(tables)
    doubtful = sorted("/".join(key) for key, pod in pods.items() if pod.doubtful)
    if doubtful:
        notes.append(f"pods {named(doubtful)} count with their larger sizes: the series say different things of them")
    settings = _exported_settings(tables)
    refused = sorted(f"{'/'.join(key)} ({of})" for (key, of), said in settings.items() if key in pods and not said)
    if refused:
        notes.append(f"settings of {named(refused)} are not used: two differ, or no target (up) there says them")
    by_address: dict[str, Host | None] = {}
    for other in hosts:
        first = by_address.setdefault(other.address, other)
        if first and first.rank == other.rank and len({(o.machine, o.values["MemTotal"]) for o in (first, other)}) > 1:
            by_address[other.address] = None
    by_name = {host.name: host for host in hosts if host.rank == hosts[0].rank}
    by_node: dict[str, dict[PodKey, _Pod]] = {}
    for key, pod in pods.items():
        for name in pod.nodes:
            by_node.setdefault(name, {})[key] = pod
    found: list[FoundNode] = []
    for name, held in sorted(capacity.items()):
        info = infos.get(name, {})
        own = by_node.get(name, {})
        host = by_address.get(info.get("internal_ip", ""), by_name.get(name))
        node = _kubernetes_node(name, held, allocatable.get(name, {}), info, host)
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
        unknown.append("kernel memory and free pages: no node_exporter of this node was found, or two that differ")
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


def _pods(tables: Tables) -> dict[PodKey, _Pod]:
    """Pods that hold memory, with what their containers ask for."""
    phases: dict[PodKey, set[bool]] = {}
    for one in tables.query(queries.PHASES):
        phases.setdefault(_key(one), set()).add(one.labels.get("phase") in {"Succeeded", "Failed"})
    pods: dict[PodKey, _Pod] = {}
    for one in tables.query(queries.PODS):
        ended = phases.get(_key(one), set())
        if one.labels.get("node") and ended != {True}:
            there = pods.setdefault(_key(one), _Pod())
            there.nodes.add(one.labels["node"])
            there.doubtful = len(there.nodes) > 1 or len(ended) > 1
    for one in tables.query(queries.CONTAINERS):
        pod = pods.get(_key(one))
        if pod is not None:
            image = one.labels.get("image_spec") or one.labels.get("image", "")
            pod.keep(pod.images, one.labels.get("container", ""), image)
    for expression, field_name in ((queries.REQUESTS, "requests"), (queries.LIMITS, "limits")):
        for one in tables.query(expression):
            pod = pods.get(_key(one))
            if pod is None or one.value < 0:
                continue
            container, resource = one.labels.get("container", ""), _resource(one.labels.get("resource", ""))
            if resource == "memory":
                pod.keep(getattr(pod, field_name), container, int(one.value))
            for size in pools_of({resource: int(one.value)}):
                pod.keep(pod.huge.setdefault(container, {}), size, int(one.value))
    return pods


def _key(one: Series) -> PodKey:
    return one.labels.get("namespace", ""), one.labels.get("pod", "")


def _exported_settings(tables: Tables) -> dict[tuple[PodKey, str], dict[str, str]]:
    """Settings that a database's exporter reports, by pod and engine; none where others alone report them.

    A scraped program may say any label that its target has not, and others below ``exported_*`` or by ``honorLabels``.
    Prometheus itself writes ``up``, with the target's own labels: a program is believed of its target's namespace. A
    setting with two values is not known.
    """
    names = "|".join(metric for metric, *_ in queries.SETTINGS)
    rows = {metric: (engine, setting, suffix) for metric, engine, setting, suffix in queries.SETTINGS}
    targets: dict[tuple[str | None, ...], set[str]] = {}
    for one in tables.query("up"):
        at = one.labels.get("job"), one.labels.get("instance")
        targets.setdefault(at, set()).add(one.labels.get("namespace", ""))
    found: dict[tuple[PodKey, str], dict[str, str]] = {}
    doubtful = set()
    for one in tables.query(f'{{__name__=~"{names}"}}'):
        if one.labels.get("__name__") not in rows:
            continue
        engine, setting, suffix = rows[one.labels["__name__"]]
        namespace = one.labels.get("namespace", "")
        key = ((namespace, one.labels.get("exported_pod") or one.labels.get("pod", "")), engine)
        value, known = f"{one.value:.0f}{suffix}", found.setdefault(key, {})
        at = one.labels.get("job"), one.labels.get("instance")
        if targets.get(at) != {namespace} or one.labels.get("exported_namespace", namespace) != namespace:
            continue
        if known.setdefault(setting, value) != value:
            doubtful.add((key, setting))
    for key, setting in doubtful:
        del found[key][setting]
    return found


def _with_pods(
    node: FoundNode,
    pods: Mapping[PodKey, _Pod],
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
    pod: _Pod,
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
    node: FoundNode, name: str, pod: _Pod, databases: list[FoundDatabase], history: MemoryHistory | None
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


def _tenant(name: str, pod: _Pod, containers: list[str], history: MemoryHistory | None) -> Tenant:
    requests = [pod.requests.get(container) for container in containers]
    limits = [pod.limits.get(container) for container in containers]
    request = None if None in requests else sum(one for one in requests if one is not None)
    limit = None if None in limits else sum(one for one in limits if one is not None)
    if request is None and limit is not None:
        request = limit
    if limit is not None and request is not None:
        limit = max(limit, request)
    return Tenant(name=name, request_bytes=request, limit_bytes=limit, history=history)
