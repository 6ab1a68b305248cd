"""What a container's huge page limit does to a database that runs in it. Pure rules over an observed database.

The usage counter is charged when a page is touched, the reservation counter when it is mapped (kernel documentation,
cgroup-v1/hugetlb.rst). So a usage limit below the mapped segment goes off once the cache is warm, and a reservation
limit below it refuses the mapping. Which counters hold a limit is read from the files, never from a version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hugeplan.planner.model import MIB, NodeSample, ObservedDatabase, ObservedHugetlbLimit

USAGE, RESERVATION = "usage", "reservation"

#: What a touch past the usage limit looks like, by engine; a page that is not available is SIGBUS in the process, and
#: EFAULT ("Bad address") where the kernel touches it for the process, as read(2) into a PostgreSQL buffer does.
WHEN_IT_GOES_OFF: Mapping[str, str] = {
    "postgresql": 'queries fail with "could not read blocks: Bad address" or a backend dies of SIGBUS',
    "mysql": "mysqld dies of SIGBUS while it fills its buffer pool",
    "mariadb": "mariadbd dies of SIGBUS while it fills its buffer pool",
    "oracle": "server processes die of SIGBUS (ORA-07445) as the SGA is touched",
    "db2": "db2sysc dies of SIGBUS as its buffer pools are touched",
    "jvm": "the JVM dies of SIGBUS as the heap grows, or at start with AlwaysPreTouch",
}
_DIES = "it dies of SIGBUS"

#: The setting that makes an engine refuse to start instead of falling back, by engine.
REFUSES: Mapping[str, str] = {
    "postgresql": "huge_pages = on",
    "oracle": "use_large_pages = ONLY",
}

#: The segment of initdb's own test server: shared_buffers is tried from 128 MB down (test_config_settings, initdb.c).
INITDB_SEGMENT_BYTES = 150 * MIB

FIX = (
    "Set hugepages requests and limits of the container to the whole segment, rounded up to whole pages, as the pod "
    "artifact of a plan does: CloudNativePG spec.resources, Crunchy instances[].resources, Zalando "
    "spec.resources, Percona instances[].resources, else the StatefulSet's pod template."
)


def counter_of_kubelet(version: str | None) -> str | None:
    """What a limit that a kubelet sets counts; None: not known.

    Kubelet 1.34 was seen to write the reservation counter (``hugetlb.<size>.rsvd.max``) beside the usage counter, so
    that a mapping that does not fit is refused.
    """
    found = re.match(r"v?(\d{1,9})\.(\d{1,9})", version or "")
    return RESERVATION if found and (int(found[1]), int(found[2])) >= (1, 34) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortLimit:
    """A limit below what a database maps with one page size. ``room_bytes``: until it acts; None: usage unknown."""

    limit: ObservedHugetlbLimit
    segment_bytes: int
    room_bytes: int | None


def goes_off_as(engine: str) -> str:
    """What happens when a usage limit is reached."""
    return WHEN_IT_GOES_OFF.get(engine, _DIES)


def time_bomb(database: ObservedDatabase) -> ShortLimit | None:
    """A usage limit below the huge pages that the database has mapped; the one with the least room."""
    mapped: dict[int, int] = {}
    for segment in database.segments:
        if segment.backing == "hugetlb" and segment.page_bytes:
            mapped[segment.page_bytes] = mapped.get(segment.page_bytes, 0) + segment.bytes
    found = [
        ShortLimit(
            limit=limit,
            segment_bytes=mapped[limit.page_bytes],
            room_bytes=None if limit.usage_bytes is None else max(0, limit.limit_bytes - limit.usage_bytes),
        )
        for limit in database.hugetlb_limits or ()
        if limit.counter == USAGE and limit.limit_bytes < mapped.get(limit.page_bytes, 0)
    ]
    return min(found, key=lambda short: -1 if short.room_bytes is None else short.room_bytes, default=None)


def silent_fallback(database: ObservedDatabase, default_page_bytes: int) -> ShortLimit | None:
    """A reservation limit that refused the segment: it runs on base pages although it asked for huge ones.

    ``default_page_bytes``: the size that a mapping without a size of its own takes.
    """
    asked_off = database.settings.get("huge_pages", "").lower() in {"off", "false", "no", "0"}
    if asked_off or database.huge_pages_status not in {"off", "partial"}:
        return None
    segment = max((part.bytes for part in database.segments if part.backing != "hugetlb"), default=0)
    for limit in database.hugetlb_limits or ():
        fits = limit.page_bytes == default_page_bytes
        if limit.counter == RESERVATION and fits and limit.limit_bytes < segment:
            room = None if limit.usage_bytes is None else max(0, limit.limit_bytes - limit.usage_bytes)
            return ShortLimit(limit=limit, segment_bytes=segment, room_bytes=room)
    return None


def initdb_bus_error(database: ObservedDatabase, sample: NodeSample, default_page_bytes: int) -> ShortLimit | None:
    """A usage limit below initdb's test server without a reservation limit below it, on a node with free pages.

    initdb reads the sample file, not the cluster's settings, so huge_pages = off there does not help
    (CrunchyData/postgres-operator 3039, 3477; kubernetes 71233).
    """
    if database.engine != "postgresql":
        return None
    if (free_pages(sample, default_page_bytes) or 0) * default_page_bytes < INITDB_SEGMENT_BYTES:
        return None
    usage = limit_short_for_initdb(database, default_page_bytes)
    return None if usage is None else ShortLimit(limit=usage, segment_bytes=INITDB_SEGMENT_BYTES, room_bytes=None)


def free_pages(sample: NodeSample, page_bytes: int) -> int | None:
    """Free huge pages of a size on the node; None where that is not known."""
    return next((pool.free_hugepages for pool in sample.pools or () if pool.page_bytes == page_bytes), None)


def limit_short_for_initdb(database: ObservedDatabase, default_page_bytes: int) -> ObservedHugetlbLimit | None:
    """The usage limit that initdb's test server would reach, where no reservation limit refuses its pages before."""
    own = {limit.counter: limit for limit in database.hugetlb_limits or () if limit.page_bytes == default_page_bytes}
    usage, reservation = own.get(USAGE), own.get(RESERVATION)
    refused_before = reservation is not None and reservation.limit_bytes < INITDB_SEGMENT_BYTES
    if usage is None or usage.limit_bytes >= INITDB_SEGMENT_BYTES or refused_before:
        return None
    return usage
