"""A report's sample as the planner takes it: memory, units, databases, processes. Parsing only, no rule of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from hugeplan.documents import observed
from hugeplan.documents.report import GlobalPool, Inventory, ProcessMemory, Sample, SampleMemory
from hugeplan.formats.kubelet import eviction_hard_bytes, provider_of, reserved_bytes
from hugeplan.planner import model as planner
from hugeplan.planner.memory.kubernetes import reserved_of_allocatable
from hugeplan.planner.model import MemoryHistory

_UNLIMITED = -1


def owners_of(sample: Sample) -> dict[str, str]:
    """Whose each database is, by its key: something of which nobody makes another one without root.

    The namespace of its pod, the outermost unit that it runs in, one for all that people run in sessions, or the
    subtree of cgroups that was given to somebody.
    """
    units = {unit.key: unit for unit in sample.units or ()}
    found = {}
    for database in sample.databases or ():
        owner, above = database.unit or "no unit", units.get(database.unit or "")
        for _ in units:
            if above is None:
                break
            owner = f"namespace {above.pod.namespace}" if above.pod and above.pod.namespace else above.key
            above = units.get(above.parent or "")
        if owner.startswith(("systemd:session-", "systemd:user@")):
            owner = "people"
        found[database.key] = "/".join(owner.split("/")[:2]) if owner.startswith("cgroup:") else owner
    return found


def node_sample(
    inventory: Inventory,
    sample: Sample,
    processes: Sequence[ProcessMemory],
    history: MemoryHistory | None = None,
    labels: Mapping[str, str] = {},
) -> planner.NodeSample:
    """The newest sample as the planner takes it.

    ``processes`` empty: the agent sent none, so unknown. ``history``: AnonPages + Shmem of earlier samples. ``labels``
    of the node may tell whose Kubernetes it belongs to.
    """
    memory = sample.memory
    kubelet = sample.kubelet
    units = {unit.key: unit for unit in sample.units or ()}
    return planner.NodeSample(
        taken_at_seconds=sample.taken_at.timestamp(),
        mem_available_bytes=memory.mem_available_bytes,
        page_tables_bytes=memory.page_tables_bytes,
        hugetlb_bytes=memory.hugetlb_bytes,
        anon_huge_pages_bytes=memory.anon_huge_pages_bytes,
        pools=tuple(_pool(pool) for pool in sample.global_pools) or None,
        processes=tuple(_process(process) for process in processes) or None,
        numa=_numa(inventory, sample),
        thp_enabled=inventory.thp.enabled if inventory.thp else None,
        kubelet_capacity=None if kubelet is None else kubelet.capacity,
        kubelet=observed_kubelet(kubelet, provider_of(labels), memory.mem_total_bytes),
        memory=meminfo(memory),
        units=None if sample.units is None else tuple(_unit(unit) for unit in sample.units),
        databases=None
        if sample.databases is None
        else tuple(
            replace(
                observed_database(database), memory_limit_bytes=_memory_limit(units.get(database.unit or ""), units)
            )
            for database in sample.databases
        ),
        ordinary_history=history,
    )


def observed_kubelet(
    kubelet: observed.Kubelet | None, provider: str | None, mem_total_bytes: int
) -> planner.ObservedKubelet | None:
    """What the kubelet sets aside, from its configuration and from what it reports. None where no kubelet runs.

    A node of a ``provider`` runs one, whether or not the agent sees it.
    """
    if kubelet is None:
        return None if provider is None else planner.ObservedKubelet(provider=provider)
    config, capacity = kubelet.config, kubelet.capacity or {}
    max_pods = (config or {}).get("maxPods")
    return planner.ObservedKubelet(
        version=kubelet.version,
        kube_reserved_bytes=reserved_bytes(config, "kubeReserved") if config is not None else None,
        system_reserved_bytes=reserved_bytes(config, "systemReserved") if config is not None else None,
        eviction_hard_bytes=eviction_hard_bytes(config, mem_total_bytes) if config is not None else None,
        reserved_bytes=reserved_of_allocatable(capacity, kubelet.allocatable or {}),
        max_pods=max_pods if isinstance(max_pods, int) and max_pods > 0 else capacity.get("pods"),
        source=kubelet.config_source,
        provider=provider,
    )


def meminfo(memory: SampleMemory) -> planner.Meminfo:
    """The lines of meminfo that a plan adds up."""
    return msgspec.convert(memory, planner.Meminfo, from_attributes=True)


def _pool(pool: GlobalPool) -> planner.GlobalPool:
    return msgspec.convert(pool, planner.GlobalPool, from_attributes=True)


def _process(process: ProcessMemory) -> planner.ProcessMemory:
    limit = process.memlock_limit_bytes if process.memlock_limited else None
    shared = process.shared_hugetlb_bytes
    return planner.ProcessMemory(
        name=process.name,
        shared_hugetlb_bytes=process.hugetlb_bytes if shared is None else shared,
        private_hugetlb_bytes=process.private_hugetlb_bytes,
        anon_huge_bytes=process.anon_huge_bytes,
        vm_pte_bytes=process.vm_pte_bytes,
        memlock_limit_bytes=_UNLIMITED if process.memlock_limited is False else limit,
        database=process.database,
    )


def _numa(inventory: Inventory, sample: Sample) -> tuple[planner.NumaMemory, ...] | None:
    """Free memory of each NUMA node, and its free blocks of at least each size (zones summed)."""
    blocks: dict[int, dict[int, int]] = {}
    for zone in sample.buddyinfo or ():
        own = blocks.setdefault(zone.numa_node, {})
        whole = 0
        for order in range(len(zone.free_blocks) - 1, -1, -1):
            whole = 2 * whole + zone.free_blocks[order]
            size = inventory.base_page_bytes << order
            own[size] = own.get(size, 0) + whole
    return (
        tuple(
            planner.NumaMemory(id=numa.id, mem_free_bytes=numa.mem_free_bytes, free_blocks=blocks.get(numa.id))
            for numa in sample.numa
        )
        or None
    )


def _unit(unit: observed.Unit) -> planner.ObservedUnit:
    memory = unit.memory
    return planner.ObservedUnit(
        key=unit.key,
        kind=unit.kind,
        name=unit.name,
        parent=unit.parent,
        source=memory.source,
        ordinary_bytes=_ordinary_bytes(memory),
        limit_bytes=memory.limit_bytes,
        cgroup_path=unit.cgroup_path,
    )


def _memory_limit(own: observed.Unit | None, units: Mapping[str, observed.Unit]) -> int | None:
    """The limit in bytes of the memory that what runs in a unit sees, -1 where there is none; None: not known.

    It is the unit's own. Where the one around it has a smaller one, releases of an engine differ in which they see.
    """
    if own is None or own.memory.limited is None:
        return None
    limit = own.memory.limit_bytes if own.memory.limited else None
    around = units.get(own.parent or "")
    above = None if around is None else around.memory.limit_bytes
    if above is not None and (limit is None or above < limit):
        return None
    return _UNLIMITED if limit is None else limit


def _ordinary_bytes(memory: observed.UnitMemory) -> int | None:
    """Anonymous plus shared memory; where they are not told apart, PSS or RSS, which hold file pages too."""
    if memory.anon_bytes is not None:
        return memory.anon_bytes + (memory.shmem_bytes or 0)
    return memory.rss_bytes if memory.pss_bytes is None else memory.pss_bytes


def observed_database(database: observed.Database) -> planner.ObservedDatabase:
    """A database of a report as the planner's rules take it."""
    memory = database.memory or observed.DatabaseMemory()
    return planner.ObservedDatabase(
        key=database.key,
        engine=database.engine,
        version=database.version,
        unit=database.unit,
        settings=_settings(database.settings),
        settings_complete=database.settings_complete,
        clients=database.client_count,
        private_bytes=memory.private_bytes,
        shared_bytes=memory.shared_bytes,
        hugetlb_bytes=memory.hugetlb_bytes,
        page_tables_bytes=memory.page_tables_bytes,
        segments=tuple(
            planner.ObservedSegment(bytes=segment.bytes, backing=segment.backing, page_bytes=segment.page_bytes)
            for segment in database.segments
            if segment.bytes is not None
        ),
        huge_pages_status=database.huge_pages_status,
        hugetlb_limits=None
        if database.hugetlb_limits is None
        else tuple(
            msgspec.convert(limit, planner.ObservedHugetlbLimit, from_attributes=True)
            for limit in database.hugetlb_limits
        ),
        port=database.port,
        walks=walk_share(database.counters),
        owner_uid=database.owner_uid,
        allowed_numa_nodes=tuple(database.allowed_numa_nodes or ()),
        pid=database.main_pid,
        sources={name: setting.source for name, setting in database.settings.items()}
        | ({} if database.version_source is None else {"version": database.version_source}),
    )


_BOUNDS = frozenset({"active", "pending"})
_L2_HIT_CYCLES = 9.0  # the most of the cores whose manuals say (Crestmont; docs/model.md)


def walk_share(counters: observed.WalkCounters | None) -> planner.WalkShare | None:
    """What bounds the gain of any page size; None where it was not counted, or what was counted is no bound."""
    if counters is None or counters.walk_fraction is None or counters.walk_cycles_are not in _BOUNDS:
        return None
    hits = 0.0 if not counters.cycles or counters.l2_hits is None else counters.l2_hits / counters.cycles
    return planner.WalkShare(
        fraction=counters.walk_fraction,
        bound_fraction=counters.walk_fraction + _L2_HIT_CYCLES * hits,
        counted_at=f"{counters.counted_at:%Y-%m-%d %H:%M} UTC",
    )


def _settings(settings: Mapping[str, observed.Setting]) -> dict[str, str]:
    return {name: setting.value for name, setting in settings.items()}
