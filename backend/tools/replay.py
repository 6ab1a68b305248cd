"""A day of one node's reports with realistic change, made from one report.

How often each field changes within a minute was counted in 35 pairs of reports that were taken a minute apart on a busy
machine of 40 to 110 processes (2026-11-24); sizes move by up to 8 MiB. One process in 40 minutes ends and another one
of its name takes its place. What the table does not name stays as it is: settings, totals, limits, pools.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

MINUTES_PER_DAY: Final = 24 * 60
PAGE_BYTES: Final = 4096
REPLACED: Final = 1 / 40

_OFTEN: Final = (
    "active_file_bytes anon_pages_bytes buffers_bytes cached_bytes committed_as_bytes dirty_bytes inactive_file_bytes"
    " k_reclaimable_bytes kernel_stack_bytes mapped_bytes mem_available_bytes mem_free_bytes mem_used_bytes"
    " page_tables_bytes s_reclaimable_bytes s_unreclaim_bytes shmem_bytes slab_bytes vmalloc_used_bytes"
    " file_pages_bytes anon_bytes file_bytes kernel_bytes usage_bytes working_set_bytes private_bytes shared_bytes"
)
SIZES: Final = dict.fromkeys(_OFTEN.split(), 1.0) | {
    "pss_bytes": 0.94, "pss_file_bytes": 0.91, "pss_shmem_bytes": 0.49, "pss_anon_bytes": 0.47, "rss_bytes": 0.55,
    "rss_anon_bytes": 0.45, "rss_shmem_bytes": 0.34, "vm_pte_bytes": 0.21, "rss_file_bytes": 0.17,
    "anon_huge_pages_bytes": 0.29, "percpu_bytes": 0.26,
}  # fmt: skip
"""The chance that a size is another one a minute later."""
COUNTERS: Final = {"total_microseconds": 1.0, "pgmajfault": 1.0, "nr_page_table_pages": 1.0, "thp_fault_alloc": 0.69}
SHARES: Final = {"avg10_percent": 0.7, "avg60_percent": 0.7, "avg300_percent": 0.75}


def moved(value: Any, chance: random.Random, name: str = "") -> Any:
    """The same, a minute later."""
    if isinstance(value, dict):
        return {key: moved(one, chance, key) for key, one in value.items()}
    if isinstance(value, list):
        return [moved(one, chance, name) for one in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if name == "duration_seconds":
        return round(chance.uniform(1e-5, 2e-2), 6)
    return _number(value, chance, name)


def _number(value: float, chance: random.Random, name: str) -> float:
    drawn = chance.random()
    if drawn < SIZES.get(name, 0.0):
        return max(0, int(value) + PAGE_BYTES * chance.randint(-2048, 2048))
    if drawn < COUNTERS.get(name, 0.0):
        return int(value) + chance.randint(0, 5000)
    if drawn < SHARES.get(name, 0.0):
        return round(min(100.0, max(0.0, value + chance.uniform(-1, 1))), 2)
    if name == "free_blocks" and drawn < 1 / 3:
        return max(0, int(value) + chance.randint(-40, 40))
    return value


def replayed(
    report: dict[str, Any], *, processes: int, start: datetime, minutes: int, chance: random.Random
) -> Iterator[tuple[uuid.UUID, datetime, bytes]]:
    """Ids, times and bytes of reports a minute apart, as an agent sends them."""
    given = report["sample"].get("processes", [])
    listed = [given[number % len(given)] | {"pid": 1000 + number} for number in range(processes)] if given else []
    rest = {key: value for key, value in report.items() if key not in {"sample", "report_id", "created_at"}}
    sample = report["sample"] | {"processes": listed}
    for minute in range(minutes):
        sample, rest["collectors"] = moved(sample, chance), moved(report.get("collectors", []), chance)
        if sample["processes"] and chance.random() < REPLACED:
            one = chance.choice(sample["processes"])
            one |= {"pid": chance.randrange(2000, 2**22), "start_time_ticks": chance.randrange(10**8)}
        at = start + timedelta(seconds=60 * minute + chance.random())
        now = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        report_id = uuid.UUID(int=chance.getrandbits(128), version=4)
        document = {"report_id": str(report_id), "created_at": now} | rest | {"sample": sample | {"taken_at": now}}
        yield report_id, at, json.dumps(document, separators=(",", ":")).encode()
