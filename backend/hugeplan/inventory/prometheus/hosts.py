"""Hosts as node_exporter describes them: memory, the pool of the default size, and all in use as one workload."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hugeplan.inventory.model import FoundNode
from hugeplan.inventory.prometheus import queries
from hugeplan.inventory.prometheus.believed import Teller, teller_of
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.clusters import Tables
from hugeplan.planner.errors import PlannerError
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
)
from hugeplan.planner.pages import base_page_sizes, canonical_architecture, huge_page_sizes, kernel_page_sizes

_NUMA_ID = re.compile(r"[0-9]{1,4}", re.ASCII)
#: Entries of meminfo that all who tell of one host agree about, and those of which the smaller leaves less memory.
_LASTING = ("MemTotal", "Hugepagesize", "HugePages_Total")
_SMALLER = frozenset({"MemAvailable", "HugePages_Free"})
_UNKNOWN = (
    "pools of other than the default size: node_exporter shows the default size alone, so a 1G pool is not seen",
    "databases on this host: node_exporter does not name them, their memory is part of what is in use",
)


@dataclass(slots=True, eq=False)
class Host:
    """One exporter's host. ``values`` are meminfo's entries; counts of pages for ``HugePages_``.

    ``doubtful``: two things are said of what a host has one of. ``names``: those that are said; of none it goes by
    ``instance``, as where it goes ``by_address``.
    """

    instance: str
    names: set[str] = field(default_factory=set)
    machine: str | None = None
    release: str | None = None
    cpus: int | None = None
    values: dict[str, int] = field(default_factory=dict)
    numa: dict[int, dict[str, int]] = field(default_factory=dict)
    instances: set[str] = field(default_factory=set)
    doubtful: bool = False
    by_address: bool = False

    def __post_init__(self) -> None:
        self.instances.add(self.instance)

    @property
    def name(self) -> str:
        """What it is called in a plan."""
        return self.instance if self.by_address or not self.names else min(self.names)

    @property
    def lasting(self) -> tuple[object, ...]:
        """What whoever tells of the host has to say of it, too."""
        numa = {node: [held.get(entry) for entry in _LASTING] for node, held in self.numa.items()}
        return self.names, self.machine, self.release, [self.values.get(entry) for entry in _LASTING], numa

    def keep(self, values: dict[str, int], entry: str, value: int) -> None:
        """Of two figures the one that leaves less memory."""
        known = values.setdefault(entry, value)
        self.doubtful |= entry in _LASTING and known != value
        values[entry] = (min if entry in _SMALLER else max)(known, value)

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


def read_hosts(tables: Tables) -> list[Host]:
    """Every host that programs tell of, also those without MemTotal and those of which two things are said.

    Any program that is scraped may tell of a host under any job: none is believed before another. Those at one instance
    tell of one host, and so do those at one address that say the same name.
    """
    found: dict[Teller, Host] = {}
    for one in tables.query(queries.UNAME):
        labels = one.labels
        name, machine, release = labels.get("nodename"), labels.get("machine"), labels.get("release")
        host = found.setdefault(teller_of(one), Host(labels.get("instance", ""), machine=machine, release=release))
        host.names |= {name} if name else set()
        host.doubtful |= len(host.names) > 1 or (machine, release) != (host.machine, host.release)
    known = set(found)
    for one in tables.query(queries.MEMINFO):
        host = found.setdefault(teller_of(one), Host(one.labels.get("instance", "")))
        name = one.labels.get("node") or one.labels.get("nodename")
        if name and teller_of(one) not in known:  # a label that the server adds is no other name than the host's own
            host.names.add(name)
            host.doubtful |= len(host.names) > 1
        entry = one.labels.get("__name__", "").removeprefix("node_memory_").removesuffix("_bytes")
        host.keep(host.values, entry, int(one.value))
    for one in tables.query(queries.NUMA):
        node, entry = one.labels.get("node", ""), one.labels.get("__name__", "").removeprefix("node_memory_numa_")
        teller = found.get(teller_of(one))
        if teller is not None and _NUMA_ID.fullmatch(node):
            teller.keep(teller.numa.setdefault(int(node), {}), entry, int(one.value))
    for one in tables.query(queries.CPUS):
        teller = found.get(teller_of(one))
        if teller is not None:
            teller.cpus = max(int(one.value), teller.cpus or 0)
    hosts = _grouped([found[teller] for teller in sorted(found)], lambda host: host.instance)
    return _grouped(hosts, lambda host: (host.address, *sorted(host.names)) if host.names else host.instance)


def _grouped(hosts: Iterable[Host], by: Callable[[Host], object]) -> list[Host]:
    groups: dict[object, list[Host]] = {}
    for host in hosts:
        groups.setdefault(by(host), []).append(host)
    return [one_of(group) for group in groups.values()]


def one_of(hosts: Sequence[Host]) -> Host:
    """Several that tell of one host: of two figures the one that leaves less memory, none where lasting ones differ."""
    host, *others = hosts
    lasting = host.lasting if others else ()
    host.doubtful |= any(other.doubtful or other.lasting != lasting for other in others)
    for other in others:
        host.names |= other.names
        host.instances |= other.instances
        host.cpus = max(host.cpus or 0, other.cpus or 0) or None
        for entry, value in other.values.items():
            host.keep(host.values, entry, value)
        for node, held in other.numa.items():
            for entry, value in held.items():
                host.keep(host.numa.setdefault(node, {}), entry, value)
    return host


def host_node(host: Host, history: MemoryHistory | None) -> FoundNode:
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
        tenants = (Tenant(name=EVERYTHING_IN_USE, kind="service", history=history),)
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
