"""The measuring commands on this machine: what they find, and what they say when they are held back."""

from __future__ import annotations

import json
import mmap
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import suite

from hugeplan_agent.pool_reservation import reservation

MIB = 1 << 20
POOL_2M = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
CGROUP_V1 = Path("/sys/fs/cgroup/memory")
PAGE = os.sysconf("SC_PAGE_SIZE")


def statuses(made: Any) -> set[str]:
    """Every status anywhere in the document."""
    if isinstance(made, dict):
        found = {made["status"]} if isinstance(made.get("status"), str) else set()
        return found.union(*(statuses(value) for value in made.values()))
    return set().union(*(statuses(value) for value in made)) if isinstance(made, list) else set()


def check_named(made: dict[str, Any], status: str) -> None:
    """The status stands somewhere in the document. A section that ran out of time may not have come to it."""
    found = statuses(made)
    if status not in found and "stopped" in found:
        raise suite.Skip(f"the machine is busy: {made['command']} was stopped before it came to {status}")
    assert status in found, (made["command"], found)


def section(made: dict[str, Any], name: str) -> dict[str, Any]:
    return next(item for item in made["sections"] if item["name"] == name)


def limited(limit: Callable[[], None], *arguments: str) -> dict[str, Any]:
    """Runs below a limit that the child sets on itself."""
    done = subprocess.run(
        [*suite.tlbbench(), *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=200,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 3, f"exit status {done.returncode}: {done.stderr.strip()}"
    made: dict[str, Any] = json.loads(done.stdout)
    suite.validate(made)
    return made


# --- what is found ---------------------------------------------------------------------------------------------------


def geometry_agrees_with_the_catalogue() -> None:
    made = suite.document("geometry", "--time-limit", "40")
    if section(made, "geometry")["status"] in ("noisy", "stopped"):
        raise suite.Skip(f"the machine is busy: {section(made, 'geometry')['reason']}")
    geometry = made["geometry"]

    def known(level: int, source: str) -> list[dict[str, Any]]:
        return [
            item
            for item in geometry["levels"]
            if item["level"] == level
            and item["source"] == source
            and item["page_bytes"] == PAGE
            and item["kind"] != "instr"
        ]

    first = known(1, "measured")
    assert len(first) == 1, first
    penalties = {item["level"]: item["cycles"] for item in geometry["penalty"] if item["page_bytes"] == PAGE}
    assert 3 <= penalties["l2_hit"] <= 20, penalties
    assert abs(geometry["clock"]["l1_hit_cycles"] - round(geometry["clock"]["l1_hit_cycles"])) < 0.2, geometry["clock"]
    for granule in geometry["effective_granule"]:
        if granule["status"] == "ok":
            assert granule["granule_bytes"] == granule["page_bytes"], granule
        if granule["status"] == "fractured":
            assert PAGE <= granule["granule_bytes"] < granule["page_bytes"], granule
    told = known(1, "catalogue")
    if not told:
        raise suite.Skip("this processor is not in the catalogue: nothing to compare with")
    loads = [item for item in told if item["kind"] in ("data", "load")]
    assert abs(first[0]["entries"] - loads[0]["entries"]) <= 2, (first, loads)
    assert first[0]["ways"] in (loads[0]["ways"], None), (first, loads)
    second = known(2, "measured")
    if second and known(2, "catalogue"):
        total = sum(item["entries"] for item in known(2, "catalogue"))
        assert second[0]["entries_min"] <= total <= second[0]["entries_max"], (second, total)


def geometry_stays_small() -> None:
    """Time, physical memory and resident size, aliases counted. (A page of 1G is mapped whole where one is free.)"""
    command = [*suite.tlbbench(), "geometry", "--json", "--page-sizes", f"{PAGE},thp"]
    resident = 0
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(command, stdout=output) as process:
            while process.poll() is None:
                # The kernel's high-water mark of the program alone: ru_maxrss starts with that of its parent.
                with suppress(OSError):
                    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
                    resident = max(resident, int(found[1]) * 1024 if found else 0)
                time.sleep(0.02)
        output.seek(0)
        made = json.load(output)
    suite.validate(made)
    assert made["duration_seconds"] <= 6.5, made["duration_seconds"]
    assert made["geometry"]["peak_mapped_bytes"] < 16 * MIB, made["geometry"]["peak_mapped_bytes"]
    assert 0 < resident < 16 * MIB, resident
    assert made["rss_outside_bytes"] < 8 * MIB, made["rss_outside_bytes"]


def page_tables_of_processes() -> None:
    made = suite.document(
        *("rows", "--page-sizes", str(PAGE), "--mode", "processes", "--workers", "3", "--row-bytes", "128"),
        *("--segment", "256M", "--keys", "uniform", "--read", "header", "--max-memory", "1G"),
    )
    (row,) = made["rows"]["measurements"]
    expected = 8 * row["segment_bytes"] // PAGE
    assert abs(row["vm_pte_bytes_per_process"] - expected) <= 0.02 * expected, (row, expected)
    assert abs(row["vm_pte_bytes_total"] - 3 * expected) <= 0.02 * 3 * expected, (row, expected)
    assert row["first_touch_seconds"] > 0, row


def latency_curves() -> None:
    made = suite.document("latency", "--max-memory", "256M", "--time-limit", "40")
    curves = {curve["name"]: curve for curve in made["latency"]["curves"]}
    base = next(
        curve for curve in curves.values() if curve["backing_kind"] == "base" and curve["layout"] == "line_per_page"
    )
    if section(made, "latency")["status"] == "stopped" or len(base["points"]) < 5:
        raise suite.Skip("the machine is busy: too few points in time")
    assert base["granted_fraction"] == 1, base["granted_fraction"]
    small, large = base["points"][0], base["points"][-1]
    assert small["ns_p50"] < large["ns_p50"], (small, large)
    for point in base["points"]:
        assert point["ns_min"] <= point["ns_p10"] <= point["ns_p50"] <= point["ns_p90"], point
    for delta in made["latency"]["paired_deltas"]:
        assert delta["ci95_low_ns"] <= delta["delta_ns"] <= delta["ci95_high_ns"], delta


def pressure_points() -> None:
    """Transparent huge pages need no pool. The numbers depend on the machine; how they hang together does not."""
    made = suite.document("latency", "--page-sizes", f"{PAGE},thp", "--max-memory", "1G", "--time-limit", "30")
    pressure = made["latency"]["pressure"]
    if pressure["status"] in ("skipped", "noisy", "stopped", "thp_not_granted", "memory_limit", "unsupported"):
        raise suite.Skip(f"no pressure here: {pressure['status']}: {pressure['reason']}")
    assert pressure["status"] == "ok", pressure
    assert 64 * MIB <= pressure["region_bytes"] <= 256 * MIB, pressure["region_bytes"]
    assert made["latency"]["peak_mapped_bytes"] <= 1024 * MIB, made["latency"]["peak_mapped_bytes"]
    keys = {
        (point["backing"], point["footprint_bytes"], point["lines_between"], point["wait_ns"])
        for point in pressure["points"]
    }
    assert len(keys) == len(pressure["points"]), "a point twice"
    assert keys >= {("THP", 64 * MIB, between, 0) for between in (0, 64, 256, 1024)}, keys
    assert keys >= {("THP", 64 * MIB, 16, wait) for wait in (2000, 8000, 20000)}, keys
    for point in pressure["points"]:
        assert point["pairs"] >= 3, point
        assert point["ci95_low_ns"] <= point["delta_ns"] <= point["ci95_high_ns"], point
        # No access to memory is faster than nothing, and none takes a microsecond on its median.
        assert 0 < point["ns_p50"] < 1000, point
        assert 0 < point["base_ns_p50"] < 1000, point
        assert point["period_ns"] > point["wait_ns"] + point["ns_p50"], point
    # 64 MiB of lines leave the caches when a thousand others are read between: this much holds everywhere.
    base = {point["lines_between"]: point["base_ns_p50"] for point in pressure["points"] if point["wait_ns"] == 0}
    assert base[1024] > base[0], base


# --- what holds it back ----------------------------------------------------------------------------------------------


def memory_limit_is_named() -> None:
    for command in ("run", "geometry", "latency", "rows", "scatter"):
        made = suite.document(command, "--max-memory", "2M")
        assert made["exit_status"] == 3
        assert {item["status"] for item in made["sections"]} == {"memory_limit"}, made["sections"]


def address_space_limit_is_named() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (40 * MIB, 40 * MIB))

    assert "address_space_limit" in statuses(limited(limit, "latency", "--page-sizes", str(PAGE), "--max-memory", "1G"))
    assert "address_space_limit" in statuses(limited(limit, "geometry", "--page-sizes", str(PAGE)))


def no_memory_is_named() -> None:
    """RLIMIT_DATA makes mmap fail with ENOMEM where address space is plenty."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (4 * MIB, 4 * MIB))

    for command in ("latency", "rows", "scatter", "geometry"):
        arguments = ("--page-sizes", f"{PAGE},thp", "--max-memory", "1G", "--time-limit", "20")
        check_named(limited(limit, command, *arguments), "no_memory")


@contextmanager
def memory_cgroup(limit_bytes: int) -> Iterator[Path]:
    """A memory cgroup of its own below a version 1 hierarchy."""
    group = CGROUP_V1 / f"tlbbench-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    except OSError as problem:
        raise suite.Skip(f"no memory cgroup can be made: {problem}") from problem
    try:
        yield group
    finally:
        group.rmdir()


def cgroup_limit_is_named() -> None:
    with memory_cgroup(20 * MIB) as group:

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        made = limited(enter, "run")
    assert {item["status"] for item in made["sections"]} == {"cgroup_limit"}, made["sections"]


def cgroup_limit_is_kept() -> None:
    with memory_cgroup(128 * MIB) as group:

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(
            [*suite.tlbbench(), "latency", "--page-sizes", str(PAGE), "--json"],
            capture_output=True,
            text=True,
            timeout=100,
            preexec_fn=enter,
            check=False,
        )
        assert done.returncode in (0, 3), f"exit status {done.returncode}: killed by the limit?"
        assert json.loads(done.stdout)["latency"]["peak_mapped_bytes"] < 128 * MIB


@contextmanager
def full_pool(pages: int) -> Iterator[None]:
    """Fills the 2M pool: reserves pages and maps all that are free."""
    if os.geteuid() != 0 or not POOL_2M.is_dir():
        raise suite.Skip("filling a pool needs root and a 2M pool")
    with reservation() as pool:
        pool.grow(2 * MIB, pages)
        free = int((POOL_2M / "free_hugepages").read_text())
        if free == 0:
            raise suite.Skip("the kernel found no 2M page")
        held = mmap.mmap(-1, free * 2 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
        for offset in range(0, free * 2 * MIB, 2 * MIB):
            held[offset] = 1
        yield
        held.close()


def full_pool_is_named() -> None:
    with full_pool(2):
        for command in ("scatter", "geometry"):
            made = suite.document(command, "--page-sizes", f"{PAGE},2M", "--max-memory", "256M", "--time-limit", "40")
            assert made["exit_status"] == 3, command
            check_named(made, "no_free_hugepages")


@contextmanager
def hugetlb_cgroup(limit_bytes: int) -> Iterator[Path]:
    """A hugetlb cgroup that lets 2M pages be promised but not touched: the touch ends in SIGBUS."""
    if os.geteuid() != 0 or not POOL_2M.is_dir():
        raise suite.Skip("a hugetlb cgroup needs root and a 2M pool")
    with suite.temporary() as place:
        mounted = subprocess.run(
            ["mount", "-t", "cgroup", "-o", "hugetlb", "none", place], capture_output=True, check=False
        )
        if mounted.returncode != 0:
            raise suite.Skip("the hugetlb cgroup controller cannot be mounted here")
        group = Path(place) / f"tlbbench-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / "hugetlb.2MB.limit_in_bytes").write_text(str(limit_bytes))
            yield group
        finally:
            if group.is_dir():
                group.rmdir()
            subprocess.run(["umount", place], capture_output=True, check=True)


def hugetlb_sigbus_is_named() -> None:
    with hugetlb_cgroup(0) as group:

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        for command in ("latency", "rows", "scatter", "geometry"):
            arguments = ("--reserve", "--page-sizes", f"{PAGE},2M", "--max-memory", "128M", "--time-limit", "40")
            made = limited(enter, command, *arguments)
            check_named(made, "sigbus")


def stopped_by_time() -> None:
    start = time.monotonic()
    made = suite.document("run", "--time-limit", "3", "--max-memory", "256M")
    assert time.monotonic() - start < 8, "the time limit was not kept"
    assert made["exit_status"] == 3
    assert "stopped" in statuses(made["sections"]), made["sections"]


def stopped_by_signal() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = subprocess.Popen(
            [*suite.tlbbench(), "run", "--json", "--max-memory", "256M"], stdout=subprocess.PIPE, text=True
        )
        time.sleep(1.5)
        process.send_signal(number)
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 3, f"{number.name}: exit status {process.returncode}"
        made = json.loads(output)
        suite.validate(made)
        assert "stopped" in statuses(made["sections"]), made["sections"]


CASES: list[tuple[str, Callable[[], None]]] = [
    ("geometry agrees with the catalogue", geometry_agrees_with_the_catalogue),
    ("geometry stays small", geometry_stays_small),
    ("page tables of processes are right to 2 percent", page_tables_of_processes),
    ("latency curves", latency_curves),
    ("latency under pressure", pressure_points),
    ("--max-memory too small is named", memory_limit_is_named),
    ("RLIMIT_AS is named", address_space_limit_is_named),
    ("ENOMEM is named", no_memory_is_named),
    ("a cgroup limit is named", cgroup_limit_is_named),
    ("a cgroup limit is kept", cgroup_limit_is_kept),
    ("a full pool is named", full_pool_is_named),
    ("SIGBUS on hugetlb is named", hugetlb_sigbus_is_named),
    ("stopped by the time limit", stopped_by_time),
    ("stopped by a signal", stopped_by_signal),
]

if __name__ == "__main__":
    suite.main("measure", CASES)
