"""What runs on the node as units of work: pods, containers, systemd units, other cgroups, groups of processes.

Units without a parent share no process and no cgroup, so that their memory may be added up. Memory comes from the
memory controller where a unit has a cgroup of its own there, else from its processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from hugeplan_agent.collectors import cgroup_units, hugetlb_cgroups, kubernetes_node, servers
from hugeplan_agent.collectors.cgroup_memory import UnitMemory, has_less_above, read_memory
from hugeplan_agent.collectors.cgroup_owners import Hierarchy, share_in
from hugeplan_agent.collectors.cgroup_tree import MAX_CGROUPS, MAX_DEPTH, MAX_OF_SHARE, main_path, membership
from hugeplan_agent.collectors.cgroup_units import Placement, Unit, distinct, owner_of
from hugeplan_agent.collectors.keyvalue import largest, total
from hugeplan_agent.collectors.process_table import Process, chosen, need_status, read_rollups, table_of
from hugeplan_agent.collectors.unit_names import UnitName, name_of
from hugeplan_agent.collectors.unit_schema import UNIT, UNIT_KEY, UNIT_MEMORY
from hugeplan_agent.errors import NoData
from hugeplan_agent.fragment import Collector, Fragment
from hugeplan_agent.host import Host
from hugeplan_agent.schema import array, ref

MIN_UNIT_BYTES = 4 * 1024 * 1024
LOGS = "var/log/containers"
LOG_NAME = re.compile(r"(?P<pod>[^_]+)_(?P<namespace>[^_]+)_(?P<container>.+)-(?P<id>[0-9a-f]{64})\.log")
POD_LOGS = "var/log/pods"
POD_LOG_NAME = re.compile(r"(?P<namespace>[^_]+)_(?P<pod>[^_]+)_(?P<uid>[0-9a-f-]{32,36})")


def placement(host: Host) -> Placement:
    """All units, groups of processes included."""
    return host.shared("units", _all_units)


def _all_units(host: Host) -> Placement:
    found = cgroup_units.placement(host)
    groups: dict[str, Unit] = {}
    belongs = servers.server_of_pid(host)
    unit_of_pid = dict(found.unit_of_pid)
    for process in table_of(host).by_pid.values():
        if process.pid in unit_of_pid:
            continue
        name = _group_name(host, process, belongs)
        unit = groups.setdefault(name.key, Unit(name, None))
        unit.processes.append(process)
    distinct(groups.values(), {unit.key for unit in found.units})
    for unit in groups.values():
        for process in unit.processes:
            unit_of_pid[process.pid] = unit.key
            need_status(host, process)
    units = [*found.units, *groups.values()]
    read_rollups(host, table_of(host), _worth_a_look(host, groups.values()), owner_of(host))
    return Placement(units, unit_of_pid, found.tree, found.cut)


def _worth_a_look(host: Host, groups: Iterable[Unit]) -> list[Process]:
    """Processes whose sharing matters: the large ones, and all of some size that no memory cgroup accounts for."""
    wanted = {process.pid: process for process in chosen(table_of(host), owner_of(host))[0]}
    for group in groups:
        wanted.update({process.pid: process for process in group.processes if process.rss_bytes >= MIN_UNIT_BYTES})
    return list(wanted.values())


def _group_name(host: Host, process: Process, belongs: dict[int, str]) -> UnitName:
    """A systemd unit where systemd's own tree tells, else the database, else the processes of one name."""
    path = main_path(membership(host, process.pid, process.key))
    parts = [part for part in path.split("/") if part not in ("", "..")][:MAX_DEPTH]
    for end in range(1, len(parts) + 1):
        if name := name_of("/" + "/".join(parts[:end])):
            return name
    database = belongs.get(process.pid)
    if database is not None:
        return UnitName("process_group", f"processes:{database}"[:512], database.partition("@")[0])
    return UnitName("process_group", f"processes:{process.name}"[:512], process.name)


@dataclass
class LogNames:
    """Names that the kubelet gives its log files: the API's names without the API."""

    pods: dict[str, tuple[str, str]]
    containers: dict[str, str]
    asked: bool = False
    """Whether the API server is asked for the others."""


def log_names(host: Host) -> LogNames:
    """uid -> namespace and name of a pod; id -> name of a container."""
    pods, containers = {}, {}
    for folder in (POD_LOGS, LOGS):
        try:
            names = host.names(folder)
        except (NoData, OSError):
            continue
        for name in names:
            if match := POD_LOG_NAME.fullmatch(name) if folder == POD_LOGS else None:
                pods[match["uid"]] = (match["namespace"], match["pod"])
            elif match := LOG_NAME.fullmatch(name) if folder == LOGS else None:
                containers[match["id"]] = match["container"]
    return LogNames(pods, containers)


def describe(unit: Unit, names: LogNames) -> dict[str, Any]:
    """Kind, key and names of a unit as the report has them."""
    name = unit.name
    text = name.name
    pod, container = None, None
    owner = name.pod_uid or (unit.parent.name.pod_uid if unit.parent else None)
    if owner is not None:
        namespace, pod_name = names.pods.get(owner, (None, None))
        qos = name.qos_class or (unit.parent.name.qos_class if unit.parent else None)
        pod = {"uid": owner, "namespace": namespace, "name": pod_name, "qos_class": qos}
        text = f"{namespace}/{pod_name}" if pod_name else f"pod{'?' * names.asked} {owner}"
    if name.kind == "container":
        own = names.containers.get(name.container_id or "")
        container = {"id": name.container_id, "name": own, "runtime": name.runtime}
        text = f"{text}/{own or (name.container_id or '')[:12]}" if pod else own or name.name
    return {
        "key": name.key,
        "kind": name.kind,
        "name": text[:253],
        "parent": unit.parent.key if unit.parent else None,
        "cgroup_path": unit.path,
        "pod": pod,
        "container": container,
        "process_count": len(unit.processes),
    }


def memory_of(host: Host, unit: Unit, tree: Hierarchy | None) -> UnitMemory:
    """The unit's memory from its cgroup, else from its processes."""
    if tree is None or unit.path is None:
        return from_processes(unit.processes)
    memory = read_memory(host, tree, unit.path)
    is_closed = unit.name.kind in ("pod", "container")  # from within, what is above cannot be seen
    if tree.version == 2 and not is_closed and has_less_above(host, tree, unit.path, memory["limit_bytes"]):
        memory |= {"limit_bytes": None, "limited": None}  # programs differ in which of the two they take for theirs
    return memory


def from_processes(processes: list[Process]) -> UnitMemory:
    """Sums over processes: proportional shares where each large one was read, else resident sets."""
    shares = [process.rollup for process in processes if process.rollup and "pss_anon_bytes" in process.rollup]
    has_shares = all(process.rollup or process.rss_bytes < MIN_UNIT_BYTES for process in processes)
    if has_shares and shares:
        rest = [process for process in processes if not process.rollup]
        anon: int | None = sum(one["pss_anon_bytes"] for one in shares) + _sum(one.rss_anon_bytes for one in rest)
        shmem: int | None = sum(one["pss_shmem_bytes"] for one in shares)
        file: int | None = sum(one["pss_file_bytes"] for one in shares)
        pss: int | None = sum(one["pss_bytes"] for one in shares) + _sum(process.rss_anon_bytes for process in rest)
    else:
        anon = total(process.rss_anon_bytes for process in processes)
        shmem = total(process.rss_shmem_bytes for process in processes)
        file = total(process.rss_file_bytes for process in processes)
        pss = None
    ages = [process.rollup_age_seconds for process in processes if process.rollup_age_seconds is not None]
    return {
        "source": "pss" if has_shares and shares else "rss",
        "anon_bytes": anon,
        "shmem_bytes": shmem,
        "file_bytes": file,
        "swap_bytes": total(process.swap_bytes for process in processes),
        "page_tables_bytes": total(process.vm_pte_bytes for process in processes),
        "anon_huge_bytes": sum(one.get("anon_huge_bytes", 0) for one in shares) if pss is not None else None,
        "pss_bytes": pss,
        "pss_age_seconds": max(ages, default=None) if pss is not None else None,
        "rss_bytes": _sum(process.rss_bytes for process in processes),
    }


def _sum(values: Iterable[int | None]) -> int:
    return sum(value or 0 for value in values)


def hugetlb_bytes(host: Host, unit: Unit) -> int | None:
    """Huge pages that the unit uses: the controller's count, else what its processes touched."""
    entries = hugetlb_entries(host, unit)
    if entries:
        return sum(int(entry["usage_bytes"]) for entry in entries)
    return largest(process.hugetlb_bytes for process in unit.processes)


def hugetlb_entries(host: Host, unit: Unit) -> list[dict[str, Any]]:
    """What the hugetlb controller says of the unit's cgroup, per page size."""
    tree = hugetlb_cgroups.tree_of(host)
    return [] if tree is None or unit.path is None else tree.by_path.get(unit.path, [])


def collect(host: Host) -> Fragment:
    placed = placement(host)
    names = log_names(host)
    told = None
    names.asked = kubernetes_node.is_offered(os.environ)
    if names.asked:
        uids = {unit.name.pod_uid for unit in placed.units if unit.name.pod_uid is not None}
        told_names = kubernetes_node.pod_names(host, os.environ, uids - names.pods.keys())
        names.pods = {**told_names, **names.pods}  # the kubelet's own word first
        told = kubernetes_node.pods_note(host)
    belongs = servers.server_of_pid(host)
    siblings: dict[str, int] = {}
    for unit in placed.units:
        if unit.parent is not None and unit.processes:
            siblings[unit.parent.key] = siblings.get(unit.parent.key, 0) + 1
    entries, small = [], 0
    owners: dict[str, Hashable] = {}
    stays: set[str] = set()
    for unit in placed.units:
        keys = sorted({belongs[process.pid] for process in unit.processes if process.pid in belongs})
        if unit.parent is not None and not keys and siblings.get(unit.parent.key, 0) <= 2:
            continue  # a pod of one container and its sandbox: the pod says it all
        memory = memory_of(host, unit, placed.tree)
        used = [memory.get("anon_bytes"), memory.get("shmem_bytes"), memory.get("rss_bytes")]
        huge = hugetlb_bytes(host, unit)
        if not keys and not huge and all(value is not None and value < MIN_UNIT_BYTES for value in used[:2]):
            small += 1
            continue
        memory["hugetlb_bytes"] = huge
        entries.append({**describe(unit, names), "memory": memory, "databases": keys})
        path = (unit.parent or unit).path
        owners[unit.key] = owner_of(host)(unit.processes[0]) if path is None else share_in(host, path)
        if keys or huge or any(one["limit_bytes"] or one["rsvd_limit_bytes"] for one in hugetlb_entries(host, unit)):
            stays |= {unit.key, (unit.parent or unit).key}
    entries.sort(key=_tops_and_largest_first)
    notes = [
        f"{small} units below {MIN_UNIT_BYTES >> 20} MiB are left out" if small else "",
        f"below {placed.cut} cgroups not all are read: at most {MAX_CGROUPS}, {MAX_OF_SHARE} of one account"
        if placed.cut
        else "",
        "no memory controller: units are groups of processes" if placed.tree is None else "",
        told or "",
    ]
    return Fragment(
        sample={"units": entries},
        note="; ".join(filter(None, notes)) or None,
        owners={"units": [owners[entry["key"]] for entry in entries]},
        stays={"units": [entry["key"] in stays for entry in entries]},
    )


def _tops_and_largest_first(entry: dict[str, Any]) -> tuple[bool, int, str]:
    return entry["parent"] is not None, -_claim(entry["memory"]), entry["key"]


def _claim(memory: UnitMemory) -> int:
    return (memory.get("anon_bytes") or 0) + (memory.get("shmem_bytes") or 0)


COLLECTOR = Collector(
    collect,
    sample={"units": array(ref("unit"), 2048)},
    definitions={
        "unit": UNIT,
        "unit_key": UNIT_KEY,
        "unit_memory": UNIT_MEMORY,
    },
)
