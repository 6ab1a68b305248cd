"""Compares `tlbbench latency` with an independent dependent chase in the same minutes.

A round takes one footprint and layout after the other: `tlbbench latency` of that point alone, then
`tests/reference_chase.c` (own shuffle, own mappings, whole laps, no code in common) for every page size, seconds later.
Both are bound to one core. A point's ratio is the median over the rounds of tlbbench / chase of one round, since what
other guests leave of a shared cache moves from minute to minute by more than the method could; the spread of either
side by itself over the rounds stands beside it, and a difference counts only beyond both. The last ratio compares the
best placements of all rounds.

    tools/compare_reference.py --tlbbench build/tlbbench --rounds 5
    tools/compare_reference.py --footprints 2G,4G --max-memory 14G --time-limit 90

Pages of hugetlb sizes are compared as far as the pools have free ones (both programs use the same pages in turn).
Standard library only. Exit status 0: every point agrees or scatters; 1: a point differs beyond its scatter; 2: usage.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
MIB = 1 << 20
GIB = 1 << 30
TOLERANCE = 0.10
FOOTPRINTS = "64K,256K,1M,4M,8M,16M,32M,64M,128M,256M,512M,1G"
LAYOUTS = {"line_per_page": "page", "random_64b": "line"}


@dataclass
class Point:
    """One page size, layout and footprint, in ns per access: the median of each round, and the best of each round."""

    tlbbench: list[float] = field(default_factory=list)
    chase: list[float] = field(default_factory=list)
    tlbbench_best: list[float] = field(default_factory=list)
    chase_best: list[float] = field(default_factory=list)


Key = tuple[str, str, int]  # backing, layout, footprint in bytes


def spread(values: list[float]) -> float:
    """Distance of the quartiles over the median (of the extremes where there are fewer than four values)."""
    if len(values) < 2:
        return 0.0
    low, high = min(values), max(values)
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / statistics.median(values)


def ratio_of(point: Point) -> float:
    return statistics.median(ours / chase for ours, chase in zip(point.tlbbench, point.chase, strict=True))


def best_ratio_of(point: Point) -> float:
    """What both programs read when the neighbours were quietest: they only ever add to the time of one placement."""
    return min(point.tlbbench_best) / min(point.chase_best)


def verdict(point: Point) -> str:
    """agrees: ratio within 10 % of 1. scatters: a side's own rounds lie further apart than that. differs: else."""
    ratio = ratio_of(point)
    if abs(ratio - 1) <= TOLERANCE:
        return "agrees"
    return "scatters" if abs(ratio - 1) <= max(spread(point.tlbbench), spread(point.chase)) else "differs"


def build_chase(place: str) -> str:
    program = str(Path(place) / "reference_chase")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-o", program, str(HOME / "tests" / "reference_chase.c")], check=True)
    return program


def run_tlbbench(arguments: argparse.Namespace, seed: int, footprint: str, layout: str) -> dict[str, Any]:
    command = [arguments.tlbbench, "latency", "--json", "--seed", str(seed), "--cpus", str(arguments.cpu)]
    command += ["--keep-priority", "--footprints", footprint, "--curves", layout]
    for option in ("max_memory", "page_sizes", "time_limit"):
        if getattr(arguments, option):
            command += ["--" + option.replace("_", "-"), getattr(arguments, option)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"compare_reference: tlbbench failed: {done.stderr.strip()}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def effort_for(footprint: int, layout: str) -> tuple[int, int]:
    """Places and loads of each: short cycles get more places, since each has its own luck in the caches."""
    nodes = footprint // (4096 if layout == "line_per_page" else 64)
    if footprint > GIB:
        return (5, 4_000_000) if layout == "line_per_page" else (2, 2_000_000)
    return (9, 1_000_000) if nodes <= 1 << 16 else (3, 2_000_000)


def arena_for(footprint: int, kind: str, page_bytes: int) -> int:
    """Half a GiB to lie in, or more than the footprint (which keeps the mapping), or what the pool has free."""
    arena = max(512 * MIB, footprint + 2 * MIB)
    if kind == "hugetlb":
        pool = Path(f"/sys/kernel/mm/hugepages/hugepages-{page_bytes // 1024}kB/free_hugepages")
        arena = min(arena, int(pool.read_text()) * page_bytes) if pool.is_file() else 0
    return max(arena, footprint)


def run_chase(program: str, key: Key, kind: str, page_bytes: int) -> tuple[float, float] | None:
    """Median and best of its places; None where the pages are not available."""
    _, layout, footprint = key
    places, accesses = effort_for(footprint, layout)
    command = [program, str(footprint), LAYOUTS[layout], kind, str(page_bytes), str(places), str(accesses)]
    command.append(str(arena_for(footprint, kind, page_bytes)))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    words = done.stdout.split()
    return float(words[words.index("median") + 1]), float(words[words.index("best") + 1])


def compare_point(program: str, document: dict[str, Any], points: dict[Key, Point]) -> None:
    """Chases every page size of a document that has one point per curve."""
    for curve in document["latency"]["curves"]:
        if not curve["points"]:
            print(f"{curve['name']}: {curve['status']}: {curve['reason']}", flush=True)
        for measured in curve["points"]:
            key = (curve["backing"], curve["layout"], measured["x"])
            found = run_chase(program, key, curve["backing_kind"], curve["page_bytes"])
            if found is not None:
                point = points.setdefault(key, Point())
                point.tlbbench.append(measured["ns_p50"])
                point.tlbbench_best.append(measured["ns_min"])
                point.chase.append(found[0])
                point.chase_best.append(found[1])


def compare_round(arguments: argparse.Namespace, program: str, number: int, points: dict[Key, Point]) -> None:
    for footprint in arguments.footprints.split(","):
        for layout in arguments.layouts.split(","):
            compare_point(program, run_tlbbench(arguments, number + 1, footprint, layout), points)


def size_text(count: int) -> str:
    return f"{count // GIB} GiB" if count >= GIB else f"{count // MIB} MiB" if count >= MIB else f"{count >> 10} KiB"


def print_points(points: dict[Key, Point]) -> int:
    counts = {"agrees": 0, "scatters": 0, "differs": 0}
    best_agree = 0
    print("pages layout         footprint    chase  spread  tlbbench  spread  ratio  best/best")
    for key in sorted(points, key=lambda item: (item[1], item[2], item[0])):
        point = points[key]
        found = verdict(point)
        counts[found] += 1
        best = best_ratio_of(point)
        told = "" if found == "agrees" else found
        best_agree += 1 if abs(best - 1) <= TOLERANCE else 0
        chase, ours = statistics.median(point.chase), statistics.median(point.tlbbench)
        print(
            f"{key[0]:5} {key[1]:14} {size_text(key[2]):>9} {chase:8.2f} {spread(point.chase):7.1%} "
            f"{ours:9.2f} {spread(point.tlbbench):7.1%} {ratio_of(point):6.3f} {best:6.3f} {told}"
        )
    print(f"{len(points)} points: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"best of the rounds within {TOLERANCE:.0%}: {best_agree} of {len(points)}")
    return 1 if counts["differs"] else 0


def read_points(path: str | None) -> dict[Key, Point]:
    """Rounds that an earlier call left in the file."""
    if path is None or not Path(path).is_file():
        return {}
    return {
        (row["backing"], row["layout"], row["footprint_bytes"]): Point(
            row["tlbbench_ns"], row["chase_ns"], row["tlbbench_best_ns"], row["chase_best_ns"]
        )
        for row in json.loads(Path(path).read_text())
    }


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tlbbench", default=str(HOME.parent / "build" / "tlbbench"), help="program to compare")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--footprints", default=FOOTPRINTS, help=f"for tlbbench (default: {FOOTPRINTS})")
    parser.add_argument("--layouts", default=",".join(LAYOUTS), help="for tlbbench --curves")
    parser.add_argument("--max-memory", help="for tlbbench: what all page sizes may take at once")
    parser.add_argument("--page-sizes", help="for tlbbench: for example 4K,THP,2M,1G")
    parser.add_argument("--time-limit", default="12", help="for tlbbench, seconds per point (default: 12)")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="core for both sides")
    parser.add_argument("--json", dest="json_path", help="file for all rounds; what it already holds counts too")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds: {arguments.rounds} is not valid; valid: 1 and more")
    if arguments.cpu not in os.sched_getaffinity(0):
        parser.error(f"--cpu: {arguments.cpu} is not valid; valid: {sorted(os.sched_getaffinity(0))}")
    return arguments


def main() -> int:
    arguments = read_arguments()
    points = read_points(arguments.json_path)
    with tempfile.TemporaryDirectory() as place:
        program = build_chase(place)
        os.sched_setaffinity(0, {arguments.cpu})
        for number in range(arguments.rounds):
            compare_round(arguments, program, number, points)
            print(f"round {number + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)
    if arguments.json_path:
        rows = [
            dict(zip(("backing", "layout", "footprint_bytes"), key, strict=True))
            | {"chase_ns": point.chase, "tlbbench_ns": point.tlbbench}
            | {"chase_best_ns": point.chase_best, "tlbbench_best_ns": point.tlbbench_best}
            for key, point in sorted(points.items())
        ]
        Path(arguments.json_path).write_text(json.dumps(rows, indent=1) + "\n")
    return print_points(points)


if __name__ == "__main__":
    sys.exit(main())
