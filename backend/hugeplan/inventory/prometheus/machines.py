"""Which hosts of node_exporter are the machines of Kubernetes nodes.

Any program that is scraped may tell of nodes, so the job that tells of the most is taken for kube-state-metrics. A host
goes into a node of that job alone, and only where both say the same size: the kubelet's capacity is MemTotal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.believed import EXPORTER, Teller, ranks, sizes_told, teller_of
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.clusters import LABEL, Tables
from hugeplan.inventory.prometheus.hosts import Host
from hugeplan.planner.host_names import HostNames
from hugeplan.planner.model import named
from hugeplan.planner.units import format_bytes


@dataclass(slots=True, eq=False)
class _Told:
    """A node whose memory is told of; ``leads``: by the job that tells of the most nodes."""

    name: str
    leads: bool = False
    sizes: set[int] = field(default_factory=set)
    #: Jobs and instances that tell of it.
    tellers: set[Teller] = field(default_factory=set)


@dataclass(slots=True)
class _Nodes:
    """The nodes that are told of, by own name, by names of its host and by address."""

    names: dict[str, _Told] = field(default_factory=dict)
    of_host: HostNames[_Told] = field(default_factory=HostNames)
    addresses: dict[str, _Told] = field(default_factory=dict)
    #: Names of those that lead and have one size, by it and by name or address.
    sized: dict[tuple[str, int], str] = field(default_factory=dict)
    #: Jobs and instances that tell of the most.
    tellers: set[Teller] = field(default_factory=set)


@dataclass(slots=True)
class Machines:
    """``of``: the host of a node, None where two differ; ``out``: nodes that are none; ``beside``: the other hosts."""

    of: dict[str, Host | None] = field(default_factory=dict)
    out: set[str] = field(default_factory=set)
    beside: list[Host] = field(default_factory=list)


def _told(tables: Tables, *, apart: bool = False) -> _Nodes:
    """Nodes with a memory capacity; ``apart``: those that name a cluster, each under its cluster's name."""

    def key(one: Series) -> tuple[str, str]:
        return one.labels.get(LABEL, "") if apart else "", one.labels.get("node", "")

    rank = ranks(tables)
    most = max(rank.values(), default=None)
    leading = {job for job in rank if rank[job] == most}
    nodes, told = _Nodes(), dict[tuple[str, str], _Told]()
    for one in sizes_told(tables):
        cluster, name = key(one)
        if apart and not cluster:
            continue
        if (cluster, name) not in told:
            told[cluster, name] = _Told(f"{cluster}/{name}" if cluster else name)
            nodes.names[name] = told[cluster, name]
            nodes.of_host.add(name, told[cluster, name])
        teller = teller_of(one)
        told[cluster, name].tellers.add(teller)
        told[cluster, name].leads |= teller[0] in leading
        told[cluster, name].sizes.add(int(one.value))
    many = Counter(teller for node in told.values() for teller in node.tellers)
    top = max(many.values(), default=0)
    nodes.tellers = {teller for teller, count in many.items() if count == top}
    at: dict[str, set[_Told]] = {}
    for one in tables.query(queries.NODE_INFO):
        node = told.get(key(one))
        if node is not None and node.leads == (one.labels.get("job", "") in leading):
            at.setdefault(one.labels.get("internal_ip", ""), set()).add(node)
    for address, all_there in at.items():
        there = {node for node in all_there if node.leads} or all_there
        if len(there) == 1:  # an address of two nodes tells of none
            (nodes.addresses[address],) = there
    called = [(name, node) for (_, name), node in told.items()] + [(by, node) for by in at for node in at[by]]
    nodes.sized = {
        (by, size): node.name for by, node in called if node.leads and len(node.sizes) == 1 for size in node.sizes
    }
    return nodes


def _grouped(hosts: Sequence[Host], nodes: _Nodes, beside: list[Host], notes: list[str]) -> dict[_Told, list[Host]]:
    """The hosts of each node, by address and else by name. A host that is another than its namesake loses the name."""
    of: dict[_Told, list[Host]] = {}
    unknown, renamed = [], []
    for host in hosts:
        at = nodes.addresses.get(host.address) if host.address else None
        if at is not None:
            of.setdefault(at, []).append(host)
        else:
            unknown.append(host)
    by_address = set(of)
    for host in unknown:
        there = [node for node in nodes.of_host.of(host.name) if node.leads]
        node = there[0] if len(there) == 1 else next((one for one in there if one.name == host.name), None)
        if node is not None and not (node in by_address or host.rank != hosts[0].rank):
            of.setdefault(node, []).append(host)
            continue
        if there:
            host.name = host.instance
            renamed.append(host.name)
        beside.append(host)
    if renamed:
        notes.append(f"hosts {named(sorted(renamed))} go by addresses: Kubernetes nodes have their names")
    return of


def machines_of(
    hosts: Sequence[Host], tables: Tables, twice: Collection[str], notes: list[str], *, is_rest: bool = False
) -> Machines:
    """The hosts of one cluster's nodes. ``twice``: nodes that are left out already, and their hosts with them.
    ``is_rest``: these name no cluster, and others do.

    A host stays beside a node that a lesser job tells of, and the node is left out, as it is where its name is that of
    a host or of another job's node. A note names each that is left out,
    and each host that goes into a node of another name.
    """
    nodes, found = _told(tables), Machines()
    differing, merged, called = [], [], HostNames[str]()
    for name in [host.name for host in hosts] + [node.name for node in nodes.names.values() if node.leads]:
        called.add(name, name)
    lesser = {node.name for node in nodes.names.values() if not node.leads and called.of(node.name)}
    for node, held in _grouped(hosts, nodes, found.beside, notes).items():
        if not node.leads:
            lesser.add(node.name)
            found.beside += held
            continue
        first = [host for host in held if host.rank == held[0].rank]
        size = held[0].values["MemTotal"]
        found.of[node.name] = held[0] if len({(one.machine, one.values["MemTotal"]) for one in first}) == 1 else None
        if found.of[node.name] is not None and node.name not in twice and size not in node.sizes:
            (told,) = node.sizes
            at = f"{held[0].name} at {held[0].instance} {format_bytes(size)}"
            differing.append((node.name, f"{node.name} ({format_bytes(told)}, {at})"))
        else:
            merged += [f"{host.name} ({node.name})" for host in held if host.name != node.name]
    found.out = {*lesser, *(name for name, _ in differing)}
    if lesser:
        why = "another job of kube_node_status_capacity is taken for kube-state-metrics"
        notes.append(f"nodes {named(sorted(lesser))} are left out, their hosts stay: {why}")
    if differing:
        why = "node_exporter says another size than kube_node_status_capacity"
        notes.append(f"nodes {named(text for _, text in sorted(differing))} are left out: {why}")
    doubtful: dict[str, set[str]] = {}
    for name in found.of.keys() - found.out - set(twice):
        tellers = nodes.names[name].tellers
        if is_rest or not nodes.tellers <= tellers or not any(EXPORTER in job or not job for job, _ in tellers):
            doubtful[name] = {job for job, _ in tellers}
    if doubtful:
        jobs = named(sorted(set().union(*doubtful.values())))
        why = f"as programs of job {jobs} say alone: are those your {EXPORTER}?"
        notes.append(f"nodes {named(sorted(doubtful))} are {why}")
    _note_merged(merged, notes)
    return found


def not_in_clusters(hosts: Sequence[Host], server: Tables, notes: list[str]) -> list[Host]:
    """Hosts that name no cluster, without the machines of clusters' nodes. ``server``: the series of all clusters."""
    nodes, left, merged = _told(server, apart=True), [], []
    for host in hosts:
        size = host.values["MemTotal"]
        same = nodes.sized.get((host.address, size)) or nodes.sized.get((host.name, size))
        if same:
            merged.append(f"{host.name} ({same})")
        else:
            left.append(host)
    _note_merged(merged, notes)
    return left


def of_clusters(names: Iterable[str], server: Tables, notes: list[str]) -> set[str]:
    """Nodes that name no cluster under a name that a node or a host of one has, whatever became of that one."""
    tables = [(queries.CAPACITY, "node"), *((table, "nodename") for table in (queries.UNAME, queries.MEMINFO))]
    told = {
        one.labels.get(by, "").lower() for table, by in tables for one in server.query(table) if one.labels.get(LABEL)
    }
    called = HostNames[str]()
    for name in told - {""}:
        called.add(name, name)
    found = {name for name in names if called.of(name)}
    if found:
        notes.append(f"nodes {named(sorted(found))} are left out: two are told of under one host's name")
    return found


def _note_merged(merged: list[str], notes: list[str]) -> None:
    if merged:
        why = "by address or name, and their size"
        notes.append(f"hosts {named(sorted(merged))} are the machines of these Kubernetes nodes: {why}")
