"""Which cgroup version rules memory on this node, and whether it can limit hugetlb pages."""

from __future__ import annotations

from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import about

FOLDER = "sys/fs/cgroup"


def collect(host: Host) -> Fragment:
    controllers = host.read_optional(f"{FOLDER}/cgroup.controllers")
    if controllers is not None:
        return _fragment(2, "hugetlb" in controllers.split())
    # A hybrid machine mounts version 2 beside version 1; memory is then still ruled by version 1.
    if host.path(f"{FOLDER}/memory").is_dir():
        return _fragment(1, host.path(f"{FOLDER}/hugetlb").is_dir())
    raise NoData(f"{host.path(FOLDER)} holds neither cgroup.controllers nor memory")


def _fragment(version: int, has_hugetlb: bool) -> Fragment:
    return Fragment({"cgroup_version": version, "cgroup_hugetlb": has_hugetlb})


COLLECTOR = Collector(
    collect,
    inventory={
        "cgroup_version": {"enum": [1, 2, None]},
        "cgroup_hugetlb": about({"type": ["boolean", "null"]}, "Whether cgroups can limit hugetlb pages"),
    },
)
