"""Runs a command while it alone uses the machine's huge page pools: `with_pools.py COMMAND...`.

A benchmark takes free pages of the pools that it finds. While a test has reserved some for its server, those are that
server's. So what measures during the tests holds the lock under which tests reserve (hugeplan_agent.pool_reservation).
The exit status is the command's; 75 (EX_TEMPFAIL) when the lock was not free in time.
"""

from __future__ import annotations

import os
import subprocess
import sys

from hugeplan_agent.pool_reservation import ReservationError, reservation


def main() -> int:
    try:
        with reservation():
            return subprocess.run(sys.argv[1:], check=False).returncode
    except ReservationError as error:
        print(f"with_pools: {error}", file=sys.stderr)
        return os.EX_TEMPFAIL


if __name__ == "__main__":
    sys.exit(main())
