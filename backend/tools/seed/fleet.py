"""The nodes of a synthetic fleet, drawn from the distributions below.

Nodes come in clusters of one machine type, one provider, one role and one pool setting, as they are bought and set up
together: 5 to 120 nodes each, small ones more often. MemTotal differs by up to 64 MiB from node to node.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hugeplan.planner.model import GIB, MIB


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type: share of the clusters, CPUID, size, and whether a guest's 2M pages are whole.

    ``fractured`` is the share of its clusters on hosts that back guest memory with small pages.
    """

    share: float
    brand: str
    vendor: str
    family: int
    model: int
    stepping: int
    cpus: int
    memory_gib: tuple[int, ...]
    numa_nodes: int
    provider: str
    hypervisor: str | None
    fractured: float = 0.0


# Shares are a guess at a mid-sized company's fleet: two thirds in clouds, the rest in its own racks.
MACHINES: Final = (
    Machine(0.18, "Intel(R) Xeon(R) Platinum 8481C", "GenuineIntel", 6, 143, 8, 16, (64, 128), 1, "gke", "KVM", 0.3),
    Machine(0.14, "AMD EPYC 9B14", "AuthenticAMD", 25, 17, 1, 16, (64, 128), 1, "gke", "KVM", 0.2),
    Machine(0.16, "Intel(R) Xeon(R) Platinum 8488C", "GenuineIntel", 6, 143, 8, 32, (128, 256), 1, "eks", "KVM", 0.0),
    Machine(0.10, "AMD EPYC 9R14", "AuthenticAMD", 25, 17, 1, 32, (128, 256), 1, "eks", "KVM", 0.0),
    Machine(
        0.10, "Intel(R) Xeon(R) Platinum 8370C", "GenuineIntel", 6, 106, 6, 16, (64, 128), 1, "aks", "Hyper-V", 0.6
    ),
    Machine(0.14, "Intel(R) Xeon(R) Gold 6448Y", "GenuineIntel", 6, 143, 8, 128, (512, 1024), 2, "racks", None),
    Machine(0.12, "AMD EPYC 9755", "AuthenticAMD", 26, 2, 1, 256, (768, 1536), 2, "racks", None),
    Machine(0.06, "Intel(R) Xeon(R) Gold 6248R", "GenuineIntel", 6, 85, 7, 96, (384, 768), 2, "racks", None),
)

#: What a cluster runs, its share, and the buffer pool as a share of memory; None: no database.
ROLES: Final = (
    ("postgresql", 0.34, (0.15, 0.40)),
    ("mysql", 0.20, (0.30, 0.60)),
    ("web", 0.30, None),
    ("batch", 0.16, None),
)

#: Pages of a pool that is set as planned, beside what its database needs.
WELL_SET: Final = 1.02

#: How well pools are set, where there is a database: share, and pages beside what the database needs.
SETTINGS: Final = (
    ("well set", 0.42, WELL_SET),
    ("oversized", 0.16, 1.6),
    ("too small", 0.12, 0.7),
    ("none", 0.24, 0.0),
    ("surplus", 0.06, 1.0),
)

#: Incidents of single nodes: share of the nodes that have one.
INCIDENTS: Final = (
    ("silent fallback", 0.02),
    ("time bomb", 0.004),
    ("memory low", 0.01),
    ("stale", 0.012),
    ("clock ahead", 0.004),
    ("reports lost", 0.01),
)


@dataclass(frozen=True, slots=True)
class SyntheticNode:
    """One node: its report without a run, and what the report does not say.

    ``growth_bytes_per_day`` is how its workloads grow; ``silent_seconds`` since its last report.
    """

    id: uuid.UUID
    machine: Machine
    fractured: bool
    measured: bool
    report: dict[str, Any]
    growth_bytes_per_day: int
    silent_seconds: int
    clock_ahead_seconds: float
    plan_pages: int | None


@dataclass(frozen=True, slots=True)
class _Cluster:
    name: str
    machine: Machine
    memory_bytes: int
    role: str
    setting: str
    pool_factor: float
    segment_bytes: int
    fractured: bool
    growth: int
    environment: str
    has_plan: bool


def nodes(count: int, seed: int, now_iso: str) -> Iterator[SyntheticNode]:
    """``count`` nodes of the fleet of ``seed``, whose reports are dated ``now_iso``. The first of more are the same."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    made = 0
    number = 0
    while made < count:
        cluster = _cluster(rng, number)
        size = min(120, int(5 * rng.paretovariate(0.9)))
        for index in range(size):
            node = _node(rng, cluster, index, now_iso)
            if made < count:
                yield node
            made += 1
        number += 1


def _draw(rng: random.Random, rows: Any, share: int = 1) -> Any:
    return rng.choices(rows, weights=[row[share] for row in rows])[0]


def _cluster(rng: random.Random, number: int) -> _Cluster:
    machine = rng.choices(MACHINES, weights=[machine.share for machine in MACHINES])[0]
    memory = rng.choice(machine.memory_gib) * GIB
    role, _, pool = _draw(rng, ROLES)
    setting, _, factor = _draw(rng, SETTINGS)
    environment = rng.choices(("prod", "test"), weights=(0.7, 0.3))[0]
    segment = int(memory * rng.uniform(*pool)) // (256 * MIB) * (256 * MIB) if pool else 0
    return _Cluster(
        name=f"{role}-{machine.provider}-{number:03d}",
        machine=machine,
        memory_bytes=memory,
        role=role,
        setting=setting if segment else "none",
        pool_factor=factor if segment else 0.0,
        segment_bytes=segment,
        fractured=rng.random() < machine.fractured,
        growth=int(rng.choice((0, 0, 0, 1, 2, 5)) * memory * 1e-4),
        environment=environment,
        has_plan=bool(segment) and rng.random() < 0.5,
    )


def _node(rng: random.Random, cluster: _Cluster, index: int, now_iso: str) -> SyntheticNode:
    machine = cluster.machine
    total = cluster.memory_bytes - rng.randrange(64) * MIB - 900 * MIB
    incident = next((name for name, share in INCIDENTS if rng.random() < share), None)
    needed = -(-cluster.segment_bytes * 103 // 100 // (2 * MIB))
    pages = int(needed * cluster.pool_factor)
    on_huge = pages >= needed and incident != "silent fallback"
    used = needed if on_huge else 0
    surplus = needed // 4 if cluster.setting == "surplus" and on_huge else 0
    identity = uuid.UUID(int=rng.getrandbits(128), version=4)
    machine_id = f"{rng.getrandbits(128):032x}"
    available = _available(rng, cluster, total, pages, incident)
    report: dict[str, Any] = {
        "schema_version": 1,
        "report_id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "agent_version": "0.1.0",
        "created_at": now_iso,
        "machine_id": machine_id,
        "node_name": f"{cluster.name}-{index:03d}",
        "synthetic": True,
        "labels": {"provider": machine.provider, "role": cluster.role, "env": cluster.environment},
        "inventory": _inventory(machine, total),
        "sample": _sample(
            cluster,
            total=total,
            available=available,
            pages=pages + surplus,
            used=used,
            surplus=surplus,
            now_iso=now_iso,
        ),
        "collectors": [{"name": "meminfo", "status": "ok", "duration_seconds": 0.001, "reason": None}],
        "spool": {"pending": 0, "dropped_age": rng.randrange(1, 500) if incident == "reports lost" else 0},
    }
    if cluster.segment_bytes:
        report["sample"]["databases"] = [_database(cluster, on_huge, bomb=incident == "time bomb")]
    return SyntheticNode(
        id=identity,
        machine=machine,
        fractured=cluster.fractured,
        measured=rng.random() < 0.8,
        report=report,
        growth_bytes_per_day=cluster.growth,
        silent_seconds=rng.randrange(3600, 400_000) if incident == "stale" else rng.randrange(60),
        clock_ahead_seconds=float(rng.randrange(120, 80_000)) if incident == "clock ahead" else 0.0,
        plan_pages=int(needed * WELL_SET) if cluster.has_plan else None,
    )


def _available(rng: random.Random, cluster: _Cluster, total: int, pages: int, incident: str | None) -> int:
    rest = total - pages * 2 * MIB
    if incident == "memory low":
        return min(rest, int(0.015 * total))
    busy = rng.uniform(0.35, 0.7) if cluster.role in ("web", "batch") else rng.uniform(0.2, 0.5)
    return min(rest, max(int(0.04 * total), int(rest * (1 - busy))))


def _inventory(machine: Machine, total: int) -> dict[str, Any]:
    per_node = total // machine.numa_nodes
    return {
        "architecture": "x86_64",
        "kernel_release": "6.12.0",
        "kernel_command_line": "ro quiet",
        "cpu": {
            "vendor": machine.vendor,
            "family": machine.family,
            "model": machine.model,
            "stepping": machine.stepping,
            "brand": machine.brand,
            "online": machine.cpus,
        },
        "hypervisor": machine.hypervisor,
        "virtualised": machine.hypervisor is not None,
        "base_page_bytes": 4096,
        "huge_page_sizes_bytes": [2 * MIB, GIB],
        "default_huge_page_bytes": 2 * MIB,
        "thp": {"enabled": "madvise", "defrag": "madvise", "shmem_enabled": "never"},
        "hvo_enabled": False,
        "cgroup_version": 2,
        "numa_nodes": [
            {"id": n, "mem_total_bytes": total - per_node * (machine.numa_nodes - 1) if n == 0 else per_node}
            for n in range(machine.numa_nodes)
        ],
    }


def _sample(
    cluster: _Cluster, *, total: int, available: int, pages: int, used: int, surplus: int, now_iso: str
) -> dict[str, Any]:
    count = cluster.machine.numa_nodes
    shares = [pages // count + (1 if n < pages % count else 0) for n in range(count)]
    uses = [used // count + (1 if n < used % count else 0) for n in range(count)]
    ordinary = total - pages * 2 * MIB - available
    # As a real agent reports it: anonymous and shared memory apart, the database's segment among the shared.
    shared = min(ordinary // 2, cluster.segment_bytes * 103 // 100) if not used else 64 * MIB
    kernel = total // 200 + 64 * MIB + max(8 * MIB, ordinary // 400)
    # What is available is free, or cache, or reclaimable slab: the parts sum to the whole, as a real node's nearly do.
    free = available // 2
    reclaimable_slab = min(total // 200, available // 8)
    return {
        "taken_at": now_iso,
        "memory": {
            "mem_total_bytes": total,
            "mem_free_bytes": free,
            "mem_available_bytes": available,
            "cached_bytes": available - free - reclaimable_slab + shared,
            "anon_pages_bytes": max(0, ordinary - shared - kernel),
            "shmem_bytes": shared,
            "slab_bytes": total // 200 + reclaimable_slab,
            "s_unreclaim_bytes": total // 200,
            "s_reclaimable_bytes": reclaimable_slab,
            "kernel_stack_bytes": 64 * MIB,
            "page_tables_bytes": max(8 * MIB, ordinary // 400),
            "anon_huge_pages_bytes": max(0, ordinary // 8),
            "hugetlb_bytes": pages * 2 * MIB,
        },
        "pools": [
            {
                "numa_node": n,
                "page_bytes": 2 * MIB,
                "nr_hugepages": shares[n],
                "free_hugepages": max(0, shares[n] - uses[n]),
                "surplus_hugepages": surplus if n == 0 else 0,
            }
            for n in range(count)
        ],
        "global_pools": [
            {
                "page_bytes": 2 * MIB,
                "nr_hugepages": pages,
                "free_hugepages": pages - used,
                "resv_hugepages": 0,
                "surplus_hugepages": surplus,
                "nr_overcommit_hugepages": surplus,
            },
            {"page_bytes": GIB, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0, "surplus_hugepages": 0},
        ],
        "numa": [{"id": n, "mem_total_bytes": total // count, "mem_free_bytes": free // count} for n in range(count)],
        "processes": [],
    }


def _database(cluster: _Cluster, on_huge: bool, *, bomb: bool) -> dict[str, Any]:
    segment = {"bytes": cluster.segment_bytes * 103 // 100, "backing": "hugetlb" if on_huge else "base_pages"}
    if on_huge:
        segment["page_bytes"] = 2 * MIB
    setting, unit = ("shared_buffers", "MB") if cluster.role == "postgresql" else ("innodb_buffer_pool_size", "M")
    limits = [
        {
            "page_bytes": 2 * MIB,
            "counter": "usage",
            "limit_bytes": cluster.segment_bytes // 2,
            "cgroup_path": "/kubepods.slice/synthetic",
        }
    ]
    return {
        "key": f"{cluster.role}:main",
        "engine": cluster.role,
        "version": "17" if cluster.role == "postgresql" else "8.4",
        "main_pid": 1000,
        "process_count": 40,
        "memory": {
            "source": "pss",
            "private_bytes": 40 * 8 * MIB,
            "shared_bytes": 0 if on_huge else cluster.segment_bytes * 103 // 100,
            "hugetlb_bytes": cluster.segment_bytes * 103 // 100 if on_huge else 0,
        },
        "settings": {setting: {"value": f"{cluster.segment_bytes // MIB}{unit}", "source": "command line"}},
        "segments": [segment],
        "huge_pages_status": "on" if on_huge else "off",
        "hugetlb_limits": limits if bomb and on_huge else [],
    }
