"""The processes that matter for huge pages: what backs their memory, and what their page tables cost.

Only numbers and the command's short name leave the node; never its arguments or environment.
"""

from __future__ import annotations

from typing import Any

from hugeplan_agent.collectors import servers, units
from hugeplan_agent.collectors.cgroup_units import owner_of
from hugeplan_agent.collectors.limits import memlock
from hugeplan_agent.collectors.pools import sizes_in_use
from hugeplan_agent.collectors.process_table import MAX_KEPT, Process, chosen, table_of
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import (
    BYTES,
    LIMITED,
    NUMBER,
    PAGE_BYTES,
    PID,
    TICKS,
    UNIT_REF,
    about,
    array,
    number,
    optional,
    record,
    ref,
)


def huge_page_mappings(process: Process, sizes_in_use_bytes: list[int] | None) -> list[dict[str, Any]] | None:
    """The process's hugetlb pages by size: known when the node has pages of one size only, or when it has none.

    ``mapped_bytes`` stands in the segments of a database, where its mappings were read.
    """
    if process.hugetlb_bytes == 0:
        return []
    if process.hugetlb_bytes is None or sizes_in_use_bytes is None or len(sizes_in_use_bytes) != 1:
        return None
    rollup = process.rollup or {}
    return [
        {
            "page_bytes": sizes_in_use_bytes[0],
            "mapped_bytes": None,
            "shared_bytes": rollup.get("shared_hugetlb_bytes"),
            "private_bytes": rollup.get("private_hugetlb_bytes"),
        }
    ]


def entry(host: Host, process: Process, sizes: list[int] | None) -> dict[str, Any]:
    """One process as the report has it."""
    rollup = process.rollup or {}
    return {
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "start_time_ticks": process.start_time_ticks,
        "name": process.name,
        "rss_bytes": process.rss_bytes,
        "rss_anon_bytes": process.rss_anon_bytes,
        "rss_file_bytes": process.rss_file_bytes,
        "rss_shmem_bytes": process.rss_shmem_bytes,
        "hugetlb_bytes": process.hugetlb_bytes,
        "vm_pte_bytes": process.vm_pte_bytes,
        "swap_bytes": process.swap_bytes,
        "pss_bytes": rollup.get("pss_bytes"),
        "pss_anon_bytes": rollup.get("pss_anon_bytes"),
        "pss_file_bytes": rollup.get("pss_file_bytes"),
        "pss_shmem_bytes": rollup.get("pss_shmem_bytes"),
        "pss_age_seconds": process.rollup_age_seconds,
        "anon_huge_bytes": rollup.get("anon_huge_bytes"),
        "shmem_pmd_mapped_bytes": rollup.get("shmem_pmd_mapped_bytes"),
        "private_hugetlb_bytes": rollup.get("private_hugetlb_bytes"),
        "shared_hugetlb_bytes": rollup.get("shared_hugetlb_bytes"),
        "huge_page_mappings": huge_page_mappings(process, sizes),
        **memlock(host, process),
    }


def collect(host: Host) -> Fragment:
    table = table_of(host)
    kept, left_out = chosen(table, owner_of(host))
    belongs = servers.server_of_pid(host)
    placed = units.placement(host)
    sizes = sizes_in_use(host)
    entries = [
        {
            **entry(host, process, sizes),
            "unit": placed.unit_of_pid.get(process.pid),
            "database": belongs.get(process.pid),
        }
        for process in kept
    ]
    notes = [
        f"{left_out} smaller processes are left out" if left_out else "",
        f"{table.left_out} processes beyond {MAX_KEPT}, of those who run the most, are not looked at"
        if table.left_out
        else "",
        f"{table.late} processes were not read: the time for it is used up" if table.late else "",
        f"{table.unreadable} processes may not be read by this user" if table.unreadable else "",
        host.left_alone_note,
    ]
    owners = {"processes": [owner_of(host)(process) for process in kept]}
    return Fragment(sample={"processes": entries}, note="; ".join(filter(None, notes)) or None, owners=owners)


COLLECTOR = Collector(
    collect,
    sample={
        "processes": array(
            record(
                {
                    "pid": PID,
                    "start_time_ticks": TICKS,
                    "name": {"type": "string", "minLength": 1, "maxLength": 64},
                    "rss_bytes": BYTES,
                    "pss_bytes": BYTES,
                    "hugetlb_bytes": BYTES,
                    "anon_huge_bytes": BYTES,
                    "shmem_pmd_mapped_bytes": BYTES,
                    "private_hugetlb_bytes": BYTES,
                    "shared_hugetlb_bytes": BYTES,
                    "vm_pte_bytes": BYTES,
                    "parent_pid": NUMBER,
                    "rss_anon_bytes": BYTES,
                    "rss_file_bytes": BYTES,
                    "rss_shmem_bytes": BYTES,
                    "pss_anon_bytes": BYTES,
                    "pss_file_bytes": BYTES,
                    "pss_shmem_bytes": BYTES,
                    "pss_age_seconds": about(
                        number(),
                        "Reading the shares is expensive, so they may be older than the sample",
                    ),
                    "swap_bytes": BYTES,
                    "huge_page_mappings": about(optional(array(ref("huge_page_mapping"), 64)), "null: not readable"),
                    "memlock_limit_bytes": about(
                        BYTES, "Soft RLIMIT_MEMLOCK; null when unlimited or unknown, memlock_limited tells which"
                    ),
                    "memlock_limited": LIMITED,
                    "unit": UNIT_REF,
                    "database": about(
                        {"type": ["string", "null"], "minLength": 1, "maxLength": 512},
                        "key of the database that this process belongs to",
                    ),
                },
                required=("pid", "name"),
            ),
            8192,
        )
    },
    definitions={
        "huge_page_mapping": about(
            record(
                {
                    "page_bytes": PAGE_BYTES,
                    "mapped_bytes": about(
                        BYTES, "Address space, touched or not: what the kernel holds or has reserved for it"
                    ),
                    "shared_bytes": about(BYTES, "Touched pages that several processes map (Shared_Hugetlb)"),
                    "private_bytes": about(BYTES, "Touched pages that this process alone maps (Private_Hugetlb)"),
                },
                required=("page_bytes",),
            ),
            "All hugetlb mappings of one process with one page size",
        )
    },
)
