"""What the measuring commands say when they are held back: limits, full pools, signals."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import suite

MIB = 1 << 20
POOL_2M = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
CGROUP_V1 = Path("/sys/fs/cgroup/memory")
PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_limit_is_named() -> None:
    for command in ("run", "geometry", "latency", "rows", "scatter"):
        made = suite.document(command, "--max-memory", "2M")
        assert made["exit_status"] == 3
        assert {item["status"] for item in made["sections"]} == {"memory_limit"}, made["sections"]


def what_does_not_fit_is_left_out() -> None:
    """Rows too wide for the segment that the memory allows, and page tables of many processes beside it."""
    wide = suite.document("rows", "--row-bytes", "1M", "--max-memory", "64M", "--page-sizes", str(PAGE))
    assert {row["status"] for row in wide["rows"]["measurements"]} == {"memory_limit"}
    arguments = ("--segment", "256M", "--max-memory", "300M", "--mode", "processes", "--workers", "2,128")
    few = ("--keys", "zipf", "--read", "row", "--time-limit", "60")  # on a busy machine, too, it comes to 128 processes
    made = suite.document("rows", "--page-sizes", str(PAGE), *few, *arguments)
    found = {(row["workers"], row["status"]) for row in made["rows"]["measurements"]}
    assert (128, "memory_limit") in found, found
    assert (2, "memory_limit") not in found, found
    # On a busy machine the time may be over before the other rows of 128 processes.
    limited = [row for row in made["rows"]["measurements"] if row["status"] == "memory_limit"]
    reasons = {row["reason"] for row in limited}
    assert all("page tables of 128 processes" in reason for reason in reasons), reasons


def address_space_limit_is_named() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (40 * MIB, 40 * MIB))

    assert "address_space_limit" in suite.statuses(
        suite.limited(limit, "latency", "--page-sizes", str(PAGE), "--max-memory", "1G")
    )
    assert "address_space_limit" in suite.statuses(suite.limited(limit, "geometry", "--page-sizes", str(PAGE)))


def no_memory_is_named() -> None:
    """RLIMIT_DATA makes mmap fail with ENOMEM where address space is plenty."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (4 * MIB, 4 * MIB))

    few_rows = ("rows", "--row-bytes", "128", "--workers", "2")  # each other one fails by the same mmap
    for command in (("latency",), few_rows, ("scatter",), ("geometry",)):
        arguments = ("--page-sizes", f"{PAGE},thp", "--max-memory", "1G", "--time-limit", "20")
        suite.check_named(suite.limited(limit, *command, *arguments), "no_memory")


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

        made = suite.limited(enter, "run")
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


def refused_thp_is_named() -> None:
    """Where the kernel gives base pages for THP, nothing is reported under its name.

    prctl(2) refuses THP for one process.
    """
    refuse_thp = 41  # PR_SET_THP_DISABLE of linux/prctl.h

    def limit() -> None:
        if ctypes.CDLL(None).prctl(refuse_thp, 1, 0, 0, 0) != 0:
            raise OSError("prctl")

    if not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists():
        raise suite.Skip("this kernel has no THP")
    sizes = ("--page-sizes", f"{PAGE},thp")
    made = suite.limited(limit, "rows", *sizes, "--workers", "2", "--row-bytes", "128", "--max-memory", "128M")
    rows = [row for row in made["rows"]["measurements"] if row["backing"] == "THP"]
    assert rows
    assert {row["status"] for row in rows} == {"thp_not_granted"}, {(r["mode"], r["status"]) for r in rows}
    assert all(row["rows_per_second"] is None for row in rows)
    made = suite.limited(limit, "latency", *sizes, "--footprints", "1M,4M", "--curves", "line_per_page")
    assert {curve["status"] for curve in made["latency"]["curves"] if curve["backing"] == "THP"} == {"thp_not_granted"}
    assert not [delta for delta in made["latency"]["paired_deltas"] if delta["backing"] == "THP"]
    made = suite.limited(limit, "geometry", *sizes)
    assert "contiguous" not in (made["geometry"]["coalescing"] or ""), made["geometry"]["coalescing"]
    suite.check_named(made, "thp_not_granted")


@contextmanager
def full_pool(pages: int) -> Iterator[None]:
    """Fills the 2M pool: reserves pages and maps all that are free."""
    if os.geteuid() != 0 or not POOL_2M.is_dir():
        raise suite.Skip("filling a pool needs root and a 2M pool")
    with suite.reservation() as pool:
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
            suite.check_named(made, "no_free_hugepages")


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


@suite.reserves
def hugetlb_sigbus_is_named() -> None:
    with hugetlb_cgroup(0) as group:

        def enter() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        for command in ("latency", "rows", "scatter", "geometry"):
            arguments = ("--reserve", "--page-sizes", f"{PAGE},2M", "--max-memory", "128M", "--time-limit", "40")
            made = suite.reserving(partial(suite.limited, enter, command, *arguments))
            # Where the controller is mounted at a usual place the limit is read and named before a page is touched.
            if "cgroup_limit" not in suite.statuses(made):
                suite.check_named(made, "sigbus")


def stopped_by_processor_time() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (1, 30))

    suite.check_named(suite.limited(limit, "run", "--max-memory", "256M"), "stopped")


def files_that_may_not_grow() -> None:
    """RLIMIT_FSIZE: the segment cannot be sized and the journal not be written; both are named, and nothing stays."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(
        [*suite.tlbbench(), "rows", "--json", "--page-sizes", str(PAGE), "--max-memory", "256M"],
        stdout=subprocess.PIPE,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 3, done.returncode
    assert {row["status"] for row in json.loads(done.stdout)["rows"]["measurements"]} == {"failed"}


def stopped_by_time() -> None:
    start = time.monotonic()
    made = suite.document("run", "--time-limit", "3", "--max-memory", "256M")
    assert time.monotonic() - start < 8, "the time limit was not kept"
    assert made["exit_status"] == 3
    assert "stopped" in suite.statuses(made["sections"]), made["sections"]


def what_the_time_cut_is_named() -> None:
    """Footprints below a MiB have a size, too."""
    for seconds in ("0.3", "0.5", "0.8", "1.2", "2"):
        arguments = ("--curves", "line_per_page", "--page-sizes", str(PAGE), "--max-memory", "64M")
        reason = str(suite.document("latency", "--time-limit", seconds, *arguments)["latency"]["reason"])
        if reason.startswith("the time limit was reached at"):
            assert re.match(r"the time limit was reached at [1-9]\d*[KM]: ", reason), reason
            return
    raise AssertionError(f"no time limit cut the footprints: {reason}")


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
        assert "stopped" in suite.statuses(made["sections"]), made["sections"]


CASES: list[tuple[str, Callable[[], None]]] = [
    ("--max-memory too small is named", memory_limit_is_named),
    ("what does not fit is left out", what_does_not_fit_is_left_out),
    ("RLIMIT_AS is named", address_space_limit_is_named),
    ("ENOMEM is named", no_memory_is_named),
    ("a cgroup limit is named", cgroup_limit_is_named),
    ("a cgroup limit is kept", cgroup_limit_is_kept),
    ("THP that the kernel refuses is named", refused_thp_is_named),
    ("a full pool is named", full_pool_is_named),
    ("SIGBUS on hugetlb is named", hugetlb_sigbus_is_named),
    ("stopped by the time limit", stopped_by_time),
    ("the footprint that the time cut is named", what_the_time_cut_is_named),
    ("stopped by RLIMIT_CPU", stopped_by_processor_time),
    ("RLIMIT_FSIZE is named", files_that_may_not_grow),
    ("stopped by a signal", stopped_by_signal),
]

if __name__ == "__main__":
    suite.main("limits", CASES, measures=True)
