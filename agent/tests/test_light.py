"""What the agent costs a node: resident memory, and processor time per observation with its delivery."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hugeplan_agent.collectors.process_table import ROLLUP_SHARE
from tests.misbehaving_server import MisbehavingServer
from tests.test_cli import Node

CYCLES = 12
MAX_RSS_BYTES = 30 * 1024**2
INTERVAL_SECONDS = 60.0
MAX_CORE_FRACTION = 0.001
# Of what a program takes that reads four files of each process, and nothing else: where that alone is dear (a slow
# machine, cores that others use, very many processes), the agent may take so many times as much.
MOST_OF_BARE_WALK = 6.0


@pytest.fixture
def node(tmp_path: Path, server: MisbehavingServer) -> Iterator[Node]:
    made = Node(tmp_path, Path("/"), server.url)
    yield made
    for process in made.running:
        process.kill()
        process.communicate()


def with_child(pid: int) -> list[int]:
    """The agent, and the child of it that looks at processes."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def processor_seconds(pids: list[int]) -> float:
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def pss_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def bare_walk_seconds() -> float:
    """Processor seconds that it takes to read what the kernel says of each process, once."""
    begun = time.process_time()
    for place in Path("/proc").glob("[0-9]*"):
        for name in ("stat", "status", "cgroup", "cmdline"):
            try:
                (place / name).read_bytes()
            except OSError:
                break
    return time.process_time() - begun


def test_memory_and_processor_time_on_this_machine(node: Node, server: MisbehavingServer) -> None:
    """Observes this machine, whose processes are whatever runs here. One cycle per second stands for one per minute."""
    process = node.start("daemon", "--interval", "1s")
    server.wait_for_attempts(3, 60)
    pids = with_child(process.pid)
    assert len(pids) == 2
    before = processor_seconds(pids)
    first = len(server.attempts)
    bare = 0.0
    for cycle in range(CYCLES):
        server.wait_for_attempts(first + cycle + 1, 60)
        bare += bare_walk_seconds() / CYCLES
    per_cycle = (processor_seconds(pids) - before) / (len(server.attempts) - first)
    peak, together = max(map(peak_rss_bytes, pids)), sum(map(pss_bytes, pids))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    print(
        f"{1000 * per_cycle:.1f} ms per observation, {peak / 1024**2:.1f} MiB resident at most,"
        f" {together / 1024**2:.1f} MiB together; a bare walk {1000 * bare:.1f} ms"
    )
    assert max(peak, together) < MAX_RSS_BYTES
    # At one cycle a minute the agent may spend its whole budget of page-table walks on top of this.
    allowed = max(INTERVAL_SECONDS * (MAX_CORE_FRACTION - ROLLUP_SHARE), MOST_OF_BARE_WALK * bare)
    assert per_cycle < allowed
