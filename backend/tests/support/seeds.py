"""Seeds of property tests: one that never changes, and one of the day, printed so that a failure can be repeated.

``HUGEPLAN_SEED=20261124`` in the environment repeats the day's cases of another day.
"""

from __future__ import annotations

import datetime
import os

FIXED = 20_260_723


def daily() -> int:
    """The seed of today (UTC), or what HUGEPLAN_SEED says."""
    given = os.environ.get("HUGEPLAN_SEED")
    return int(given) if given else int(datetime.datetime.now(datetime.UTC).strftime("%Y%m%d"))


#: In the test's identifier, so that a failure names its seed.
SEEDS = (FIXED, daily())
