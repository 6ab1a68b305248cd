"""``python -m tools.chaos [PART ...]``: all parts in full, or those that are named; ``--short`` as the tests do."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools.chaos.clock_steps import clock_steps
from tools.chaos.database_away import database_away
from tools.chaos.disk_full import disk_full
from tools.chaos.forged_tokens import forged_tokens
from tools.chaos.kills import kills
from tools.chaos.migration import migration
from tools.chaos.pool_exhausted import pool_exhausted
from tools.chaos.rig import Outcome

Part = Callable[[Path], Outcome]


def parts(arguments: argparse.Namespace) -> dict[str, Part]:
    """Every part with its size."""
    short = arguments.short
    return {
        "kills": partial(
            kills,
            server_kills=2 if short else arguments.server_kills,
            postgres_kills=2 if short else arguments.postgres_kills,
            seed=arguments.seed,
            progress=arguments.progress,
            seconds=arguments.seconds,
        ),
        "forged-tokens": partial(forged_tokens, tokens=300 if short else 10_000),
        "clock-steps": partial(clock_steps, reports=5 if short else 100),
        "database-away": partial(database_away, seconds=3 if short else arguments.away_seconds),
        "pool-exhausted": partial(pool_exhausted, seconds=3 if short else 30),
        "disk-full": partial(disk_full, seconds=5 if short else 60),
        "migration": partial(migration, samples=20_000 if short else arguments.samples),
    }


def main() -> int:
    """Run; exit status 1 when something was lost, doubled, refused or did not return."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("part", nargs="*", help="kills, forged-tokens, clock-steps, database-away,"
                        " pool-exhausted, disk-full, migration (default: all)")  # fmt: skip
    parser.add_argument("--short", action="store_true", help="the short form of the tests")
    parser.add_argument("--server-kills", type=int, default=50)
    parser.add_argument("--postgres-kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", type=Path, help="kills: a file with how many are done, to go on from")
    parser.add_argument("--seconds", type=float, help="kills: end after about so long; --progress goes on")
    parser.add_argument("--away-seconds", type=float, default=600.0)
    parser.add_argument("--samples", type=int, default=10_000_000)
    arguments = parser.parse_args()
    known = parts(arguments)
    unknown = set(arguments.part) - known.keys()
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; expected {', '.join(known)}")
    failed = False
    for name in arguments.part or known:
        with tempfile.TemporaryDirectory(prefix="hp-chaos-") as made:
            # PostgreSQL runs as another user when this is root.
            folder = Path(made)
            folder.chmod(0o711)
            found = known[name](folder)
        for text in found.wrong[:10]:
            print(f"chaos: {name}: {text}", file=sys.stderr)
        print(f"SKIP {name}: {found.skipped}" if found.skipped else found.text, flush=True)
        failed = failed or bool(found.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
