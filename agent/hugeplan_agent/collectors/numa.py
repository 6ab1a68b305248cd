"""NUMA nodes: their processors and memory. A kernel without NUMA folders is one node, 0."""

from __future__ import annotations

from typing import Any

from hugeplan_agent.collectors.keyvalue import parse_amounts
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Fragment
from hugeplan_agent.host import Host

FOLDER = "sys/devices/system/node"


def _parts(number: int, amounts: dict[str, int], cpus: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entry of one NUMA node in the inventory, and the one in the sample."""
    return (
        {"id": number, "mem_total_bytes": amounts.get("MemTotal"), "cpus": cpus},
        {
            "id": number,
            "mem_total_bytes": amounts.get("MemTotal"),
            "mem_free_bytes": amounts.get("MemFree"),
            "anon_huge_pages_bytes": amounts.get("AnonHugePages"),
            "page_tables_bytes": amounts.get("PageTables"),
            "s_unreclaim_bytes": amounts.get("SUnreclaim"),
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
