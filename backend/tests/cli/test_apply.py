"""``hugeplan apply`` on a tree of plain files in the place of /sys: order, refusals, the way back, kills."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from artifacts.samples import request_of

from hugeplan.cli import apply_journal, main
from hugeplan.cli.apply_steps import check_node
from hugeplan.cli.pool_files import PoolError
from hugeplan.planner.model import GIB, MIB, Plan, PoolPlan
from hugeplan.planner.plan import plan

KILLS = 50
NODES = 8


class Tree:
    """A node's pools as plain files. They hold whatever is written, so nothing is ever short."""

    def __init__(self, root: Path, nodes: int = NODES) -> None:
        self.root = root
        self.sizes = (2 * MIB, GIB)
        self.nodes = nodes
        (root / "proc/sys/kernel/random").mkdir(parents=True)
        (root / "proc/sys/kernel/random/boot_id").write_text("boot-1\n")
        (root / "proc/sys/vm").mkdir()
        (root / "proc/sys/vm/compact_memory").write_text("")
        for size in self.sizes:
            self.file(None, size, "resv_hugepages").parent.mkdir(parents=True)
            self.file(None, size, "resv_hugepages").write_text("0\n")
            for node in range(nodes):
                self.file(node, size, "nr_hugepages").parent.mkdir(parents=True)
                for name in ("nr_hugepages", "free_hugepages", "surplus_hugepages"):
                    self.file(node, size, name).write_text("0\n")

    def file(self, node: int | None, size: int, name: str) -> Path:
        above = "sys/kernel/mm" if node is None else f"sys/devices/system/node/node{node}"
        return self.root / above / "hugepages" / f"hugepages-{size // 1024}kB" / name

    def counts(self) -> dict[tuple[int, int], int]:
        return {(n, s): int(self.file(n, s, "nr_hugepages").read_text()) for n in range(self.nodes) for s in self.sizes}

    def set(self, node: int, size: int, pages: int, free: int) -> None:
        self.file(node, size, "nr_hugepages").write_text(f"{pages}\n")
        self.file(node, size, "free_hugepages").write_text(f"{free}\n")


def plan_of(pools: dict[tuple[int, int], int]) -> Plan:
    found = plan(request_of("postgresql", nodes=1))
    return replace(
        found,
        pools=tuple(
            PoolPlan(numa_node=n, page_bytes=s, demand_pages=p, slack_pages=0, pages=p, present_pages=None)
            for (n, s), p in pools.items()
        ),
    )


def write(path: Path, found: Plan) -> Path:
    path.write_text(json.dumps({"plan": asdict(found)}))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def apply(tree: Tree, *words: str) -> int:
    return main(["apply", *words, "--root", str(tree.root), "--no-verify"])


def test_every_pool_gets_its_count(tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {(0, 2 * MIB): 700, (1, GIB): 3, (2, 2 * MIB): 0}
    path = write(tmp_path / "plan.json", plan_of(wanted))
    tree.set(2, 2 * MIB, 40, 40)
    before = tree.counts()
    assert apply(tree, str(path), "--dry-run") == 0
    assert tree.counts() == before
    assert "0 -> 700 pages" in capsys.readouterr().out
    assert apply(tree, str(path), "--yes") == 0
    assert {k: v for k, v in tree.counts().items() if k in wanted} == wanted
    assert apply(tree, "--status") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("new: the plan was applied")
    # The files of the tree do not count free pages, so what grew counts as used: it stays, and that is said.
    assert apply(tree, "--roll-back") == 5
    assert "700 now" in capsys.readouterr().err
    assert tree.counts()[2, 2 * MIB] == 40
    for node, size in wanted:
        tree.file(node, size, "free_hugepages").write_text("100000\n")
    assert apply(tree, "--roll-back") == 0
    assert tree.counts() == before


def test_pages_in_use_are_never_released(tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree.set(0, 2 * MIB, 100, 60)
    tree.file(None, 2 * MIB, "resv_hugepages").write_text("30\n")
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 69, (1, 2 * MIB): 10}))
    assert apply(tree, str(path), "--yes") == 1
    assert (
        "70 pages are in use or reserved (30 reserved, on a NUMA node that the kernel does not name)"
        in capsys.readouterr().err
    )
    assert tree.counts()[0, 2 * MIB] == 100
    assert tree.counts()[1, 2 * MIB] == 0
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 70}))
    assert apply(tree, str(path), "--yes") == 0
    assert tree.counts()[0, 2 * MIB] == 70


def test_a_pool_that_is_not_there_is_named_and_nothing_changes(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 5, (99, 2 * MIB): 5}))
    assert apply(tree, str(path), "--yes") == 1
    assert "node99" in capsys.readouterr().err
    assert set(tree.counts().values()) == {0}


def test_a_plan_for_another_node_is_refused(tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found by following the README: the example's plan, for a server of 256 GiB, was offered to any machine."""
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 5}))
    (tree.root / "proc/sys/kernel/hostname").write_text("elsewhere\n")
    for words in (("--dry-run",), ("--yes",)):
        assert apply(tree, str(path), *words) == 2
        assert "the plan is for db-7, this node is elsewhere" in capsys.readouterr().err
    assert set(tree.counts().values()) == {0}
    (tree.root / "proc/sys/kernel/hostname").write_text("db-7.example.com\n")
    assert apply(tree, str(path), "--dry-run") == 0
    (tree.root / "proc/meminfo").write_text("MemTotal:  8192 kB\n")
    assert apply(tree, str(path), "--yes", "--force") == 1
    assert "take 10 MiB, this node has 8 MiB" in capsys.readouterr().err
    assert set(tree.counts().values()) == {0}


def test_pools_that_grow_by_more_than_is_available_are_refused(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most of MemTotal is in use: what counts is what the kernel can give up."""
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 5}))
    (tree.root / "proc/meminfo").write_text("MemTotal:  81920 kB\nMemFree: 512 kB\nMemAvailable:  8192 kB\n")
    assert apply(tree, str(path), "--yes", "--force") == 1
    assert "grow by 10 MiB, and 8 MiB are available" in capsys.readouterr().err
    (tree.root / "proc/meminfo").write_text("MemTotal:  81920 kB\nMemFree: 512 kB\nMemAvailable:  10240 kB\n")
    assert apply(tree, str(path), "--yes", "--force") == 1
    assert "of which 1.60 MiB stay for what runs (2 % of the memory)" in capsys.readouterr().err
    assert set(tree.counts().values()) == {0}


@pytest.mark.parametrize(
    ("own", "planned", "is_same"),
    [
        ("db1", "db1.prod.example", True),
        ("db1.prod.example", "DB1", True),
        ("db1.prod.example", "db1.prod.example", True),
        ("db1.prod.example", "db1.test.example", False),
        ("10.0.1.5", "10.0.1.6", False),
        ("10", "10.0.1.6", False),
        ("cn-hangzhou.10.0.0.1", "cn-hangzhou.10.0.0.2", False),
    ],
)
def test_a_plan_is_for_the_node_of_its_name(tree: Tree, own: str, planned: str, *, is_same: bool) -> None:
    path = tree.root / "proc/sys/kernel/hostname"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{own}\n")
    assert (check_node(tree.root, planned) is None) == is_same


def test_nobody_to_ask_changes_nothing(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 5}))
    with open(os.devnull) as nothing:  # noqa: PTH123 - a device
        monkeypatch.setattr(sys, "stdin", nothing)
        assert apply(tree, str(path)) == 2
    assert set(tree.counts().values()) == {0}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_file_that_cannot_be_written_restores_the_rest(tree: Tree, tmp_path: Path) -> None:
    tree.file(1, 2 * MIB, "nr_hugepages").chmod(0o444)
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 5, (1, 2 * MIB): 5}))
    assert apply(tree, str(path), "--yes") == 1


class Run:
    """The command in a process of its own. Forked: a fresh interpreter would take a second of each of 50 runs."""

    def __init__(self, tree: Tree, path: Path) -> None:
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            for name in ("stdout", "stderr"):
                setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - the child ends at once
            status = main(["apply", str(path), "--yes", "--no-verify", "--root", str(tree.root)])
            os._exit(status)

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def kill(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def wait_for(journal: Path, states: set[str], process: Run | None = None) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            state = json.loads(journal.read_text())["state"]
        except (FileNotFoundError, ValueError):
            state = ""
        if state in states:
            return str(state)
        if process is not None and process.poll() is not None:
            return str(state)
    raise AssertionError(f"the journal never said any of {states}; it says {state!r}")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_killed_at_random_moments_it_leaves_the_old_or_the_new_state_and_says_which(
    tmp_path: Path, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(int(number))
    seen = {"old": 0, "new": 0}
    for kill in range(KILLS // 2):
        tree = Tree(tmp_path / f"{number}-{kill}")
        old = {(n, s): dice.randrange(5) for n in range(NODES) for s in tree.sizes}
        for (n, s), pages in old.items():
            # Free pages beyond any count: what grew may be released again, as it may where nothing maps it.
            tree.set(n, s, pages, 10**6)
        new = {(n, s): (900 if s < GIB else 40) + n for n in range(NODES) for s in tree.sizes}
        process = Run(tree, write(tmp_path / "plan.json", plan_of(new)))
        journal = tree.root / "var/lib/hugeplan/apply.json"
        wait_for(journal, {"applying", "applied"}, process)
        moment = time.monotonic() + dice.uniform(0, 0.12)
        while time.monotonic() < moment and process.poll() is None:
            pass
        process.kill(number)
        state = wait_for(journal, {"applied", "restored"})
        expected = {"applied": ("new", new), "restored": ("old", old)}[state]
        # A run that was killed after it had written "applied" and before it told its guard is rolled back.
        if state == "applied":
            lock_is_free(tree)
            state = json.loads(journal.read_text())["state"]
            expected = {"applied": ("new", new), "restored": ("old", old)}[state]
        assert tree.counts() == expected[1], (kill, state)
        assert main(["apply", "--status", "--root", str(tree.root)]) == 0
        assert capsys.readouterr().out.startswith(f"{expected[0]}: ")
        seen[expected[0]] += 1
    assert seen["old"] + seen["new"] == KILLS // 2
    assert seen["old"] >= 3, seen  # else the moments did not hit the work


def lock_is_free(tree: Tree) -> None:
    """Wait until no process of the run is left: the guard holds the lock to its end."""
    import fcntl  # noqa: PLC0415

    with (tree.root / "var/lib/hugeplan/apply.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def journal_of(tree: Tree, state: str, *changes: tuple[int, ...], former: object = None) -> None:
    """A journal of this boot; of each pool of 2M: NUMA node, pages before, pages wanted, and perhaps what was left."""
    names = ("numa_node", "before", "wanted", "left")
    pools = [dict(zip(names, change, strict=False)) | {"page_bytes": 2 * MIB} for change in changes]
    folder = tree.root / "var/lib/hugeplan"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"state": state, "boot_id": "boot-1", "plan": "x", "changes": pools, "former": former}
    (folder / "apply.json").write_text(json.dumps(document))


def test_what_a_run_killed_with_its_guard_left_is_shown_and_asked_for(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for node in (0, 1):
        tree.set(node, 2 * MIB, 64, 10**6)
    journal_of(tree, "applying", (0, 3, 700), (1, 2, 700))
    assert apply(tree, "--status") == 0
    assert capsys.readouterr().out.startswith("between: ")
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
    for words, status in ((("--dry-run",), 0), ((), 2)):
        assert apply(tree, str(path), *words) == status
        captured = capsys.readouterr()
        assert "0    2M  64 -> 9 pages  (-110 MiB; --roll-back then gives 3, as before an" in captured.out
        assert "1    2M  64 -> 64 pages  (as it is; --roll-back then gives 2, as" in captured.out
        assert "killed" not in captured.err
        assert tree.counts()[0, 2 * MIB] == tree.counts()[1, 2 * MIB] == 64
    assert apply(tree, str(path), "--yes") == 0
    assert (tree.counts()[0, 2 * MIB], tree.counts()[1, 2 * MIB]) == (9, 64)
    assert apply(tree, "--roll-back") == 0
    assert (tree.counts()[0, 2 * MIB], tree.counts()[1, 2 * MIB]) == (3, 2)


def test_a_count_that_somebody_set_since_a_run_without_an_end_is_theirs(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A roll-back in part, or a full disk, leaves such a journal; a database of somebody else's lost its pages."""
    path = write(tmp_path / "plan.json", plan_of({(1, 2 * MIB): 9}))
    tree.file(1, 2 * MIB, "free_hugepages").write_text("1000000\n")
    for change, pages in (((0, 0, 145, 140), 400), ((0, 0, 145, 140), 139), ((0, 0, 145), 400), ((0, 0, 145), 145)):
        tree.set(0, 2 * MIB, pages, 10**6)
        journal_of(tree, "restoring", change)
        assert apply(tree, str(path), "--yes") == 0
        assert ("--roll-back then gives 0" in capsys.readouterr().out) == (pages == 145), "whose it is, nobody knows"
        assert tree.counts()[0, 2 * MIB] == pages


@pytest.mark.parametrize("pages", [140, 145, 160])
def test_after_a_roll_back_in_part_plans_are_applied_again(tree: Tree, tmp_path: Path, pages: int) -> None:
    """The pages that were kept are in use; the count of before the first plan is still the one to go back to."""
    tree.set(0, 2 * MIB, 0, 10**6)
    assert apply(tree, str(write(tmp_path / "first.json", plan_of({(0, 2 * MIB): 145}))), "--yes") == 0
    tree.set(0, 2 * MIB, 145, 5)
    assert apply(tree, "--roll-back") == 5
    tree.set(0, 2 * MIB, 140, 0)
    assert apply(tree, str(write(tmp_path / "next.json", plan_of({(0, 2 * MIB): pages}))), "--yes") == 0
    assert tree.counts()[0, 2 * MIB] == pages
    assert apply(tree, "--status") == 0
    tree.set(0, 2 * MIB, pages, 10**6)
    assert apply(tree, "--roll-back") == 0
    assert tree.counts()[0, 2 * MIB] == 0


def test_a_run_that_came_to_nothing_leaves_the_way_back_of_the_plan_in_force(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write(tmp_path / "first.json", plan_of({(0, 2 * MIB): 145}))
    second = write(tmp_path / "second.json", plan_of({(0, 2 * MIB): 900}))
    tree.set(0, 2 * MIB, 142, 10**6)
    assert apply(tree, str(first), "--yes") == 0

    def gives_fewer(*_: object) -> NoReturn:
        raise PoolError("900 pages asked for, 300 given")

    with monkeypatch.context() as short:
        short.setattr("hugeplan.cli.apply.grow_and_shrink", gives_fewer)
        assert apply(tree, str(second), "--yes") == 1
    kept = json.loads((tree.root / "var/lib/hugeplan/apply.json").read_text())
    # Killed with its guard instead: one roll-back ends it, another one the plan in force.
    journal_of(tree, "applying", (0, 145, 900), former=kept)
    tree.set(0, 2 * MIB, 300, 10**6)
    for pages, is_in_force in ((145, True), (142, False)):
        assert apply(tree, "--roll-back") == 0
        assert tree.counts()[0, 2 * MIB] == pages
        assert (tree.root / "var/lib/hugeplan/plan-in-force.json").exists() == is_in_force
    assert "the one before stands" in capsys.readouterr().out


def test_pages_of_a_measurement_are_not_taken_for_the_counts_before(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither while it runs nor after it was killed. It writes the pool of the whole node, which no link makes here."""
    reservation = pytest.importorskip("hugeplan_agent.pool_reservation")
    whole = tree.file(None, 2 * MIB, "nr_hugepages")
    whole.write_text("0\n")
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
    places = reservation.Places(tree.root / "sys", tree.root / "tlbbench")
    with reservation.reservation(places) as held:
        held.grow(2 * MIB, 512)
        for words in ((str(path), "--yes"), ("--roll-back",)):
            assert apply(tree, *words) == 1
            assert "tlbbench --reserve; try again when it has ended" in capsys.readouterr().err
        left = held.path.read_text()
    assert tree.counts()[0, 2 * MIB] == 0
    whole.write_text("512\n")
    held.path.parent.mkdir(exist_ok=True)
    held.path.write_text(left)
    assert apply(tree, str(path), "--yes") == 0
    assert "Pages of 2M that a killed measurement left are given back: 512 -> 0" in capsys.readouterr().out
    assert whole.read_text() == "0\n"
    assert tree.counts()[0, 2 * MIB] == 9


def test_a_reader_that_ends_stops_the_run_and_no_words_of_kills_are_said(tree: Tree, tmp_path: Path) -> None:
    path = write(tmp_path / "plan.json", plan_of({(n, s): 400 for n in range(NODES) for s in tree.sizes}))
    for node, size in tree.counts():
        tree.set(node, size, 0, 10**6)
    command = [sys.executable, "-m", "hugeplan.cli", "apply", str(path), "--yes", "--no-verify", "--root", tree.root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        shown = b""
        while not (b"NUMA node 7    1G" in shown and shown.endswith(b"\n")):
            shown += run.stdout.read(100)
        run.stdout.close()
        said = run.stderr.read().decode()
        assert run.wait() in {1, 74}  # where output is not buffered, nothing is left to write
    assert said == "hugeplan apply: Broken pipe; the previous counts are back\n"
    assert set(tree.counts().values()) == {0}


def test_a_full_disk_leaves_no_file_of_ours(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(file: int) -> None:
        if "/var/lib/" in str(Path(f"/proc/self/fd/{file}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
    monkeypatch.setattr(os, "fsync", full)
    assert apply(tree, str(path), "--yes") == 1
    assert "apply.json: No space left on device; the previous counts are back" in capsys.readouterr().err
    assert [file.name for file in (tree.root / "var/lib/hugeplan").iterdir()] == ["apply.lock"]


def test_the_next_run_removes_what_a_killed_one_and_its_guard_left(tree: Tree, tmp_path: Path) -> None:
    folder, path = tree.root / "var/lib/hugeplan", write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
    child = os.fork()
    if child == 0:
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        os._exit(apply(tree, str(path), "--yes"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    lock_is_free(tree)
    assert len([*folder.iterdir()]) == 3, "beside the lock what each of them wrote"
    assert apply(tree, "--roll-back") == 2
    assert [file.name for file in folder.iterdir()] == ["apply.lock"]


def test_a_full_run_keeps_nobody_from_rolling_back(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that measurements share lies in /run, with a journal in it that a way back has no word for."""
    path, writes = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9})), os.write
    tree.set(0, 2 * MIB, 0, 10**6)
    assert apply(tree, str(path), "--yes") == 0

    def full(file: int, data: bytes) -> int:
        if "/tlbbench/" in str(Path(f"/proc/self/fd/{file}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return writes(file, data)

    monkeypatch.setattr(os, "write", full)
    assert apply(tree, "--roll-back") == 0
    assert tree.counts()[0, 2 * MIB] == 0
    reservation = pytest.importorskip("hugeplan_agent.pool_reservation")
    tree.file(None, 2 * MIB, "nr_hugepages").write_text("0\n")
    places = reservation.Places(tree.root / "sys", tree.root / "tlbbench")
    with (
        reservation.reservation(places) as held,
        pytest.raises(reservation.ReservationError, match="cannot be written"),
    ):
        held.grow(2 * MIB, 512)
    assert tree.file(None, 2 * MIB, "nr_hugepages").read_text() == "0\n", "no pool grows without a note"


def test_counts_of_another_boot_are_not_restored(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree.root / "var/lib/hugeplan"
    folder.mkdir(parents=True)
    (folder / "apply.json").write_text(
        json.dumps({"state": "applying", "boot_id": "boot-0", "plan": "x", "changes": []})
    )
    assert apply(tree, "--status") == 0
    assert capsys.readouterr().out.startswith("none: ")
    assert apply(tree, "--roll-back") == 2


def test_what_fails_after_the_change_hides_no_counts(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Large pools leave little memory for who looks whether a database uses them."""

    def fails(_: str) -> NoReturn:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr("hugeplan.cli.apply.observe", fails)
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
    for said in ("0 -> 9 pages", "as planned already"):
        assert main(["apply", str(path), "--yes", "--root", str(tree.root)]) == 3
        captured = capsys.readouterr()
        assert said in captured.out
        assert "could not be observed: [Errno 12]" in captured.err
    assert tree.counts()[0, 2 * MIB] == 9
    assert apply(tree, "--roll-back") == 5
    assert "9 now" in capsys.readouterr().err


def test_a_plan_in_force_that_cannot_be_noted_is_said_and_hides_no_counts(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found with a full disk: status 1 says that the previous counts are back, and they were not."""
    (tree.root / "var/lib/hugeplan/plan-in-force.json").mkdir(parents=True)
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
    for words, status in (([str(path), "--yes"], 0), ([str(path), "--yes"], 0), (["--roll-back"], 5)):
        assert apply(tree, *words) == status
        assert "which plan is in force could not be noted: " in capsys.readouterr().err
        assert tree.counts()[0, 2 * MIB] == 9


def test_a_disk_that_fills_up_meanwhile_leaves_no_pool_grown(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any user can fill /var: the counts go back before the journal says so, and the next run looks once more."""
    real, written = apply_journal._replace, []

    def fills_up(path: Path, document: dict[str, Any]) -> None:
        written.append(path)
        if len(written) > 1:
            raise PoolError(f"{path}: No space left on device")
        real(path, document)

    for node in (0, 1):
        tree.file(node, 2 * MIB, "free_hugepages").write_text("100000\n")
    before = tree.counts()
    path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9, (1, 2 * MIB): 4}))
    with monkeypatch.context() as full:
        full.setattr(apply_journal, "_replace", fills_up)
        assert apply(tree, str(path), "--yes") == 1
    assert "No space left on device; the previous counts are back" in capsys.readouterr().err
    assert tree.counts() == before
    assert apply(tree, str(path), "--yes") == 0
    assert tree.counts()[0, 2 * MIB] == 9


def test_two_runs_at_once_are_refused(tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import fcntl  # noqa: PLC0415

    folder = tree.root / "var/lib/hugeplan"
    folder.mkdir(parents=True)
    with (folder / "apply.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = write(tmp_path / "plan.json", plan_of({(0, 2 * MIB): 9}))
        assert apply(tree, str(path), "--yes") == 1
    assert "a hugeplan apply or trial is at work" in capsys.readouterr().err
