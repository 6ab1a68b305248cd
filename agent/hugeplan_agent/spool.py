"""The disk spool: reports wait here until the server has them.

Layout of the folder::

    pending/<created ms>-<report id>-<sample|run>.json    written under a temporary name, synced, then renamed
    rejected/<the same name>  and  <...>.problem.json     refused as invalid, with the server's answer
    counters.json                                         what was dropped, by cause; it survives restarts
    lock                                                  one sender at a time

Nothing leaves ``pending`` before the server's 2xx, but for the bounds of size and age: then the oldest samples go
first, runs (which cost a minute to make) last, and every one of them is counted.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hugeplan_agent.errors import SpoolError
from hugeplan_agent.ownership import adopt, as_owner_of
from hugeplan_agent.printable import storable
from hugeplan_agent.whole_files import hold_file, read_file, remove_leftovers, replace_file, sync_folder

if TYPE_CHECKING:
    from typing import TypeGuard

NAME = re.compile(r"(\d{13})-([0-9a-f-]{36})-(sample|run)\.json")
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
CAUSES = ("size", "age", "disk_full", "rejected")
MAX_COUNT = 2**53
MAX_REJECTED = 100
"""Refused reports are kept for a person to look at; more of the same help nobody."""
MAX_REJECTED_BYTES = 32 * 1024 * 1024
"""Of these, the server's words included. With what waits it stays below what a pod may keep."""


@dataclass(frozen=True)
class Entry:
    """One waiting report."""

    path: Path
    created_ms: int
    report_id: str
    has_run: bool
    size_bytes: int


@dataclass(frozen=True)
class Bounds:
    """How much may wait, and for how long."""

    max_bytes: int = 64 * 1024 * 1024
    max_age_seconds: float = 7 * 86400.0


class Spool:
    """A bounded queue of reports in a folder. Every write is atomic and on the disk before it counts."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self.folder = folder
        self.bounds = bounds
        self._waits_since: dict[str, float] = {}
        self.pending = folder / "pending"
        self.rejected = folder / "rejected"
        self._make_folders()

    def _make_folders(self) -> None:
        """The folders, where they are not there: at the start, and when somebody removed them meanwhile. SpoolError,
        also where another user put a link, or in a place that all may write to a folder: they would lead root astray.
        """
        try:
            for place in (self.folder, self.rejected, self.pending):
                is_new = not place.is_dir()
                with as_owner_of(place, make=0o700):
                    if is_new:
                        adopt(place)
                    state = place.lstat()
                    is_anybodys = stat.S_ISLNK(state.st_mode) or place.parent.stat().st_mode & stat.S_IWOTH
                    if is_anybodys and state.st_uid not in {0, os.getuid()}:
                        raise PermissionError(errno.EACCES, f"user {state.st_uid} put {place} there")
                    if place is self.pending and not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
                        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise SpoolError(f"the spool folder {self.folder} cannot be used: {error.strerror}") from error

    def entries(self) -> list[Entry]:
        """Waiting reports, the oldest first. Raises SpoolError."""
        found = []
        self._make_folders()
        with as_owner_of(self.folder):
            for path in sorted(self.pending.iterdir()):
                match = NAME.fullmatch(path.name)
                if match is None:
                    continue
                try:
                    state = path.lstat()
                except FileNotFoundError:  # another process has just sent it
                    continue
                # A FIFO would be waited for, a folder cannot be read, a link leads elsewhere: none of them is a report.
                if stat.S_ISREG(state.st_mode):
                    found.append(Entry(path, int(match[1]), match[2], match[3] == "run", state.st_size))
        return found

    def add(self, report: Mapping[str, Any], now_ms: int) -> Entry:
        """Write a report and make room for it. On a full disk the oldest give way, one by one.

        Raises SpoolError when it cannot be written.
        """
        kind = "run" if report.get("run") else "sample"
        name = f"{now_ms:013d}-{report['report_id']}-{kind}.json"
        text = json.dumps(report, separators=(",", ":"), allow_nan=False)
        if "\\u0000" in text or "\\ud" in text:
            text = json.dumps(storable(report), separators=(",", ":"), allow_nan=False)
        data = text.encode()
        self._make_folders()
        while True:
            try:
                replace_file(self.pending / name, data)
                break
            except OSError as error:
                waiting = self.entries()
                if error.errno in NO_SPACE and waiting:
                    self._drop(droppable_first(waiting)[0], "disk_full")
                    continue
                raise SpoolError(f"the report cannot be written to {self.pending}: {error.strerror}") from error
        self.enforce(keep=name)
        return Entry(self.pending / name, now_ms, str(report["report_id"]), kind == "run", len(data))

    def enforce(self, keep: str | None = None) -> None:
        """Drop what is too old, then the oldest until the rest fits. The report named ``keep`` always stays.

        Only this process's own time tells that a report is too old: the clock jumps, before and after a boot, too.
        """
        now, entries = time.monotonic(), self.entries()
        self._waits_since = {entry.path.name: self._waits_since.get(entry.path.name, now) for entry in entries}
        for entry in entries:
            waits_seconds = now - self._waits_since[entry.path.name]
            if entry.path.name != keep and waits_seconds > self.bounds.max_age_seconds:
                self._drop(entry, "age")
        waiting = self.entries()
        total = sum(entry.size_bytes for entry in waiting)
        for entry in droppable_first([entry for entry in waiting if entry.path.name != keep]):
            if total <= self.bounds.max_bytes:
                break
            self._drop(entry, "size")
            total -= entry.size_bytes

    def delivered(self, entry: Entry) -> None:
        """The server has it: let go."""
        with as_owner_of(self.folder):
            entry.path.unlink(missing_ok=True)
            sync_folder(self.pending)

    def reject(self, entry: Entry, problem: Mapping[str, Any]) -> None:
        """The server refused it for good: keep it aside with the server's words."""
        try:
            words = json.dumps(problem)  # indented, 256 KiB of brackets become 250 MB
        except RecursionError:
            words = json.dumps({"detail": "the server's answer is nested too deeply to be kept"})
        with as_owner_of(self.folder):
            self._put_aside(entry, words)

    def _put_aside(self, entry: Entry, words: str) -> None:
        target = self.rejected / entry.path.name
        replace_file(target.with_suffix(".problem.json"), words.encode())
        entry.path.replace(target)
        sync_folder(self.rejected)
        sync_folder(self.pending)
        size_bytes = 0
        for kept, name in enumerate(reversed(self._rejected_names()), 1):
            files = [self.rejected / name, (self.rejected / name).with_suffix(".problem.json")]
            size_bytes += sum(file.lstat().st_size for file in files if file.exists())
            if kept > MAX_REJECTED or size_bytes > MAX_REJECTED_BYTES:
                for file in files:
                    file.unlink(missing_ok=True)
                self._count("rejected")

    def rejected_count(self) -> int:
        """How many reports were refused and are kept aside."""
        return len(self._rejected_names())

    def _rejected_names(self) -> list[str]:
        with as_owner_of(self.folder):
            return sorted(path.name for path in self.rejected.iterdir() if NAME.fullmatch(path.name))

    def counters(self) -> dict[str, int]:
        """Reports given up so far, by cause: size, age, disk_full, rejected (refused, and pushed out by later ones)."""
        read = read_small_json(self.folder / "counters.json")
        counts = {cause: read.get(cause) for cause in CAUSES}
        return {cause: count if _is_count(count) else 0 for cause, count in counts.items()}

    def summary(self) -> dict[str, int]:
        """Counts for the next report, so that nobody mistakes a gap for a quiet node."""
        waiting = self.entries()
        return {
            "pending": len(waiting),
            "pending_bytes": sum(entry.size_bytes for entry in waiting),
            "rejected": self.rejected_count(),
            **{f"dropped_{cause}": count for cause, count in self.counters().items()},
        }

    @contextmanager
    def sending(self) -> Iterator[bool]:
        """Hold the right to send. Yields False when another process holds it."""
        # Neither waiting for the other end of a FIFO nor following a link.
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW
        try:
            with as_owner_of(self.folder):
                descriptor = os.open(self.folder / "lock", flags, 0o600)
        except OSError as error:
            raise SpoolError(f"{self.folder}/lock cannot be opened: {error.strerror}") from error
        with os.fdopen(descriptor, "rb+", buffering=0) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def remove_leftovers(self) -> None:
        """Remove half-written files of a process that was killed. Call it while holding the right to send."""
        for folder in (self.pending, self.rejected, self.folder):
            remove_leftovers(folder)

    def keep(self, name: str, document: Mapping[str, Any]) -> None:
        """Replace a small file beside the reports. Raises SpoolError."""
        self.hold(name, document).close()

    def hold(self, name: str, document: Mapping[str, Any]) -> BinaryIO:
        """The same. The file is locked until what is given is closed or this process ends. Raises SpoolError."""
        try:
            return hold_file(self.folder / name, json.dumps(document).encode())
        except OSError as error:
            raise SpoolError(f"{self.folder}/{name} cannot be written: {error.strerror}") from error

    def _drop(self, entry: Entry, cause: str) -> None:
        with as_owner_of(self.folder):
            entry.path.unlink(missing_ok=True)
        self._count(cause)

    def _count(self, cause: str) -> None:
        counters = self.counters()
        counters[cause] += 1
        try:
            replace_file(self.folder / "counters.json", json.dumps(counters).encode())
        except OSError:
            return  # a figure that is lost must not stop reports


def read_small_json(path: Path) -> dict[str, Any]:
    """The object in a small file of the spool folder; empty when there is none, whatever is there instead."""
    try:
        found = json.loads(read_file(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT


def droppable_first(entries: list[Entry]) -> list[Entry]:
    """The order in which reports give way: samples before runs, the oldest first."""
    return sorted(entries, key=lambda entry: (entry.has_run, entry.created_ms))
