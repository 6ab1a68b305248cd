"""Settings of the running kernel that a plan of huge pages uses, by the kernel's names."""

from __future__ import annotations

from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import about, table

FILES = {
    **{
        name: f"proc/sys/vm/{name}"
        for name in (
            "overcommit_memory",
            "overcommit_ratio",
            "overcommit_kbytes",
            "nr_overcommit_hugepages",
            "hugetlb_shm_group",
            "min_free_kbytes",
            "watermark_scale_factor",
            "compaction_proactiveness",
            "swappiness",
            "zone_reclaim_mode",
        )
    },
    **{name: f"proc/sys/kernel/{name}" for name in ("shmmax", "shmall", "shmmni", "numa_balancing")},
}


def collect(host: Host) -> Fragment:
    values = {name: host.read_int(path) for name, path in FILES.items()}
    if all(value is None for value in values.values()):
        raise NoData(f"{host.path('proc/sys/vm')} holds none of the settings")
    return Fragment(sample={"tunables": values})


COLLECTOR = Collector(
    collect,
    sample={
        "tunables": about(
            table({"type": ["integer", "null"]}), "Files of /proc/sys/vm and /proc/sys/kernel by their kernel names"
        )
    },
)
