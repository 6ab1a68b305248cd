"""How much slower than a quiet one the machine is at the moment: a processor that others share gives less per second.

The kernel's processor time does not change with who else waits, but it does with who runs on the other thread of the
core, and with what they leave of the caches: here by a third where every core is busy.
"""

from __future__ import annotations

import json
import statistics
import time

QUIET_SECONDS = 0.00117
"""What one look takes on a quiet AMD EPYC Genoa at 2.6 GHz with Python 3.11, where the budget was set."""
LOOKS = 20
MOST = 2.0
_TEXT = json.dumps([{"name": f"d{number}", "bytes": number * 4096, "pools": [number] * 2} for number in range(1500)])


def slowness() -> float:
    """How many times the quiet machine's time the same work takes now: 1 or more, at most MOST."""
    return min(MOST, max(1.0, statistics.fmean(_look() for _ in range(LOOKS)) / QUIET_SECONDS))


def _look() -> float:
    """Processor time of work of the service's kind: objects, dictionaries, sums and a sort."""
    begun = time.process_time()
    found = json.loads(_TEXT)
    sum(sum(one["pools"]) + len(one["name"]) * one["bytes"] % 97 for one in found)
    sorted(found, key=lambda one: (one["bytes"] % 89, one["name"]))
    return time.process_time() - begun
