"""The large mappings of a process and what backs them: is a database's buffer pool on huge pages?

/proc/PID/maps is cheap but does not tell the page size of every mapping; /proc/PID/smaps does, at the price of a walk
over the page tables, and is read only where maps leaves it open. A process has any number of mappings, so both are read
by line and only the largest mappings are kept. A file that is mapped several times (ZGC's heap is three times, in
thousands of pieces) is one mapping, in which each part counts once.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from hugeplan_agent.collectors import walks
from hugeplan_agent.collectors.walks import Walks
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host

MIN_SHARED_BYTES = 8 * 1024 * 1024
MIN_PRIVATE_BYTES = 64 * 1024 * 1024
MAX_MAPPINGS = 8192
"""Of a process, while it is read: a MySQL pool is in chunks of 128 MiB, each a segment of its own."""
MAX_SEGMENTS = 64
"""Of a server, that are kept and reported."""
MAX_PAGE_SIZES = 4
"""Of pools: no architecture has more."""
MAX_MAPS_BYTES = 4 * 1024 * 1024
"""About 40,000 mappings of maps and 5,000 of smaps; a database has a few hundred."""
WALK_PART = 0.001
"""Of the time since the observation before, for the mappings of what the system runs and of all others, each."""
SHARES = 4
LINE = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+ \d+) *(.*)")
PAGE_SIZE = re.compile(rb"KernelPageSize:\s+(\d{1,20}) kB")
BOUND = re.compile(rb"\w+ (?:mem)?bind[^ :]*:([0-9,-]+)")
DELETED = b" (deleted)"
POOL_PAGES = b"/anon_hugepage"
NAMES: tuple[tuple[bytes, str, bool | None], ...] = (
    # Start of the name in maps, kind, whether it lies on hugetlb pages.
    (POOL_PAGES, "anonymous_shared", True),
    (b"/dev/zero", "anonymous_shared", False),
    (b"/SYSV", "sysv", None),
    (b"/dev/shm/", "posix_shm", False),
    (b"/memfd:", "file", None),
)


@dataclass
class Mapping:
    """One mapping of at least the smallest size that matters. ``page_bytes`` is None where maps does not tell."""

    __slots__ = ("bytes", "is_hugetlb", "is_shared", "kind", "page_bytes", "start")
    start: int
    bytes: int
    is_shared: bool
    kind: str
    page_bytes: int | None
    is_hugetlb: bool | None


class _Parts:
    """Parts of a file, each counted once, as the ends of stretches that do not touch."""

    __slots__ = ("ends",)

    def __init__(self) -> None:
        self.ends: list[int] = []

    def add(self, start: int, end: int, *, has_room: bool) -> int:
        """How many bytes are new. Without room for one more stretch, a part that touches none is left out."""
        first, last = bisect_left(self.ends, start), bisect_right(self.ends, end)
        if first == last and first % 2 == 0 and not has_room:
            return 0
        left = first - first % 2
        touched = self.ends[left : last + last % 2]
        # An even place lies outside of all stretches: the part begins, or ends, one there.
        self.ends[first:last] = [*([start] if first % 2 == 0 else []), *([end] if last % 2 == 0 else [])]
        return self.ends[left + 1] - self.ends[left] - sum(touched[1::2]) + sum(touched[::2])


def parse_maps(lines: Iterable[bytes], base_page_bytes: int, sizes_in_use_bytes: list[int] | None) -> list[Mapping]:
    """The large anonymous and shared mappings of /proc/PID/maps, by address, the largest MAX_MAPPINGS of them; files of
    code and data are left out. One that is shared stands for all of its file.

    ``sizes_in_use_bytes``: huge page sizes with a pool; with one only, a hugetlb mapping has that size.
    """
    only = sizes_in_use_bytes[0] if sizes_in_use_bytes and len(sizes_in_use_bytes) == 1 else None
    found = heapq.nlargest(MAX_MAPPINGS, _large(lines, base_page_bytes, only), key=lambda one: one.bytes)
    return sorted(found, key=lambda one: one.start)


def _large(lines: Iterable[bytes], base_page_bytes: int, only: int | None) -> Iterator[Mapping]:
    files: dict[tuple[bytes, int], tuple[Mapping, _Parts]] = {}
    room = MAX_MAPPINGS  # for stretches of files; half of it for large ones
    for line in lines:
        match = LINE.match(line)
        if match is None or match[3][1:2] != b"w":
            continue
        start = int(match[1], 16)
        size_bytes = int(match[2], 16) - start
        is_shared = match[3].endswith(b"s")
        is_in_pool = match[6].startswith(POOL_PAGES)  # of these each page counts: logs, card tables, code
        if size_bytes < (1 if is_shared or is_in_pool else MIN_PRIVATE_BYTES):
            continue
        kind, is_hugetlb = _kind(match[6], is_shared)
        if kind is None:
            continue
        page_bytes = base_page_bytes if is_hugetlb is False else only if is_hugetlb else None
        mapping = Mapping(start, size_bytes, is_shared, kind, page_bytes, is_hugetlb)
        if not is_shared:
            yield mapping
            continue
        file = match[5], hash(match[6])
        has_room = room > (0 if size_bytes >= MIN_SHARED_BYTES else MAX_MAPPINGS // 2)
        if file in files or has_room:
            mapping.bytes = 0
            whole, parts = files.setdefault(file, (mapping, _Parts()))
            offset, before = int(match[4], 16), len(parts.ends)
            whole.bytes += parts.add(offset, offset + size_bytes, has_room=has_room)
            room -= (len(parts.ends) - before) // 2
    for whole, _ in files.values():
        if whole.bytes >= MIN_SHARED_BYTES or (whole.is_hugetlb and whole.bytes):
            yield whole


def _kind(path: bytes, is_shared: bool) -> tuple[str | None, bool | None]:
    """What a mapping is, and whether it lies on hugetlb pages where its name tells.

    Names: shmem_zero_setup and hugetlb_file_setup of the kernel (mm/shmem.c, fs/hugetlbfs/inode.c).
    """
    path = path[: -len(DELETED)] if path.endswith(DELETED) else path
    for start, kind, is_hugetlb in NAMES:
        if path.startswith(start):
            return ("private" if kind == "anonymous_shared" and not is_shared else kind), is_hugetlb
    if is_shared:
        return ("file", None) if b"huge" in path else (None, None)
    return ("private", False) if path in (b"", b"[heap]") or path.startswith(b"[anon") else (None, None)


def page_sizes(lines: Iterable[bytes], wanted: Collection[int]) -> dict[int, int]:
    """Start address -> kernel page size in bytes of the wanted mappings, from /proc/PID/smaps."""
    found: dict[int, int] = {}
    start = -1
    for line in lines:
        if len(found) == len(wanted):
            break  # the kernel walks no more than is read
        if line.startswith(b"KernelPageSize:"):
            match = PAGE_SIZE.match(line)
            if match and start in wanted:
                found[start] = int(match[1]) * 1024
        elif header := LINE.match(line):
            start = int(header[1], 16)
    return found


def bound_to(host: Host, pid: int, start: int) -> tuple[str | None, int]:
    """The NUMA nodes that the policy of a mapping binds it to, None without one; and how many bytes were read."""
    read_bytes = 0
    with suppress(NoData, OSError):
        for line in host.lines(f"proc/{pid}/numa_maps", MAX_MAPS_BYTES):
            read_bytes += len(line) + 1
            if line.startswith(b"%08x " % start):  # the kernel walks no more than is read
                match = BOUND.match(line)
                return match and match[1].decode(), read_bytes
    return None, read_bytes


def rooms(host: Host) -> dict[bool, Walks]:
    """The processor time of this observation for mappings: of what the system runs, and of all others."""
    return host.shared("mapping walks", _rooms)


def _rooms(host: Host) -> dict[bool, Walks]:
    return {is_system: walks.begin(host, f"mappings {is_system}", WALK_PART, SHARES) for is_system in (True, False)}


def read(
    host: Host, pid: int, base_page_bytes: int, sizes_in_use_bytes: list[int] | None, *, may_walk: bool = True
) -> tuple[list[Mapping] | None, int]:
    """The large mappings of a process, None when this user may not look into it; and how many bytes were read.

    ``may_walk``: whether its page tables may be walked where their names do not tell the page size.
    """
    read_bytes = [0]

    def lines(name: str) -> Iterator[bytes]:
        for line in host.lines(f"proc/{pid}/{name}", MAX_MAPS_BYTES):
            read_bytes[0] += len(line) + 1
            yield line

    try:
        found = parse_maps(lines("maps"), base_page_bytes, sizes_in_use_bytes)
    except (NoData, OSError):
        return None, 0
    unknown = {mapping.start for mapping in found if mapping.page_bytes is None}
    sizes = {}
    if sizes_in_use_bytes is not None and not sizes_in_use_bytes:
        sizes = dict.fromkeys(unknown, base_page_bytes)
    elif unknown and may_walk:
        with suppress(NoData, OSError):
            sizes = page_sizes(lines("smaps"), unknown)
    for mapping in found:
        if mapping.page_bytes is None and mapping.start in sizes:
            mapping.page_bytes = sizes[mapping.start]
            mapping.is_hugetlb = mapping.page_bytes > base_page_bytes
    return found, read_bytes[0]


def largest(found: list[Mapping], shares_segment: bool) -> list[Mapping]:
    """The mappings that can hold a buffer pool, neighbours joined, at most MAX_SEGMENTS, the largest first. Where there
    are more, the pool pages of all others come last, as one for each page size."""
    joined: list[Mapping] = []
    for mapping in found:
        if not (mapping.is_shared or mapping.is_hugetlb or not shares_segment):
            continue
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.start + last.bytes == mapping.start
            and (last.kind, last.page_bytes, last.is_shared) == (mapping.kind, mapping.page_bytes, mapping.is_shared)
        ):
            last.bytes += mapping.bytes
        else:
            joined.append(replace(mapping))
    joined.sort(key=lambda one: -one.bytes)
    if not any(one.is_hugetlb for one in joined[MAX_SEGMENTS:]):
        return joined[:MAX_SEGMENTS]
    rest: dict[int | None, Mapping] = {}
    for one in joined[MAX_SEGMENTS - MAX_PAGE_SIZES :]:
        if one.is_hugetlb:
            whole = rest.setdefault(one.page_bytes, replace(one, bytes=0))
            whole.bytes += one.bytes
    return [*joined[: MAX_SEGMENTS - MAX_PAGE_SIZES], *list(rest.values())[:MAX_PAGE_SIZES]]


def segments(found: list[Mapping], has_thp: bool) -> list[dict[str, Any]]:
    """What ``largest`` chose, as the report has it."""
    return [
        {
            "bytes": mapping.bytes,
            "backing": _backing(mapping, has_thp),
            "page_bytes": mapping.page_bytes,
            "kind": mapping.kind,
        }
        for mapping in found
    ]


def _backing(mapping: Mapping, has_thp: bool) -> str | None:
    if mapping.is_hugetlb is None:
        return None
    if mapping.is_hugetlb:
        return "hugetlb"
    return "thp" if has_thp and mapping.kind == "private" else "base_pages"


def status(found: list[dict[str, Any]], shares_segment: bool) -> str | None:
    """``on`` when the largest segment lies on hugetlb pages, ``partial`` when only smaller ones do, else ``off``."""
    relevant = [one for one in found if one["kind"] != "private"] if shares_segment else found
    if not relevant or relevant[0]["backing"] is None:
        return None
    backings = [one["backing"] == "hugetlb" for one in relevant]
    largest_kind = relevant[0]["kind"]
    if backings[0]:
        rest = [one for one in relevant[1:] if one["kind"] == largest_kind and one["backing"] != "hugetlb"]
        # Oracle takes several System V segments and may get huge pages for some of them only.
        return "partial" if largest_kind == "sysv" and rest else "on"
    return "partial" if any(backings) else "off"
