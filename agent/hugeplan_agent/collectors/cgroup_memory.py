"""The memory controller's files of one cgroup, version 1 and 2, as one form. Children are counted in."""

from __future__ import annotations

from typing import Any

from hugeplan_agent.collectors.cgroup_owners import Hierarchy
from hugeplan_agent.collectors.keyvalue import parse_counters, parse_limit
from hugeplan_agent.host import Host

UnitMemory = dict[str, Any]


def read_memory(host: Host, tree: Hierarchy, path: str) -> UnitMemory:
    """Ordinary memory of a cgroup in bytes; what its files do not say is None."""
    counters = parse_counters(host.read_optional(tree.file(path, "memory.stat")) or "")
    return _version_2(host, tree, path, counters) if tree.version == 2 else _version_1(host, tree, path, counters)


def _version_2(host: Host, tree: Hierarchy, path: str, counters: dict[str, int]) -> UnitMemory:
    usage = host.read_int(tree.file(path, "memory.current"))
    limit, limited = parse_limit(host.read_optional(tree.file(path, "memory.max")))
    shmem, file = counters.get("shmem"), counters.get("file")
    return {
        "source": "cgroup_v2",
        "anon_bytes": counters.get("anon"),
        "shmem_bytes": shmem,
        # The kernel counts shmem among file pages.
        "file_bytes": None if file is None or shmem is None else max(0, file - shmem),
        "usage_bytes": usage,
        "working_set_bytes": working_set(usage, counters.get("inactive_file")),
        "limit_bytes": limit,
        "limited": limited,
        "swap_bytes": host.read_int(tree.file(path, "memory.swap.current")),
        "kernel_bytes": counters.get("kernel"),
        "page_tables_bytes": counters.get("pagetables"),
        "anon_huge_bytes": counters.get("anon_thp"),
        "hugetlb_charged_bytes": counters.get("hugetlb"),
    }


def has_less_above(host: Host, tree: Hierarchy, path: str, limit: int | None) -> bool:
    """Whether a cgroup above has a smaller limit than this one of version 2."""
    while path := path.rpartition("/")[0]:
        most, _ = parse_limit(host.read_optional(tree.file(path, "memory.max")))
        if most is not None and (limit is None or most < limit):
            return True
    return False


def _version_1(host: Host, tree: Hierarchy, path: str, counters: dict[str, int]) -> UnitMemory:
    usage = host.read_int(tree.file(path, "memory.usage_in_bytes"))
    limit, limited = parse_limit(host.read_optional(tree.file(path, "memory.limit_in_bytes")))
    above, is_bounded = parse_limit(str(counters.get("hierarchical_memory_limit")))
    if is_bounded and above is not None and (limit is None or above < limit):
        limit, limited = above, True  # what acts, and what programs in it read
    shmem, cache = counters.get("total_shmem"), counters.get("total_cache")
    return {
        "source": "cgroup_v1",
        "anon_bytes": counters.get("total_rss"),
        "shmem_bytes": shmem,
        "file_bytes": None if cache is None or shmem is None else max(0, cache - shmem),
        "usage_bytes": usage,
        "working_set_bytes": working_set(usage, counters.get("total_inactive_file")),
        "limit_bytes": limit,
        "limited": limited,
        "swap_bytes": counters.get("total_swap"),
        "kernel_bytes": host.read_int(tree.file(path, "memory.kmem.usage_in_bytes")),
        "page_tables_bytes": None,
        "anon_huge_bytes": counters.get("total_rss_huge"),
        "hugetlb_charged_bytes": None,
    }


def working_set(usage_bytes: int | None, inactive_file_bytes: int | None) -> int | None:
    """Usage less inactive file pages, at least 0, as cAdvisor and with it the kubelet counts it."""
    if usage_bytes is None or inactive_file_bytes is None:
        return None
    return max(0, usage_bytes - inactive_file_bytes)
