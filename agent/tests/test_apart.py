"""A process that makes a look at it wait for good costs what is known of it, and nothing else."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from hugeplan_agent import apart, left_behind, looks
from hugeplan_agent.apart import Apart
from hugeplan_agent.collectors import collect_all, servers, walks
from hugeplan_agent.collectors.foreign import Account, foreign
from hugeplan_agent.errors import AgentError, CollectError
from hugeplan_agent.host import Host
from hugeplan_agent.known import READ_AGAIN, known, take

Machine = Callable[[str], Host]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What does not answer is given up after a moment."""
    monkeypatch.setattr(apart, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(apart, "LOOK_POLLS", 5)
    monkeypatch.setattr(apart, "ACCOUNT_POLLS", 25)
    monkeypatch.setattr(apart, "RANK_POLLS", (200, 100, 50))
    monkeypatch.setattr(apart, "OTHER_POLLS", 50)
    return monkeypatch


@pytest.fixture
def host(machine: Machine, quick: pytest.MonkeyPatch) -> Host:  # noqa: ARG001
    """A captured node."""
    return machine("kubernetes-v2")


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of files of the node whose reading waits for good; reading is blocked for real."""
    names: set[str] = set()
    os.mkfifo(tmp_path / "nobody writes")
    opened, read = Host._opened_in_proc, Host.read_record

    def waits(self: Host, name: str) -> AbstractContextManager[int]:
        if name in names:
            os.open(tmp_path / "nobody writes", os.O_RDONLY)
        return opened(self, name)

    def record(self: Host, name: str, *size: int) -> str | None:
        return read(self, name, *size) if name not in names else self.read_optional(name)

    monkeypatch.setattr(Host, "_opened_in_proc", waits)
    monkeypatch.setattr(Host, "read_record", record)
    return names


def databases(seen: Any) -> dict[int, dict[str, Any]]:
    return {one["main_pid"]: one for one in seen.sample["databases"]}


def result(seen: Any, name: str) -> dict[str, Any]:
    return next(one for one in seen.results if one["name"] == name)


def test_in_a_child_the_collectors_see_the_same(host: Host) -> None:
    here = collect_all(Host(host.root))
    with Apart(host.root) as child:
        there = child.collect(host)
    for one in (here, there):
        for each in (*one.results, *one.sample["processes"]):
            each.pop("duration_seconds", None), each.pop("pss_age_seconds", None)
    assert there == here
    assert len(here.sample["databases"]) > 1


@pytest.mark.parametrize("file", ["cmdline", "environ", "maps"])
def test_a_process_that_does_not_answer_is_left_alone(host: Host, stuck: set[str], file: str) -> None:
    before = databases(collect_all(Host(host.root)))
    pid = min(before)
    stuck.add(f"proc/{pid}/{file}")
    with Apart(host.root) as child:
        seen = child.collect(host)
        assert {one["status"] for one in seen.results} <= {"ok", "no_data"}
        found = databases(seen)
        assert found.keys() == before.keys()
        assert {**found, pid: None} == {**before, pid: None}
        for name in ("databases", "processes"):
            assert "1 processes are left alone for up to an hour" in str(result(seen, name)["reason"])
        (missed,) = child._missed
        assert missed.look.pid == pid
        again = child.collect(host)  # nothing is lost by asking once more
        assert child._missed == [missed]
        assert "are left alone" in str(result(again, "databases")["reason"])
        child._missed = [replace(missed, until=time.monotonic())]
        stuck.clear()
        child._leave(child._child or pytest.fail("there is no child"))
        assert databases(child.collect(host)) == before
        until(lambda: has_ended(child))


@pytest.mark.parametrize("file", ["", "cmdline", "maps", "smaps_rollup"])
def test_what_is_known_of_a_process_stays_known_while_it_is_left_alone(
    host: Host, stuck: set[str], monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """All is read again in each observation; the child that knew it is gone, too."""
    monkeypatch.setattr(servers, "REREAD_SECONDS", -1.0)
    monkeypatch.setattr(walks, "begin", lambda *_, **__: walks.Walks(60.0, 60.0, 1.0, {}))
    with Apart(host.root) as child:
        before = databases(child.collect(host))
        pid = next(pid for pid, one in before.items() if one["engine"] == "postgresql" and one["port"])
        stuck.update({f"proc/{pid}/{file}"} if file else ())
        child._leave(child._child or pytest.fail("there is no child"))
        for _ in range(4):
            assert databases(child.collect(host)) == before
        assert {missed.look.pid for missed in child._missed} == ({pid} if file else set())
        if file == "cmdline":  # another one, of the same number
            stat = host.path(f"proc/{pid}/stat")
            start = str(before[pid]["start_time_ticks"])
            stat.write_text(stat.read_text().replace(f" {start} ", f" {int(start) + 1} "))
            child._missed = [replace(one, look=one.look._replace(started=int(start) + 1)) for one in child._missed]
            after = databases(child.collect(host))[pid]
            assert not after["settings"]
            assert after["key"] != before[pid]["key"]


def test_a_look_that_was_given_up_costs_what_it_would_have_told_until_it_ends(host: Host, stuck: set[str]) -> None:
    """Nothing was known of it yet: that is no reason to leave its settings out for ten minutes."""
    before = databases(collect_all(Host(host.root)))
    pid = next(pid for pid, one in before.items() if one["settings"])
    stuck.add(f"proc/{pid}/cmdline")
    with Apart(host.root) as child:
        assert databases(child.collect(host))[pid] != before[pid]
        stuck.clear()
        child._missed = []
        child._leave(child._child or pytest.fail("there is no child"))
        assert databases(child.collect(host))[pid]["settings"] == before[pid]["settings"]


def test_what_collectors_keep_is_handed_on_or_read_again(host: Host) -> None:
    collect_all(host)
    after = Host(host.root)
    take(after, known(host))
    take(after, "")
    assert after.all_kept == {name: kept for name, kept in host.all_kept.items() if name not in READ_AGAIN}
    assert {"executables", "database facts", "database segments", "rollups"} <= after.all_kept.keys()


def waiting(path: Path, pids: list[int]) -> Callable[[Host], list[int]]:
    """A job that looks at each process, and waits at the first that may be looked at."""

    def look(host: Host) -> list[int]:
        for pid in pids:
            with suppress(OSError), host.look(f"proc/{pid}/maps"):
                os.open(path, os.O_RDONLY)
        return sorted(host.left_alone)

    return look


def test_after_two_processes_all_of_their_account_are_left_alone(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = sorted(one["pid"] for one in collect_all(Host(host.root)).sample["processes"])[:5]
    owner = {pid: Account("user.slice/user-1.slice" if pid in pids[:4] else "system.slice/x.service") for pid in pids}
    monkeypatch.setattr(looks, "owner_of", lambda _: lambda process: owner[process.pid])
    os.mkfifo(tmp_path / "fifo")
    with Apart(host.root, {"look": waiting(tmp_path / "fifo", pids)}) as child:
        child.collect(host, {})
        assert child.ask("look") == pids
        assert [missed.look.pid for missed in child._missed] == [pids[0], pids[1], pids[4]]


def node_of(root: Path, rows: list[tuple[str, int]], first: int = 10, name: str = "x") -> tuple[Host, list[int]]:
    """A node with a process for each cgroup and real user id. A cgroup that ends with / is of a PID namespace below."""
    (root / "sys/fs/cgroup").mkdir(parents=True, exist_ok=True)
    (root / "sys/fs/cgroup/cgroup.controllers").write_text("memory hugetlb\n")
    for pid, (cgroup, user) in enumerate(rows, first):
        (root / "sys/fs/cgroup" / cgroup).mkdir(parents=True, exist_ok=True)
        process = root / f"proc/{pid}"
        process.mkdir(parents=True)
        (process / "stat").write_text(
            f"{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 100000000 5000 " + "0 " * 28
        )
        below = "\t1" if cgroup.endswith("/") else ""
        (process / "status").write_text(f"Name:\t{name}\nUid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{pid}{below}\n")
        (process / "cgroup").write_text(f"0::/{cgroup.rstrip('/')}\n")
    return Host(root), list(range(first, first + len(rows)))


SESSION, CRON, CONTAINER = "user.slice/user-1000.slice/session-1.scope", "system.slice/cron.service", "lxc.payload.c1/"


@pytest.mark.parametrize(
    ("rows", "tried"),
    [
        # one user's accounts: its session, what cron starts, and that with a subordinate id or a namespace
        ([(SESSION, 1000), (CRON, 1000), (CRON, 100000), (CRON + "/", 1000)] * 2 + [("system.slice/x.service", 26)], 5),
        ([(CONTAINER, 101000)] * 3 + [(CONTAINER, 100026)], 3),  # two users of a system container
        ([(CRON, 1234567)] * 3 + [(CRON, 7654321)], 3),  # and two beyond the ids of a node's own
        ([(CONTAINER, 7 + number) for number in range(5)], 4),
    ],
    ids=["accounts", "container", "directory", "ids"],
)
def test_one_user_costs_the_others_nothing(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, int]], tried: int
) -> None:
    """What each of these processes waits at ends by no signal; nobody else's are refused unseen."""
    host, pids = node_of(tmp_path / "node", rows)
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setattr(apart, "_kill", lambda _: None)
    monkeypatch.setattr(left_behind, "end_with_us", lambda _: None)
    with Apart(host.root, {"look": waiting(tmp_path / "fifo", pids)}) as child:
        child.collect(host, {})
        assert child.ask("look") == pids
        missed = [one.look.pid for one in child._missed]
        for pid in child._left_behind:
            os.kill(pid, signal.SIGKILL)
    assert len(missed) == tried
    assert (pids[-1] in missed) == (rows[0] != (CONTAINER, 7))


@pytest.mark.parametrize(("name", "late"), [("mysqld", 0), ("mysqld", 1), ("oracle", 0)])
def test_pods_that_do_not_answer_cost_no_other_pod_its_server(
    tmp_path: Path, stuck: set[str], quick: pytest.MonkeyPatch, name: str, late: int
) -> None:
    """Each minute as many new ones as are given up, and a new server that comes after them. Late ones answer once."""
    quick.setattr(servers, "REREAD_SECONDS", -1.0 if late else 600.0)
    quick.setattr(apart, "GIVEN_UP", 1)
    pods = (f"kubepods.slice/kubepods-pod{number:08x}_0000_0000_0000_000000000000.slice/" for number in range(99))
    with Apart(tmp_path / "node") as child:
        for minute in range(1, 5):
            stuck |= {f"proc/{100 * (minute - late) + number}/cmdline" for number in range(8)}
            child._leave(child._child) if child._child else None  # the next one knows these
            host, _ = node_of(tmp_path / "node", [(next(pods), 0)] * 2, 100 * minute, name)
            for below in (2, 4):
                node_of(tmp_path / "node", [(next(pods), 999)] * 2, 100 * minute + below, name)
            rows = [(next(pods), 999), ("system.slice/mysql.service", 27)]
            for pid in node_of(tmp_path / "node", rows, 1000 + 2 * minute, "mysqld")[1]:
                (tmp_path / f"node/proc/{pid}/cmdline").write_text("mysqld\0--innodb-buffer-pool-size=1G\0")
            seen = child.collect(host)
            assert {one["status"] for one in seen.results} <= {"ok", "no_data"}
            known = {pid: bool(one["settings"]) for pid, one in databases(seen).items() if pid > 1000}
            assert known.keys() == set(range(1002, 1002 + 2 * minute))
            assert all(known[pid] for pid in known if pid % 2), "what the system runs is read at once"
            assert all(known[pid] for pid in known if pid < 1000 + 2 * (minute - late))
            assert len(seen.sample["units"]) > minute


def test_of_those_that_did_not_answer_one_is_looked_at_at_a_time(host: Host, tmp_path: Path) -> None:
    """Else they use up, each time that their pauses end, what may be given up of users' processes."""
    host, pids = node_of(tmp_path / "node", [(f"system.slice/a{number}.service", 1000) for number in range(13)])
    os.mkfifo(tmp_path / "fifo")
    waits, other = waiting(tmp_path / "fifo", pids[:12]), pids[12]

    def look(host: Host) -> list[int]:
        waits(host)
        with suppress(OSError), host.look(f"proc/{other}/maps"):
            pass
        return sorted(host.left_alone)

    alone = []
    with Apart(host.root, {"look": look}) as child:
        for _ in range(12):
            child.collect(host, {})
            alone.append(other in child.ask("look"))
    assert alone == [True] + [False] * 11


@pytest.mark.parametrize(
    ("told", "is_left"),
    [
        (("D", 256, 0, "ours"), True),
        (("S", 512, 0, "ours"), False),
        (("Z", 256, 0, "ours"), False),
        (("D", 256, 77, "ours"), False),
        (("D", 256, 0, "pod"), False),
        (None, False),
    ],
    ids=["unkillable", "another signal", "ended", "another user", "another group", "gone"],
)
def test_children_that_others_left_behind_count_as_ones_own(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: tuple[str, int, int, str] | None, is_left: bool
) -> None:
    host, pids = node_of(tmp_path / "node", [("system.slice/x.service", 26), (CRON, 1000)])
    os.mkfifo(tmp_path / "fifo")
    looks = {"look": waiting(tmp_path / "fifo", pids), "name": lambda _: Path("/proc/self/comm").read_text()}
    looks["waits"] = lambda host: [account.user for account in foreign(host).missed]
    read_living = left_behind.living
    monkeypatch.setattr(apart, "living", lambda: read_living(str(tmp_path)))
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/ours\n")
    for count, tried in ((3, 2), (4, 1), (8, 0)) if is_left else ((8, 2),):
        for pid in range(1, count + 1):
            (tmp_path / f"{pid}").mkdir(exist_ok=True)
            (tmp_path / f"{pid}/comm").write_text(f"{left_behind.NAME}\n")
            if told is not None:
                (tmp_path / f"{pid}/cgroup").write_text(f"0::/{told[3]}\n")
                (tmp_path / f"{pid}/status").write_text(f"Name:\tx\nUid:\t{told[2]}\t0\t0\t0\n")
                (tmp_path / f"{pid}/stat").write_text(f"{pid} (x) {told[0]}{' 0' * 27} {told[1]} 0\n")
        with Apart(host.root, looks) as child:
            child.collect(host, {})
            if not tried:
                with pytest.raises(CollectError, match="8 looks at processes did not end"):
                    child.ask("look")
                (tmp_path / "1/stat").unlink()
                child.collect(host, {})
                assert child.ask("name") == f"{left_behind.NAME}\n"
                continue
            assert child.ask("look") == pids
            assert len(child._missed) == tried
            assert child.ask("waits") == [1000] * (2 - tried), "for others: its turn comes first"


def test_without_memory_for_a_child_its_sections_fail(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> NoReturn:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with Apart(host.root) as child:
        before = sorted(map(str, Path("/proc/self/fd").iterdir()))
        with monkeypatch.context() as short:
            short.setattr(os, "fork", fails)
            seen = child.collect(host)
        assert result(seen, "databases")["status"] == "failed"
        assert "Cannot allocate memory" in result(seen, "databases")["reason"]
        assert result(seen, "meminfo")["status"] == "ok"
        assert sorted(map(str, Path("/proc/self/fd").iterdir())) == before
        assert result(child.collect(host), "databases")["status"] == "ok"


def test_a_pause_begins_short_and_doubles(host: Host, tmp_path: Path) -> None:
    """A disk may be slow for once."""
    os.mkfifo(tmp_path / "fifo")
    with Apart(host.root, {"look": waiting(tmp_path / "fifo", [1])}) as child:
        tried = []
        for observation in range(9):
            child.collect(host, {})
            before = child._given_up
            child.ask("look")
            tried += [observation] if child._given_up > before else []
    assert tried == [0, 3, 8]


def test_who_stops_waits_for_no_look_and_leaves_nothing(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "END_SECONDS", 20.0)
    os.mkfifo(tmp_path / "fifo")
    with Apart(host.root, {"look": waiting(tmp_path / "fifo", [1])}, lambda: True) as child:
        child.collect(host, {})
        with pytest.raises(AgentError, match="look: stopped"):
            child.ask("look")
        assert child._missed == []
        child.is_stopped = lambda: False
        child.ask("kubelet")
        pid = child._child.pid if child._child else pytest.fail("there is no child")
    assert not Path(f"/proc/{pid}").exists(), "no zombie is left"


def test_children_that_no_signal_ends_are_left_behind_up_to_a_number(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those that wait for a file system of a user's."""
    pids = sorted(one["pid"] for one in collect_all(Host(host.root)).sample["processes"])
    monkeypatch.setattr(looks, "owner_of", lambda _: lambda process: Account(f"system.slice/{process.pid}.service"))
    monkeypatch.setattr(apart, "MAX_LEFT_BEHIND", 3)
    os.mkfifo(tmp_path / "fifo")
    held: list[int] = []
    with (
        monkeypatch.context() as without_signals,
        Apart(host.root, {"look": waiting(tmp_path / "fifo", pids)}) as child,
    ):
        without_signals.setattr(apart, "_kill", held.append)
        without_signals.setattr(left_behind, "end_with_us", lambda _: None)
        child.collect(host, {})
        with pytest.raises(CollectError, match="3 looks at processes did not end: no other is begun"):
            child.ask("look")
        seen = child.collect(host)
        assert result(seen, "databases")["status"] == "failed"
        assert result(seen, "meminfo")["status"] == "ok"
        assert len(held) == len(child._left_behind) == 3
        for pid in held:
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert result(child.collect(host), "databases")["status"] == "ok"
        if child._child is not None:
            os.kill(child._child.pid, signal.SIGKILL)


def test_a_child_that_is_stopped_or_works_is_not_given_up(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def works(host: Host) -> str:
        with host.look("proc/1/maps"):
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                pass
        return "done"

    polls: list[looks.Look | None] = []
    too_long = apart._Waits.too_long

    def stop_and_go_on(self: apart._Waits) -> looks.Look | None:
        polls.append(too_long(self))
        if len(polls) == 2:
            os.kill(self._child.pid, signal.SIGSTOP)
        if len(polls) == 30:
            os.kill(self._child.pid, signal.SIGCONT)
        return polls[-1]

    monkeypatch.setattr(apart._Waits, "too_long", stop_and_go_on)
    with Apart(host.root, {"look": works}) as child:
        child.collect(host, {})
        assert child.ask("look") == "done"
    assert len(polls) > 30
    assert not any(polls)


def test_a_look_that_only_works_has_an_end(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel walks what a process maps, and nobody can tell before for how long."""
    monkeypatch.setattr(apart, "LOOK_SECONDS", 0.3)

    def walks(host: Host) -> float:
        with host.look("proc/1/maps"):
            end = time.thread_time() + 5.0
            while time.thread_time() < end:
                pass
        return end

    with Apart(host.root, {"look": walks}) as child:
        child.collect(host, {})
        with pytest.raises(CollectError, match="did not answer before"):
            child.ask("look")
        assert [missed.look.pid for missed in child._missed] == [1]


def test_answers_that_come_slowly_have_an_end(host: Host) -> None:
    """Each look ends just before it is given up."""

    def drips(host: Host) -> None:
        for _ in range(100):
            with host.look("proc/1/maps"):
                time.sleep(0.07)

    with Apart(host.root, {"look": drips}) as child:
        child.collect(host, {})
        with pytest.raises(CollectError, match="did not answer before"):
            child.ask("look")
        assert [missed.look.pid for missed in child._missed] == [1]


POD = "kubepods.slice/kubepods-pod{:08x}_0000_0000_0000_000000000000.slice/"


@pytest.mark.parametrize(
    ("slow", "most_polls"),
    [
        ([(CRON, 100000 + number) for number in range(30)], 15),  # subordinate ids are one account's
        ([(SESSION, 1000), (CONTAINER, 101000)] * 15, 20),
        ([(f"system.slice/a{number}.service", 1000) for number in range(30)], 20),
        ([(POD.format(number), 999) for number in range(30)], 40),
    ],
    ids=["ids", "two accounts", "accounts", "pods"],
)
def test_slow_answers_have_an_end_together(
    tmp_path: Path, quick: pytest.MonkeyPatch, slow: list[tuple[str, int]], most_polls: int
) -> None:
    """Each look ends before it is given up. Who answers at once is read all the same, if only after them."""
    quick.setattr(apart, "LOOK_POLLS", 8)
    quick.setattr(apart, "ACCOUNT_POLLS", 15)
    quick.setattr(apart, "RANK_POLLS", (80, 40, 20))
    fast = [(POD.format(1000), 1001), (POD.format(1001), 999), ("system.slice/x.service", 26), (CRON, 1000)]
    host, pids = node_of(tmp_path / "node", [*slow, *fast])

    def drips(host: Host) -> list[int]:
        for pid in pids:
            with suppress(OSError), host.look(f"proc/{pid}/maps"):
                time.sleep(0.08 if pid in pids[: len(slow)] else 0.0)
        return [*sorted(host.left_alone), len(host.left_alone_note)]

    with Apart(host.root, {"look": drips}) as child:
        for minute in range(2):
            child.collect(host, {})
            *alone, note = child.ask("look")
            assert sum(child._polls.values()) <= most_polls + len(child._polls) + 10, minute  # one more of each account
            assert alone, minute
            assert not {*alone} & {*pids[len(slow) :]}, minute
            assert note
            assert child._given_up == 0, "no long look, after some of which nobody of a rank is looked at"


def test_a_wait_elsewhere_fails_the_section(host: Host, stuck: set[str]) -> None:
    stuck.add("proc/self/mountinfo")
    with Apart(
        host.root, {"look": lambda host: host.read("proc/self/mountinfo"), "ends": lambda _: os._exit(1)}
    ) as child:
        child.collect(host, {})
        with pytest.raises(CollectError, match="look: not done, it waited for 1 s"):
            child.ask("look")
        with pytest.raises(CollectError, match="ends: the process that looks at others has ended"):
            child.ask("ends")
        assert child._missed == []


def test_a_child_holds_nothing_of_its_agent_and_ends_with_it(tmp_path: Path) -> None:
    """Neither a lock nor a pipe, for who waits for their end; also while it waits itself."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "lock").touch()
    fifo, lock_file = str(tmp_path / "fifo"), str(tmp_path / "lock")
    code = (
        "import fcntl, os, sys; from hugeplan_agent.apart import Apart; from hugeplan_agent.host import Host\n"
        f"lock = open({lock_file!r}); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "def look(host):\n"
        f"    os.close(os.open({fifo!r}, os.O_RDWR)); os.rename({lock_file!r}, 'waits')\n"
        f"    os.open({fifo!r}, os.O_RDONLY)\n"
        "child = Apart('/', {'look': look}); child._child = child._fork(); print(child._child.pid, flush=True)\n"
        "child.ask('look')\n"
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as agent:
        assert agent.stdout is not None
        pid = int(agent.stdout.readline())
        until((tmp_path / "waits").exists)
        agent.kill()
        assert agent.stdout.read() == ""  # nobody else has it open
        with (tmp_path / "waits").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def has_ended(child: Apart) -> bool:
    child._reap()
    return not child._left_behind


def until(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


USER = 65534
HOLD_SECONDS = 30
SERVES_NOTHING = Path(__file__).with_name("serves_nothing.py")


@pytest.fixture(params=["memory", "files"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """The pid of another user's process ``postgres`` whose memory, or working folder, nobody can look at to the end.

    While it is there, ps waits on the whole machine: for seconds, and HOLD_SECONDS at most.
    """
    device, python = Path("/dev/fuse"), "/usr/bin/python3"
    if not device.exists() or not Path("/usr/bin/unshare").exists() or not Path(python).exists():
        pytest.skip(f"{device}, unshare or {python} is missing")
    user = {}
    if os.geteuid() == 0:
        node, device = device.stat(), Path("/tmp") / f"{tmp_path.name}-{os.getpid()}-fuse"  # noqa: S108 - for all to open
        user = {"user": USER, "group": USER, "extra_groups": []}
        os.mknod(device, 0o20666, node.st_rdev)
        device.chmod(0o666)
    elif request.param == "files":
        pytest.skip("only root may look into another user's files")
    words = ["unshare", "-rm", python, "-c", SERVES_NOTHING.read_text(), request.param, str(device), str(HOLD_SECONDS)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, cwd="/", start_new_session=True, **pipes, **user)  # type: ignore[call-overload]
    try:
        line = process.stdout.readline()
        if not line:
            pytest.skip(f"no such process can be made here: {process.stderr.read().strip()[-200:]}")
        pid = int(line)
        if request.param == "memory":
            until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "D")
        yield pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if device != Path("/dev/fuse"):
            device.unlink()


def test_a_process_whose_memory_or_files_are_held_is_left_alone(held: int, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hugeplan_agent", "observe", "--spool-dir", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HOLD_SECONDS / 2, check=True)
    report = json.loads(done.stdout)
    of_name = {one["name"]: one for one in report["collectors"]}
    assert of_name["databases"]["status"] == of_name["processes"]["status"] == "ok"
    assert "are left alone for up to an hour" in of_name["databases"]["reason"]
    (found,) = (one for one in report["sample"]["databases"] if one["main_pid"] == held)
    assert found["settings_complete"] is False
