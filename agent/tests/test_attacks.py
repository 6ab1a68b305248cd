"""The agent under attack: killed at random moments, cut off from its server, out of disk. Nothing lost, nothing twice.

What is counted: every report that the agent has put into its spool (its file was renamed there) reaches the server
exactly once. Reports that a kill prevents from being written are no loss: the next sample is as good.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hugeplan_agent.host import Host
from hugeplan_agent.spool import NAME, Bounds, Spool
from tests.factories import make_report
from tests.misbehaving_server import Behaviour, MisbehavingServer
from tests.test_cli import Node, until

KILLS = int(os.environ.get("HUGEPLAN_AGENT_KILLS", "200"))
SEED = 20261122
Machine = Callable[[str], Host]


@pytest.fixture
def node(tmp_path: Path, machine: Machine, server: MisbehavingServer) -> Iterator[Node]:
    made = Node(tmp_path, machine("riscv-bare").root, server.url)
    yield made
    for process in made.running:
        process.kill()
        process.communicate()


def test_random_kills_lose_nothing_and_store_nothing_twice(node: Node, server: MisbehavingServer) -> None:
    """The agent samples as fast as it may while it is killed again and again; the server fails now and then too."""
    dice = random.Random(SEED)
    spooled: set[str] = set()
    server.on_arrival = lambda document: spooled.add(document["report_id"])
    node.environment["HUGEPLAN_AGENT_TIMEOUT"] = "2s"
    nursery = Nursery(node)
    for _ in range(2):  # the first one waits for Python itself
        started = time.monotonic()
        nursery.start("once")
        nursery.wait()
    # Kills fall before, in and after the observation, the writing and the delivery.
    whole_seconds = time.monotonic() - started
    for number in range(KILLS):
        if dice.random() < 0.2:
            server.script.append(dice.choice([Behaviour(drop=True), Behaviour(503), Behaviour(500)]))
        pid = nursery.start("run", "--interval", "1s")
        time.sleep(dice.uniform(0, 2.5) * whole_seconds)
        spooled.update(waiting_ids(node))
        os.kill(pid, signal.SIGKILL)
        nursery.wait()
        spooled.update(waiting_ids(node))
        assert not any(path.suffix == ".json" and not NAME.fullmatch(path.name) for path in node.waiting()), number
    nursery.close()
    server.script.clear()
    assert node.call("once")[0] == 0
    spooled.update(server.stored)
    assert set(server.stored) == spooled, "all that was in the spool has arrived"
    assert waiting_ids(node) == []
    assert len(server.stored) >= KILLS // 10, "the kills left room for some work"
    assert max(server.created.values()) == 1, "the server made each report once"
    leftovers = list(node.spool.rglob(".*.tmp"))
    assert leftovers == [], "half-written files are removed"


class Nursery:
    """Starts agents as children of one process that has imported everything: a start takes milliseconds."""

    SCRIPT = """
import os, sys
from hugeplan_agent.cli import main
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        sys.stdin.close()
        os._exit(main(line.split()))
    print(pid, flush=True)
    os.waitpid(pid, 0)
    print("ended", flush=True)
"""

    def __init__(self, node: Node) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT],
            env=node.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def start(self, *words: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def wait(self) -> None:
        """Until the child has been reaped. Its own words may come before."""
        assert self._process.stdout is not None
        while self._process.stdout.readline() != "ended\n":
            pass

    def close(self) -> None:
        self._process.communicate("", timeout=20)


def waiting_ids(node: Node) -> list[str]:
    return [match[2] for path in node.waiting() if (match := NAME.fullmatch(path.name))]


def test_an_outage_is_made_up_for_in_order(node: Node, server: MisbehavingServer) -> None:
    """Ten minutes without a server at one sample per minute, told by a clock sixty times as fast as the real one."""
    outage_seconds, interval_seconds = 10.0, 1.0
    server.away = True
    process = node.start("run", "--interval", f"{interval_seconds:g}s")
    expected = int(outage_seconds / interval_seconds)
    until(lambda: len(node.waiting()) >= expected, timeout_seconds=outage_seconds * 3)
    kept = waiting_ids(node)
    assert server.stored == {}
    refused = len(server.attempts)
    assert refused <= 12, f"{refused} attempts in {outage_seconds:g} s: the waits grow"
    server.away = False
    until(lambda: set(kept) <= set(server.stored), timeout_seconds=60)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    arrived = [report_id for report_id in server.stored if report_id in kept]
    assert arrived == kept, "oldest first"
    moments = [server.stored[report_id]["sample"]["taken_at"] for report_id in kept]
    assert moments == sorted(set(moments)), "one sample per interval, none twice"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB; needs the right to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hugeplan", str(folder).encode(), b"tmpfs", 0, b"size=256k") != 0:
        pytest.skip(f"SKIP: a file system cannot be mounted here ({os.strerror(ctypes.get_errno())})")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_the_oldest_samples_and_counts_them(small_disk: Path) -> None:
    spool = Spool(small_disk / "spool", Bounds(max_bytes=64 * 1024**2, max_age_seconds=3600))
    run = spool.add(make_report(20_000, run=True), 1)
    added = [spool.add(make_report(20_000), 2 + number) for number in range(40)]
    waiting = [entry.report_id for entry in spool.entries()]
    dropped = spool.counters()["disk_full"]
    assert waiting[0] == run.report_id, "a run is given up last"
    assert waiting[1:] == [entry.report_id for entry in added[-len(waiting) + 1 :]], "the newest are kept"
    assert len(waiting) + dropped == 41, "what is gone is counted, the rest is there"


def test_a_disk_full_of_other_things_is_an_error_not_a_loss(small_disk: Path, node: Node) -> None:
    node.environment["HUGEPLAN_AGENT_SPOOL_DIR"] = str(small_disk / "spool")
    assert node.call("once")[0] == 0
    free_bytes = shutil.disk_usage(small_disk).free
    (small_disk / "filler").write_bytes(bytes(free_bytes))
    status, _, errors = node.call("once")
    assert status == 1
    assert "No space left on device" in errors
    (small_disk / "filler").unlink()
    assert node.call("once")[0] == 0
