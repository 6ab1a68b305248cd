"""A hugetlb usage limit below what a database has mapped: it fails when its cache is warm."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, wrong
from hugeplan.fleet.observation import observed_database
from hugeplan.planner.findings.container_limits import FIX, goes_off_as, time_bomb
from hugeplan.planner.units import format_bytes

CODE = "time_bomb"


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each database whose huge page segments are larger than the usage limit that acts on it."""
    for database in observed.sample.databases or ():
        short = time_bomb(observed_database(database))
        if short is None:
            continue
        left = "an unknown amount" if short.room_bytes is None else format_bytes(short.room_bytes)
        yield wrong(
            CODE,
            database.key,
            f"{left} of warm cache left before it fails",
            f"{database.engine} has mapped {format_bytes(short.segment_bytes)} of huge pages; the cgroup "
            f"{short.limit.cgroup_path} may use {format_bytes(short.limit.limit_bytes)}. When the cache has filled "
            f"that, {goes_off_as(database.engine)}. Nothing warns before.",
            FIX,
        )
