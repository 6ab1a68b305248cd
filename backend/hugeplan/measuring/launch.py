"""Run a program with or without transparent huge pages: ``python launch.py on|off PROGRAM ARG...``.

The switch is prctl(PR_SET_THP_DISABLE), which programs inherit; both sides of a pair are started through here, so that
both pay for it.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_THP_DISABLE = 41
#: Of the process until it is the program: at most 15 characters.
NAME = "hugeplan-launch"


def main(arguments: list[str]) -> None:
    """Set the switch, then become the program."""
    wanted, program, *rest = arguments
    with open("/proc/self/comm", "w", encoding="ascii") as name:  # noqa: PTH123 - the program waits for each import
        name.write(NAME)
    if wanted == "off":
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    try:
        os.execvp(program, [program, *rest])  # noqa: S606 - no shell is wanted
    except OSError as problem:
        sys.exit(f"{program}: {problem.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
