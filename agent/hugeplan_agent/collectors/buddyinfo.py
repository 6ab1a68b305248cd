"""Free memory by block size: whether the kernel can make a huge page now without compacting."""

from __future__ import annotations

import re
from typing import Any

from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import COUNT, NUMA_ID, about, array, record, ref

LINE = re.compile(r"Node\s+(\d+),\s+zone\s+(\S+)\s+(\d[\d\s]*)$")


def parse(text: str) -> list[dict[str, Any]]:
    """Zones of /proc/buddyinfo; item n of ``free_blocks`` counts free blocks of exactly 2**n base pages."""
    zones = []
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            counts = [int(word) for word in match[3].split()]
            zones.append({"numa_node": int(match[1]), "zone": match[2], "free_blocks": counts})
    return zones


def collect(host: Host) -> Fragment:
    return Fragment(sample={"buddyinfo": parse(host.read("proc/buddyinfo"))})


COLLECTOR = Collector(
    collect,
    sample={"buddyinfo": array(ref("buddyinfo"), 4096)},
    definitions={
        "buddyinfo": record(
            {
                "numa_node": NUMA_ID,
                "zone": {"type": "string", "minLength": 1, "maxLength": 32},
                "free_blocks": about(array(COUNT, 32), "Item n: free blocks of exactly base_page_bytes << n bytes"),
            },
            required=("numa_node", "zone", "free_blocks"),
        )
    },
)
