"""What a user of the node may write costs little per observation, and leaves what others' servers say as it was."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hugeplan_agent.collectors import cgroup_tree, collect_all, fitting, foreign, process_table, servers
from hugeplan_agent.collectors.cgroup_owners import Hierarchy, hierarchy, is_given_away
from hugeplan_agent.collectors.cgroup_tree import PathIndex, paths
from hugeplan_agent.collectors.engines.base import PART_BYTES
from hugeplan_agent.collectors.process_table import Process, ProcessTable
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host
from hugeplan_agent.printable import storable
from hugeplan_agent.rights import Rights
from hugeplan_agent.spool import Bounds, Spool

MIB = 1024**2
Machine = Callable[[str], Host]
MARIADB = b"\00010.11.19-MariaDB\0"
LOCAL, SYSTEM = 1001, 27


@pytest.fixture
def host(machine: Machine) -> Host:
    return machine("kubernetes-v2")


@pytest.fixture(autouse=True)
def next_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute passes between observations: half of them read again what was left."""
    now = [time.monotonic()]

    def later() -> float:
        return now[0]

    def begin(self: Host) -> None:
        now[0] += 60.0
        self._observation.clear()

    monkeypatch.setattr(time, "monotonic", later)
    monkeypatch.setattr(Host, "begin", begin)


def server(
    host: Host,
    pid: int,
    user: int,
    *,
    program: str = "mariadbd",
    arguments: str = "",
    cgroup: str = "/",
    below: str = "",
) -> Path:
    """One more server of a user; its folder in /proc."""
    model, place = host.path("proc/2201"), host.path(f"proc/{pid}")
    place.mkdir()
    stat = (model / "stat").read_text().replace("2201 (mysqld)", f"{pid} ({program})", 1)
    (place / "stat").write_text(stat)
    (place / "status").write_text(f"Name:\t{program}\nUid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{pid}{below}\n")
    (place / "cgroup").write_text(f"0::{cgroup}\n")
    (place / "cmdline").write_text("\0".join([f"/usr/sbin/{program}", *arguments.split()]) + "\0")
    (place / "environ").write_text("")
    (place / "root").mkdir()
    (place / "cwd").symlink_to("/var/lib/mysql")
    return place


def program(host: Host, place: Path, content: bytes, hole_bytes: int = 0) -> Path:
    """What runs: a file that begins with a hole, which is read like any other bytes."""
    file = host.path(f"programs/{place.name}")
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as opened:
        opened.seek(hole_bytes)
        opened.write(content)
    (place / "exe").symlink_to(file)
    return file


def observe(host: Host) -> dict[int, dict[str, Any]]:
    """The servers of the next observation by their process."""
    host.begin()
    return {one["main_pid"]: one for one in collect_all(host).sample["databases"]}


def left(host: Host) -> foreign.Foreign:
    """The room that the newest observation left."""
    return foreign.foreign(host)


def test_a_large_program_is_searched_in_parts_and_once(host: Host) -> None:
    size = 2 * foreign.PROGRAM_BYTES + foreign.PROGRAM_BYTES // 2
    program(host, server(host, 26001, SYSTEM), MARIADB, size)
    program(host, server(host, 26002, SYSTEM), MARIADB, size)
    found = []
    for _ in range(6):
        versions = [one["version"] for pid, one in sorted(observe(host).items()) if pid > 26000]
        found.append(versions)
        # The last piece may be more than what was left.
        assert min(left(host).programs.values()) > -MIB
    assert found[0] == [None, None]
    assert found[-1] == ["10.11.19", "10.11.19"]
    observe(host)
    assert set(left(host).programs.values()) == {foreign.PROGRAM_BYTES}, "nothing is read again"


def test_a_local_users_programs_leave_the_room_of_roots(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    room = foreign.Foreign()
    assert set(room.programs) == {True, False}
    # Whoever runs this owns all of these files: one that is root's is told by its owner.
    for pid in range(26001, 26011):
        program(host, server(host, pid, LOCAL), b"x", 40 * MIB)
    begun = time.thread_time()
    observe(host)
    many = time.thread_time() - begun
    read = sum(foreign.PROGRAM_BYTES - count for count in left(host).programs.values())
    assert foreign.PROGRAM_BYTES <= read < foreign.PROGRAM_BYTES + MIB
    monkeypatch.setattr(foreign, "PROGRAM_BYTES", 10 * foreign.PROGRAM_BYTES)
    again = Host(host.root)
    begun = time.thread_time()
    observe(again)
    assert many < time.thread_time() - begun, "what is bounded costs less than what is not"


def test_a_program_that_was_written_to_is_another_one(host: Host) -> None:
    file = program(host, server(host, 26001, SYSTEM), MARIADB)
    assert observe(host)[26001]["version"] == "10.11.19"
    file.write_bytes(MARIADB.replace(b"10.11.19", b"11.4.2") + b"longer")
    for _ in range(11):  # settings are read again after ten minutes
        found = observe(host)[26001]["version"]
    assert found == "11.4.2"


def test_the_constant_is_found_across_two_pieces(host: Host) -> None:
    for before in range(MIB - len(MARIADB) - 1, MIB + 2):
        place = server(host, 30_000 + before, SYSTEM)
        program(host, place, b"x-MariaDB" + MARIADB, before)
    observe(host)  # so many are more than one observation's
    found = observe(host)
    assert {one["version"] for pid, one in found.items() if pid > 30_000} == {"10.11.19"}


def test_marks_without_a_version_cost_little(host: Host) -> None:
    file = program(host, server(host, 26001, LOCAL), b"-MariaDB" * (2 * MIB))
    pattern_only = re.compile(rb"\0(1\d\.\d{1,2}\.\d{1,3})(?:-\d{1,3})?-MariaDB[^\0]{0,64}\0")
    assert pattern_only.search(file.read_bytes()) is None
    assert observe(host)[26001]["version"] is None


def test_a_users_option_files_are_read_within_a_share_and_others_all_the_same(host: Host) -> None:
    line = b"[mysqld]\nkey_buffer_size=1M\n" + b"# " + b"x" * 1000 + b"\n"
    for pid in range(26001, 26011):
        place = server(host, pid, LOCAL, arguments=f"--defaults-file=/home/{pid}/my.cnf")
        folder = place / "root/home" / str(pid)
        (folder / "d").mkdir(parents=True)
        (folder / "my.cnf").write_bytes(f"!includedir /home/{pid}/d\n".encode())
        for number in range(20):
            (folder / "d" / f"{number}.cnf").write_bytes(line * 300)
    good = server(host, 26100, SYSTEM, arguments="--defaults-file=/etc/my.cnf")
    (good / "root/etc").mkdir()
    (good / "root/etc/my.cnf").write_bytes(b"[mysqld]\nkey_buffer_size=3M\n")
    found = observe(host)
    used = left(host).used
    assert used[foreign.Account("", LOCAL)] <= foreign.SHARE_BYTES + MIB
    assert found[26100]["settings"]["key_buffer_size"]["value"] == "3M"
    assert found[26100]["settings_complete"] is True, found[26100]["settings_note"]
    assert any(
        "too much to read in one observation" in (found[pid]["settings_note"] or "") for pid in range(26001, 26011)
    )
    # Those that were read are not read again, so the next ones have their turn.
    assert observe(host)[26010]["settings_complete"] is not None


def test_links_through_many_folders_are_followed_within_a_share(host: Host) -> None:
    """A few characters are hundreds of folders."""
    for pid in range(26001, 26009):
        home = server(host, pid, LOCAL, arguments="--defaults-file=/home/my.cnf") / "root/home"
        deep = "/".join(["d"] * 240)
        (home / deep).mkdir(parents=True)
        (home / "p").symlink_to(f"{deep}/gone")
        (home / "my.cnf").write_text("[mysqld]\n" + "!include /home/p\n" * 60)
    observe(host)
    assert host.followed <= 2 * foreign.SHARE_BYTES / PART_BYTES
    assert left(host).used[foreign.Account("", LOCAL)] >= foreign.SHARE_BYTES


@pytest.mark.parametrize("name", ["cmdline", "environ", "maps"])
def test_large_entries_of_proc_are_read_within_a_share(host: Host, name: str) -> None:
    text = "7f0000000000-7f0040000000 rw-s 00000000 00:01 1 /dev/zero\n" if name == "maps" else "A=" + "b" * 998 + "\0"
    for pid in range(26001, 26031):
        (server(host, pid, LOCAL) / name).write_text(text * (3 * MIB // len(text)))
    good = server(host, 26100, SYSTEM, arguments="--key-buffer-size=5M")
    found = observe(host)
    assert left(host).used[foreign.Account("", LOCAL)] <= foreign.SHARE_BYTES + 4 * MIB
    assert found[26100]["settings"]["key_buffer_size"]["value"] == "5M"
    assert good.exists()


def test_many_processes_named_like_servers_leave_room_for_real_ones(host: Host) -> None:
    for number in range(servers.MAX_SERVERS + 100):
        server(host, 26001 + number, LOCAL)
    server(host, 29999, SYSTEM, arguments="--key-buffer-size=5M")
    found = observe(host)
    assert len(found) == servers.MAX_SERVERS
    assert found[29999]["settings"]["key_buffer_size"]["value"] == "5M"
    assert 5001 in found, "so is the PostgreSQL that was there"


def test_nothing_is_kept_of_processes_that_have_ended(host: Host) -> None:
    for pid in range(26001, 26051):
        server(host, pid, LOCAL)
    observe(host)
    before = {name: len(host.kept(name)) for name in ("database facts", "database segments")}
    for pid in range(26001, 26051):
        host.path(f"proc/{pid}/stat").unlink()
    observe(host)
    after = {name: len(host.kept(name)) for name in before}
    assert all(after[name] <= before[name] - 50 for name in before)


def test_included_folders_and_files_count_and_are_one_note(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    place = server(host, 26001, LOCAL, arguments="--defaults-file=/my.cnf")
    (place / "root/my.cnf").write_text("!includedir /d\n" * 2000 + "!include /a.cnf\n" * 2000)
    postgres = server(host, 26002, LOCAL, program="postgres", arguments="-D /pg")
    (postgres / "cwd").unlink()
    (postgres / "cwd").symlink_to("/pg")
    (postgres / "root/pg").mkdir()
    (postgres / "root/pg/postgresql.conf").write_text("include_dir = '/d'\n" * 2000 + "include = 'a'\n" * 2000)
    for root, ending in ((place, "cnf"), (postgres, "conf")):
        (root / "root/d").mkdir()
        for number in range(200):
            (root / f"root/d/{number:03}.{ending}").write_text("[mysqld]\n" if ending == "cnf" else "a = 1\n")
    listed: list[str] = []
    names_inside = Host.names_inside

    def list_inside(self: Host, top: str, path: str, rights: Rights | None) -> list[str]:
        listed.append(path)
        return names_inside(self, top, path, rights)

    monkeypatch.setattr(Host, "names_inside", list_inside)
    found = observe(host)
    assert listed.count("/d") == 2, "a folder that is listed again costs as much as a file"
    for pid in (26001, 26002):
        assert found[pid]["settings_note"] == (
            "138 more configuration files than the 64 that are read; "
            "more than 64 configuration files and folders: the others are not read"
        )


def test_what_is_missing_fits_into_a_report(host: Host) -> None:
    place = server(host, 26001, LOCAL, arguments="--defaults-file=/my.cnf")
    loop = place / "root/loop"
    loop.symlink_to("/loop")
    names = [f"/loop/{number}{'x' * 200}" for number in range(60)]
    (place / "root/my.cnf").write_text("".join(f"!include {name}\n!includedir {name}\n" for name in names))
    note = observe(host)[26001]["settings_note"]
    assert len(note) <= 1000
    assert re.search(r"; and \d\d more$", note), note


def test_a_path_of_very_many_parts_is_not_followed(host: Host) -> None:
    place = server(host, 26001, LOCAL, arguments="--defaults-file=/my.cnf")
    (place / "root/my.cnf").write_text("[mysqld]\nkey_buffer_size=3M\n!include " + "a/" * 200_000 + "\n")
    begun = time.thread_time()
    assert observe(host)[26001]["settings"]["key_buffer_size"]["value"] == "3M"
    assert time.thread_time() - begun < 5.0, "each part was looked at by the whole path to it"


@pytest.mark.parametrize("name", ["mysqld-auto.cnf", "mysql_upgrade_history"])
def test_json_in_json_without_end_hides_no_other_server(host: Host, name: str) -> None:
    place = server(host, 26001, LOCAL, program="mysqld")
    folder = place / "root/var/lib/mysql"
    folder.mkdir(parents=True)
    for depth in (900, 100_000):
        (folder / name).write_text('{"a":' * depth + "1" + "}" * depth)
        assert 5001 in observe(Host(host.root))


def test_a_folder_of_very_many_files_is_said_to_be_one(host: Host) -> None:
    place = server(host, 26001, LOCAL, arguments="--defaults-file=/my.cnf")
    (place / "root/my.cnf").write_bytes(b"!includedir /d\n")
    (place / "root/d").mkdir()
    for number in range(5000):
        (place / f"root/d/{number}.cnf").touch()
    assert "more than 4096 entries" in observe(host)[26001]["settings_note"]


@pytest.mark.parametrize("size_bytes", [0, 20_000])
def test_a_kubelets_folder_is_read_as_far_as_there_is_room(host: Host, size_bytes: int) -> None:
    line = host.path(f"proc/{collect_all(host).sample['kubelet']['pid']}/cmdline")
    line.write_bytes(line.read_bytes().rstrip(b"\0") + b"\0--config-dir=/etc/drop\0")
    host.path("etc/drop").mkdir(parents=True)
    for number in range(200):
        host.path(f"etc/drop/{number:03}.conf").write_text("topologyManagerScope: pod\n" + "#" * size_bytes)
    host.begin()
    seen = collect_all(host)
    assert seen.sample["kubelet"]["config"]["topologyManagerScope"] == "pod"
    reason = next(result["reason"] for result in seen.results if result["name"] == "kubelet")
    left_out = 200 - (13 if size_bytes else 64)
    assert f"{left_out} of 200 files of its config-dir are too much to read" in reason


def test_cgroups_beyond_the_bound_are_said_to_be_so(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hugeplan_agent.collectors.cgroup_tree.MAX_CGROUPS", 40)
    for number in range(100):
        host.path(f"sys/fs/cgroup/user.slice/{number:03}").mkdir(parents=True)
    seen = collect_all(host)
    tree = hierarchy(host, "memory")
    assert tree is not None
    found = list(paths(host, tree))
    assert len(found) == 40
    assert "/kubepods.slice" in found, "neighbours of a large folder keep their place"
    reason = next(result["reason"] for result in seen.results if result["name"] == "units")
    assert "not all are read: at most" in reason


def index_of(tmp_path: Path, *found: str, root: str = "sys/fs/cgroup") -> PathIndex:
    host = Host(tmp_path)
    for path in found:
        host.path(f"{root}{path}").mkdir(parents=True, exist_ok=True)
    return PathIndex(host, Hierarchy(2, root), list(found))


def test_a_cgroup_seen_from_inside_is_found_where_one_only_ends_so(tmp_path: Path) -> None:
    index = index_of(tmp_path, "/a/x", "/b/x", "/b/xx", "/c/y", "/c/y/x", "/d", "/a", "/b", "/c")
    seen = ("/../x", "/../y/x", "/../b/x", "/../d", "/../z", "/d", "/..", "/../..")
    assert [index.resolve(path) for path in seen] == [None, "/c/y/x", "/b/x", "/d", None, "/d", None, None]


def test_no_user_makes_a_service_unknown_or_their_own_by_a_cgroup_of_its_name(tmp_path: Path) -> None:
    service, copy = "/system.slice/db.service", "/user.slice/user-1000.slice/user@1000.service/system.slice/db.service"
    both, alone = index_of(tmp_path, service, copy), index_of(tmp_path, copy)
    seen_from_inside = ("/../.." + service, "/../.." + copy)
    assert [both.resolve(path) for path in (service, copy, *seen_from_inside)] == [service, copy] * 2
    assert alone.resolve(service) is None, "it began after the tree was read, or is beyond a bound"


BURSTABLE = "/kubepods.slice/kubepods-burstable.slice"
GIVEN = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize("root", ["sys/fs/cgroup", "sys/fs/cgroup/memory"])
@pytest.mark.parametrize("is_known", [True, False])
def test_no_user_takes_a_pod_by_a_cgroup_that_ends_as_the_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool, root: str
) -> None:
    """Of the nearest folder in common with the agent's own pod the kernel shows dots alone."""
    own, near, far = f"{BURSTABLE}/podA.slice/a.scope", "/podB.slice/b.scope", "/kubepods-podC.slice/c.scope"
    pods = [own, BURSTABLE + near, f"{own}/below", "/kubepods.slice" + far]
    above = [path.rsplit("/", count)[0] for path in [*pods, GIVEN] for count in (1, 2)]
    found = [*above, *pods, GIVEN]
    copies = [GIVEN + "/podB.slice", GIVEN + near, GIVEN + far, GIVEN + "/b.scope"]
    if is_known:
        (tmp_path / "own" / root).parent.mkdir(parents=True)
        (tmp_path / "own" / root).symlink_to(tmp_path / root / own[1:])
        monkeypatch.setattr(cgroup_tree, "OWN", tmp_path / "own")
    monkeypatch.setattr(cgroup_tree, "is_given_away", lambda _host, _tree, name: f"/{name}" == GIVEN)
    index = index_of(tmp_path, *found, *copies, root=root)
    seen = [f"/../..{near}", f"/../../..{far}", f"/../..{near} (deleted)"]
    assert [index.resolve(path) for path in seen] == [pods[1], pods[3], pods[1]]
    for pod in (pods[1], pods[3]):
        (tmp_path / f"{root}{pod}").rmdir()
    index = index_of(tmp_path, *[path for path in found if path not in (pods[1], pods[3])], *copies, root=root)
    assert [index.resolve(path) for path in seen] == [None] * 3, "they began after the tree was read"
    if is_known:
        others = ("/..", "/../../../..", f"/../../../../..{near}", "/../../../.." + GIVEN, "/../../../../" + BURSTABLE)
        assert [index.resolve(path) for path in others] == [BURSTABLE + "/podA.slice", None, None, GIVEN, None]


def test_limits_of_one_container_leave_room_for_those_that_act_on_others(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is root in a container may have cgroups below it, each with limits."""
    before = observe(host)[5001]["hugetlb_limits"]
    assert before
    monkeypatch.setattr("hugeplan_agent.collectors.hugetlb_cgroups.MAX_ENTRIES", 40)
    for number in range(100):
        folder = host.path(f"sys/fs/cgroup/docker/{'a' * 64}/{number:03}")
        folder.mkdir(parents=True)
        (folder / "hugetlb.2MB.current").write_text("0\n")
        (folder / "hugetlb.2MB.max").write_text("0\n")
    assert observe(host)[5001]["hugetlb_limits"] == before


def test_bytes_that_are_no_text_make_no_report_that_is_refused(host: Host, tmp_path: Path) -> None:
    place = server(host, 26001, LOCAL, arguments="--defaults-file=/my.cnf")
    (place / "cwd").unlink()
    (place / "cwd").symlink_to(b"/home/\xff".decode("utf-8", "surrogateescape"))
    (place / "root/my.cnf").write_bytes(b"[mysqld]\nkey_buffer_size=1\0M\n!includedir /d\n")
    (place / "root/d").mkdir()
    (place / "root/d" / os.fsdecode(b"\xff.cnf")).write_text("[mysqld]\nlarge-pages\n")
    found = observe(host)
    assert 5001 in found
    assert found[26001]["settings"]["large_pages"]["source"] == "\udcff.cnf"
    spool = Spool(tmp_path / "spool", Bounds(max_bytes=MIB, max_age_seconds=3600))
    entry = spool.add({"report_id": str(uuid.uuid4()), "sample": {"databases": list(found.values())}}, 1)
    text = json.dumps(json.loads(entry.path.read_bytes()), ensure_ascii=False)
    text.encode()
    assert "\\u0000" not in text
    assert '"\ufffd.cnf"' in text


def test_no_process_is_of_two_servers() -> None:
    processes = [Process(pid, pid - 1, pid, "postgres" if pid % 2 else "sh", 0) for pid in range(1, 2001)]
    table = ProcessTable({one.pid: one for one in processes}, {one.pid - 1: [one] for one in processes})
    found = table.trees(processes[::2])
    assert [[one.pid for one in tree] for tree in found] == [[pid, pid + 1] for pid in range(1, 2000, 2)]


def test_a_program_called_kubelet_is_believed_where_it_is_roots(host: Host) -> None:
    before = collect_all(host).sample["kubelet"]
    for pid in (41, 42):
        assert before["pid"] > pid
        place = server(host, pid, LOCAL, program="kubelet", arguments="--config=/k --max-pods=7")
        (place / "root/k").write_text("systemReserved:\n  memory: 900Gi\n")
    host.begin()
    assert collect_all(host).sample["kubelet"] == before


def test_a_configuration_nested_deeper_than_a_report_is_left_out(host: Host) -> None:
    (pid,) = {collect_all(host).sample["kubelet"]["pid"]}
    line = host.path(f"proc/{pid}/cmdline")
    line.write_bytes(b"kubelet\0--config=/deep.json\0")
    host.path("deep.json").write_text('{"systemReserved":' + '{"a":' * 60 + '"1"' + "}" * 61)
    host.begin()

    def depth(value: Any) -> int:
        return 1 + max(map(depth, value.values()), default=0) if isinstance(value, dict) else 0

    assert 1 < depth(collect_all(host).sample["kubelet"]) < 24


def test_a_stranger_with_an_instances_title_is_an_instance_of_its_own(host: Host) -> None:
    for pid, user, name in (
        (26001, LOCAL, "ora_pmon_ORCL"),
        (26002, 54321, "ora_pmon_ORCL"),
        (26003, 54321, "ora_dbw0_ORCL"),
    ):
        place = server(host, pid, user, program=name)
        (place / "cmdline").write_text(name)
    found = observe(host)
    assert {26001, 26002} <= found.keys()


def test_words_and_lines_without_end_take_little_memory(host: Host) -> None:
    """The unit of the service gives the agent 64 MiB, of which it needs 21."""
    for pid in range(26001, 26007):
        place = server(host, pid, LOCAL, program="java")
        (place / "cmdline").write_bytes(b"java\0" + b"\xff\0" * 125_000)
    for pid, program, text in (
        (26010, "postgres", "x = '" + "a" * MIB),
        (26011, "mysqld", "[mysqld]\nx" + "\\a" * (MIB // 2)),
        (26012, "postgres", "a=1\n" * (MIB // 4)),
        (26013, "mongod", "a: b\n" * (MIB // 5)),
    ):
        option = {"postgres": "-c config_file=/f", "mysqld": "--defaults-file=/f", "mongod": "--config /f"}[program]
        (server(host, pid, pid, program=program, arguments=option) / "root/f").write_text(text)
    tracemalloc.start()
    try:
        found = observe(host)
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()
    for pid in (26010, 26011):
        assert "a line of more than 8192 characters is not read" in found[pid]["settings_note"]


def test_no_terminal_device_or_computed_file_is_opened() -> None:
    """A terminal that is opened becomes that of who leads a session without one: its owner may end the agent then."""
    ours, theirs = os.openpty()
    code = (
        "import sys; from hugeplan_agent.host import Host; from hugeplan_agent.errors import NoData\n"
        "for read in (Host('/').open_regular, lambda name: Host('/').read_inside('', name)):\n"
        "    try: read(sys.argv[1])\n"
        "    except NoData as problem: print(problem)\n"
        "print(open('/proc/self/stat').read().rpartition(')')[2].split()[4])\n"
        "print(repr(Host('/').read_inside('', '/proc/self/status')))\n"
    )
    try:
        words = [sys.executable, "-c", code, os.ttyname(theirs)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, start_new_session=True)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout.splitlines()[2:] == ["0", "''"], done.stdout
    assert done.stdout.count("is not a regular file") == 2


def test_nobody_leads_the_agent_out_while_it_follows_a_path(host: Host, tmp_path: Path) -> None:
    """A folder that is exchanged for a link between a look at it and what follows."""
    root = host.path("proc/2201/root")
    root.mkdir(exist_ok=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("outside")
    (root / "folder").mkdir()
    (root / "folder/f").write_text("inside")
    (root / "link").symlink_to(tmp_path / "outside")
    code = (
        "import ctypes, os, sys; c = ctypes.CDLL(None)\nos.chdir(sys.argv[1])\n"
        "while True: c.syscall(316, -100, b'folder', -100, b'link', 2)"  # renameat2 with RENAME_EXCHANGE
        if os.uname().machine == "x86_64"
        else ""
    )
    if not code:
        pytest.skip("SKIP: the number of renameat2 is x86-64's")
    exchanges = subprocess.Popen([sys.executable, "-c", code, str(root)])
    seen: set[str] = set()
    try:
        end = time.perf_counter() + 1.5
        while time.perf_counter() < end:
            with contextlib.suppress(NoData):
                seen.add(host.read_inside("proc/2201/root", "/folder/f"))
    finally:
        exchanges.kill()
        exchanges.wait()
    assert seen == {"inside"}


POD = "/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556677.slice"
OVERFLOW = 65534
"""What a service with PrivateUsers reads for every user but root and its own."""


@pytest.mark.parametrize(
    ("user", "cgroup", "below"),
    [
        (lambda _: OVERFLOW, "/user.slice/user-1001.slice/session-{}.scope", ""),
        (lambda number: 100_000 + number, "/user.slice/user-1001.slice/user@1001.service/db-{}.service", ""),
        (lambda number: 100_000 + number, "/system.slice/cron.service", ""),
        (lambda number: number, "/system.slice/web.service/container", ""),
        (lambda number: number, "/elsewhere/sandbox", "\t1"),
        (lambda number: number, f"/system.slice/docker-{'a' * 64}.scope", "\t1"),
        (lambda number: number, POD + "/cri-containerd-{:064x}.scope", "\t1"),
        (lambda number: number, "/lxc.payload.db/{}", ""),
        (lambda _: LOCAL, "/given/{}", ""),
    ],
)
def test_one_account_hides_no_other_ones_server(
    host: Host, user: Callable[[int], int], cgroup: str, below: str
) -> None:
    if cgroup.startswith("/given"):
        host.path("sys/fs/cgroup/given").mkdir()
        give(host, "given")
    for number in range(servers.MAX_SERVERS + 100):
        server(host, 26001 + number, user(number), cgroup=cgroup.format(number), below=below)
    server(host, 29998, OVERFLOW, cgroup="/system.slice/mariadb.service", arguments="--key-buffer-size=5M")
    server(host, 29999, OVERFLOW, cgroup="/user.slice/user-1002.slice/session-9999.scope")
    host.begin()
    seen = collect_all(host)
    found = {one["main_pid"]: one for one in seen.sample["databases"]}
    assert len(found) == servers.MAX_SERVERS
    assert {29998, 29999, 5001} <= found.keys()
    assert found[29998]["settings"]["key_buffer_size"]["value"] == "5M"
    reason = next(result["reason"] for result in seen.results if result["name"] == "databases")
    assert re.match(r"10\d of 36\d servers are left out: a report has room for 256", reason)


def test_users_of_one_cgroup_are_told_apart(host: Host) -> None:
    for number in range(servers.MAX_SERVERS + 100):
        server(host, 26001 + number, LOCAL, cgroup="/sshd")
    server(host, 29999, LOCAL + 1, cgroup="/sshd")
    assert 29999 in observe(host)


def test_where_users_are_not_told_apart_the_largest_are_in_the_report(host: Host) -> None:
    for number in range(servers.MAX_SERVERS + 100):
        server(host, 26001 + number, OVERFLOW)
    place = server(host, 29999, OVERFLOW)
    (place / "status").write_text(f"Name:\tmariadbd\nUid:\t{OVERFLOW}\nVmRSS:\t90000000 kB\n")
    assert 29999 in observe(host)


def test_an_account_reads_its_share_only_whatever_its_processes_user_ids_are(host: Host) -> None:
    for pid in range(26001, 26031):
        place = server(host, pid, 100_000 + pid, cgroup=f"/user.slice/user-1001.slice/session-{pid}.scope")
        (place / "environ").write_text("A=" + "b" * 600_000 + "\0")
    server(host, 26100, OVERFLOW, cgroup="/system.slice/mariadb.service", arguments="--key-buffer-size=5M")
    assert observe(host)[26100]["settings"]["key_buffer_size"]["value"] == "5M"
    used = {account.cgroup: count for account, count in left(host).used.items()}
    assert used["user.slice/user-1001.slice"] <= foreign.SHARE_BYTES + MIB
    assert left(host).left[True] > foreign.FOREIGN_BYTES - MIB


def test_large_processes_of_one_account_hide_no_other_ones(host: Host) -> None:
    for number in range(2 * process_table.MAX_PROCESSES):
        place = server(host, 26001 + number, LOCAL, program="x", cgroup="/user.slice/user-1001.slice/session-1.scope")
        (place / "status").write_text(f"Name:\tx\nUid:\t{LOCAL}\nVmRSS:\t90000000 kB\n")
    before = {one["pid"] for one in collect_all(Host(host.root)).sample["processes"]}
    assert {5001, 6001, 2201} <= before
    order: list[int] = []
    table = process_table.ProcessTable({})
    many = [
        process_table.Process(pid, 1, pid, "x", MIB * pid, account="eve" if pid > 1 else "db") for pid in range(1, 9)
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(process_table, "_read_rollup", lambda _, process: order.append(process.pid))
        process_table.read_rollups(Host(host.root), table, many, lambda process: process.account)
    assert order == [8, 1, 7, 6, 5, 4, 3, 2], "the room is shared by turns"


def give(host: Host, top: str) -> None:
    """A cgroup at the top, with all below it, to a user."""
    folder = host.path(f"sys/fs/cgroup/{top}")
    try:
        for one in (folder, *folder.rglob("*")):
            os.chown(one, LOCAL, LOCAL)
    except PermissionError:
        pytest.skip("SKIP: only root gives a folder away")


@pytest.mark.parametrize("name", ["{}", "{}.service", "docker-{:064}.scope"])
def test_what_was_given_away_is_one_share_of_units_limits_and_processes(
    host: Host, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    wanted = {unit["key"] for unit in collect_all(host).sample["units"]}
    before = {pid: one["hugetlb_limits"] for pid, one in observe(host).items()}
    monkeypatch.setattr("hugeplan_agent.collectors.process_table.MAX_KEPT", 100)
    monkeypatch.setattr("hugeplan_agent.collectors.process_table.CUT_EVERY", 30)
    monkeypatch.setattr("hugeplan_agent.collectors.hugetlb_cgroups.MAX_ENTRIES", 40)
    monkeypatch.setitem(fitting.SHARES, "units", 16 * 1024)
    for number in range(200):
        cgroup = f"/given/{name.format(number)}"
        folder = host.path(f"sys/fs/cgroup{cgroup}")
        folder.mkdir(parents=True)
        (folder / "memory.stat").write_text("anon 5000000\nshmem 0\n")
        (folder / "hugetlb.2MB.current").write_text("0\n")
        (folder / "hugetlb.2MB.max").write_text("0\n")
        server(host, 26001 + number, LOCAL, cgroup=cgroup)
    give(host, "given")
    host.begin()
    seen = collect_all(host).sample
    assert before == {one["main_pid"]: one["hugetlb_limits"] for one in seen["databases"] if one["main_pid"] < 26001}
    units = {unit["key"]: unit for unit in seen["units"]}
    assert wanted <= units.keys()
    assert all(key.startswith("cgroup:/given/") for key, one in units.items() if one["cgroup_path"][:7] == "/given/")


@pytest.mark.parametrize("victim", ["system.slice", "workload.slice", "user.slice/user-1002.slice/user@1002.service"])
def test_nobodys_server_goes_by_the_key_of_another_ones(host: Host, victim: str) -> None:
    copies = ("system.slice/app.service", "user.slice/user-1001.slice/user@1001.service")

    def run(pid: int, place: str) -> None:
        cgroup = f"{place}/docker-{'d' * 64}.scope"
        host.path(f"sys/fs/cgroup/{cgroup}").mkdir(parents=True)
        server(host, pid, LOCAL, cgroup=f"/{cgroup}", arguments="--port=3399")

    run(26002, copies[0])
    give(host, copies[0])
    alone = observe(host)[26002]["key"]
    run(26001, victim)
    if victim.startswith("user"):
        give(host, victim)
    host.begin()
    before = observe(host)[26001]["key"]
    run(26003, copies[1])
    give(host, copies[1])
    host.begin()
    now = {pid: one["key"] for pid, one in observe(host).items()}
    assert (now[26001], now[26002]) == (before, alone), "also while the other is down"
    assert len({before, alone, now[26003]}) == 3
    assert ("#" in before) == victim.startswith("user"), "hugeplan verify takes no other key for a user's"


def test_a_key_that_was_made_is_nobodys_to_take(host: Host) -> None:
    mine, others = (f"user.slice/user-{user}.slice/user@{user}.service" for user in (1002, 1001))

    def run(pid: int, place: str, name: str) -> None:
        host.path(f"sys/fs/cgroup/{place}/{name}").mkdir(parents=True)
        server(host, pid, LOCAL, cgroup=f"/{place}/{name}", arguments="--port=3399")

    run(26001, mine, "lxc.payload.db")
    run(26002, others, "lxc.payload.db")
    for place in (mine, others):
        give(host, place)
    made = observe(host)[26001]["key"]
    unit = collect_all(host).sample
    name = next(one["key"] for one in unit["units"] if one["cgroup_path"] == f"/{mine}/lxc.payload.db")
    run(25999, others, "lxc.payload." + name.rpartition("/")[2])
    host.begin()
    seen = collect_all(host).sample
    keys = [one["key"] for one in seen["units"]]
    assert len(set(keys)) == len(keys)
    assert {one["key"]: one["main_pid"] for one in seen["databases"]}[made] == 26001


def test_users_of_one_unit_take_no_key_of_each_other(host: Host) -> None:
    def run(pid: int, user: int, folder: str) -> None:
        server(host, pid, user, cgroup="/system.slice/cron.service", arguments=f"--port=3399 --datadir={folder}")

    run(26001, LOCAL, "/home/bob/a")
    run(26002, LOCAL, "/home/bob/b")
    before = {observe(host)[pid]["key"] for pid in (26001, 26002)}
    run(25999, LOCAL + 1, "/home/bob/a")
    now = observe(host)
    assert now[25999]["key"] not in before
    assert now[26002]["key"] in before
    assert len({one["key"] for one in now.values()}) == len(now)


def test_a_title_in_one_container_takes_no_database_of_another(host: Host) -> None:
    """Whoever is root in a container has any user id there, and the official image has the same in each."""
    for pid in (26990, 27000):
        cgroup = f"docker/{str(pid)[1] * 64}"
        host.path(f"sys/fs/cgroup/{cgroup}").mkdir(parents=True)
        for number, name in enumerate(("pmon", "dbw0")):
            place = server(host, pid + number, 54321, program=f"ora_{name}_FREE", cgroup=f"/{cgroup}", below="\t1")
            (place / "cmdline").write_text(f"ora_{name}_FREE\0")
    assert {pid: one["process_count"] for pid, one in observe(host).items() if pid > 26000} == {26990: 2, 27000: 2}


def test_a_jvm_that_another_started_is_a_server(host: Host) -> None:
    """Elasticsearch's launcher has 64 MiB, and stays the parent of the server."""
    for pid, parent, heap in ((26001, 1, "64m"), (26002, 26001, "31g")):
        place = server(host, pid, LOCAL, program="java", cgroup="/system.slice/es.service", arguments=f"-Xmx{heap}")
        before, _, after = (place / "stat").read_text().partition(") ")
        state, _, *rest = after.split(" ")
        (place / "stat").write_text(f"{before}) {state} {parent} {' '.join(rest)}")
        (place / "status").write_text(f"Name:\tjava\nUid:\t{LOCAL}\nVmRSS:\t{90000 * (pid - 26000) ** 4} kB\n")
    found = observe(host)
    assert found[26002]["settings"]["Xmx"]["value"] == "31g"
    assert "#" not in found[26002]["key"], "the launcher's has its PID, and is another after each start"


def test_units_of_one_account_hide_no_other_ones(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fitting.SHARES, "units", 12 * 1024)
    wanted = {unit["key"] for unit in collect_all(host).sample["units"] if unit["parent"] is None}
    for number in range(40):
        place = host.path(f"sys/fs/cgroup/user.slice/user-1001.slice/session-{number}.scope")
        place.mkdir(parents=True)
        (place / "memory.stat").write_text("anon 900000000000\nshmem 0\n")
    host.begin()
    assert wanted <= {unit["key"] for unit in collect_all(host).sample["units"]}


@pytest.mark.parametrize("given", [False, True])
def test_cgroups_of_one_account_leave_the_room_of_others(
    host: Host, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.setattr(cgroup_tree, "MAX_CGROUPS", 100)
    monkeypatch.setattr(cgroup_tree, "MAX_OF_SHARE", 30)
    top = "given" if given else "user.slice/user-1001.slice/user@1001.service"
    for number in range(60):
        host.path(f"sys/fs/cgroup/{top}/{number:03}/x/y").mkdir(parents=True)
    host.path("sys/fs/cgroup/user.slice/user-1002.slice/session-9.scope").mkdir(parents=True)
    monkeypatch.setattr(cgroup_tree, "is_given_away", lambda _host, _tree, name: name == "given")
    tree = hierarchy(host, "memory")
    assert tree is not None
    cut: list[str] = []
    found = list(paths(host, tree, cut))
    assert "/user.slice/user-1002.slice/session-9.scope" in found
    assert sum(path.startswith(f"/{top}/") for path in found) <= 30
    assert f"/{top}" in cut


def test_one_name_below_two_cgroups_makes_two_keys(host: Host) -> None:
    for place in ("a/docker-{}.scope", "b/docker-{}.scope", "c/user@x/{}.service", "c/user@y/{}.service"):
        folder = host.path("sys/fs/cgroup/" + place.format("a" * 64))
        folder.mkdir(parents=True)
        (folder / "memory.stat").write_text("anon 900000000000\nshmem 0\n")
    keys = [unit["key"] for unit in collect_all(host).sample["units"]]
    assert len(set(keys)) == len(keys)
    assert sum(key.startswith(f"container:{'a' * 64}") for key in keys) == 2


@pytest.mark.parametrize(
    ("cgroup", "below", "is_the_nodes"),
    [
        ("/system.slice/kubelet.service", "", True),
        ("/", "", True),
        ("/system.slice/kubelet.service", "\t7", False),
        (POD + f"/cri-containerd-{'b' * 64}.scope", "", False),
        (f"/docker/{'c' * 64}/kubelet", "", False),
    ],
)
def test_a_containers_kubelet_is_not_the_nodes(host: Host, cgroup: str, below: str, is_the_nodes: bool) -> None:
    before = collect_all(host).sample["kubelet"]["pid"]
    server(host, 41, 0, program="kubelet", cgroup=cgroup, below=below)
    host.begin()
    assert (collect_all(host).sample["kubelet"]["pid"] == 41) is is_the_nodes
    host.path(f"proc/{before}/stat").unlink()
    host.begin()
    seen = collect_all(host)
    assert (seen.sample["kubelet"] is not None) is is_the_nodes
    reason = next(result["reason"] for result in seen.results if result["name"] == "kubelet")
    assert ("1 processes called kubelet are not the node's" in (reason or "")) is not is_the_nodes


@pytest.mark.parametrize(
    ("exe", "login", "cgroup", "is_the_nodes"),
    [
        ("/usr/bin/kubelet", "4294967295", "/system.slice/kubelet.service", True),
        ("/usr/bin/kubelet (deleted)", None, "/system.slice/kubelet.service", True),
        ("/opt/kubelet-v1.34.2", "4294967295", "/kubelet", True),
        ("/usr/bin/hyperkube", "4294967295", "/podruntime.slice/kubelet.service", True),
        (None, "4294967295", "/system.slice/kubelet.service", True),
        ("/usr/bin/sudo", "4294967295", "/system.slice/apache2.service", False),
        ("/usr/bin/su", None, "/system.slice/cron.service", False),
        ("/usr/bin/pkexec (deleted)", None, "/", False),
        (None, "1001", "/system.slice/cron.service", False),
        (None, None, "/user.slice/user-1001.slice/session-3.scope", False),
        (None, None, "/../../user.slice/user-1001.slice/session-3.scope", False),
        ("/usr/bin/kubelet", "1001", "/system.slice/kubelet.service", False),
        ("/usr/bin/kubelet", "0", "/user.slice/user-0.slice/session-3.scope", False),
    ],
)
def test_a_program_that_a_person_runs_as_root_is_not_the_nodes_kubelet(
    host: Host, exe: str | None, login: str | None, cgroup: str, is_the_nodes: bool
) -> None:
    """sudo, run through a link called kubelet, is root's while it waits for a password. Some agents see no exe."""
    before = collect_all(host).sample["kubelet"]
    place = server(host, 41, 0, program="kubelet", cgroup=cgroup, arguments="--kube-reserved=memory=900Gi")
    if exe is not None:
        (place / "exe").symlink_to(exe)
    if login is not None:
        (place / "loginuid").write_text(login)
    host.begin()
    found = collect_all(host).sample["kubelet"]
    assert (found["pid"] == 41) is is_the_nodes
    assert (found == before) is not is_the_nodes


def test_the_kubelet_of_a_node_that_a_person_runs_in_a_container_is_the_nodes(host: Host) -> None:
    for pid in ("1", "1033"):
        host.path(f"proc/{pid}/loginuid").write_text("1001")
        host.path(f"proc/{pid}/cgroup").write_text("0::/user.slice/user-1001.slice/user@1001.service/node.scope\n")
    assert collect_all(host).sample["kubelet"]["pid"] == 1033
    host.path("proc/1/loginuid").write_text("1002")
    host.begin()
    assert collect_all(host).sample["kubelet"] is None


@pytest.mark.parametrize("is_the_nodes", [True, False], ids=["the node's folder", "its own"])
def test_a_kubelet_in_a_container_is_the_nodes_where_it_keeps_the_nodes_pods(host: Host, is_the_nodes: bool) -> None:
    """RKE1's and Talos' run in containers, in the node's PID namespace, with the node's folder at its own place."""
    host.path(f"proc/{collect_all(host).sample['kubelet']['pid']}/stat").unlink()
    place = server(
        host, 41, 0, program="kubelet", cgroup=f"/docker/{'c' * 64}", arguments="--config=/etc/kubernetes/k.yaml"
    )
    root = host.root if is_the_nodes else host.path("elsewhere")
    for top in {root, host.root}:
        (top / "var/lib/kubelet").mkdir(parents=True)
        (top / "etc/kubernetes").mkdir(parents=True, exist_ok=True)
        (top / "etc/kubernetes/k.yaml").write_text("kind: KubeletConfiguration\nmaxPods: 7\n")
    (place / "root").rmdir()
    (place / "root").symlink_to(root)
    host.begin()
    found = collect_all(host).sample["kubelet"]
    assert (found and (found["config"], found["config_source"])) == (
        ({"maxPods": "7"}, "file") if is_the_nodes else None
    )


def test_a_kubelet_with_another_root_is_not_the_nodes_and_a_node_may_be_a_container(host: Host) -> None:
    before = collect_all(host).sample["kubelet"]["pid"]
    node = f"/docker/{'c' * 64}"
    host.path("proc/1/cgroup").write_text(f"0::{node}/init.scope\n")
    server(host, 41, 0, program="kubelet", cgroup=f"{node}/kubelet.slice/kubelet.service")
    server(host, 40, 0, program="kubelet", cgroup=f"{node}{POD}/cri-containerd-{'b' * 64}.scope")
    host.begin()
    assert collect_all(host).sample["kubelet"]["pid"] == 41
    host.path("proc/1/root").mkdir()
    host.path(f"proc/{before}/root").rename(host.path("proc/kept"))
    host.path(f"proc/{before}/root").symlink_to(host.path("proc/1/root"))
    host.begin()
    assert collect_all(host).sample["kubelet"]["pid"] == before


ODD = [
    b"\xff" * 255, b"\xff\xfe.service", rb"a\012b", b"a (deleted)", b"a:b", b" ", b"..a", b"\xed\xa0\x80", b"\x1b\x85",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("tree", ["kubernetes-v2", "kubernetes-v1"])
def test_an_odd_name_of_a_cgroup_costs_nobody_anything(machine: Machine, tree: str, name: bytes) -> None:
    """Whoever has a cgroup gives any name to those below it, of 255 bytes but for a slash and a new line."""
    host = machine(tree)
    before = collect_all(host)
    top = os.fsencode(host.path("sys/fs/cgroup" if tree == "kubernetes-v2" else "sys/fs/cgroup/memory"))
    for above in (b"db.service", b"made"):
        for last in (name, name[1:] + b"\xfd"):
            folder = Path(os.fsdecode(top + b"/system.slice/" + above + b"/" + last))
            folder.mkdir(parents=True)
            (folder / "memory.stat").write_text(f"anon {900 * MIB}\nshmem 0\nfile 0\n")
        model, pid = next(host.path("proc").glob("[0-9]*")), 26001 + len(above)
        place = host.path(f"proc/{pid}")
        place.mkdir()
        (place / "stat").write_text((model / "stat").read_text().replace(f"{model.name} (", f"{pid} (", 1))
        (place / "status").write_text("Name:\tmariadbd\nUid:\t27\t27\t27\t27\nVmRSS:\t900000 kB\n")
        path = b"/system.slice/" + above + b"/" + name
        (place / "cgroup").write_bytes(b"0::" + path + b"\n4:memory:" + path + b"\n1:name=systemd:" + path + b"\n")
    host.begin()
    seen = storable(collect_all(host).sample)
    assert [result["status"] for result in collect_all(host).results] == [one["status"] for one in before.results]
    keys = [unit["key"] for unit in seen["units"]]
    assert len(set(keys)) == len(keys)
    assert {unit["key"] for unit in before.sample["units"]} <= set(keys)
    assert not any(key.startswith("processes:mariadb") for key in keys), "each process is found in its cgroup"
    service = next(unit for unit in seen["units"] if unit["key"] == "systemd:db.service")
    assert (service["process_count"], service["memory"]["source"]) == (1, f"cgroup_v{tree[-1]}")


def test_a_cgroup_may_really_be_called_deleted(tmp_path: Path) -> None:
    index = index_of(tmp_path, "/a", "/a (deleted)", "/b")
    found = [index.resolve(path) for path in ("/a", "/a (deleted)", "/b (deleted)", "/c (deleted)")]
    assert found == ["/a", "/a (deleted)", "/b", None]


def test_users_of_one_service_are_told_apart_where_root_made_their_cgroups(host: Host) -> None:
    """A batch system runs everybody's jobs below its own service; a user makes no cgroup there."""
    job = "/system.slice/slurmstepd.scope/job_{}/step_0"
    for number in range(servers.MAX_SERVERS + 10):
        server(host, 26001 + number, LOCAL, cgroup=job.format(1))
    server(host, 29999, LOCAL + 1, cgroup=job.format(2))
    folder = host.path("sys/fs/cgroup/system.slice/slurmstepd.scope")
    for number in (1, 2):
        (folder / f"job_{number}/step_0").mkdir(parents=True)
    assert 29999 in observe(host)


def test_a_tree_that_shows_as_nobodys_is_not_given_away(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container without root the top belongs to nobody, and what its systemd makes to root."""
    owners = {"": 65534, "system.slice": 0, "given": 1001}
    tree = hierarchy(host, "memory")
    assert tree is not None
    top = host.path(tree.root)

    def owner(path: Path, **_: object) -> os.stat_result:
        name = "" if path == top else path.name
        return os.stat_result((0o40755, 0, 0, 1, owners[name], 0, 0, 0, 0, 0))

    monkeypatch.setattr(Path, "stat", owner)
    assert not is_given_away(host, tree, "system.slice")
    assert is_given_away(host, tree, "given")


@pytest.mark.parametrize("what", ["files", "mappings", "programs"])
def test_no_accounts_servers_leave_another_ones_unread(host: Host, what: str) -> None:
    """Theirs come first by PID, and new ones of them are there at each observation."""
    greedy = range(1, 7)
    if what == "mappings":
        line = "7f0000000000-7f0040000000 rw-s 00000000 00:01 1 /dev/zero\n"
    good = server(host, 29999, LOCAL + 50, arguments="--defaults-file=/my.cnf")
    (good / "maps").write_text("7f0000000000-7f0040000000 rw-s 00000000 00:01 1 /dev/zero\n")
    (good / "root/my.cnf").write_text("[mysqld]\nkey_buffer_size=3M\n")
    program(host, good, MARIADB)
    os.chown(host.path("programs/29999"), LOCAL, LOCAL)
    seen: list[dict[str, Any]] = []
    for turn in range(2 * len(greedy)):
        for number in greedy:
            place = server(host, 10_000 + 100 * turn + number, LOCAL + number)
            if what == "files":
                (place / "environ").write_text("A=" + "b" * 250_000)
                (place / "root/etc").mkdir()
                (place / "root/etc/my.cnf").write_text("[mysqld]\n" + "# x\n" * (MIB // 4))
            elif what == "mappings":
                (place / "maps").write_text(line * (4 * MIB // len(line)))
            else:
                os.chown(program(host, place, b"x", foreign.PROGRAM_BYTES), LOCAL, LOCAL)
        seen.append(observe(host)[29999])
    last = seen[-1]
    assert (last["settings_complete"], last["version"]) == (True, "10.11.19"), last["settings_note"]
    assert last["huge_pages_status_source"] == "maps"


def test_what_was_read_before_is_reported_while_there_is_no_room(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a server would lose its settings, or its key, for as long as others of its account use the share up."""
    places = [server(host, pid, LOCAL, arguments="--defaults-file=/my.cnf --datadir=/d") for pid in (26001, 26002)]
    for place in places:
        (place / "root/my.cnf").write_text("!include /large.cnf\n!include /last.cnf\n")
        (place / "root/large.cnf").write_text("#\n" * 50_000)
        (place / "root/last.cnf").write_text("[mysqld]\nkey_buffer_size=3M\n")
    before = observe(host)
    monkeypatch.setattr(foreign, "SHARE_BYTES", 150_000)
    for place in places:
        (place / "root/last.cnf").write_text("[mysqld]\nkey_buffer_size=4M\n")
    values = []
    for _ in range(14):
        after = observe(host)
        for name in ("key", "settings_complete", "settings_note"):
            assert [one[name] for one in after.values()] == [one[name] for one in before.values()]
        values.append("".join(after[pid]["settings"]["key_buffer_size"]["value"] for pid in (26001, 26002)))
    assert list(dict.fromkeys(values)) == ["3M3M", "4M3M", "4M4M"]
