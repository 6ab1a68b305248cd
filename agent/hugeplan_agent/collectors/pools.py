"""The huge page pools: every size the kernel offers, on the whole node and on each NUMA node. Counts are pages."""

from __future__ import annotations

from typing import Any

from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import COUNT, NUMA_ID, PAGE_BYTES, PAGES, array, record

GLOBAL = "sys/kernel/mm/hugepages"
NUMA = "sys/devices/system/node"
SIZE = r"hugepages-(\d+)kB"
KIB = 1024


def _counts(host: Host, folder: str, names: tuple[str, ...]) -> dict[str, int | None]:
    return {name: host.read_int(f"{folder}/{name}") for name in names}


def _pools_below(host: Host, folder: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    pools: list[dict[str, Any]] = []
    for child, match in host.children(folder, SIZE):
        pools.append({"page_bytes": int(match[1]) * KIB, **_counts(host, f"{folder}/{child}", names)})
    return sorted(pools, key=lambda pool: int(pool["page_bytes"]))


def global_pools(host: Host) -> list[dict[str, Any]]:
    """One entry per page size. Raises NoData on a kernel without hugetlb pages."""
    return _pools_below(
        host,
        GLOBAL,
        ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages"),
    )


def numa_pools(host: Host) -> list[dict[str, Any]]:
    """One entry a NUMA node and page size; empty when the kernel has no NUMA folders.

    The kernel counts reservations (``resv_hugepages``) for the whole node only, so they are unknown here.
    """
    try:
        nodes = host.children(NUMA, r"node(\d+)")
    except NoData:
        return []
    pools: list[dict[str, Any]] = []
    for child, match in nodes:
        try:
            below = _pools_below(
                host, f"{NUMA}/{child}/hugepages", ("nr_hugepages", "free_hugepages", "surplus_hugepages")
            )
        except NoData:  # a node without memory has no pools
            continue
        pools.extend({"numa_node": int(match[1]), **pool, "resv_hugepages": None} for pool in below)
    return sorted(pools, key=lambda pool: (int(pool["numa_node"]), int(pool["page_bytes"])))


def collect(host: Host) -> Fragment:
    whole = global_pools(host)
    unreadable = [pool["page_bytes"] for pool in whole if pool["nr_hugepages"] is None]
    whole = [pool for pool in whole if pool["nr_hugepages"] is not None]
    parts = [pool for pool in numa_pools(host) if pool["nr_hugepages"] is not None]
    if not parts:
        # Without NUMA there is one node, 0, and the global pool is its pool.
        parts = [
            {
                "numa_node": 0,
                **{name: pool[name] for name in ("page_bytes", "nr_hugepages", "free_hugepages", "surplus_hugepages")},
                "resv_hugepages": pool["resv_hugepages"],
            }
            for pool in whole
        ]
    note = f"nr_hugepages is unreadable for pages of {unreadable} bytes" if unreadable else None
    sizes = sorted({int(pool["page_bytes"]) for pool in whole} | set(unreadable))
    return Fragment({"huge_page_sizes_bytes": sizes}, {"pools": parts, "global_pools": whole}, note)


def sizes_in_use(host: Host) -> list[int] | None:
    """Huge page sizes whose pool has pages, surplus ones included; None when the pools are not readable."""
    return host.shared("huge page sizes in use", _sizes_in_use)


def _sizes_in_use(host: Host) -> list[int] | None:
    try:
        pools = global_pools(host)
    except NoData:
        return []
    if any(pool["nr_hugepages"] is None for pool in pools):
        return None
    return [int(pool["page_bytes"]) for pool in pools if pool["nr_hugepages"]]


COLLECTOR = Collector(
    collect,
    inventory={"huge_page_sizes_bytes": array(PAGE_BYTES, 16)},
    sample={
        "pools": array(
            record(
                {
                    "numa_node": NUMA_ID,
                    "page_bytes": PAGE_BYTES,
                    "nr_hugepages": COUNT,
                    "free_hugepages": PAGES,
                    "surplus_hugepages": PAGES,
                    "resv_hugepages": PAGES,
                },
                required=("numa_node", "page_bytes", "nr_hugepages"),
            ),
            4096,
        ),
        "global_pools": array(
            record(
                {
                    "page_bytes": PAGE_BYTES,
                    "nr_hugepages": COUNT,
                    "free_hugepages": PAGES,
                    "resv_hugepages": PAGES,
                    "surplus_hugepages": PAGES,
                    "nr_overcommit_hugepages": PAGES,
                },
                required=("page_bytes", "nr_hugepages"),
            ),
            16,
        ),
    },
)
