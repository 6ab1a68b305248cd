"""Whose a control group is: which version rules a controller, what root gave away, and what one account can make."""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan_agent.collectors.unit_names import share_of
from hugeplan_agent.host import Host

FOLDER = "sys/fs/cgroup"


@dataclass(frozen=True)
class Hierarchy:
    """One controller's tree: its version and its root folder."""

    version: int
    root: str

    def file(self, path: str, name: str) -> str:
        """A file of the cgroup ``path``, which begins with a slash."""
        return f"{self.root}{path.rstrip('/')}/{name}"


def hierarchy(host: Host, controller: str) -> Hierarchy | None:
    """Where a controller rules; None when it is not there.

    A hybrid machine mounts version 2 without controllers beside version 1.
    """
    controllers = host.read_optional(f"{FOLDER}/cgroup.controllers")
    if controllers is not None:
        return Hierarchy(2, FOLDER) if controller in controllers.split() else None
    if host.path(f"{FOLDER}/{controller}").is_dir():
        return Hierarchy(1, f"{FOLDER}/{controller}")
    unified = host.read_optional(f"{FOLDER}/unified/cgroup.controllers")
    return Hierarchy(2, f"{FOLDER}/unified") if unified is not None and controller in unified.split() else None


def is_given_away(host: Host, tree: Hierarchy, name: str) -> bool:
    """Whether a cgroup at the top belongs to another user than the tree: that one makes what it likes below."""
    try:
        top, own = (host.path(f"{tree.root}/{one}").stat().st_uid for one in ("", name))
        return bool(name) and own not in {top, 0}  # of a container without root the top is nobody's
    except OSError:
        return False


def made_by_root(host: Host, tree: Hierarchy, path: str) -> bool:
    """Whether a cgroup lies in one that was not given away: users make any name below what was given to them."""
    return not is_given_away(host, tree, path.rpartition("/")[0][1:])


def share_in(host: Host, path: str, controller: str = "memory") -> str:
    """``share_of``, but that all below a cgroup at the top that was given away is one share."""
    first = path.lstrip("/.").partition("/")[0]
    tree = host.shared(f"tree of {controller}", lambda host: hierarchy(host, controller))
    given = host.shared(f"given away of {controller}", lambda _: {})
    if first not in given:
        given[first] = tree is not None and is_given_away(host, tree, first)
    return first if given[first] else share_of(path)
