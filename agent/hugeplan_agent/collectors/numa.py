"""NUMA nodes: their processors and memory. A kernel without NUMA folders is one node, 0."""

from __future__ import annotations

from typing import Any

from hugeplan_agent.collectors.keyvalue import parse_amounts
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import BYTES, NUMA_ID, array, record, text

FOLDER = "sys/devices/system/node"
FIELDS = {
    "mem_used_bytes": "MemUsed",
    "file_pages_bytes": "FilePages",
    "anon_pages_bytes": "AnonPages",
    "anon_huge_pages_bytes": "AnonHugePages",
    "shmem_bytes": "Shmem",
    "shmem_huge_pages_bytes": "ShmemHugePages",
    "kernel_stack_bytes": "KernelStack",
    "page_tables_bytes": "PageTables",
    "sec_page_tables_bytes": "SecPageTables",
    "slab_bytes": "Slab",
    "s_reclaimable_bytes": "SReclaimable",
    "s_unreclaim_bytes": "SUnreclaim",
}
"""Report name -> the kernel's word. A word that this kernel does not print is null: unknown, not zero."""


def _parts(number: int, amounts: dict[str, int], cpus: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entry of one NUMA node in the inventory, and the one in the sample."""
    return (
        {"id": number, "mem_total_bytes": amounts.get("MemTotal"), "cpus": cpus},
        {
            "id": number,
            "mem_total_bytes": amounts.get("MemTotal"),
            "mem_free_bytes": amounts.get("MemFree"),
            **{name: amounts.get(word) for name, word in FIELDS.items()},
        },
    )


def collect(host: Host) -> Fragment:
    try:
        nodes = sorted(int(match[1]) for _, match in host.children(FOLDER, r"node(\d+)"))
    except NoData:
        nodes = []
    if nodes:
        parts = [
            _parts(number, parse_amounts(host.read(f"{FOLDER}/node{number}/meminfo")), _cpus(host, number))
            for number in nodes
        ]
        note = None
    else:
        online = host.read_optional("sys/devices/system/cpu/online")
        parts = [_parts(0, parse_amounts(host.read("proc/meminfo")), online)]
        note = "the kernel has no NUMA folders; the machine is taken as one node"
    return Fragment(
        {"numa_nodes": [inventory for inventory, _ in parts]},
        {"numa": [sample for _, sample in parts]},
        note,
    )


def _cpus(host: Host, number: int) -> str | None:
    return host.read_optional(f"{FOLDER}/node{number}/cpulist")


COLLECTOR = Collector(
    collect,
    inventory={
        "numa_nodes": array(
            record(
                {
                    "id": NUMA_ID,
                    "mem_total_bytes": BYTES,
                    "cpus": text(4096),
                },
                required=("id", "mem_total_bytes"),
            ),
            1024,
        )
    },
    sample={
        "numa": array(
            {"type": "object", "required": ["id"], "properties": {"id": NUMA_ID}, "additionalProperties": BYTES}, 1024
        )
    },
)
