"""A hugetlb cgroup limit below what a database has mapped: the kernel kills it with SIGBUS when it touches the rest."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, wrong
from hugeplan.planner.units import format_bytes

CODE = "hugetlb_limit_below_segment"


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Each database whose huge page segments are larger than the usage limit that acts on it.

    A reservation limit refuses the mapping at the start and is no bomb; a usage limit is found out page by page.
    """
    for database in observed.sample.databases or ():
        mapped: dict[int, int] = {}
        for segment in database.segments:
            if segment.backing == "hugetlb" and segment.bytes and segment.page_bytes:
                mapped[segment.page_bytes] = mapped.get(segment.page_bytes, 0) + segment.bytes
        for limit in database.hugetlb_limits or ():
            size = mapped.get(limit.page_bytes, 0)
            if limit.counter == "usage" and limit.limit_bytes < size:
                yield wrong(
                    CODE,
                    database.key,
                    "It will be killed when it touches all of its huge pages",
                    f"{database.engine} has mapped {format_bytes(size)} of {format_bytes(limit.page_bytes)} pages; the "
                    f"cgroup {limit.cgroup_path} may use {format_bytes(limit.limit_bytes)} of them. The first touch "
                    "past the limit is a SIGBUS.",
                    "Raise the pod's hugepages limit to the size of the segment, or make the segment smaller.",
                )
