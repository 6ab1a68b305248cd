"""The machine as files under one root, so that a captured tree or a mounted host reads like the running system."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from hugeplan_agent.errors import NoData
from hugeplan_agent.rights import READ, SEARCH, Rights

T = TypeVar("T")

_KERNELS_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

MAX_FILE_BYTES = 8 * 1024 * 1024
"""No file of /proc or /sys that is read here comes near this; a captured tree might."""

MAX_FOREIGN_FILE_BYTES = 1024 * 1024
"""Of a file that somebody else wrote: a database's configuration."""

RECORD_BYTES = 8 * 1024
"""More than any record of a process that the kernel prints in one piece, but for those with lists in them."""

CHUNK_BYTES = 64 * 1024
"""The kernel allocates a buffer of the size asked for when /proc/sys is read, so one large read fails there."""

MAX_FOREIGN_NAMES = 4096
"""Of a folder that somebody else filled."""

MAX_LINKS = 40
"""As the kernel's own limit (ELOOP)."""

MAX_PATH_PARTS = 256
"""Of a path in another root, those of its links counted: each is a descriptor while the path is followed."""


class _AbsentError(NoData):
    """There is nothing of this name in another root."""


class NoAnswerError(OSError):
    """A process is left alone: a look at it, or at others of its user, did not end."""

    def __init__(self) -> None:
        super().__init__(errno.ETIMEDOUT, "not read: its process, or its user's, did not answer before")


class Host:
    """Reads files of /proc, /sys and /etc below ``root``."""

    def __init__(self, root: str | Path = "/") -> None:
        self.root = Path(root)
        self._prefix = str(self.root).rstrip("/")
        self._observation: dict[str, Any] = {}
        self.all_kept: dict[str, dict[Hashable, Any]] = {}
        self.watch: Callable[[str], AbstractContextManager[object]] | None = None
        self.checkpoint: Callable[[], None] | None = None
        """Called where what is kept so far is worth keeping, whatever becomes of the rest of the observation."""
        self.followed = 0
        """Parts of paths in other roots that were looked for."""
        self.found_changed = self.found_written = 0.0
        """When what was found last in another root, or a link to it, was changed, or a folder got its name, and when it
        was written. Of what was not there: when the folder was changed in which it would be."""

    def look(self, name: str) -> AbstractContextManager[object]:
        """Held while a file, of a process or below its root, is opened and read: either may wait for good, and the
        ``watch`` of who set one knows at what. Raises NoAnswerError, an OSError."""
        return nullcontext() if self.watch is None else self.watch(name)

    @property
    def left_alone(self) -> set[int]:
        """Processes that were not looked at in this observation, because they did not answer before."""
        return self.shared("left alone", lambda _: set())

    @property
    def left_alone_note(self) -> str:
        """The same in words, for a report; empty: none."""
        count = len(self.left_alone)
        return (
            f"{count} processes are left alone for up to an hour, and known as they were before: they, others of their"
            " account, or too many in all, did not answer or were slow"
            if count
            else ""
        )

    def begin(self) -> None:
        """Start an observation: what collectors shared in the one before is stale."""
        self._observation.clear()

    def shared(self, name: str, make: Callable[[Host], T]) -> T:
        """What several collectors need, made by the first of them in each observation."""
        if name not in self._observation:
            self._observation[name] = make(self)
        found: T = self._observation[name]
        return found

    def kept(self, name: str) -> dict[Hashable, Any]:
        """A dictionary that lives as long as this object. Its owner removes what no longer exists."""
        return self.all_kept.setdefault(name, {})

    def keep_only(self, name: str, keys: Iterable[Hashable]) -> None:
        """Forget what is kept of everything else: of processes that have ended, for one."""
        kept, wanted = self.kept(name), set(keys)
        for key in [key for key in kept if key not in wanted]:
            del kept[key]

    def path(self, name: str) -> Path:
        """The place of ``name`` (such as ``proc/meminfo``) on this machine."""
        return self.root / name

    def read_bytes(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """The content of a file. Raises NoData when it does not exist, OSError when it cannot be read."""
        with self.look(name):
            return self._read_bytes(name, max_bytes)

    def _read_bytes(self, name: str, max_bytes: int) -> bytes:
        with self._opened_in_proc(name) as descriptor:
            return _read_bounded(descriptor, max_bytes)

    def lines(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> Iterator[bytes]:
        """The lines of a file without their ends, of which no more than a piece is held at a time: one that goes beyond
        ``max_bytes`` is left out. Raises as ``read_bytes`` does, at the first line or later."""
        rest, size_bytes = b"", 0
        with self.look(name), self._opened_in_proc(name) as descriptor:
            while chunk := os.read(descriptor, CHUNK_BYTES):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
                size_bytes += len(chunk)
                if size_bytes >= max_bytes:
                    return
        if rest:
            yield rest

    @contextmanager
    def _opened_in_proc(self, name: str) -> Iterator[int]:
        try:
            descriptor = os.open(f"{self._prefix}/{name}", _KERNELS_FILE)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError) as error:
            raise NoData(f"{self.path(name)} does not exist") from error
        try:
            yield descriptor
        except ProcessLookupError as error:
            raise NoData(f"{self.path(name)}: the process has ended") from error
        finally:
            os.close(descriptor)

    def read(self, name: str) -> str:
        """The text of a file. Raises NoData when it does not exist, OSError when it cannot be read."""
        return self.read_bytes(name).decode("utf-8", errors="replace")

    def read_optional(self, name: str, max_bytes: int = MAX_FILE_BYTES) -> str | None:
        """The text of a file without the final newline, or None when it is absent or unreadable."""
        try:
            return self.read_bytes(name, max_bytes).decode("utf-8", errors="replace").rstrip("\n")
        except (NoData, OSError):
            return None

    def read_record(self, name: str, most_bytes: int = RECORD_BYTES) -> str | None:
        """The same for a file that the kernel prints in one piece, such as /proc/PID/stat: one read, without a second
        that finds the end. It is called for every process."""
        try:
            with self.look(name):
                descriptor = os.open(f"{self._prefix}/{name}", _KERNELS_FILE)
                try:
                    return os.read(descriptor, most_bytes).decode("utf-8", errors="replace").rstrip("\n")
                finally:
                    os.close(descriptor)
        except OSError:
            return None

    def read_int(self, name: str) -> int | None:
        """The whole number in a file, or None when the file is absent, unreadable or holds none."""
        text = self.read_optional(name)
        try:
            return int(text.strip()) if text is not None else None
        except ValueError:
            return None

    def read_link(self, name: str) -> str | None:
        """Where a symbolic link points, or None when it is absent or may not be read."""
        try:
            with self.look(name):
                return os.readlink(f"{self._prefix}/{name}")  # noqa: PTH115 - called for every process
        except OSError:
            return None

    def state(self, name: str) -> os.stat_result:
        """What a path leads to. Raises OSError."""
        with self.look(name):
            return self.path(name).stat()

    def names(self, name: str) -> list[str]:
        """The entries of a folder, sorted. Raises NoData without the folder."""
        try:
            with self.look(name):
                return sorted(os.listdir(f"{self._prefix}/{name}"))  # noqa: PTH208 - names are all that is wanted
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError) as error:
            raise NoData(f"{self.path(name)} does not exist") from error

    def folders(self, name: str, most: int) -> list[str]:
        """The folders in a folder, links left out, at most so many, sorted. Raises NoData without it, OSError."""
        try:
            with os.scandir(f"{self._prefix}/{name}") as entries:
                found = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
                return sorted(islice(found, most))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoData(f"{self.path(name)} does not exist") from error

    def children(self, name: str, pattern: str) -> list[tuple[str, re.Match[str]]]:
        """Entries of a folder whose whole name matches, sorted by name. Raises NoData without the folder."""
        matches = ((child, re.fullmatch(pattern, child)) for child in self.names(name))
        return [(child, match) for child, match in matches if match]

    def read_inside(self, top: str, path: str, rights: Rights | None = None) -> str:
        """The text of a file of another root, such as ``proc/900/root``: what its owner wrote, so nothing is trusted.

        Symbolic links are followed below ``top`` only, and only a regular file is opened: a container cannot lead
        the agent out of its own file system, nor make it wait at a pipe, nor touch a device. A file of no size is
        empty: those of /proc say that they have none, and make the kernel compute what they hold.

        ``rights``: of who named the path, who gets no more read than that user may read. With a folder of its own there
        a relative path begins in that, which may lie anywhere.
        Raises NoData when there is no such file, OSError when it cannot be read.
        """
        with self._found_inside(top, path, rights, READ) as found:
            if not _regular(found, path).st_size:
                return ""
            with _opened(found, path) as descriptor:
                return _read_bounded(descriptor, MAX_FOREIGN_FILE_BYTES).decode("utf-8", errors="replace")

    def open_regular(self, name: str) -> int:
        """A descriptor of a regular file, for who closes it. Raises NoData when there is none, OSError."""
        try:
            found = os.open(f"{self._prefix}/{name}", os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError) as error:
            raise NoData(f"{name} does not exist") from error
        with _closing(found), _opened(found, name) as descriptor:
            return os.dup(descriptor)

    def names_inside(self, top: str, path: str, rights: Rights | None = None) -> list[str]:
        """Entries of a folder of another root, sorted; none when it is absent. Raises OSError, also for too many."""
        try:
            with self._found_inside(top, path, rights, READ) as folder, os.scandir(_again(folder)) as entries:
                found = [entry.name for entry in islice(entries, MAX_FOREIGN_NAMES + 1)]
        except (_AbsentError, NotADirectoryError):
            return []
        if len(found) > MAX_FOREIGN_NAMES:
            raise OSError(errno.EFBIG, f"more than {MAX_FOREIGN_NAMES} entries")
        return sorted(found)

    def is_inside(self, top: str, path: str, rights: Rights | None = None) -> bool:
        """Whether another root has something of this name. False when this user may not look."""
        try:
            with self._found_inside(top, path, rights):
                return True
        except (NoData, OSError):
            return False

    def is_same_inside(self, top: str, path: str) -> bool:
        """Whether a path in another root leads to what it leads to in this one. False where this user may not look."""
        try:
            with self._found_inside(top, path) as found:
                return os.path.samestat(os.fstat(found), self.path(path[1:]).stat())
        except (NoData, OSError):
            return False

    @contextmanager
    def _found_inside(self, top: str, path: str, rights: Rights | None = None, wanted: int = 0) -> Iterator[int]:
        """A descriptor of what ``path`` leads to, every link followed inside ``top``: to look at, not opened yet.

        Each part is looked for in the folder that was found before it: who exchanges one for a link meanwhile leads
        nobody out. Raises NoData for a loop, for more parts than are followed, and where there is nothing; OSError.
        """
        waiting = path.split("/")[::-1]
        links = parts = 0
        changed = 0.0
        with self.look(f"{top}/"), ExitStack() as stack:
            own = rights.folder if rights is not None and not path.startswith("/") else ""
            begun = [top, own] if own else [top]
            folders = [_looked_at(f"{self._prefix}/{name}", None, stack) for name in begun]
            while waiting:
                part = waiting.pop()
                parts += 1
                self.followed += 1
                if parts > MAX_PATH_PARTS:
                    raise NoData(f"a path has more than {MAX_PATH_PARTS} parts")
                if part in ("", "."):
                    continue
                if rights is not None:
                    rights.require(folders[-1], SEARCH)
                if part == "..":
                    if len(folders) > len(begun):
                        folders.pop()
                    elif not os.path.samestat(os.fstat(folders[0]), os.fstat(folders[-1])):
                        folders[-1] = _looked_at("..", folders[-1], stack)
                    continue
                self.found_changed = max(changed, os.fstat(folders[-1]).st_ctime)
                found = _looked_at(part, folders[-1], stack)
                state = os.fstat(found)
                # A folder that got this name: the two are the same where a file in it came or went.
                changed = max(changed, state.st_ctime * (state.st_ctime != state.st_mtime))
                if not stat.S_ISLNK(state.st_mode):
                    folders.append(found)
                    continue
                links += 1
                changed = max(changed, state.st_ctime)
                if links > MAX_LINKS:
                    raise NoData(f"{path}: too many symbolic links")
                target = os.readlink("", dir_fd=found)
                if target.startswith("/"):
                    del folders[1:]
                    del begun[1:]
                waiting.extend(target.split("/")[::-1])
            if rights is not None:
                rights.require(folders[-1], wanted)
            state = os.fstat(folders[-1])
            self.found_changed, self.found_written = max(changed, state.st_ctime), state.st_mtime
            yield folders[-1]


def _looked_at(name: str, folder: int | None, stack: ExitStack) -> int:
    """A descriptor of what has this name, a link itself included but for ``folder`` None. Nothing of it is opened."""
    flags = os.O_PATH | os.O_CLOEXEC | (0 if folder is None else os.O_NOFOLLOW)
    try:
        found = os.open(name, flags, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError) as error:
        raise _AbsentError(f"{name} does not exist") from error
    return stack.enter_context(_closing(found))


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _regular(found: int, name: str) -> os.stat_result:
    state = os.fstat(found)
    if not stat.S_ISREG(state.st_mode):
        raise NoData(f"{name} is not a regular file")
    return state


def _again(found: int) -> str:
    """The name by which what a descriptor stands for is opened."""
    return f"/proc/self/fd/{found}"


@contextmanager
def _opened(found: int, name: str) -> Iterator[int]:
    """A regular file that was found, open for reading. NoData where it is something else, which is not opened."""
    _regular(found, name)
    with _closing(os.open(_again(found), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)) as descriptor:
        yield descriptor


def _read_bounded(descriptor: int, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size_bytes = 0
    while size_bytes < max_bytes:
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        chunks.append(chunk)
        size_bytes += len(chunk)
    return b"".join(chunks)
