"""``python -m tools.seed``: a synthetic fleet in the database of HUGEPLAN_DATABASE_URL."""

from __future__ import annotations

import argparse
import signal
import sys
import time

import psycopg

from hugeplan.cli.service_settings import load_settings
from tools.seed.keep import report_again, size
from tools.seed.writer import SeedOptions, seed_fleet

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
    parser.add_argument("--nodes", type=int, help="nodes to make (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same fleet (default 1)")
    parser.add_argument("--samples", type=int, default=24, help="samples per node, a minute apart (default 24)")
    parser.add_argument("--runs", type=int, default=1, help="runs per measured node, a day apart (default 1)")
    parser.add_argument("--most-runs", type=int, default=0, help="runs of every tenth measured node, where more")
    parser.add_argument(
        "--keep", action="store_true",
        help="let the fleet report until ended; with --nodes it is made first, unless it has so many",
    )  # fmt: skip
    parser.add_argument("--every", type=int, default=60, help="of --keep: seconds between two reports (default 60)")
    parser.add_argument("--history-days", type=int, default=30, help="days of roll-ups (default 30)")


def main() -> int:
    """Replace the synthetic nodes of the database by a new fleet. Nodes of real machines are left alone."""
    parser = argparse.ArgumentParser(prog="python -m tools.seed", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    is_made = arguments.keep and arguments.nodes is None
    arguments.nodes = 1000 if arguments.nodes is None else arguments.nodes
    for name, (low, high) in (_LIMITS | {"every": (1, 3600)}).items():
        value = getattr(arguments, name)
        if not low <= value <= high:
            parser.error(f"--{name.replace('_', '-')}: {value}: between {low} and {high}")
    # The first process of a container is not ended by a signal that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    url = load_settings().psycopg_url()
    options = SeedOptions(**{name: getattr(arguments, name) for name in _LIMITS})
    if not (is_made or (arguments.keep and size(url) == options.nodes)):
        started = time.monotonic()
        try:
            made = seed_fleet(url, options, say=lambda line: print(line, flush=True))
        except psycopg.errors.UndefinedTable:
            print("The database is not migrated; run: hugeplan migrate", flush=True)
            return 1
        print(f"{made} synthetic nodes in {time.monotonic() - started:.1f} s", flush=True)
    while arguments.keep:
        time.sleep(arguments.every)
        try:
            report_again(url)
        except psycopg.Error as error:  # the database is away for a while, or shuts down
            print(error, file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
