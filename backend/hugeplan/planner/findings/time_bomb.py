"""Is a database healthy only until its cache is warm? A usage limit below its mapped segment goes off later."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import Facts, measured, ok, unknown, wrong
from hugeplan.planner.findings.container_limits import FIX, goes_off_as, time_bomb
from hugeplan.planner.model import Finding
from hugeplan.planner.units import format_bytes

CODE = "time_bomb"


def check(facts: Facts) -> Iterable[Finding]:
    """One finding for each observed database with huge pages mapped, or whose limits are not known."""
    for database in (facts.sample.databases if facts.sample else None) or ():
        if not any(segment.backing == "hugetlb" for segment in database.segments):
            continue
        short = time_bomb(database)
        if database.hugetlb_limits is None:
            title = "Whether a limit is below its huge pages is not known"
            yield unknown(CODE, database.key, title, "The hugetlb limits of its cgroup are not known.")
        elif short is None:
            yield ok(CODE, database.key, "No limit is below its huge pages", "It may touch all that it has mapped.")
        else:
            limit = format_bytes(short.limit.limit_bytes)
            left = "an unknown amount" if short.room_bytes is None else format_bytes(short.room_bytes)
            yield wrong(
                CODE,
                database.key,
                f"{left} of warm cache left before it fails",
                f"It has mapped {format_bytes(short.segment_bytes)} of huge pages, its cgroup may use {limit}. When "
                f"the cache has filled that, {goes_off_as(database.engine)}. Nothing warns before.",
                FIX,
                evidence=(
                    measured("mapped", format_bytes(short.segment_bytes)),
                    measured("limit (usage)", limit),
                    measured("cgroup", short.limit.cgroup_path),
                ),
            )
