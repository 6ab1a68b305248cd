"""Times the parts against their budgets: `make bench`. One JSON object a line; exit status 1 when one is missed.

The parts bring their own measurements (backend/bench/*.py); the agent's and tlbbench's are here.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ROUNDS = 7

INFO_BUDGET_SECONDS = 0.1
AGENT_BUDGET_SECONDS = 1.0
SETUP_BUDGET_SECONDS = 1.0


def median_seconds(command: Sequence[str]) -> float:
    """The median wall time of a whole process, after one run that warms the caches."""
    seconds = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        subprocess.run(command, cwd=HOUSE, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def report(name: str, seconds: float, budget_seconds: float, how: str) -> bool:
    """Print one measurement; answer whether it is within its budget."""
    line = {"name": name, "seconds": round(seconds, 4), "budget_seconds": budget_seconds, "how": how}
    print(json.dumps(line), flush=True)
    return seconds <= budget_seconds


def main() -> int:
    kept = True
    with tempfile.TemporaryDirectory() as spool:
        rows = (
            ("tlbbench info", INFO_BUDGET_SECONDS, ["agent/build/tlbbench", "info", "--json"]),
            (
                "agent sample",
                AGENT_BUDGET_SECONDS,
                [str(BIN / "hugeplan-agent"), "once", "--dry-run", "--spool-dir", spool],
            ),
            ("make setup, nothing changed", SETUP_BUDGET_SECONDS, ["make", "setup"]),
        )
        for name, budget_seconds, command in rows:
            how = f"median wall time of {ROUNDS} whole processes"
            kept &= report(name, median_seconds(command), budget_seconds, how)
    for bench in sorted((HOUSE / "backend/bench").glob("*.py")):
        done = subprocess.run([sys.executable, bench], cwd=HOUSE / "backend", env=os.environ, check=False)
        kept &= done.returncode == 0
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
