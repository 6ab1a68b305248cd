"""Huge pages for the measurement: taken from the kernel, and given back on every way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hugeplan_agent.pool_reservation import SYSTEM, ReservationError, read_count, reservation

from hugeplan.measuring.room import headroom_bytes
from hugeplan.planner.units import format_bytes

ATTEMPTS = 5


class CannotReserveError(Exception):
    """The pages are not available here; the message says why."""


def pool_folder(page_bytes: int) -> Path:
    """The kernel's folder for one page size."""
    return Path(SYSTEM.pool(page_bytes))


@contextmanager
def reserved(page_bytes: int, pages: int, *, drop_caches: bool = False) -> Iterator[int]:
    """``pages`` more huge pages for the time of the block; yields the pool's size.

    Pages that are free already belong to whoever reserved them and are not counted on. Taken under the lock and the
    journal of ``hugeplan_agent.pool_reservation``, so that no other writer of this project changes the pool meanwhile
    and the pages come back even after SIGKILL, at the next start of one of them. ``drop_caches`` finds more pages, at
    the cost of the page cache of everything that runs on the machine.
    """
    if not pool_folder(page_bytes).is_dir():
        raise CannotReserveError(f"this kernel has no huge pages of {page_bytes} bytes")
    room_bytes, why = headroom_bytes()
    if pages * page_bytes > room_bytes:  # the kernel would give them, and leave nothing to what runs
        need = format_bytes(pages * page_bytes)
        raise CannotReserveError(f"{pages} pages of {page_bytes >> 10} KiB need {need}; {why}")
    try:
        with reservation() as held:
            # The kernel gives what it finds at once; compacting finds more.
            got = held.grow(page_bytes, pages)
            for _ in range(ATTEMPTS):
                if got >= pages:
                    break
                _make_room(drop_caches=drop_caches)
                got += held.grow(page_bytes, pages - got)
            if got < pages:
                raise CannotReserveError(
                    f"the kernel gave {got} of {pages} pages of {page_bytes >> 10} KiB; memory is fragmented or short"
                )
            yield read_count(page_bytes, "nr_hugepages")
    except ReservationError as problem:
        raise CannotReserveError(str(problem)) from problem


def _make_room(*, drop_caches: bool) -> None:
    for name, value in (*((("drop_caches", "3"),) if drop_caches else ()), ("compact_memory", "1")):
        with suppress(OSError):  # not root: the pool's own refusal says so
            (Path("/proc/sys/vm") / name).write_text(value, encoding="ascii")
