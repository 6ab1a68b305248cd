"""Hosts as node_exporter describes them: memory, the pool of the default size, and all in use as one workload."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hugeplan.inventory.model import FoundNode
from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.clusters import Tables
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.host_names import HostNames
from hugeplan.planner.model import (
    EVERYTHING_IN_USE,
    KIB,
    GlobalPool,
    MemoryHistory,
    NodeFacts,
    NodeSample,
    NumaNode,
    Pool,
    Reservations,
    Source,
    Tenant,
    named,
)
from hugeplan.planner.pages import base_page_sizes, canonical_architecture, huge_page_sizes, kernel_page_sizes

_NUMA_ID = re.compile(r"[0-9]{1,4}", re.ASCII)
#: Entries of meminfo that exporters of one host agree about, and those of which the smaller leaves less memory.
_LASTING = frozenset({"MemTotal", "Hugepagesize"})
_SMALLER = frozenset({"MemAvailable", "HugePages_Free"})
_UNKNOWN = (
    "pools of other than the default size: node_exporter shows the default size alone, so a 1G pool is not seen",
    "databases on this host: node_exporter does not name them, their memory is part of what is in use",
)


@dataclass(slots=True)
class Host:
    """One exporter's host. ``values`` are meminfo's entries; counts of pages for ``HugePages_``."""

    instance: str
    name: str
    job: str = ""
    machine: str | None = None
    release: str | None = None
    cpus: int | None = None
    values: dict[str, int] = field(default_factory=dict)
    numa: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[bool, bool]:
        """How well its job says that it is a node exporter, the best first: not by namespace and name, as of pods."""
        return "node" not in self.job, "/" in self.job

    @property
    def address(self) -> str:
        """The host part of ``instance``."""
        return self.instance.rpartition(":")[0].strip("[]") or self.instance

    @property
    def pool(self) -> Pool | None:
        """The pool of the default size; None where it is not reported."""
        size, pages = self.values.get("Hugepagesize"), self.values.get("HugePages_Total")
        if not size or pages is None:
            return None
        return Pool(
            page_bytes=size,
            nr_hugepages=pages,
            free_hugepages=self.values.get("HugePages_Free"),
            resv_hugepages=self.values.get("HugePages_Rsvd"),
            surplus_hugepages=self.values.get("HugePages_Surp"),
        )

    @property
    def kernel_used_bytes(self) -> int | None:
        """Unreclaimable slab and kernel stacks; None where either is missing."""
        slab, stacks = self.values.get("SUnreclaim"), self.values.get("KernelStack")
        return None if slab is None or stacks is None else slab + stacks

    @property
    def kernel_used_source(self) -> Source:
        """Where :attr:`kernel_used_bytes` comes from."""
        return Source.GIVEN if self.kernel_used_bytes is None else Source.MEASURED


def read_hosts(tables: Tables, notes: list[str]) -> list[Host]:
    """Every host that node_exporter reports MemTotal of, the best known first.

    One of which two names, machines or sizes are said is left out, with a note.
    """
    found: dict[tuple[str, str], Host] = {}
    said: dict[tuple[Any, ...], set[object]] = {}
    for one in tables.query(queries.UNAME):
        instance, job = key = one.labels.get("instance", ""), one.labels.get("job", "")
        name = one.labels.get("nodename") or instance
        machine, release = one.labels.get("machine"), one.labels.get("release")
        teller = found[key] = Host(instance=instance, name=name, job=job, machine=machine, release=release)
        said.setdefault((instance, teller.rank), set()).add((name, machine, release))
    for one in tables.query(queries.MEMINFO):
        instance, job = key = one.labels.get("instance", ""), one.labels.get("job", "")
        entry = one.labels.get("__name__", "").removeprefix("node_memory_").removesuffix("_bytes")
        name = one.labels.get("node") or one.labels.get("nodename") or instance
        teller = found.setdefault(key, Host(instance=instance, name=name, job=job))
        _keep(teller.values, entry, int(one.value))
        if entry in _LASTING:  # a label that the server adds is no other name than the host's own
            alone = None if (instance, teller.rank) in said else name
            said.setdefault((instance, teller.rank, entry), set()).add((alone, one.value))
    # Of several jobs that ask one address the exporter's own counts, and of several such the one that leaves less.
    ordered = sorted(found.values(), key=lambda host: (host.rank, -(host.kernel_used_bytes or 0), host.job))
    hosts = {host.instance: host for host in reversed(ordered)}
    for one in tables.query(queries.NUMA):
        node, entry = one.labels.get("node", ""), one.labels.get("__name__", "").removeprefix("node_memory_numa_")
        host = hosts.get(one.labels.get("instance", ""))
        if host is not None and one.labels.get("job", host.job) == host.job and _NUMA_ID.fullmatch(node):
            _keep(host.numa.setdefault(int(node), {}), entry, int(one.value))
            if entry in _LASTING:
                said.setdefault((host.instance, host.rank, node), set()).add(one.value)
    for one in tables.query(queries.CPUS):
        host = hosts.get(one.labels.get("instance", ""))
        if host is not None and one.labels.get("job", host.job) == host.job:
            host.cpus = int(one.value)
    twice = {at for (at, rank, *_), things in said.items() if len(things) > 1 and rank == hosts[at].rank}
    hosts = {at: host for at, host in hosts.items() if at not in twice}
    alike = _alike(list(hosts.values()))
    for host in alike:  # a host says its name itself
        host.name = host.instance
    if twice:
        notes.append(f"hosts {named(sorted(twice))} are left out: the series say different things of them")
    if alike:
        notes.append(f"hosts {named(sorted(host.name for host in alike))} go by addresses: others say the same names")
    return [host for host in ordered if hosts.get(host.instance) is host and host.values.get("MemTotal")]


def _alike(hosts: Sequence[Host]) -> list[Host]:
    """Hosts whose name another says that is known as well or better."""
    names, found = HostNames[Host](), list[Host]()
    for rank in sorted({host.rank for host in hosts}):
        these = [host for host in hosts if host.rank == rank]
        for host in these:
            names.add(host.name, host)
        found += [host for host in these if len(names.of(host.name)) > 1]
    return found


def _keep(values: dict[str, int], entry: str, value: int) -> None:
    """Of two figures the one that leaves less memory."""
    values[entry] = (min if entry in _SMALLER else max)(value, values.get(entry, value))


def host_node(host: Host, history: Series | None) -> FoundNode:
    """A host outside Kubernetes: what is in use, with its history, is one workload."""
    unknown = list(_UNKNOWN)
    try:
        arch = canonical_architecture(host.machine or "x86_64")
    except PlannerError:
        arch = "x86_64"
        unknown.append(f"architecture {host.machine}: not known here, x86_64 is assumed")
    if host.machine is None:
        unknown.append("architecture: node_uname_info is missing, x86_64 is assumed")
    base, sizes = _page_sizes(arch, host.pool)
    if len(base_page_sizes(arch)) > 1:
        unknown.append(f"base page size: {base // KIB} KiB is assumed from the default huge page size")
    numa = _numa(host, unknown)
    tenants: tuple[Tenant, ...] = ()
    if history is None:
        unknown.append("memory in use: MemAvailable is not recorded")
    else:
        tenants = (Tenant(name=EVERYTHING_IN_USE, kind="service", history=history_of(history)),)
    pool = host.pool
    return FoundNode(
        facts=NodeFacts(
            name=host.name,
            arch=arch,
            base_page_bytes=base,
            huge_page_sizes_bytes=sizes,
            default_huge_page_bytes=pool.page_bytes if pool is not None and pool.page_bytes in sizes else sizes[0],
            numa=numa,
            cpus=host.cpus,
            kernel_used_bytes=0 if history is not None else host.kernel_used_bytes,
            kernel_used_source=Source.GIVEN if history is not None else host.kernel_used_source,
            kernel_release=host.release,
        ),
        reservations=Reservations(),
        tenants=tenants,
        hugetlb_pool_bytes=None,
        sample=NodeSample(
            mem_available_bytes=host.values.get("MemAvailable"),
            page_tables_bytes=host.values.get("PageTables"),
            anon_huge_pages_bytes=host.values.get("AnonHugePages"),
            pools=None
            if pool is None
            else (
                GlobalPool(
                    page_bytes=pool.page_bytes,
                    nr_hugepages=pool.nr_hugepages,
                    free_hugepages=pool.free_hugepages,
                    resv_hugepages=pool.resv_hugepages,
                    surplus_hugepages=pool.surplus_hugepages,
                ),
            ),
        ),
        unknown=tuple(unknown),
    )


def history_of(series: Series) -> MemoryHistory:
    """A series of bytes as the planner takes it; differences may fall below zero for a moment and count as zero."""
    return MemoryHistory(
        times_seconds=tuple(series.times), used_bytes=tuple(max(0, int(value)) for value in series.values)
    )


def _page_sizes(arch: str, pool: Pool | None) -> tuple[int, tuple[int, ...]]:
    """The base page whose default huge page is the one reported; the smallest base page otherwise."""
    bases = base_page_sizes(arch)
    if pool is not None:
        for base in bases:
            if pool.page_bytes in huge_page_sizes(arch, base):
                return base, kernel_page_sizes(arch, base)
    return bases[0], kernel_page_sizes(arch, bases[0])


def _numa(host: Host, unknown: list[str]) -> tuple[NumaNode, ...]:
    """NUMA nodes where the collector meminfo_numa is on, else the host as one."""
    sized: Mapping[int, dict[str, int]] = {node: held for node, held in host.numa.items() if held.get("MemTotal")}
    if not sized:
        unknown.append("NUMA nodes: node_exporter's collector meminfo_numa is off, so the plan is for the whole host")
        return (NumaNode(id=0, mem_total_bytes=host.values["MemTotal"]),)
    return tuple(NumaNode(id=node, mem_total_bytes=held["MemTotal"]) for node, held in sorted(sized.items()))
