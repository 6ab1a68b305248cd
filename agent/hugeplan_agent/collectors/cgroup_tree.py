"""The control groups of the node: which version rules memory and hugetlb, where their trees lie, who is in which.

A container that reads the node's /proc sees paths relative to its own cgroup namespace (``/../../kubepods...``). Where
this begins in the tree under /sys/fs/cgroup, which is the node's own, is known by the container's own mount of it.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hugeplan_agent.collectors.cgroup_owners import Hierarchy, is_given_away, share_in
from hugeplan_agent.collectors.process_table import table_of
from hugeplan_agent.collectors.unit_names import share_of
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host

OWN = Path("/")
"""Where FOLDER is this process's own: in a container with a cgroup namespace its top is the namespace's."""
MAX_CGROUPS = 8192
"""Of a tree. A user whose cgroup was delegated may make as many below it as there is memory for."""
MAX_OF_SHARE = 1024
"""Below one account's slice, one pod or one cgroup that was given away: the others' are read all the same."""
MAX_DEPTH = 16
MAX_PATH_BYTES = 1024
"""Of a path, in UTF-8. The kernel allows four times as many, and a process's would take 16 KiB here."""
PLACE_BYTES = 512
"""A longer path takes the room of two."""


def paths(host: Host, tree: Hierarchy, cut: list[str] | None = None) -> Iterator[str]:
    """The cgroups below the root, parents first, at most MAX_CGROUPS. Raises NoData without the folder.

    Children count when they are listed, so that what lies below one of them leaves the room of its neighbours.
    ``cut`` takes those of which not all below them are read.
    """
    waiting = [("", 0, "")]
    room = MAX_CGROUPS
    used: Counter[str] = Counter()
    while waiting:
        path, depth, given = waiting.pop()
        if path:
            yield path
        if depth == 1 and is_given_away(host, tree, path[1:]):
            given = path
        # What root makes above all accounts shares the whole room.
        share = given or (share_of(path) if depth > 1 else "")
        each = _places(path)
        most = (min(room, MAX_OF_SHARE - used[share]) if share else room) // each
        if depth >= MAX_DEPTH:
            continue
        try:
            names = host.folders(f"{tree.root}{path}", most + 1)
        except (NoData, OSError):
            if not path:
                raise NoData(f"{host.path(tree.root)} does not exist") from None
            continue
        listed = [name for name in names[:most] if len(_bytes(f"{path}/{name}")) <= MAX_PATH_BYTES]
        if len(listed) < len(names) and cut is not None:
            cut.append(path)
        room -= each * len(listed)
        used[share] += each * len(listed)
        waiting.extend((f"{path}/{name}", depth + 1, given) for name in reversed(listed))


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def _places(path: str) -> int:
    return 1 + len(_bytes(path)) // PLACE_BYTES


def shortened(path: str) -> str:
    """``path``, or the nearest one above it that ``paths`` lists: whoever nests deeper counts there."""
    data = _bytes(path)
    if len(data) > MAX_PATH_BYTES:
        path = data[: MAX_PATH_BYTES + 1].rpartition(b"/")[0].decode("utf-8", "surrogatepass")
    return "/".join(path.split("/")[: MAX_DEPTH + 1 + path.count("/..")])


def parse_membership(text: str) -> dict[str, str]:
    """Controller -> path from /proc/PID/cgroup; version 2 and systemd's own tree are ``""`` and ``name=systemd``."""
    found = {}
    same: dict[str, str] = {}
    for line in text.split("\n"):  # of all that separates lines the kernel allows only this one in no name
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        path = shortened(path)
        if colon:
            for controller in controllers.split(","):
                found[sys.intern(controller)] = same.setdefault(path, path)
    return found


def main_path(member: dict[str, str]) -> str:
    """Of a process's paths the one that tells whom it runs for."""
    return next((member[name] for name in ("name=systemd", "", "memory") if member.get(name, "/") != "/"), "/")


class _Memberships:
    """The cgroups of all processes, kept while these live: services do not move their processes about. What many have
    in common is kept once, and of one share no more than of its cgroups: beyond it a process is known by its share."""

    def __init__(self, host: Host) -> None:
        host.keep_only("cgroup of process", (process.key for process in table_of(host).by_pid.values()))
        self._host, self._of_process = host, host.kept("cgroup of process")
        self._known: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._used: Counter[str] = Counter()
        for member in {id(member): member for member in self._of_process.values()}.values():
            self._once(member)

    def of(self, pid: int, key: object) -> dict[str, str]:
        if key not in self._of_process:
            try:
                data = self._host.read_bytes(f"proc/{pid}/cgroup")
            except (NoData, OSError):
                data = b""
            self._of_process[key] = self._once(parse_membership(os.fsdecode(data)))  # as folders' names are
        found: dict[str, str] = self._of_process[key]
        return found

    def _once(self, member: dict[str, str]) -> dict[str, str]:
        paths = tuple(member.items())
        if paths not in self._known:
            path = main_path(member)
            share = share_in(self._host, path)
            if self._used[share] >= MAX_OF_SHARE:
                member = {name: f"/{share_in(self._host, path)}" for name, path in paths}
                return self._known.setdefault(tuple(member.items()), member)
            self._used[share] += _places(path)
            self._known[paths] = member
        return self._known[paths]


def membership(host: Host, pid: int, key: object) -> dict[str, str]:
    """The cgroups of a process of this observation, shared with others: not to be changed."""
    return host.shared("memberships", _Memberships).of(pid, key)


def path_in(member: dict[str, str], tree: Hierarchy, controller: str, known: PathIndex) -> str | None:
    """The process's path in a hierarchy's tree; None when it is not known."""
    path = member.get(controller if tree.version == 1 else "")
    return None if path is None else known.resolve(path)


class PathIndex:
    """Finds the tree's path for a path seen from inside a cgroup namespace."""

    def __init__(self, host: Host, tree: Hierarchy, tree_paths: list[str]) -> None:
        self._host, self._tree = host, tree
        self._paths = set(tree_paths)

    def resolve(self, path: str) -> str | None:
        """``path`` itself where the tree has it; else where its dots lead to from the namespace's root. Where this is
        unknown, the path of the tree that follows the dots, or the only one that ends so and that root made."""
        if path == "/":
            return path
        both = (path, path.removesuffix(" (deleted)"))  # a cgroup may really be called so
        return next((found for found in map(self._find, both) if found), None)

    def _find(self, path: str) -> str | None:
        if path in self._paths:
            return path
        dots = 0
        while f"{path}/".startswith("/../"):
            path, dots = path[3:], dots + 1
        if dots and self._root:
            above = self._root.split("/")
            path = "/".join(above[:-dots]) + path if dots < len(above) else ""
            return path if path in self._paths else None
        if not dots or not path or path in self._paths:
            return (dots and path) or None
        end = _bytes(path)[::-1]
        at = bisect_left(self._backwards, end)
        found = [path for path in self._backwards[at : at + 2] if path.startswith(end)]
        return found[0][::-1].decode("utf-8", "surrogatepass") if len(found) == 1 else None

    @cached_property
    def _root(self) -> str:
        """Where this process's cgroup namespace begins in the tree; empty: unknown. It does not change."""
        kept = self._host.kept("cgroup namespaces")
        found: str = kept.get(self._tree.root) or next(filter(self._is_own, sorted(self._paths)), "")
        kept[self._tree.root] = found
        return found

    def _is_own(self, path: str) -> bool:
        try:
            return os.path.samestat((OWN / self._tree.root).stat(), self._host.state(f"{self._tree.root}{path}"))
        except OSError:
            return False

    @cached_property
    def _backwards(self) -> list[bytes]:
        """The paths with nothing but root's above them: users make any name below what was given to them. Those that
        end alike stand side by side, and two of them tell that there is not one only."""
        roots = {""}
        for path in sorted({path.rpartition("/")[0] for path in self._paths}):
            if path.rpartition("/")[0] not in roots or is_given_away(self._host, self._tree, path[1:]):
                continue
            if self._host.path(f"{self._tree.root}{path}").is_dir():
                roots.add(path)
        return sorted(_bytes(path)[::-1] for path in self._paths if path.rpartition("/")[0] in roots)
