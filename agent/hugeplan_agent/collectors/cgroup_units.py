"""Units of work that have a cgroup of their own in the memory controller's tree, and the processes in each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from hugeplan_agent.collectors.cgroup_owners import Hierarchy, hierarchy, is_given_away, made_by_root, share_in
from hugeplan_agent.collectors.cgroup_tree import PathIndex, main_path, membership, path_in, paths
from hugeplan_agent.collectors.foreign import Account
from hugeplan_agent.collectors.process_table import FIRST_SUBORDINATE, Process, table_of
from hugeplan_agent.collectors.unit_names import MAX_KEY, UnitName, name_of
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host
from hugeplan_agent.printable import storable


@dataclass
class Unit:
    """One unit with its processes. ``path`` is None for a group of processes without a cgroup of its own."""

    name: UnitName
    path: str | None
    parent: Unit | None = None
    processes: list[Process] = field(default_factory=list)

    @property
    def key(self) -> str:
        return self.name.key


@dataclass
class Placement:
    """The units of one observation and who is in which. The innermost unit of a process wins."""

    units: list[Unit]
    unit_of_pid: dict[int, str]
    tree: Hierarchy | None
    cut: int = 0
    """Cgroups of which not all below them are read."""


def find_cgroup_units(
    tree_paths: Iterable[str], has_processes: Callable[[str], bool], is_roots: Callable[[str], bool] = bool
) -> list[Unit]:
    """Units among the cgroups of the memory controller, parents first.

    Below a unit only a pod's or a user's containers count; other cgroups inside a unit are its own affair.
    ``has_processes``: tells of a cgroup without a known name whether processes are in it itself. ``is_roots``: whether
    root made it. A user's own has its name only within a unit.
    """
    found: dict[str, Unit] = {}
    for path in tree_paths:
        above = _unit_above(path, found)
        name = name_of(path)
        if above is None and name is not None and not is_roots(path):
            name = None
        if above is None:
            if name is None and not _is_folder(path) and has_processes(path):
                name = UnitName("cgroup", f"cgroup:{path}"[:MAX_KEY], path.rpartition("/")[2] or path)
            if name is not None:
                found[path] = Unit(name, path)
        elif name is not None and name.kind == "container" and above.name.kind != "container":
            found[path] = Unit(name, path, above)
    distinct(found.values(), set(), is_roots)
    return list(found.values())


def distinct(units: Iterable[Unit], taken: set[str], is_roots: Callable[[str], bool] = bool) -> None:
    """Keys that are each once: whoever has a cgroup gives any name to one below it. Root's first keeps its own, and of
    users' alone none does: nobody's server goes by the key of another's. A container's key does not say whose it is."""
    alike: dict[str, list[Unit]] = {}
    for unit in units:
        alike.setdefault(storable(unit.key), []).append(unit)  # or two would be alike in the report
    for key, same in alike.items():
        is_one = key not in taken and len(same) == 1 and "#" not in key  # which would look like one that was made
        of_root = (one for one in same if key not in taken and is_roots(one.path or "x"))
        keeper = same[0] if is_one and same[0].name.kind.startswith("systemd_") else next(of_root, None)
        for unit in same:
            mark = hashlib.sha256((unit.path or unit.key).encode("utf-8", "surrogatepass")).hexdigest()[:12]
            unit.name = replace(unit.name, key=key if unit is keeper else f"{key[: MAX_KEY - 13]}#{mark}")


def _unit_above(path: str, found: dict[str, Unit]) -> Unit | None:
    while path:
        path = path.rpartition("/")[0]
        if path in found:
            return found[path]
    return None


def _is_folder(path: str) -> bool:
    """Slices and the roots of Kubernetes hold units; they are none themselves."""
    last = path.rpartition("/")[2]
    return last.endswith(".slice") or last in ("kubepods", "burstable", "besteffort", "docker", "lxc", "machine")


def placement(host: Host) -> Placement:
    """The units in cgroups of this observation."""
    return host.shared("cgroup units", _read)


def _read(host: Host) -> Placement:
    tree = hierarchy(host, "memory")
    if tree is None:
        return Placement([], {}, None)
    cut: list[str] = []
    try:
        tree_paths = list(paths(host, tree, cut))
    except NoData:
        return Placement([], {}, None)
    index = PathIndex(host, tree, tree_paths)
    members: dict[str, list[Process]] = {}
    for process in table_of(host).by_pid.values():
        path = path_in(membership(host, process.pid, process.key), tree, "memory", index)
        if path is not None:
            members.setdefault(path, []).append(process)
    units = find_cgroup_units(tree_paths, lambda path: path in members, lambda path: made_by_root(host, tree, path))
    by_path = {unit.path: unit for unit in units if unit.path is not None}
    unit_of_pid = {}
    for path, processes in members.items():
        unit = by_path.get(path) or _unit_above(path, by_path)
        if unit is None:
            continue
        for process in processes:
            unit_of_pid[process.pid] = unit.key
        one: Unit | None = unit
        while one is not None:
            one.processes.extend(processes)
            one = one.parent
    return Placement(units, unit_of_pid, tree, len(cut))


OVERFLOW = 65534
"""What the kernel shows for user ids that a namespace does not know."""


def account_of(host: Host, process: Process) -> Account:
    """Whom a process counts for. Its status has been read."""
    return account_in(host, process, membership(host, process.pid, process.key))


def account_in(host: Host, process: Process, member: dict[str, str]) -> Account:
    """The same by the process's cgroups, without a look at others."""
    path = main_path(member)
    tree = host.shared("tree of memory", lambda host: hierarchy(host, "memory"))
    share = share_in(host, path)
    path = path.lstrip("/.")
    first = path.partition("/")[0]
    name = name_of(share)
    # Whoever is root in a container is any user there; a user's slice and what lies below a service are one account's.
    is_below = process.is_below or first in ("user.slice", "machine.slice")
    is_of_many = not is_below and (path == share or _is_roots(host, tree, path))
    if not is_of_many or (name is not None and name.kind in ("pod", "container")) or process.user == OVERFLOW:
        return Account(share)
    return Account(share, process.user if process.user is None else min(process.user, FIRST_SUBORDINATE))


def _is_roots(host: Host, tree: Hierarchy | None, path: str) -> bool:
    """Whether a cgroup is there and root's: below its service, only root puts a user's processes into it."""
    try:
        is_there = tree is not None and host.path(f"{tree.root}/{path}").is_dir()
    except OSError:  # no tree has so long a name, or this user may not look
        return False
    return tree is not None and is_there and not is_given_away(host, tree, path)


def owner_of(host: Host) -> Callable[[Process], Account]:
    """``account_of``, each process looked at once."""
    known = host.shared("accounts", lambda _: {})

    def owner(process: Process) -> Account:
        if process.pid not in known:
            known[process.pid] = account_of(host, process)
        return known[process.pid]

    return owner


def keys_by_path(host: Host) -> dict[str, str]:
    """Path in the memory controller's tree -> key of the unit there. Runtimes use one path for all controllers."""
    return {unit.path: unit.key for unit in placement(host).units if unit.path is not None}
