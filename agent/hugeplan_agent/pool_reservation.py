"""Huge pages for a test or a trial: taken under tlbbench's journal, and given back on every way out.

Everything in this project that writes a pool for a while (``tlbbench --reserve``, the page trials, the validation, the
tests) does so under one lock, which ``hugeplan apply`` takes as well, and through one journal, ``journal`` in the
folder that ``agent/tlbbench/src/memory/reservation.h`` names:

* The owner holds an exclusive ``flock`` on the file. Others wait, or go on without pages.
* The previous count is in the file before a pool is written. After ``SIGKILL`` the lock is free and the file is there:
  the next owner, or the next start of tlbbench, gives the pages back first.
* A pool is put back only while nobody else has set its count since; what somebody set later stays.

The agent itself never calls this. Counts are pages; ``nr_hugepages`` less ``surplus_hugepages`` is what is restored.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hugeplan_agent.ownership import users_mounts

#: How long to wait for another owner; trials of a server take up to a minute.
WAIT_SECONDS = float(os.environ.get("HUGEPLAN_HUGE_PAGES_LOCK_SECONDS", "60"))
_POLL_SECONDS = 0.05
_LINE = re.compile(r"pool page_bytes=(\d+) node=(-1|\d+) former=(\d+) (target|held)=(\d+)\.")


class ReservationError(Exception):
    """Pages cannot be reserved here; the message says why."""


@dataclass(frozen=True)
class Places:
    """Where things lie; tests point these elsewhere."""

    sysfs: Path = Path("/sys")
    journal_folder: Path | None = None

    def pool(self, page_bytes: int, node: int = -1) -> Path:
        """The kernel's folder of one page size, machine-wide or of a NUMA node."""
        above = "kernel/mm" if node < 0 else f"devices/system/node/node{node}"
        return self.sysfs / above / "hugepages" / f"hugepages-{page_bytes // 1024}kB"


SYSTEM = Places()


def read_count(page_bytes: int, name: str, places: Places = SYSTEM, node: int = -1) -> int:
    """One counter of a pool: ``nr_hugepages``, ``free_hugepages``, ``surplus_hugepages``."""
    try:
        return int((places.pool(page_bytes, node) / name).read_text(encoding="ascii"))
    except (OSError, ValueError) as problem:
        raise ReservationError(f"this kernel has no {name} of huge pages of {page_bytes} bytes") from problem


def _persistent(page_bytes: int, places: Places, node: int) -> int:
    """Pages of the pool without those that the kernel lends beyond its count, which go by themselves."""
    surplus = 0
    with suppress(ReservationError):
        surplus = read_count(page_bytes, "surplus_hugepages", places, node)
    return read_count(page_bytes, "nr_hugepages", places, node) - surplus


@dataclass(frozen=True)
class Raised:
    """A pool that was raised: its previous count, and the count that means nobody else has set it since."""

    former: int
    held: int
    #: ``held`` is what the kernel made of the target; else the write was still under way.
    noted: bool

    def restored(self, current: int) -> int:
        """The count that the pool should have, which has ``current`` now (the rule of ``reservation.h``)."""
        lowest = self.held if self.noted else self.former
        return self.former if lowest <= current <= self.held else current


@dataclass
class Reservation:
    """The lock, held, and the pools that were raised under it."""

    places: Places
    path: Path
    descriptor: int
    _pools: dict[tuple[int, int], Raised] = field(default_factory=dict)
    #: What a killed owner's pools had and have now: page size in bytes, pages, pages.
    recovered: list[tuple[int, int, int]] = field(default_factory=list)

    def grow(self, page_bytes: int, more_pages: int) -> int:
        """Raise the machine-wide pool by ``more_pages``; the pages that the kernel found, perhaps fewer."""
        before = _persistent(page_bytes, self.places, -1)
        known = self._pools.get((page_bytes, -1))
        former = before if known is None else known.former
        target = read_count(page_bytes, "nr_hugepages", self.places) + more_pages
        self._note(page_bytes, Raised(former, target, noted=False))
        self._write(page_bytes, -1, target)
        got = _persistent(page_bytes, self.places, -1)
        if got >= former:
            self._note(page_bytes, Raised(former, got, noted=True))
        return got - before

    def give_back(self) -> None:
        """Restore every pool and remove the journal. On failure the journal stays for the next start."""
        self._restore()
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.parent.rmdir()

    def recover(self) -> None:
        """Give back what an owner that was killed left in the file, and start it anew.

        Nothing is written before a pool is: on a full disk who raises none, as a way back, has the lock all the same.
        """
        lines = os.pread(self.descriptor, 1 << 16, 0).decode("ascii", "replace").split("\n")
        if lines[0] == _head():
            for page_bytes, node, former, word, count in (
                found.groups() for found in map(_LINE.fullmatch, lines) if found
            ):
                self._pools[int(page_bytes), int(node)] = Raised(int(former), int(count), noted=word == "held")
            self.recovered = self._restore()
        os.ftruncate(self.descriptor, 0)

    def _restore(self) -> list[tuple[int, int, int]]:
        changed = []
        for (page_bytes, node), raised in reversed(self._pools.items()):
            current = _persistent(page_bytes, self.places, node)
            count = raised.restored(current)
            if count != current:
                self._write(page_bytes, node, count)
                changed.append((page_bytes, current, count))
        self._pools.clear()
        return changed

    def _note(self, page_bytes: int, raised: Raised) -> None:
        word = "held" if raised.noted else "target"
        if not os.fstat(self.descriptor).st_size:
            self._append(_head())
        self._append(f"pool page_bytes={page_bytes} node=-1 former={raised.former} {word}={raised.held}.")
        self._pools[page_bytes, -1] = raised

    def _append(self, line: str) -> None:
        os.lseek(self.descriptor, 0, os.SEEK_END)
        try:
            os.write(self.descriptor, f"{line}\n".encode("ascii"))
            os.fsync(self.descriptor)
        except OSError as problem:
            raise ReservationError(f"the journal {self.path} cannot be written: {problem.strerror}") from problem

    def _write(self, page_bytes: int, node: int, count: int) -> None:
        path = self.places.pool(page_bytes, node) / "nr_hugepages"
        try:
            path.write_text(f"{count}\n", encoding="ascii")
        except OSError as problem:
            raise ReservationError(f"huge pages cannot be reserved: {path}: {problem.strerror}") from problem


@contextmanager
def reservation(places: Places = SYSTEM, wait_seconds: float | None = None) -> Iterator[Reservation]:
    """The lock for the time of the block; pools raised in it are put back at its end. Waits for another owner."""
    path = _journal_path(places)
    descriptor = _lock(path, WAIT_SECONDS if wait_seconds is None else wait_seconds)
    try:
        made = Reservation(places, path, descriptor)
        made.recover()
        try:
            yield made
        finally:
            made.give_back()
    finally:
        os.close(descriptor)


def _head() -> str:
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    return f"tlbbench reservation 1, boot {boot_id.read_text(encoding='ascii').strip() if boot_id.exists() else ''}"


def _journal_path(places: Places) -> Path:
    """The journal in the first folder that can be made and belongs to the caller alone."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folders = [Path("/run/tlbbench"), *([Path(runtime) / "tlbbench"] if runtime.startswith("/") else [])]
    folders.append(Path(tempfile.gettempdir()) / f"tlbbench-{os.geteuid()}")
    for folder in folders if places.journal_folder is None else [places.journal_folder]:
        with suppress(OSError):
            if folder in users_mounts():  # what one says of owners is its user's word, as in reserve_journal.c
                continue
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
                return folder / "journal"
    raise ReservationError("no folder for the journal: /run/tlbbench, $XDG_RUNTIME_DIR and $TMPDIR are not writable")


def _lock(path: Path, wait_seconds: float) -> int:
    end = time.monotonic() + wait_seconds
    while True:
        descriptor = _try_lock(path)
        if descriptor is not None:
            return descriptor
        if time.monotonic() > end:
            raise ReservationError(
                f"another program held huge pages ({path}) for {wait_seconds:g} s: hugeplan apply, or what measures, as"
                " hugeplan trial or tlbbench --reserve; try again when it has ended"
            )
        time.sleep(_POLL_SECONDS)


def _try_lock(path: Path) -> int | None:
    """The journal's descriptor, locked; None while somebody else has it or has just removed it."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None  # the last owner removed the folder between the two calls
    except OSError as problem:
        raise ReservationError(f"the journal {path} cannot be opened: {problem.strerror}") from problem
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except OSError as problem:
        if problem.errno not in (errno.EWOULDBLOCK, errno.ENOENT):
            os.close(descriptor)
            raise ReservationError(f"the journal {path} cannot be locked: {problem.strerror}") from problem
    os.close(descriptor)
    return None
