"""Huge pages that no process holds: files on hugetlbfs that nothing maps, and SysV segments without a process.

Both keep their pages until somebody removes them, and neither is in the mappings of a process. Files are of the mount
namespace that the command runs in. /proc/sysvipc/shm does not say whether a segment is of huge pages: all without
a process are listed with size and resident bytes, and who reads them compares these with what a pool lacks.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hugeplan_agent.host import Host

#: Files and folders per mount that are looked at: a mount with more is a program's store, and that program runs.
_MOST_FILES: Final = 4096
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_MAPPED: Final = re.compile(rb"\S+ \S+ \S+ ([0-9a-f]+:[0-9a-f]+ [1-9]\d*)")
#: Processor time for the mappings of all processes, which is asked each so many lines: whoever has an account has any
#: number of both, and ``apply`` holds its lock meanwhile.
_MOST_SECONDS: Final = 5.0
_LINES: Final = 1024
#: Of a process: it has at most as many mappings as vm.max_map_count says, each with a path of up to 4 KiB.
_MOST_BYTES: Final = 1024**3
_BLOCK_BYTES: Final = 512


def without_process(host: Host) -> dict[str, Any]:
    """``huge_page_files`` and ``sysv_segments`` of a host; None: not known."""
    return {"huge_page_files": _unmapped_files(host), "sysv_segments": _unattached_segments(host.root)}


def _unmapped_files(host: Host) -> list[dict[str, Any]] | None:
    base = host.root
    try:
        mounts = {mount for mount, kind in _mounts(base / "proc/mounts") if kind == "hugetlbfs"}
        found = dict(one for mount in sorted(mounts) for one in _files(base, mount))
        left = _not_mapped(host, set(found)) if found else set()
    except OSError:
        return None
    return None if host.left_alone or left is None else [entry for key, entry in found.items() if key in left]


def _mounts(path: Path) -> Iterator[tuple[str, str]]:
    """Mount point and type of each line; blanks are written as octal numbers."""
    for line in path.read_bytes().decode(errors="surrogateescape").split("\n"):  # a user's may have other ends of lines
        fields = line.split(" ")
        if len(fields) > 2:
            yield _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[1]), fields[2]


def _files(base: Path, mount: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Files with pages, by device and inode as /proc/PID/maps writes them."""
    top = base / mount.lstrip("/")
    page_bytes = os.statvfs(top).f_bsize
    looked_at = 0
    for folder, _, names in os.walk(top):
        looked_at += 1
        if looked_at + len(names) > _MOST_FILES:
            return
        looked_at += len(names)
        for name in names:
            path = Path(folder, name)
            facts = path.lstat()
            pages = facts.st_blocks * _BLOCK_BYTES // page_bytes
            if pages:
                shown = Path(mount, path.relative_to(top))
                key = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x} {facts.st_ino}"
                yield key.encode(), {"path": str(shown), "page_bytes": page_bytes, "pages": pages}


def _not_mapped(host: Host, files: set[bytes]) -> set[bytes] | None:
    """Those of the files that no process maps which may be read. None: it takes too long to tell."""
    left, begun = set(files), time.thread_time()
    for number, line in enumerate(_mappings(host)):
        if (found := _MAPPED.match(line)) is not None:
            left.discard(found[1])
            if not left:
                break
        if number % _LINES == 0 and time.thread_time() - begun > _MOST_SECONDS:
            return None
    return left


def _mappings(host: Host) -> Iterator[bytes]:
    from hugeplan_agent.errors import NoData  # noqa: PLC0415 - an optional distribution

    for name in filter(str.isdecimal, host.names("proc")):
        with suppress(NoData, OSError):  # it has ended, or only another user may read it
            yield from host.lines(f"proc/{name}/maps", _MOST_BYTES)


def _unattached_segments(base: Path) -> list[dict[str, Any]] | None:
    try:
        lines = (base / "proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    names = lines[0].split() if lines else []
    rows = [dict(zip(names, line.split(), strict=False)) for line in lines[1:]]
    return [
        {"id": int(row["shmid"]), "bytes": int(row["size"]), "resident_bytes": int(row["rss"])}
        for row in rows
        if row.get("nattch") == "0" and row.get("rss", "").isdecimal() and int(row["rss"])
    ]
