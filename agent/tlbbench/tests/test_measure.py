"""The measuring commands on this machine: what they find."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import suite

MIB = 1 << 20
POOL_2M = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
CGROUP_V1 = Path("/sys/fs/cgroup/memory")
PAGE = os.sysconf("SC_PAGE_SIZE")


def geometry_agrees_with_the_catalogue() -> None:
    made = suite.document("geometry", "--time-limit", "40")
    if suite.section(made, "geometry")["status"] in ("noisy", "stopped"):
        raise suite.Skip(f"the machine is busy: {suite.section(made, 'geometry')['reason']}")
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


def children_page_tables(pid: int) -> dict[int, int]:
    """VmPTE in bytes of every child of the process, as the kernel tells anybody."""
    found = {}
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            with suppress(OSError):
                told = re.search(r"VmPTE:\s+(\d+) kB", Path(f"/proc/{child}/status").read_text())
                found.update({child: int(told[1]) * 1024} if told else {})
    return found


def page_tables_as_others_see_them() -> None:
    """The growth that workers count of themselves is what their status files show while they live."""
    workers = 16
    arguments = [
        *("rows", "--json", "--page-sizes", str(PAGE), "--mode", "processes", "--workers", str(workers)),
        *("--row-bytes", "128", "--segment", "256M", "--keys", "uniform", "--read", "header", "--max-memory", "1G"),
    ]
    least, most = {}, {}
    with subprocess.Popen([*suite.tlbbench(), *arguments], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            for child, table_bytes in children_page_tables(process.pid).items():
                least[child] = min(least.get(child, table_bytes), table_bytes)
                most[child] = max(most.get(child, table_bytes), table_bytes)
        assert process.stdout is not None
        made = json.load(process.stdout)
    suite.validate(made)
    (row,) = made["rows"]["measurements"]
    if row["status"] == "noisy" or not most:
        raise suite.Skip(f"the workers were not seen: {row['status']}")
    seen = max(most.values()) - min(least.values())
    assert abs(seen - row["vm_pte_bytes_per_process"]) <= 0.02 * row["vm_pte_bytes_per_process"], (row, seen)
    assert row["vm_pte_bytes_total"] == workers * row["vm_pte_bytes_per_process"], row
    assert 0 < row["first_touch_cpu_seconds"] <= row["first_touch_seconds"], row


def worker_that_is_killed() -> None:
    """As the kernel does when memory runs out: the measurement fails by name, the others go on."""
    arguments = [
        *("rows", "--json", "--page-sizes", str(PAGE), "--mode", "processes", "--workers", "4,2"),
        *("--row-bytes", "128", "--keys", "uniform"),
    ]
    with subprocess.Popen([*suite.tlbbench(), *arguments], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            children = children_page_tables(process.pid)
            if children:
                os.kill(min(children), signal.SIGKILL)
                break
        assert process.stdout is not None
        made = json.load(process.stdout)
    suite.validate(made)
    assert made["exit_status"] == 3
    failed = [row for row in made["rows"]["measurements"] if row["status"] == "failed"]
    assert len(failed) == 1, failed
    assert "signal 9" in failed[0]["reason"], failed
    others = [row for row in made["rows"]["measurements"] if row["status"] != "failed"]
    if all(row["status"] in ("stopped", "noisy") for row in others):
        raise suite.Skip("the machine is busy: the time ended before another row was read")
    assert any(row["status"] == "ok" for row in others), others


def latency_curves() -> None:
    # The other layouts have the document's cases: here the points of two backings are compared.
    footprints = "64K,512K,4M,16M,64M,128M,256M"
    asked = ("--page-sizes", f"{PAGE},thp", "--curves", "line_per_page", "--footprints", footprints)
    made = suite.document("latency", *asked, "--time-limit", "40")
    curves = {curve["name"]: curve for curve in made["latency"]["curves"]}
    base = next(
        curve for curve in curves.values() if curve["backing_kind"] == "base" and curve["layout"] == "line_per_page"
    )
    if suite.section(made, "latency")["status"] == "stopped" or len(base["points"]) < 5:
        raise suite.Skip("the machine is busy: too few points in time")
    assert base["granted_fraction"] == 1, base["granted_fraction"]
    small, large = base["points"][0], base["points"][-1]
    assert small["ns_p50"] < large["ns_p50"], (small, large)
    for point in base["points"]:
        assert point["ns_min"] <= point["ns_p10"] <= point["ns_p50"] <= point["ns_p90"], point
    for delta in made["latency"]["paired_deltas"]:
        assert delta["ci95_low_ns"] <= delta["delta_ns"] <= delta["ci95_high_ns"], delta


def walks_are_rows() -> None:
    """Each thing that was varied is a curve for each page size; a walk costs more than none, and chases overlap."""
    made = suite.document("latency", "--page-sizes", f"{PAGE},thp", "--curves", "walks", "--time-limit", "40")
    walks = made["latency"]["walks"]
    assert walks["status"] == "ok", walks
    base = {
        curve["x_name"]: {point["x"]: point["ns_min"] for point in curve["points"]}
        for curve in walks["curves"]
        if curve["backing_kind"] == "base"
    }
    expected = {"chases", "table_bytes", "stride_bytes"} | ({"numa_node"} if "numa_node" in base else set())
    assert set(base) == expected, set(base)
    sizes = {curve["backing"] for curve in walks["curves"] if curve["backing_kind"] == "multi_size_thp"}
    given = {
        size["page_bytes"] for size in made["environment"]["thp"]["multi_size"] or [] if size["enabled"] != "never"
    }
    assert given or not sizes, sizes
    tables, chases = base["table_bytes"], base["chases"]
    if len(tables) < 2 or not {1, 8} <= set(chases):
        raise suite.Skip("the machine is busy: too few points in time")
    held, *walked = (tables[x] for x in sorted(tables))
    assert held < min(walked), tables
    assert chases[8] < chases[1], chases


def pressure_points() -> None:
    """Transparent huge pages need no pool. The numbers depend on the machine; how they hang together does not."""
    asked = ("--page-sizes", f"{PAGE},thp", "--curves", "pressure")
    made = suite.document("latency", *asked, "--max-memory", "1G", "--time-limit", "30")
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
        if point["ci95_low_ns"] is not None:  # pairs of one mapping alone have no interval
            assert point["ci95_low_ns"] <= point["delta_ns"] <= point["ci95_high_ns"], point
        # No access to memory is faster than nothing, and none takes a microsecond on its median.
        assert 0 < point["ns_p50"] < 1000, point
        assert 0 < point["base_ns_p50"] < 1000, point
        assert point["period_ns"] > point["wait_ns"] + point["ns_p50"], point
    # 64 MiB of lines leave the caches when a thousand others are read between: this much holds everywhere.
    base = {point["lines_between"]: point["base_ns_p50"] for point in pressure["points"] if point["wait_ns"] == 0}
    assert base[1024] > base[0], base


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def workers_take_what_is_idle() -> None:
    """Workers are of the idle class, and the program is the first that goes when memory runs out."""
    arguments = ["rows", "--mode", "processes", "--workers", "4", "--time-limit", "60", "--json"]
    running = subprocess.Popen([*suite.tlbbench(), *arguments], stdout=subprocess.DEVNULL)
    try:
        policies: set[int] = set()
        while running.poll() is None and os.SCHED_IDLE not in policies:
            with suppress(ProcessLookupError, FileNotFoundError):
                policies |= {os.sched_getscheduler(child) for child in children(running.pid)}
        assert os.SCHED_IDLE in policies, policies
        assert Path(f"/proc/{running.pid}/oom_score_adj").read_text() == "1000\n"
    finally:
        running.terminate()
        running.wait(30)


def starved_workers_do_not_hold_the_program() -> None:
    """Every CPU is busy with others' work: workers of the idle class hardly run, and the time limit still ends it."""
    busy = [
        subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"])
        for cpu in os.sched_getaffinity(0)
    ]
    try:
        begun = time.monotonic()
        made = suite.document("rows", "--mode", "processes", "--workers", "16", "--time-limit", "3", timeout=60)
        seconds = time.monotonic() - begun
    finally:
        for one in busy:
            one.kill()
            one.wait(10)
    # Without an end to the wait it takes minutes. Beside the tests of others this program gets next to nothing itself.
    if seconds >= 25 and os.getloadavg()[0] > 8:
        raise suite.Skip(f"the machine is busy: load average {os.getloadavg()[0]:.0f}")
    assert seconds < 25, seconds
    assert {item["status"] for item in made["rows"]["measurements"]} <= {
        "ok",
        "noisy",
        "stopped",
        "thp_not_granted",
        "no_free_hugepages",
        "memory_limit",
    }


CASES: list[tuple[str, Callable[[], None]]] = [
    ("geometry agrees with the catalogue", geometry_agrees_with_the_catalogue),
    ("geometry stays small", geometry_stays_small),
    ("page tables of processes are right to 2 percent", page_tables_of_processes),
    ("page tables as others see them", page_tables_as_others_see_them),
    ("a worker that is killed is named", worker_that_is_killed),
    ("workers take what is idle", workers_take_what_is_idle),
    ("starved workers do not hold the program", starved_workers_do_not_hold_the_program),
    ("latency curves", latency_curves),
    ("walks are rows", walks_are_rows),
    ("latency under pressure", pressure_points),
]

if __name__ == "__main__":
    suite.main("measure", CASES, measures=True)
