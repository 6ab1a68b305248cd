"""The large mappings of a process and what backs them: is a database's buffer pool on huge pages?

/proc/PID/maps is cheap but does not tell the page size of every mapping; /proc/PID/smaps does, at the price of a walk
over the page tables, and is read only where maps leaves it open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hugeplan_agent.host import Host

MIN_SHARED_BYTES = 8 * 1024 * 1024
MIN_PRIVATE_BYTES = 64 * 1024 * 1024
MAX_SEGMENTS = 64
MAX_MAPS_BYTES = 4 * 1024 * 1024
"""About 40,000 mappings of maps and 5,000 of smaps; a database has a few hundred."""
LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+) *(.*)")
PAGE_SIZE = re.compile(r"KernelPageSize:\s+(\d+) kB")
DELETED = " (deleted)"
NAMES: tuple[tuple[str, str, bool | None], ...] = (
    # Start of the name in maps, kind, whether it lies on hugetlb pages.
    ("/anon_hugepage", "anonymous_shared", True),
    ("/dev/zero", "anonymous_shared", False),
    ("/SYSV", "sysv", None),
    ("/dev/shm/", "posix_shm", False),  # noqa: S108 - read, not written
    ("/memfd:", "file", None),
)


@dataclass
class Mapping:
    """One mapping of at least the smallest size that matters. ``page_bytes`` is None where maps does not tell."""

    start: int
    bytes: int
    is_shared: bool
    kind: str
    page_bytes: int | None
    is_hugetlb: bool | None


def parse_maps(text: str, base_page_bytes: int, sizes_in_use_bytes: list[int] | None) -> list[Mapping]:
    """The large anonymous and shared mappings of /proc/PID/maps; files of code and data are left out.

    ``sizes_in_use_bytes``: huge page sizes with a pool; with one only, a hugetlb mapping has that size.
    """
    only = sizes_in_use_bytes[0] if sizes_in_use_bytes and len(sizes_in_use_bytes) == 1 else None
    found = []
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None or match[3][1] != "w":
            continue
        size_bytes = int(match[2], 16) - int(match[1], 16)
        is_shared = match[3][3] == "s"
        if size_bytes < (MIN_SHARED_BYTES if is_shared else MIN_PRIVATE_BYTES):
            continue
        kind, is_hugetlb = _kind(match[5].removesuffix(DELETED), is_shared)
        if kind is None:
            continue
        page_bytes = base_page_bytes if is_hugetlb is False else only if is_hugetlb else None
        found.append(Mapping(int(match[1], 16), size_bytes, is_shared, kind, page_bytes, is_hugetlb))
    return found


def _kind(path: str, is_shared: bool) -> tuple[str | None, bool | None]:
    """What a mapping is, and whether it lies on hugetlb pages where its name tells.

    Names: shmem_zero_setup and hugetlb_file_setup of the kernel (mm/shmem.c, fs/hugetlbfs/inode.c).
    """
    for start, kind, is_hugetlb in NAMES:
        if path.startswith(start):
            return ("private" if kind == "anonymous_shared" and not is_shared else kind), is_hugetlb
    if is_shared:
        return ("file", None) if "huge" in path else (None, None)
    return ("private", False) if path in ("", "[heap]") or path.startswith("[anon") else (None, None)


def page_sizes(smaps: str) -> dict[int, int]:
    """Start address -> kernel page size in bytes, from /proc/PID/smaps."""
    found: dict[int, int] = {}
    start = None
    for line in smaps.splitlines():
        if line.startswith("KernelPageSize:") and start is not None:
            match = PAGE_SIZE.match(line)
            if match:
                found[start] = int(match[1]) * 1024
        elif header := LINE.match(line):
            start = int(header[1], 16)
    return found


def read(
    host: Host, pid: int, base_page_bytes: int, sizes_in_use_bytes: list[int] | None
) -> tuple[list[Mapping] | None, int]:
    """The large mappings of a process, None when this user may not look into it; and how much was read."""
    text = host.read_optional(f"proc/{pid}/maps", MAX_MAPS_BYTES)
    if text is None:
        return None, 0
    count = len(text)
    found = parse_maps(text, base_page_bytes, sizes_in_use_bytes)
    if any(mapping.page_bytes is None for mapping in found):
        if not sizes_in_use_bytes and sizes_in_use_bytes is not None:
            sizes = {mapping.start: base_page_bytes for mapping in found}
        else:
            smaps = host.read_optional(f"proc/{pid}/smaps", MAX_MAPS_BYTES) or ""
            count += len(smaps)
            sizes = page_sizes(smaps)
        for mapping in found:
            if mapping.page_bytes is None and mapping.start in sizes:
                mapping.page_bytes = sizes[mapping.start]
                mapping.is_hugetlb = mapping.page_bytes > base_page_bytes
    return found, count


def segments(found: list[Mapping], shares_segment: bool, has_thp: bool) -> list[dict[str, Any]]:
    """The mappings that can hold a buffer pool, neighbours joined, the largest first."""
    relevant = [mapping for mapping in found if mapping.is_shared or mapping.is_hugetlb or not shares_segment]
    joined: list[Mapping] = []
    for mapping in sorted(relevant, key=lambda one: one.start):
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.start + last.bytes == mapping.start
            and (last.kind, last.page_bytes, last.is_shared) == (mapping.kind, mapping.page_bytes, mapping.is_shared)
        ):
            last.bytes += mapping.bytes
        else:
            joined.append(Mapping(**vars(mapping)))
    joined.sort(key=lambda one: -one.bytes)
    return [
        {
            "bytes": mapping.bytes,
            "backing": _backing(mapping, has_thp),
            "page_bytes": mapping.page_bytes,
            "kind": mapping.kind,
        }
        for mapping in joined[:MAX_SEGMENTS]
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
