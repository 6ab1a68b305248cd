"""Huge pages of the machine that the rig runs on: counts by sysfs, the hugetlb controller, and giving both back."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hugeplan_agent.pool_reservation import ReservationError, reservation
from rig.binaries import NotAvailableError

_POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
_CGROUP = Path("/sys/fs/cgroup")
OTHERS_SECONDS = 60.0

# $0 the folder, $1 whether it was made here. Groups with processes stay: they are somebody's.
_GIVE_BACK = """
cat
find "$0" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
umount "$0" || umount --lazy "$0"
test -z "$1" || rmdir "$0"
"""


def count(name: str = "nr_hugepages") -> int:
    """A count of the pool of 2M pages."""
    return int((_POOL / name).read_text())


def used() -> int:
    """Pages that are mapped or reserved by a mapping: nr - free + resv."""
    return count() - count("free_hugepages") + count("resv_hugepages")


def reserve(pages: int) -> int:
    """Ask for so many pages; the count that the kernel gave."""
    (_POOL / "nr_hugepages").write_text(str(pages))
    return count()


@contextmanager
def kept_counts() -> Iterator[None]:
    """An empty pool that is empty again afterwards, and no other program of this project that writes or measures.

    Pages of somebody else are waited for a minute: they may be for good. NotAvailableError where they stay, or where
    counts may not be changed.
    """
    if not os.access(_POOL / "nr_hugepages", os.W_OK) or os.geteuid() != 0:
        raise NotAvailableError("huge pages can be reserved by root alone")
    deadline = time.monotonic() + OTHERS_SECONDS
    while True:
        with ExitStack() as stack:
            try:
                stack.enter_context(reservation())
            except ReservationError as error:
                raise NotAvailableError(str(error)) from error
            before = count()
            if not before and not used():
                try:
                    yield
                finally:
                    reserve(0)
                return
        if time.monotonic() > deadline:
            raise NotAvailableError(f"{before} huge pages are reserved here already: they are somebody else's")
        time.sleep(1)  # without the lock, for whoever gives the pages back under it


@contextmanager
def controller() -> Iterator[None]:
    """The hugetlb controller of cgroup v1 is mounted, and unmounted at the end where it was not. v2 needs nothing."""
    if (_CGROUP / "cgroup.controllers").exists():
        if "hugetlb" not in (_CGROUP / "cgroup.controllers").read_text().split():
            raise NotAvailableError("the kernel offers no hugetlb controller")
        yield
        return
    place = _CGROUP / "hugetlb"
    if place.is_mount():
        yield
        return
    made = not place.exists()
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise NotAvailableError(f"{place}: {error.strerror}") from error
    mounted = subprocess.run(
        ["mount", "-t", "cgroup", "-o", "hugetlb", "cgroup", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        raise NotAvailableError(f"the hugetlb controller cannot be mounted: {mounted.stderr.strip()}")
    # A child gives it back, which sees the end of this process too when it is killed: kubelet's groups, and those that
    # container engines made meanwhile, keep a hierarchy alive that nothing is mounted to.
    keeper = subprocess.Popen(
        ["sh", "-c", _GIVE_BACK, str(place), "made" if made else ""],
        stdin=subprocess.PIPE, env={"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"},
        start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        keeper.communicate()
