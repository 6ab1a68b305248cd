"""Which hosts of node_exporter are the machines of Kubernetes nodes.

Any program that is scraped may tell of nodes, so the job that tells of the most is taken for kube-state-metrics. A host
goes into a node of that job alone, and only where both say the same size: the kubelet's capacity is MemTotal. Any may
tell of hosts, too, and no job's name makes it believed: of a node whose exporters differ nothing is planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.believed import EXPORTER, Teller, ranks, sizes_told, teller_of
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.clusters import LABEL, Tables
from hugeplan.inventory.prometheus.hosts import Host, one_of
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
    """The nodes that are told of, by own name and by address."""

    names: dict[str, _Told] = field(default_factory=dict)
    at: dict[str, set[_Told]] = field(default_factory=dict)
    #: Names of those that lead and have one size, by it and by name or address.
    sized: dict[tuple[str, int], str] = field(default_factory=dict)
    #: Jobs and instances that tell of the most.
    tellers: set[Teller] = field(default_factory=set)


@dataclass(slots=True)
class Machines:
    """``of``: the host of a node; ``out``: nodes that are left out; ``beside``: the other hosts."""

    of: dict[str, Host] = field(default_factory=dict)
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
        teller = teller_of(one)
        told[cluster, name].tellers.add(teller)
        told[cluster, name].leads |= teller[0] in leading
        told[cluster, name].sizes.add(int(one.value))
    many = Counter(teller for node in told.values() for teller in node.tellers)
    top = max(many.values(), default=0)
    nodes.tellers = {teller for teller, count in many.items() if count == top}
    for one in tables.query(queries.NODE_INFO):
        node, address = told.get(key(one)), one.labels.get("internal_ip", "")
        if not address or node is None or teller_of(one) not in node.tellers:
            continue
        if node.leads == (one.labels.get("job", "") in leading):
            nodes.at.setdefault(address, set()).add(node)
    called = [(name, node) for (_, name), node in told.items()]
    called += [(by, node) for by in nodes.at for node in nodes.at[by]]
    nodes.sized = {
        (by, size): node.name for by, node in called if node.leads and len(node.sizes) == 1 for size in node.sizes
    }
    return nodes


class _Called:
    """Things by names of hosts; many under one name, or under one first part of names, cost what they are many."""

    def __init__(self) -> None:
        self.things: dict[str, list[object]] = {}
        self._names = HostNames[str]()
        self._known: dict[str, list[str]] = {}

    def add(self, names: Iterable[str], thing: object) -> None:
        """Keep a thing under each of its names."""
        for name in {name.lower() for name in names}:
            if name not in self.things:
                self._names.add(name, name)
            self.things.setdefault(name, []).append(thing)

    def of(self, name: str) -> list[str]:
        """The names under which there are things that may be called so."""
        if name.lower() not in self._known:
            self._known[name.lower()] = self._names.of(name)
        return self._known[name.lower()]

    def is_shared(self, name: str, thing: object) -> bool:
        """Whether another thing may be called so."""
        return any(self.things[one] != [thing] for one in self.of(name))


@dataclass(slots=True)
class _Claims:
    """Whose machines hosts are said to be.

    ``own``: by a node's address, or by an instance that is named as it is. ``named``: by what a host says that it is
    called. ``unclear``: nodes that share what a host is known by. ``several``: hosts that say such a name.
    """

    own: dict[_Told, list[Host]] = field(default_factory=dict)
    named: dict[_Told, list[Host]] = field(default_factory=dict)
    unclear: set[_Told] = field(default_factory=set)
    several: list[Host] = field(default_factory=list)
    others: list[Host] = field(default_factory=list)


def _claims(hosts: Sequence[Host], nodes: _Nodes) -> _Claims:
    found, called = _Claims(), dict[str, list[_Told]]()
    names = _Called()
    at = {address: [node for node in there if node.leads] for address, there in nodes.at.items()}
    for node in nodes.names.values():
        if node.leads:
            names.add([node.name], node)
            called.setdefault(node.name.lower(), []).append(node)

    def of_name(name: str) -> _Told | None:
        exact, may_be = nodes.names.get(name), names.of(name)
        if exact is not None and exact.leads:
            return exact
        return called[may_be[0]][0] if len(may_be) == 1 and len(called[may_be[0]]) == 1 else None

    addresses, shared = set[str](), set[str]()
    for host in hosts:
        there = at.get(host.address, [])
        own = there[0] if len(there) == 1 else None if there else of_name(host.address)
        if own is not None:
            found.own.setdefault(own, []).append(host)
            continue
        addresses |= {host.address} if there else set()
        told = {name: of_name(name) for name in host.names if names.of(name)}
        shared |= {name.lower() for name, node in told.items() if node is None}
        for claimed in {node for node in told.values() if node is not None}:
            found.named.setdefault(claimed, []).append(host)
        if not any(told.values()):
            (found.several if told else found.others).append(host)
    keys = {one for name in shared for one in names.of(name)}
    found.unclear = {node for one in keys for node in called[one] if node not in found.own}
    found.unclear |= {node for address in addresses for node in at[address]}
    return found


def _machines(claims: _Claims, found: Machines, twice: Collection[str], notes: list[str]) -> dict[_Told, Host]:
    """The machine of each node that leads.

    A node is left out where those at its address differ, and where two elsewhere say its name and none is there: it is
    not planned as if it had no exporter. A host that is another than its namesake loses the name.
    """
    machines: dict[_Told, Host] = {}
    doubtful: dict[_Told, list[Host]] = {node: [] for node in claims.unclear}
    renamed = claims.several
    for node in {**claims.own, **claims.named}:
        own, others = claims.own.get(node, []), claims.named.get(node, [])
        machine = one_of(own) if own else others[0]
        has_size = bool(machine.values.get("MemTotal"))
        alone = has_size or not others if own else len(others) == 1
        if machine.doubtful or not alone or node in claims.unclear:
            doubtful[node] = [*own, *others]
            continue
        renamed += others if own else []
        if has_size:
            machines[node] = machine
    found.beside += dict.fromkeys([*claims.others, *renamed])
    for host in renamed:
        host.by_address = True
    found.out |= {node.name for node in doubtful}
    told = {node.name: sorted({at for host in held for at in host.instances}) for node, held in doubtful.items()}
    if texts := [f"{name} ({named(at)})" if at else name for name, at in sorted(told.items()) if name not in twice]:
        notes.append(f"nodes {named(texts)} are left out: the series say different things of their machines")
    if shown := sorted({host.instance for host in renamed if host.values.get("MemTotal") and not host.doubtful}):
        notes.append(f"hosts {named(shown)} go by addresses: Kubernetes nodes have their names")
    return machines


def _outside(beside: Sequence[Host], called: _Called, notes: list[str]) -> list[Host]:
    """Hosts outside Kubernetes of which one thing is said. A name that two say is nobody's."""
    left, out, alike = [], [], []
    for host in beside:
        is_alike = not host.by_address and called.is_shared(host.name, host)
        host.by_address |= is_alike
        if host.doubtful or (host.by_address and called.is_shared(host.instance, host)):
            out.append(host.instance)
        elif host.values.get("MemTotal"):
            left.append(host)
            alike += [host.instance] * is_alike
    if out:
        notes.append(f"hosts {named(sorted(out))} are left out: the series say different things of them")
    if alike:
        notes.append(f"hosts {named(sorted(alike))} go by addresses: others say the same names")
    return left


def machines_of(
    hosts: Sequence[Host], tables: Tables, twice: Collection[str], notes: list[str], *, is_rest: bool = False
) -> Machines:
    """The hosts of one cluster's nodes. ``twice``: nodes that are left out already, and their hosts with them.
    ``is_rest``: these name no cluster, and others do.

    A host stays beside a node that a lesser job tells of, and the node is left out, as it is where its name is that of
    a host or of another job's node. A note names each that is left out,
    and each host that goes into a node of another name.
    """
    nodes, found, called, at = _told(tables), Machines(), _Called(), {host.address for host in hosts}
    for host in hosts:
        called.add([*(host.names or [host.instance]), host.address], host)
    for node in nodes.names.values():
        if node.leads:
            called.add([node.name], node)
    there = {node for node in nodes.names.values() if called.of(node.name)}
    lesser = {node.name for node in there.union(*(nodes.at.get(host, ()) for host in at)) if not node.leads}
    differing, merged = [], []
    for node, host in _machines(_claims(hosts, nodes), found, twice, notes).items():
        size = host.values["MemTotal"]
        found.of[node.name] = host
        if node.name not in twice and size not in node.sizes:
            (told,) = node.sizes
            other = f"{host.name} at {host.instance} {format_bytes(size)}"
            differing.append((node.name, f"{node.name} ({format_bytes(told)}, {other})"))
        elif host.name != node.name:
            merged.append(f"{host.name} ({node.name})")
    found.beside = _outside(found.beside, called, notes)
    found.out |= {*lesser, *(name for name, _ in differing)}
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
