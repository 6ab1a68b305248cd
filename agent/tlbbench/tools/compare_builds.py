#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs two or more builds of tlbbench in turns on this machine, and prints what each of them read.

    tools/compare_builds.py --build before=/tmp/tlbbench-old --build after=build/tlbbench

Parts, in this order (--parts names some of them); a build's turn comes first in every other run:

replay     `info --root` of every captured tree in tests/fixtures, as JSON and as text: byte by byte the same?
idle       `geometry --seed N --json` for N = 1 to --runs
loaded     the same with one busy loop bound to another CPU
run        `run --profile quick --json`, once: wall time and resident memory outside the measured area
reference  tools/compare_reference.py at 1 MiB, 64 MiB and 1 GiB, --rounds rounds

Twenty runs of two builds take about nine minutes on a quiet guest. Nothing else may run meanwhile. Standard library
only. Exit status 0 when all replays are the same, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
PARTS = ("replay", "idle", "loaded", "run", "reference")
CHANGING = re.compile(r'"(started_at|duration_seconds)": ("[^"]*"|[0-9.e+-]+)')


def build(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"'{text}' is not valid; valid: NAME=PATH of a program")
    return name, str(Path(path).resolve())


def in_turns(builds: dict[str, str], runs: int) -> Iterator[tuple[int, str, str]]:
    for number in range(1, runs + 1):
        names = list(builds)
        for name in names if number % 2 else reversed(names):
            yield number, name, builds[name]


def document(program: str, *words: str) -> tuple[dict[str, Any], float]:
    """The document, and the wall time in seconds. Exit status 3 is a partial document."""
    start = time.monotonic()
    done = subprocess.run([program, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"compare_builds: {program} {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout), time.monotonic() - start


@contextlib.contextmanager
def busy_loop(wanted: bool) -> Iterator[None]:
    """Keeps the CPU with the highest number busy."""
    loop = None
    if wanted:
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        os.sched_setaffinity(loop.pid, {max(os.sched_getaffinity(0))})
    try:
        yield
    finally:
        if loop is not None:
            loop.kill()
            loop.wait()


def measured(made: dict[str, Any], level: int) -> dict[str, Any] | None:
    """The measured level of base pages, if there is one."""
    base = made["environment"]["base_page_bytes"]
    levels = made["geometry"]["levels"]
    found = [x for x in levels if (x["source"], x["level"], x["page_bytes"]) == ("measured", level, base)]
    return found[0] if found else None


def print_geometry(label: str, name: str, runs: list[tuple[dict[str, Any], float]]) -> None:
    base = runs[0][0]["environment"]["base_page_bytes"]
    words = []
    for level in (1, 2):
        found = [x for made, _ in runs if (x := measured(made, level)) is not None]
        counts = sorted(x["entries"] for x in found)
        low, high = (
            (f"{min(x['entries_min'] for x in found)}", f"{max(x['entries_max'] for x in found)}")
            if found
            else ("-", "-")
        )
        middle = statistics.median(counts) if counts else float("nan")
        words.append(
            f"L{level} in {len(found)}: median {middle:g}, least {counts[:1]}, most {counts[-1:]} ({low} to {high})"
        )
    penalties = [x for made, _ in runs for x in made["geometry"]["penalty"] if x["page_bytes"] == base]
    for kind in ("l2_hit", "walk"):
        ns = [x["ns"] for x in penalties if x["level"] == kind]
        words.append(f"{kind} in {len(ns)}: {statistics.median(ns):.2f} ns" if ns else f"{kind} in none")
    pages: dict[str, int] = {}
    for made, _ in runs:
        for page in made["geometry"]["effective_granule"]:
            key = f"{page['backing']} {page['status']}"
            pages[key] = pages.get(key, 0) + 1
    words.append(", ".join(f"{key} {count}" for key, count in sorted(pages.items())))
    walls = [wall for _, wall in runs]
    words.append(f"wall median {statistics.median(walls):.2f} s, most {max(walls):.2f} s")
    print(f"{label} {name}, {len(runs)} runs: " + "; ".join(words), flush=True)


def compare_geometry(builds: dict[str, str], runs: int, loaded: bool) -> None:
    made: dict[str, list[tuple[dict[str, Any], float]]] = {name: [] for name in builds}
    with busy_loop(loaded):
        for number, name, program in in_turns(builds, runs):
            made[name].append(document(program, "geometry", "--seed", str(number)))
    for name in builds:
        print_geometry("loaded" if loaded else "idle", name, made[name])


def compare_runs(builds: dict[str, str]) -> None:
    for _, name, program in in_turns(builds, 1):
        made, wall = document(program, "run", "--profile", "quick")
        states = ", ".join(f"{x['name']} {x['status']}" for x in made["sections"])
        outside = made.get("rss_outside_bytes", float("nan")) / 1e6
        print(f"run {name}: {wall:.1f} s, {outside:.2f} MB outside, exit {made['exit_status']} ({states})", flush=True)


def compare_with_chase(builds: dict[str, str], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        for _, name, program in in_turns(builds, rounds):
            words = ["--tlbbench", program, "--rounds", "1", "--page-sizes", "4K,thp", "--time-limit", "6"]
            words += ["--max-memory", "6G", "--json", f"{place}/{name}"]
            for layout, footprints in (("line_per_page", "1M,64M,1G"), ("random_64b", "1M,64M")):
                tool = [sys.executable, str(HOME / "tools" / "compare_reference.py"), *words]
                subprocess.run(
                    [*tool, "--layouts", layout, "--footprints", footprints], capture_output=True, check=False
                )
        for name in builds:
            for row in json.loads(Path(place, name).read_text()):
                ratios = [ours / chase for ours, chase in zip(row["tlbbench_ns"], row["chase_ns"], strict=True)]
                point = f"{row['backing']} {row['layout']} {row['footprint_bytes'] >> 20} MiB"
                print(f"reference {name} {point}: " + " ".join(f"{x:.3f}" for x in ratios), flush=True)


def compare_replays(builds: dict[str, str]) -> bool:
    """True when every build prints the same."""
    same = True
    with tempfile.TemporaryDirectory() as place:
        for fixture in sorted((HOME / "tests" / "fixtures").glob("*.tree")):
            tree = f"{place}/{fixture.stem}"
            subprocess.run(
                ["sh", str(HOME / "capture.sh"), "--unpack", str(fixture), tree], check=True, capture_output=True
            )
            for words in (("--json",), ("--json", "--processes"), ("--text",), ("--text", "--processes")):
                texts = set()
                for program in builds.values():
                    done = subprocess.run(
                        [program, "info", "--root", tree, *words], capture_output=True, text=True, check=True
                    )
                    texts.add(CHANGING.sub(r'"\1": 0', done.stdout))
                if len(texts) > 1:
                    same = False
                    print(f"replay of {fixture.stem} {' '.join(words)} differs", flush=True)
    print("replay: " + ("every build prints the same" if same else "the builds differ"), flush=True)
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", dest="builds", type=build, action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"default: {','.join(PARTS)}")
    parser.add_argument("--runs", type=int, default=20, help="of idle and loaded (default: 20)")
    parser.add_argument("--rounds", type=int, default=2, help="of reference (default: 2)")
    arguments = parser.parse_args()
    builds = dict(arguments.builds)
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts: {sorted(unknown)} is not valid; valid: {', '.join(PARTS)}")
    same = compare_replays(builds) if "replay" in parts else True
    if "idle" in parts:
        compare_geometry(builds, arguments.runs, loaded=False)
    if "loaded" in parts:
        compare_geometry(builds, arguments.runs, loaded=True)
    if "run" in parts:
        compare_runs(builds)
    if "reference" in parts:
        compare_with_chase(builds, arguments.rounds)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
