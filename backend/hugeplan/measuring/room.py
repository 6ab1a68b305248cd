"""Whether the memory suffices for a trial beside the node's own work, and if not, the numbers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from hugeplan.measuring.trial import TrialError
from hugeplan.planner.model import GIB, KIB, MIB
from hugeplan.planner.units import format_bytes

KEPT_SHARE: Final = 0.1
KEPT_LEAST_BYTES: Final = 512 * MIB
"""What stays available for the node's own work: a tenth of its memory, and at least so much."""


def meminfo(root: Path = Path("/")) -> dict[str, int]:
    """Bytes by name. TrialError where /proc/meminfo cannot be read."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        return {line.split(":")[0]: int(line.split()[1]) * KIB for line in lines if line.endswith(" kB")}
    except (OSError, ValueError) as problem:
        raise TrialError(f"/proc/meminfo cannot be read: {problem}") from problem


def headroom_bytes(root: Path = Path("/")) -> tuple[int, str]:
    """What a trial may take, and of what that is the rest: available memory or the limit of the own cgroup."""
    known = meminfo(root)
    total, available = known.get("MemTotal", 0), known.get("MemAvailable", 0)
    kept = max(KEPT_LEAST_BYTES, int(KEPT_SHARE * total))
    room, why = (
        available - kept,
        f"{format_bytes(available)} are available and {format_bytes(kept)} stay for the node's own work",
    )
    for limit, used in _cgroup_limits(root):
        if limit - used - KEPT_LEAST_BYTES < room:
            room = limit - used - KEPT_LEAST_BYTES
            why = f"the cgroup's memory.max is {format_bytes(limit)}, of which {format_bytes(used)} are used"
    return max(0, room), why


def check(needed_bytes: int, what: str, advice: str, root: Path = Path("/")) -> None:
    """TrialError with the numbers where ``needed_bytes`` are more than a trial may take."""
    room, why = headroom_bytes(root)
    if needed_bytes > room:
        raise TrialError(
            f"the memory does not suffice: {what} need {format_bytes(needed_bytes)}; {why}, so {format_bytes(room)}"
            f" may be taken. {advice}"
        )


def check_disk(folder: Path, needed_bytes: int) -> None:
    """TrialError with the numbers where the folder's file system is too small."""
    free = shutil.disk_usage(folder).free
    if needed_bytes + GIB // 2 > free:
        raise TrialError(
            f"the disk does not suffice: the trial's files need {format_bytes(needed_bytes)}, {folder} has"
            f" {format_bytes(free)} free, half a GiB of which stays; choose another --work-dir or less --data-gib"
        )


def _cgroup_limits(root: Path) -> list[tuple[int, int]]:
    """``memory.max`` and ``memory.current`` of the own cgroup and those above it, where they are limited."""
    found = []
    try:
        own = next(
            line.split(":", 2)[2]
            for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
            if line.startswith("0::")
        )
    except (OSError, StopIteration):
        return []
    folder = root / "sys/fs/cgroup"
    for part in (".", *Path(own.lstrip("/")).parts):
        folder /= part
        try:
            limit, used = (folder / "memory.max").read_text().strip(), (folder / "memory.current").read_text()
            if limit != "max":
                found.append((int(limit), int(used)))
        except (OSError, ValueError):
            continue
    return found
