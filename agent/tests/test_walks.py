"""What a user of the node maps costs little processor time and memory per observation, and only readings of its own."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from hugeplan_agent.collectors import collect_all, mappings, process_table
from hugeplan_agent.collectors.process_table import Process, ProcessTable
from hugeplan_agent.host import Host
from tests.test_foreign import LOCAL, server

MIB = 1024**2
DEAR_SECONDS = 0.13
"""Of a walk of 100 MiB of page tables."""
SYSV = "{:x}-{:x} rw-s 00000000 00:0f 5 /SYSV00000000 (deleted)\n"


@pytest.fixture
def host(machine: Callable[[str], Host]) -> Host:
    return machine("kubernetes-v2")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The time that passes, and the processor time that walks take."""
    clock = {"now": time.monotonic(), "processor": 0.0}
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    monkeypatch.setattr(time, "thread_time", lambda: clock["processor"])
    return clock


def observe(host: Host, clock: dict[str, float]) -> tuple[dict[int, dict[str, Any]], float]:
    """The servers of the observation of the next minute, and the processor time of its walks."""
    clock["now"] += 60.0
    host.begin()
    before = clock["processor"]
    seen = collect_all(host).sample["databases"]
    return {one["main_pid"]: one for one in seen}, clock["processor"] - before


def test_one_dear_walk_of_page_tables_makes_nobody_else_wait(
    host: Host, clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user starts a process anew each minute: never read, it is the first of its own."""
    read: list[int] = []

    def reads(_: Host, process: Process) -> str:
        read.append(process.pid)
        clock["processor"] += DEAR_SECONDS if process.account == "eve" else 0.0001
        return "Pss: 1 kB\n"

    monkeypatch.setattr(process_table, "_read_rollup", reads)
    for minute in range(60):
        clock["now"] += 60.0
        many = [Process(1000 + minute, 1, minute, "x", 500 * MIB, account="eve")]
        many += [Process(pid, 1, pid, "x", 100 * MIB, account="db") for pid in (1, 2)]
        table = ProcessTable({process.pid: process for process in many})
        process_table.read_rollups(host, table, many, lambda process: process.account)
    assert read.count(1) + read.count(2) >= 100
    assert clock["processor"] < 1.0


def test_mappings_that_take_long_to_walk_are_read_in_turn_of_accounts(
    host: Host, clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        server(host, 26001 + number, LOCAL)
    good = server(host, 29999, LOCAL + 1)
    (good / "maps").write_text("7f0000000000-7f0040000000 rw-s 00000000 00:01 1 /dev/zero\n")
    read = mappings.read

    def slowly(host: Host, pid: int, *words: Any, **more: Any) -> Any:
        clock["processor"] += DEAR_SECONDS if 26000 < pid < 29000 else 0.0001
        return read(host, pid, *words, **more)

    monkeypatch.setattr(mappings, "read", slowly)
    found, first = observe(host, clock)
    assert first < 1.0
    assert found[29999]["huge_pages_status_source"] == "maps"
    assert "mappings of" in str(next(one for one in collect_all(host).results if one["name"] == "databases")["reason"])
    later = [observe(host, clock) for _ in range(30)]
    assert sum(took for _, took in later) < 30 * 60 * 0.002
    assert {found[29999]["huge_pages_status_source"] for found, _ in later} == {"maps"}


@pytest.mark.parametrize(("tables_kib", "source"), [(8, "maps"), (2 * 1024**2, "status")])
def test_page_tables_of_a_gibibyte_are_not_walked(host: Host, tables_kib: int, source: str) -> None:
    place = server(host, 26001, LOCAL)
    status = (place / "status").read_text() + f"RssAnon:\t90000 kB\nHugetlbPages:\t0 kB\nVmPTE:\t{tables_kib} kB\n"
    (place / "status").write_text(status)
    line = SYSV.format(0x7F0000000000, 0x7F0040000000)
    (place / "maps").write_text(line)
    (place / "smaps").write_text(f"{line}Size: 1048576 kB\nKernelPageSize:     2048 kB\n")
    (found,) = (one for one in collect_all(host).sample["databases"] if one["main_pid"] == 26001)
    assert (found["huge_pages_status"], found["huge_pages_status_source"]) == (
        "on" if source == "maps" else "off",
        source,
    )
    assert [one["bytes"] for one in found["segments"]] == [1024 * MIB]


@pytest.mark.usefixtures("clock")  # a slow machine reads both
def test_what_is_kept_of_mappings_is_what_is_reported(host: Host) -> None:
    """40,000 mappings whose names have a letter that takes four bytes, and one that is the pool."""
    large = "6f0000000000-6f0080000000 rw-s 00000000 00:01 1 /dev/zero (deleted)\n"
    step = 16 * MIB
    starts = range(0x7000000000, 0x7000000000 + 40_000 * step, step)
    lines = [f"{at:x}-{at + step // 2:x} rw-s 00000000 00:01 {at} /memfd:\U0001f600\n" for at in starts]
    pids = (26001, 26002)
    for pid in pids:
        (server(host, pid, LOCAL + pid) / "maps").write_text(large + "".join(lines))
    tracemalloc.start()
    try:
        found = {one["main_pid"]: one for one in collect_all(host).sample["databases"]}
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {found[pid]["segments"][0]["bytes"] for pid in pids} == {2048 * MIB}
    assert {len(found[pid]["segments"]) for pid in pids} == {64}
    assert most < 12 * MIB
    assert kept < 4 * MIB


def test_neighbours_of_a_pool_in_many_pieces_are_one_segment(host: Host) -> None:
    """MySQL takes a System V segment per 128 MiB of its pool."""
    place = server(host, 26001, LOCAL)
    starts = [0x7E0000000000 + 128 * MIB * at for at in range(3000)]
    lines = [SYSV.format(start, start + 128 * MIB).replace(" 5 ", f" {start} ") for start in starts]
    (place / "maps").write_text("".join(lines))
    (place / "smaps").write_text("".join(f"{line}KernelPageSize:     2048 kB\n" for line in lines))
    (found,) = (one for one in collect_all(host).sample["databases"] if one["main_pid"] == 26001)
    assert [one["bytes"] for one in found["segments"]] == [3000 * 128 * MIB]
