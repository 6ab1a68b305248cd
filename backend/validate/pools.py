"""Huge pages for the measurement: taken from the kernel, and given back on every way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hugeplan_agent.pool_reservation import SYSTEM, ReservationError, read_count, reservation

ATTEMPTS = 5


class CannotReserveError(Exception):
    """The pages are not available here; the message says why."""


def pool_folder(page_bytes: int) -> Path:
    """The kernel's folder for one page size."""
    return SYSTEM.pool(page_bytes)


@contextmanager
def reserved(page_bytes: int, pages: int) -> Iterator[int]:
    """At least ``pages`` free pages for the time of the block; yields the pool's size.

    Taken under the lock and the journal of ``hugeplan_agent.pool_reservation``, so that no other writer of this project
    changes the pool meanwhile and the pages come back even after SIGKILL, at the next start of one of them.
    """
    if not pool_folder(page_bytes).is_dir():
        raise CannotReserveError(f"this kernel has no huge pages of {page_bytes} bytes")
    try:
        with reservation() as held:
            # The kernel gives what it finds at once; dropping clean page cache and compacting finds more.
            for _ in range(ATTEMPTS):
                missing = pages - read_count(page_bytes, "free_hugepages")
                if missing <= 0:
                    break
                _make_room()
                held.grow(page_bytes, missing)
            free = read_count(page_bytes, "free_hugepages")
            if free < pages:
                raise CannotReserveError(f"asked the kernel for {pages} huge pages, {free} are free")
            yield read_count(page_bytes, "nr_hugepages")
    except ReservationError as problem:
        raise CannotReserveError(str(problem)) from problem


def _make_room() -> None:
    for name, value in (("drop_caches", "3"), ("compact_memory", "1")):
        with suppress(OSError):  # not root: the pool's own refusal says so
            (Path("/proc/sys/vm") / name).write_text(value, encoding="ascii")


def memory_available_bytes() -> int:
    """MemAvailable of /proc/meminfo."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise CannotReserveError("/proc/meminfo has no MemAvailable")
