"""What cgroups may take of the huge page pools, and what they have taken: both counters, version 1 and 2.

The usage counter is charged when a page is touched, the reservation counter when it is mapped. A limit on the first
kills or fails a server whose cache grows warm, a limit on the second makes it fall back when it starts.
Source: Documentation/admin-guide/cgroup-v1/hugetlb.rst and cgroup-v2.rst of the kernel.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hugeplan_agent.collectors import cgroup_units
from hugeplan_agent.collectors.cgroup_owners import Hierarchy, hierarchy, share_in
from hugeplan_agent.collectors.cgroup_tree import PathIndex, membership, path_in, paths
from hugeplan_agent.collectors.keyvalue import MAX_DIGITS, parse_limit
from hugeplan_agent.collectors.process_table import Process, in_turn
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import BYTES, LIMITED, PAGE_BYTES, TICKS, UNIT_REF, about, array, record, ref

KIB, MIB, GIB = 1024, 1024**2, 1024**3
LIMIT_SECONDS = 300.0
"""A limit is read again after this time; usage is read in every observation."""

MAX_ENTRIES = 4096


def size_name(page_bytes: int) -> str:
    """The page size in the controller's file names (mem_fmt, mm/hugetlb_cgroup.c): 64KB, 2MB, 1GB."""
    if page_bytes >= GIB:
        return f"{page_bytes // GIB}GB"
    return f"{page_bytes // MIB}MB" if page_bytes >= MIB else f"{page_bytes // KIB}KB"


def parse_events(text: str | None) -> int | None:
    """``max 3`` of hugetlb.<size>.events: how often the limit refused a page."""
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "max" and value.strip().isdecimal() and len(value) < MAX_DIGITS:
            return int(value)
    return None


@dataclass(frozen=True)
class Files:
    """The controller's file names of one version, for one prefix (empty, or ``rsvd.``)."""

    usage: str
    limit: str
    max_usage: str | None
    failures: str

    @staticmethod
    def of(version: int, size: str, prefix: str) -> Files:
        start = f"hugetlb.{size}.{prefix}"
        if version == 1:
            return Files(
                f"{start}usage_in_bytes", f"{start}limit_in_bytes", f"{start}max_usage_in_bytes", f"{start}failcnt"
            )
        return Files(f"{start}current", f"{start}max", None, f"hugetlb.{size}.events")


def read_cgroup(host: Host, tree: Hierarchy, path: str, page_bytes: int) -> dict[str, Any] | None:
    """Both counters of one cgroup and page size; None when the cgroup has no such files (the root of version 2)."""
    size = size_name(page_bytes)
    usage, rsvd = Files.of(tree.version, size, ""), Files.of(tree.version, size, "rsvd.")
    usage_bytes = host.read_int(tree.file(path, usage.usage))
    if usage_bytes is None:
        return None
    limit_bytes, limited = _limit(host, tree.file(path, usage.limit))
    rsvd_limit_bytes, rsvd_limited = _limit(host, tree.file(path, rsvd.limit))
    matters = usage_bytes > 0 or limited is True
    return {
        "cgroup_path": path,
        "version": tree.version,
        "page_bytes": page_bytes,
        "usage_bytes": usage_bytes,
        "limit_bytes": limit_bytes,
        "limited": limited,
        "max_usage_bytes": host.read_int(tree.file(path, usage.max_usage)) if matters and usage.max_usage else None,
        "failures": _failures(host, tree, path, usage) if matters else None,
        "rsvd_usage_bytes": host.read_int(tree.file(path, rsvd.usage)),
        "rsvd_limit_bytes": rsvd_limit_bytes,
        "rsvd_limited": rsvd_limited,
        "rsvd_max_usage_bytes": host.read_int(tree.file(path, rsvd.max_usage)) if matters and rsvd.max_usage else None,
        # Version 2 counts refusals of both counters in one file.
        "rsvd_failures": _failures(host, tree, path, rsvd) if matters and tree.version == 1 else None,
    }


def _failures(host: Host, tree: Hierarchy, path: str, files: Files) -> int | None:
    if tree.version == 1:
        return host.read_int(tree.file(path, files.failures))
    return parse_events(host.read_optional(tree.file(path, files.failures)))


def _limit(host: Host, name: str) -> tuple[int | None, bool | None]:
    kept = host.kept("hugetlb limits")
    now = time.monotonic()
    read_at, limit = kept.get(name, (None, (None, None)))
    if read_at is None or now - read_at > LIMIT_SECONDS:
        limit = parse_limit(host.read_optional(name))
        kept[name] = (now, limit)
    found: tuple[int | None, bool | None] = limit
    return found


@dataclass
class HugetlbTree:
    """The controller's cgroups of one observation, by path and page size."""

    tree: Hierarchy
    index: PathIndex
    entries: dict[tuple[str, int], dict[str, Any]]
    left_out: int = 0

    @cached_property
    def by_path(self) -> dict[str, list[dict[str, Any]]]:
        """The entries of each cgroup."""
        found: dict[str, list[dict[str, Any]]] = {}
        for (path, _), entry in self.entries.items():
            found.setdefault(path, []).append(entry)
        return found

    def path_of(self, host: Host, process: Process) -> str | None:
        """The process's cgroup in this controller's tree."""
        return path_in(membership(host, process.pid, process.key), self.tree, "hugetlb", self.index)

    def acting_limits(self, path: str) -> list[dict[str, Any]]:
        """Of each page size and counter the limit with the least room between ``path`` and the root."""
        tightest: dict[tuple[int, str], dict[str, Any]] = {}
        above = ["/".join(parts[: end + 1]) for parts in [path.split("/")] for end in range(1, len(parts))]
        for entry in [entry for cgroup_path in above for entry in self.by_path.get(cgroup_path, ())]:
            page_bytes = entry["page_bytes"]
            for counter, prefix in (("usage", ""), ("reservation", "rsvd_")):
                limit = entry[f"{prefix}limit_bytes"]
                if limit is None:
                    continue
                found = {
                    "page_bytes": page_bytes,
                    "counter": counter,
                    "limit_bytes": limit,
                    "usage_bytes": entry[f"{prefix}usage_bytes"],
                    "cgroup_path": entry["cgroup_path"],
                }
                other = tightest.get((page_bytes, counter))
                if other is None or _room(found) < _room(other):
                    tightest[page_bytes, counter] = found
        return [tightest[key] for key in sorted(tightest)]


def _room(limit: dict[str, Any]) -> int:
    return int(limit["limit_bytes"]) - int(limit["usage_bytes"] or 0)


def read_tree(host: Host) -> HugetlbTree | None:
    """All cgroups of the hugetlb controller; None when no hierarchy has it."""
    tree = hierarchy(host, "hugetlb")
    if tree is None:
        return None
    found = list(paths(host, tree))
    made = HugetlbTree(tree, PathIndex(host, tree, found), {})
    try:
        sizes = [int(match[1]) * KIB for _, match in host.children("sys/kernel/mm/hugepages", r"hugepages-(\d+)kB")]
    except NoData:
        sizes = []
    alive = {f"{tree.root}{path}" for path in found}
    host.keep_only("hugetlb limits", [name for name in host.kept("hugetlb limits") if _folder(name) in alive])
    if len(found) * len(sizes) > MAX_ENTRIES:  # whoever has the most loses first
        found = in_turn(found, lambda path: share_in(host, path, "hugetlb"), lambda path: path.count("/"))
    for path in found:
        for page_bytes in sizes:
            if len(made.entries) >= MAX_ENTRIES:
                made.left_out += 1
                continue
            entry = read_cgroup(host, tree, path, page_bytes)
            if entry is not None and _says_something(entry):
                made.entries[path, page_bytes] = entry
    return made


def _folder(name: object) -> str:
    return str(name).rpartition("/")[0]


def _says_something(entry: dict[str, Any]) -> bool:
    """A cgroup without a limit that uses nothing says nothing."""
    return bool(entry["limited"] or entry["rsvd_limited"] or entry["usage_bytes"] or entry["rsvd_usage_bytes"])


def tree_of(host: Host) -> HugetlbTree | None:
    """The controller's cgroups of this observation."""
    return host.shared("hugetlb cgroups", read_tree)


def collect(host: Host) -> Fragment:
    found = tree_of(host)
    if found is None:
        raise NoData("no cgroup hierarchy has the hugetlb controller")
    keys = cgroup_units.keys_by_path(host)
    entries = [{**entry, "unit": keys.get(path)} for (path, _), entry in sorted(found.entries.items())]
    note = f"{found.left_out} cgroups are left out" if found.left_out else None
    owners = {"hugetlb_cgroups": [share_in(host, entry["cgroup_path"], "hugetlb") for entry in entries]}
    return Fragment(sample={"hugetlb_cgroups": entries}, note=note, owners=owners)


COLLECTOR = Collector(
    collect,
    sample={
        "hugetlb_cgroups": about(
            array(ref("hugetlb_cgroup"), 4096),
            "Cgroups that limit hugetlb pages or use some, by page size. Absent: no controller",
        )
    },
    definitions={
        "hugetlb_cgroup": about(
            record(
                {
                    "cgroup_path": {"type": "string", "maxLength": 4096},
                    "unit": UNIT_REF,
                    "version": {"enum": [1, 2]},
                    "page_bytes": PAGE_BYTES,
                    "usage_bytes": BYTES,
                    "limit_bytes": BYTES,
                    "limited": LIMITED,
                    "max_usage_bytes": about(BYTES, "Version 1 only"),
                    "failures": about(TICKS, "failcnt, or max of hugetlb.<size>.events"),
                    "rsvd_usage_bytes": BYTES,
                    "rsvd_limit_bytes": BYTES,
                    "rsvd_limited": LIMITED,
                    "rsvd_max_usage_bytes": BYTES,
                    "rsvd_failures": TICKS,
                },
                required=("cgroup_path", "version", "page_bytes"),
            ),
            "The hugetlb controller's files of one cgroup and page size",
        )
    },
)
