"""The node's memory: /proc/meminfo in bytes, and the kernel's default huge page size."""

from __future__ import annotations

from hugeplan_agent.collectors.keyvalue import parse_amounts
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import BYTES, KNOWN_BYTES, PAGE_BYTES, optional

FIELDS = {
    "mem_total_bytes": "MemTotal",
    "mem_free_bytes": "MemFree",
    "mem_available_bytes": "MemAvailable",
    "buffers_bytes": "Buffers",
    "cached_bytes": "Cached",
    "swap_cached_bytes": "SwapCached",
    "active_file_bytes": "Active(file)",
    "inactive_file_bytes": "Inactive(file)",
    "unevictable_bytes": "Unevictable",
    "mlocked_bytes": "Mlocked",
    "dirty_bytes": "Dirty",
    "writeback_bytes": "Writeback",
    "mapped_bytes": "Mapped",
    "k_reclaimable_bytes": "KReclaimable",
    "slab_bytes": "Slab",
    "s_reclaimable_bytes": "SReclaimable",
    "s_unreclaim_bytes": "SUnreclaim",
    "kernel_stack_bytes": "KernelStack",
    "page_tables_bytes": "PageTables",
    "sec_page_tables_bytes": "SecPageTables",
    "percpu_bytes": "Percpu",
    "anon_pages_bytes": "AnonPages",
    "anon_huge_pages_bytes": "AnonHugePages",
    "shmem_bytes": "Shmem",
    "shmem_huge_pages_bytes": "ShmemHugePages",
    "shmem_pmd_mapped_bytes": "ShmemPmdMapped",
    "file_huge_pages_bytes": "FileHugePages",
    "vmalloc_used_bytes": "VmallocUsed",
    "cma_total_bytes": "CmaTotal",
    "cma_free_bytes": "CmaFree",
    "hardware_corrupted_bytes": "HardwareCorrupted",
    "unaccepted_bytes": "Unaccepted",
    "balloon_bytes": "Balloon",
    "zswap_bytes": "Zswap",
    "hugetlb_bytes": "Hugetlb",
    "commit_limit_bytes": "CommitLimit",
    "committed_as_bytes": "Committed_AS",
    "swap_total_bytes": "SwapTotal",
    "swap_free_bytes": "SwapFree",
    "direct_map_4k_bytes": "DirectMap4k",
    "direct_map_2m_bytes": "DirectMap2M",
    "direct_map_4m_bytes": "DirectMap4M",
    "direct_map_64k_bytes": "DirectMap64k",
    "direct_map_1g_bytes": "DirectMap1G",
}
"""Report name -> the kernel's word. A word that this kernel does not print is null: unknown, not zero."""


def parse(text: str) -> tuple[dict[str, int | None], int | None]:
    """The memory of a report and the default huge page size in bytes, from the text of /proc/meminfo."""
    amounts = parse_amounts(text)
    return {name: amounts.get(word) for name, word in FIELDS.items()}, amounts.get("Hugepagesize")


def collect(host: Host) -> Fragment:
    memory, default_huge_page_bytes = parse(host.read("proc/meminfo"))
    return Fragment({"default_huge_page_bytes": default_huge_page_bytes}, {"memory": memory})


COLLECTOR = Collector(
    collect,
    inventory={"default_huge_page_bytes": optional(PAGE_BYTES)},
    sample={
        "memory": {
            "type": "object",
            "required": ["mem_total_bytes"],
            "properties": {"mem_total_bytes": {**KNOWN_BYTES, "minimum": 1}},
            "additionalProperties": BYTES,
        }
    },
)
