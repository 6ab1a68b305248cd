"""``python -m tools.seed``: a synthetic fleet in the database of HUGEPLAN_DATABASE_URL."""

from __future__ import annotations

import argparse
import sys
import time

import psycopg

from hugeplan.cli.service_settings import load_settings
from tools.seed.keep import report_again
from tools.seed.writer import SeedOptions, seed_fleet

KEEP_SECONDS = 60.0
_LIMITS = {
    "nodes": (1, 100_000),
    "seed": (0, 2**31),
    "samples": (0, 10_000),
    "runs": (0, 100),
    "history_days": (0, 1000),
    "most_runs": (0, 100),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to make."""
    parser.add_argument("--nodes", type=int, default=1000, help="nodes to make (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same fleet (default 1)")
    parser.add_argument("--samples", type=int, default=24, help="samples per node, a minute apart (default 24)")
    parser.add_argument("--runs", type=int, default=1, help="runs per measured node, a day apart (default 1)")
    parser.add_argument("--most-runs", type=int, default=0, help="runs of every tenth measured node, where more")
    parser.add_argument("--keep", action="store_true", help="only let the fleet report each minute, until ended")
    parser.add_argument("--history-days", type=int, default=30, help="days of roll-ups (default 30)")


def main() -> int:
    """Replace the synthetic nodes of the database by a new fleet. Nodes of real machines are left alone."""
    parser = argparse.ArgumentParser(prog="python -m tools.seed", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    for name, (low, high) in _LIMITS.items():
        value = getattr(arguments, name)
        if not low <= value <= high:
            parser.error(f"--{name.replace('_', '-')}: {value}: between {low} and {high}")
    if arguments.keep:
        while True:
            time.sleep(KEEP_SECONDS)
            try:
                report_again(load_settings().psycopg_url())
            except psycopg.Error as error:  # the database is away for a while, or shuts down
                print(error, file=sys.stderr, flush=True)
    options = SeedOptions(**{name: getattr(arguments, name) for name in _LIMITS})
    started = time.monotonic()
    try:
        made = seed_fleet(load_settings().psycopg_url(), options, say=lambda line: print(line, flush=True))
    except psycopg.errors.UndefinedTable:
        print("The database is not migrated; run: hugeplan migrate", flush=True)
        return 1
    print(f"{made} synthetic nodes in {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
