"""How much memory the kernel keeps back: the zones' watermarks and lowmem reserves."""

from __future__ import annotations

import re

from hugeplan_agent.collectors.cpu import base_page_bytes
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import BYTES, about, record

LINE = re.compile(r"^\s+(min|low|high|managed)\s+(\d+)$")
PROTECTION = re.compile(r"^\s+protection: \(([\d, ]*)\)$")


def parse(text: str, page_bytes: int) -> dict[str, int]:
    """Sums over the zones of /proc/zoneinfo, in bytes.

    ``reserved`` is the kernel's totalreserve_pages: of each zone the high watermark and the largest reserve against
    allocations that could use a higher zone, at most the zone (calculate_totalreserve_pages, mm/page_alloc.c).
    """
    sums = dict.fromkeys(("min", "low", "high", "reserved"), 0)
    zone: dict[str, int] = {}

    def close() -> None:
        for name in ("min", "low", "high"):
            sums[name] += zone.get(name, 0)
        reserved = zone.get("protection", 0) + zone.get("high", 0)
        sums["reserved"] += min(reserved, zone.get("managed", reserved))
        zone.clear()

    for line in text.splitlines():
        if line.startswith("Node"):
            close()
        elif match := LINE.match(line):
            zone.setdefault(match[1], int(match[2]))
        elif match := PROTECTION.match(line):
            zone["protection"] = max((int(word) for word in match[1].split(",") if word.strip()), default=0)
    close()
    return {f"{name}_bytes": pages * page_bytes for name, pages in sums.items()}


def collect(host: Host) -> Fragment:
    return Fragment(sample={"watermarks": parse(host.read("proc/zoneinfo"), base_page_bytes(host))})


COLLECTOR = Collector(
    collect,
    sample={
        "watermarks": about(
            record(
                {
                    "min_bytes": BYTES,
                    "low_bytes": BYTES,
                    "high_bytes": BYTES,
                    "reserved_bytes": about(
                        BYTES,
                        "The kernel's totalreserve_pages: high watermark plus the largest lowmem reserve of each zone",
                    ),
                }
            ),
            "Sums over the zones of /proc/zoneinfo; MemAvailable leaves the low watermark out",
        )
    },
)
