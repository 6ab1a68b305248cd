"""``python -m tools.attack [WORDS ...]``: all attacks, or those whose names have one of the words."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.attack.judge import HEADING, line_of, measure
from tools.attack.rig import stop_seconds, target
from tools.attack.rows import all_rows
from tools.attack.warm import warm_up

PASSES = 3


def main() -> int:
    """Run; exit status 1 when an attack costs more than its budget or is answered wrongly."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("words", nargs="*", help="part of the name of the attacks to run (default: all)")
    parser.add_argument("--passes", type=int, default=PASSES, help="how often each is measured (default: 3)")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    arguments = parser.parse_args()
    attacks = [one for one in all_rows() if not arguments.words or any(word in one.name for word in arguments.words)]
    if not attacks:
        parser.error(f"no attack has {' or '.join(arguments.words)} in its name")
    if arguments.list:
        print("\n".join(attack.name for attack in attacks))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hp-attack-") as made:
        folder = Path(made)
        folder.chmod(0o711)  # PostgreSQL runs as another user when this is root
        with target(folder) as running:
            warm_up(running)
            print(HEADING, flush=True)
            for attack in attacks:
                cost = measure(running, attack, arguments.passes)
                failed += bool(cost.wrong)
                print(line_of(cost), flush=True)
            print(f"ended {stop_seconds(running):.1f} s after SIGTERM")
    print(f"{len(attacks) - failed} of {len(attacks)} attacks within the budget")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
