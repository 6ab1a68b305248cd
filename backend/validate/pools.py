"""Huge pages for the measurement: taken from the kernel, and given back on every way out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HUGE_PAGES = Path("/sys/kernel/mm/hugepages")
ATTEMPTS = 5


class CannotReserveError(Exception):
    """The pages cannot be had here; the message says why."""


def pool_folder(page_bytes: int) -> Path:
    """The kernel's folder for one page size."""
    return HUGE_PAGES / f"hugepages-{page_bytes // 1024}kB"


def read_count(page_bytes: int, name: str) -> int:
    """One counter of the pool: ``nr_hugepages``, ``free_hugepages``, ``resv_hugepages``."""
    return int((pool_folder(page_bytes) / name).read_text(encoding="ascii"))


@contextmanager
def reserved(page_bytes: int, pages: int) -> Iterator[int]:
    """At least ``pages`` free pages for the time of the block; yields the pool's size. Restores the former size."""
    folder = pool_folder(page_bytes)
    if not folder.is_dir():
        raise CannotReserveError(f"this kernel has no huge pages of {page_bytes} bytes")
    counter = folder / "nr_hugepages"
    former = read_count(page_bytes, "nr_hugepages")
    wanted = former + max(0, pages - read_count(page_bytes, "free_hugepages"))
    if wanted > former and not os.access(counter, os.W_OK):
        raise CannotReserveError(
            f"{wanted - former} more huge pages are needed and {counter} is not writable (not root)"
        )
    try:
        # The kernel gives what it finds at once; dropping clean page cache and compacting finds more.
        for _ in range(ATTEMPTS):
            if read_count(page_bytes, "free_hugepages") >= pages:
                break
            for name, value in (("drop_caches", "3"), ("compact_memory", "1")):
                knob = Path("/proc/sys/vm") / name
                if os.access(knob, os.W_OK):
                    knob.write_text(value, encoding="ascii")
            counter.write_text(str(wanted), encoding="ascii")
        free = read_count(page_bytes, "free_hugepages")
        if free < pages:
            raise CannotReserveError(f"asked the kernel for {pages} huge pages, {free} are free")
        yield read_count(page_bytes, "nr_hugepages")
    finally:
        if wanted > former:
            counter.write_text(str(former), encoding="ascii")


def memory_available_bytes() -> int:
    """MemAvailable of /proc/meminfo."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise CannotReserveError("/proc/meminfo has no MemAvailable")
