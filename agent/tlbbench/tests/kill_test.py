#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `tlbbench --reserve` at random moments and checks that the node is as it was before.

    kill_test.py PROGRAM [RUNS]

After SIGTERM and SIGINT the program must end by itself with a valid document and exit status 0 or 3; after SIGKILL
the next start must give the pools back. In every case no journal, no shared memory file and no child may be left.
Needs root, huge page pools and nobody else who changes them meanwhile; else it prints SKIP with the reason.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = (["rows"], ["latency"], ["run"], ["scatter"], ["geometry"])
LONGEST_SECONDS = 6.0
# Little memory, so that many runs fit in a short time; pages of 2M only, which a node can always find.
OPTIONS = ["--json", "--reserve", "--max-memory", "256M", "--page-sizes", "4K,2M"]


def pools() -> dict[str, str]:
    """Count of every pool of the machine and of its nodes."""
    roots = (Path("/sys/kernel/mm/hugepages"), *Path("/sys/devices/system/node").glob("node*/hugepages"))
    return {str(path): path.read_text().strip() for root in roots for path in sorted(root.glob("*/nr_hugepages"))}


def leftovers() -> list[str]:
    """Journals and named shared memory that a run could have left."""
    journals = [Path("/run/tlbbench"), *Path("/tmp").glob("tlbbench-*")]
    shared = Path("/dev/shm")
    return [str(path) for path in journals if path.exists()] + [str(path) for path in shared.glob("*tlbbench*")]


def group_is_empty(group: int) -> bool:
    """True once no process of the killed run's group lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def await_empty_group(group: int, seconds: float) -> bool:
    """Waits for the children of a killed run, which the kernel kills in turn."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if group_is_empty(group):
            return True
        time.sleep(0.01)
    return False


def run_once(program: str, draw: random.Random, number: int, before: dict[str, str]) -> str | None:
    """One run and its end. Returns what is wrong, or None."""
    how = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)[number % 3]
    command = [program, *draw.choice(COMMANDS), *OPTIONS, "--seed", str(number + 1)]
    delay = draw.random() ** 2 * LONGEST_SECONDS
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True
    )
    where = f"run {number} ({how.name} after {delay:.3f} s, {command[1]})"
    try:
        output, _ = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        output, _ = process.communicate(timeout=30)
    if not await_empty_group(process.pid, 10):
        return f"{where}: children live on"
    if process.returncode == -signal.SIGKILL:
        subprocess.run([program, "info", "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    elif process.returncode < 0 and delay < 0.05:
        pass  # ended before the handlers were installed: nothing had been taken
    elif process.returncode not in (0, 3):
        return f"{where}: exit status {process.returncode}"
    elif json.loads(output)["exit_status"] != process.returncode:
        return f"{where}: the document's exit status differs"
    after = pools()
    if after != before:
        return f"{where}: pools {[(path, before[path], after[path]) for path in before if before[path] != after[path]]}"
    return f"{where}: left {leftovers()}" if leftovers() else None


def main() -> int:
    """Runs the kills; the last line holds the totals."""
    program = str(Path(sys.argv[1]).absolute())
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    reason = None
    if os.geteuid() != 0:
        reason = "taking huge pages needs root"
    elif not Path("/sys/kernel/mm/hugepages/hugepages-2048kB").exists():
        reason = "this machine has no 2M pool"
    elif leftovers():
        reason = f"somebody's journal is there: {leftovers()}"
    if reason is not None:
        print(f"SKIP kill random moments: {reason}")
        print("kill: 0 passed, 0 failed, 1 skipped")
        return 0
    draw = random.Random(runs)
    before = pools()
    failures = 0
    for number in range(runs):
        wrong = run_once(program, draw, number, before)
        if wrong is not None:
            failures += 1
            print(f"  {wrong}", flush=True)
    print(f"{'FAIL' if failures else 'PASS'} kill {runs} random moments, {failures} bad")
    print(f"kill: {0 if failures else 1} passed, {1 if failures else 0} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
