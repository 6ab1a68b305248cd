"""``hugeplan apply`` killed at random moments while it changes this machine's pool of 2M pages.

The kernel's files are the real ones, behind links in a folder of the test, so that the journal is the test's own. It
needs root and about 1 GiB of free memory. HUGEPLAN_KILLS=50 is the long form; the short one is a few kills.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import random
import signal
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli.test_apply import Run, plan_of, write

from hugeplan.cli import main
from hugeplan.cli.pool_files import PoolFiles
from hugeplan.planner.model import MIB

M2 = 2 * MIB
KILLS = int(os.environ.get("HUGEPLAN_KILLS", "12"))
LARGEST_PAGES = 480


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Path]:
    """A root whose /sys and /proc are the machine's. The pool is empty before, and empty again at the end."""
    if os.geteuid() != 0:
        pytest.skip("only root may change the node's pools")
    pool_reservation = pytest.importorskip("hugeplan_agent.pool_reservation")
    pools = PoolFiles(Path("/"))
    if not pools.folder(0, M2).is_dir() or not os.access(pools.folder(0, M2) / "nr_hugepages", os.W_OK):
        pytest.skip("this kernel has no writable pool of 2M pages on NUMA node 0")
    root = tmp_path / "root"
    root.mkdir()
    for name in ("sys", "proc"):
        (root / name).symlink_to(f"/{name}")
    try:
        with pool_reservation.reservation():
            before = pools.counts(0, M2).pages
            if before:
                pytest.skip(f"{before} pages of 2M stand already: the test wants the pool for itself")
            try:
                if pools.write(0, M2, LARGEST_PAGES) != LARGEST_PAGES:
                    pytest.skip(f"the kernel does not find {LARGEST_PAGES} free pages of 2M")
                pools.write(0, M2, 0)
                yield root
            finally:
                pools.write(0, M2, 0)
                left = pools.counts(0, M2)
                assert left.pages == 0 or left.free < left.pages, left
    except pool_reservation.ReservationError as error:
        pytest.skip(str(error))


class Tries:
    """Runs of the command, each with a plan of its own name, between random counts."""

    def __init__(self, root: Path, folder: Path, dice: random.Random) -> None:
        self.root, self.folder, self.dice = root, folder, dice
        self.pools = PoolFiles(root)
        self.number = 0

    def counts(self) -> int:
        return self.pools.counts(0, M2).pages

    def check(self, holds: bool, what: object) -> None:
        """Fail, but where another program took pages from the pool meanwhile, as any server with ``try`` does."""
        now = self.pools.counts(0, M2)
        if not holds and now.pages - now.free + self.pools.reserved(M2):
            pytest.skip("another program on this machine took pages of the pool")
        assert holds, what

    def plan(self) -> tuple[str, int, Path]:
        """The name of a plan, the pages that it wants, which are not those that stand, and its file."""
        self.number += 1
        now = self.counts()
        wanted = self.dice.choice([n for n in range(0, LARGEST_PAGES + 1, 40) if abs(n - now) >= 160])
        name = f"plan {self.number}"
        found = replace(plan_of({(0, M2): wanted}), headline=name, node=platform.node())
        return name, wanted, write(self.folder / "plan.json", found)

    def started(self, path: Path) -> Run:
        return Run(self, path)  # type: ignore[arg-type]  # it takes the root alone

    def undisturbed_seconds(self) -> float:
        _, wanted, path = self.plan()
        begin = time.monotonic()
        run = self.started(path)
        while run.poll() is None:
            pass
        self.check((run.poll(), self.counts()) == (0, wanted), (run.poll(), self.counts(), wanted))
        return time.monotonic() - begin

    def wait_for_the_guard(self) -> None:
        """The guard holds the lock to its end. A run killed very early has made no lock."""
        path = self.root / "var/lib/hugeplan/apply.lock"
        if path.exists():
            with path.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)


def test_killed_at_random_moments_it_leaves_the_old_or_the_new_pool_and_says_which(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tries = Tries(node, tmp_path, random.Random(20261122))
    usual = statistics.median(tries.undisturbed_seconds() for _ in range(3))
    seen = {"old": 0, "new": 0}
    for kill in range(KILLS):
        old = tries.counts()
        name, wanted, path = tries.plan()
        # From the start to well behind the usual end: every part of the run is met, and both outcomes can be.
        moment = time.monotonic() + (kill + tries.dice.random()) / KILLS * 1.8 * usual
        run = tries.started(path)
        while time.monotonic() < moment and run.poll() is None:
            pass
        run.kill(signal.SIGKILL)
        tries.wait_for_the_guard()
        assert main(["apply", "--status", "--root", str(node)]) == 0
        words = capsys.readouterr().out
        # Ended before its first word in the journal, which is still the previous run's: nothing was changed.
        says = words.partition(":")[0] if f"({name})" in words else "old"
        tries.check(tries.counts() == {"old": old, "new": wanted}.get(says), (kill, words, old, wanted))
        journal = json.loads((node / "var/lib/hugeplan/apply.json").read_text())
        tries.check(journal["state"] in {"applied", "restored"}, journal)
        seen[says] += 1
    assert seen["old"] + seen["new"] == KILLS
    print(f"{KILLS} kills: {seen}; an undisturbed run takes {usual * 1000:.0f} ms")
    assert min(seen.values()) >= 1, seen


def test_killed_with_its_guard_the_state_is_said_and_the_roll_back_ends_it(
    node: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both processes die at once: what stands may lie between, is said to, and goes back by one command."""
    tries = Tries(node, tmp_path, random.Random(1))
    usual = statistics.median(tries.undisturbed_seconds() for _ in range(3))
    for kill in range(max(4, KILLS // 4)):
        old = tries.counts()
        name, wanted, path = tries.plan()
        moment = time.monotonic() + (kill + tries.dice.random()) / max(4, KILLS // 4) * usual
        run = tries.started(path)
        while time.monotonic() < moment and run.poll() is None:
            pass
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
        guards = (
            [int(word) for word in children.read_text().split()] if children.exists() and run.poll() is None else []
        )
        for guard in guards:
            os.kill(guard, signal.SIGKILL)
        run.kill(signal.SIGKILL)
        tries.wait_for_the_guard()
        assert main(["apply", "--status", "--root", str(node)]) == 0
        words = capsys.readouterr().out
        if f"({name})" not in words:
            tries.check(tries.counts() == old, (kill, words))
            continue
        stands = tries.counts()
        assert words.partition(":")[0] == {old: "old", wanted: "new"}.get(stands, "between"), words
        status = main(["apply", "--roll-back", "--root", str(node)])
        tries.check((status, tries.counts()) == (0, old), (status, capsys.readouterr().err))
        capsys.readouterr()
