"""Counters of /proc/vmstat that say how well the kernel could make huge pages since boot."""

from __future__ import annotations

from hugeplan_agent.collectors.keyvalue import parse_counters
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import TICKS, table

COUNTERS = (
    "nr_page_table_pages",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_split_page",
    "thp_zero_page_alloc",
    "thp_swpout_fallback",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_isolated",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "htlb_buddy_alloc_success",
    "htlb_buddy_alloc_fail",
    "pgmajfault",
    "allocstall_normal",
    "allocstall_movable",
    "pswpin",
    "pswpout",
    "oom_kill",
)


def collect(host: Host) -> Fragment:
    counters = parse_counters(host.read("proc/vmstat"))
    return Fragment(sample={"vmstat": {name: counters.get(name) for name in COUNTERS}})


COLLECTOR = Collector(collect, sample={"vmstat": table(TICKS)})
