"""Nothing that a node's users write makes the agent large, or a report larger than a server takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hugeplan_agent.collectors import cgroup_tree, units
from hugeplan_agent.collectors.cgroup_tree import MAX_PATH_BYTES, hierarchy, membership, paths
from hugeplan_agent.collectors.process_table import table_of
from hugeplan_agent.host import Host

Machine = Callable[[str], Host]
MANAGER = "/user.slice/user-1000.slice/user@1000.service"
DEEP = MANAGER + "".join(f"/{letter * 250}" for letter in "abcdefghijklmn") + "/\U0001f600"


@pytest.fixture
def host(machine: Machine) -> Host:
    return machine("kubernetes-v2")


def start(host: Host, pid: int, cgroup: str, name: str = "sleep") -> Path:
    """A process of a local user that holds next to nothing."""
    place = host.path(f"proc/{pid}")
    place.mkdir()
    tail = "0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 7 2097152 100 18446744073709551615"
    (place / "stat").write_text(f"{pid} ({name}) S 1 {pid} {pid} {tail}\n")
    (place / "status").write_text(f"Name:\t{name}\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t{pid}\nRssAnon:\t4 kB\n")
    (place / "cgroup").write_text(f"0::{cgroup}\n")
    return place


def test_many_processes_in_the_longest_cgroup_take_little_and_count_for_the_one_above(host: Host) -> None:
    for pid in range(40000, 40400):
        start(host, pid, DEEP)
    host.path(f"sys/fs/cgroup{DEEP[:2000].rpartition('/')[0]}").mkdir(parents=True)
    table_of(host)
    tracemalloc.start()
    placed = units.placement(host)
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 1_500_000, "each had a path of 15 KB of its own"
    assert len({id(membership(host, pid, (pid, 7))) for pid in range(40000, 40400)}) == 1
    unit = next(unit for unit in placed.units if unit.path == MANAGER)
    assert len(unit.processes) == 400


def test_a_cgroup_with_a_long_path_is_said_not_to_be_read(host: Host) -> None:
    folder = host.path(f"sys/fs/cgroup{DEEP[:1150].rpartition('/')[0]}")
    folder.mkdir(parents=True)
    tree = hierarchy(host, "memory")
    assert tree is not None
    cut: list[str] = []
    found = list(paths(host, tree, cut))
    longest = max(found, key=len)
    assert MAX_PATH_BYTES - 256 < len(longest) <= MAX_PATH_BYTES
    assert cut == [longest]


def test_of_one_account_as_many_memberships_are_kept_as_cgroups(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_tree, "MAX_OF_SHARE", 10)
    for pid in range(40000, 40040):
        start(host, pid, f"{MANAGER}/{pid}")
    start(host, 40040, "/user.slice/user-1002.slice/session-1.scope")
    found = {pid: membership(host, pid, (pid, 7))[""] for pid in range(40000, 40041)}
    assert len({found[pid] for pid in range(40000, 40040)}) == 11
    assert found[40039] == "/user.slice/user-1000.slice"
    assert found[40040] == "/user.slice/user-1002.slice/session-1.scope", "others keep theirs"
    for pid in range(40000, 40040):
        (host.path(f"proc/{pid}") / "stat").unlink()
    host.begin()
    start(host, 40050, f"{MANAGER}/40050")
    assert membership(host, 40050, (40050, 7))[""] == f"{MANAGER}/40050", "of those that have ended nothing is kept"
