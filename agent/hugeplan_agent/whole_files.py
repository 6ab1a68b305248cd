"""Files that are replaced as a whole or not at all, and what a process that was killed in between left of them.

While it writes, a process holds a lock on its temporary file. The kernel lets go of it however the process ends, so a
temporary file without a lock is a leftover. A process id would not tell: in a container every agent has the same. Who
goes on holding the lock says with it that the writer of what stands there still runs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from hugeplan_agent.ownership import as_owner_of

MAX_SMALL_BYTES = 64 * 1024
MAX_NAMES = 100
"""Of a new file, where somebody else locks what is made."""


def read_file(path: Path, max_bytes: int = MAX_SMALL_BYTES, *, follow: bool = False) -> bytes:
    """The bytes of a regular file, which a FIFO, that has no end, is not. ``follow``: a link to one will do.

    Raises OSError, also for a file of more than ``max_bytes``.
    """
    # Asked once: where everybody makes names, it may become a link.
    is_link = follow and path.is_symlink()
    # Not waiting for the other end of a FIFO.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | (0 if is_link else os.O_NOFOLLOW)
    with as_owner_of(path if is_link else path.parent):
        descriptor = os.open(path, flags)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if state.st_size > max_bytes:
            raise OSError(errno.EFBIG, f"it has {state.st_size} bytes, more than {max_bytes}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(descriptor)


def replace_file(target: Path, data: bytes) -> None:
    """Replace ``target``, on the disk when this returns. Raises OSError.

    Its owner can read it, and in a folder of root's the owner and group that could read the old one.
    """
    hold_file(target, data).close()


def hold_file(target: Path, data: bytes) -> BinaryIO:
    """The same. The new file has its writer's lock until the open file that is given is closed. Raises OSError."""
    with as_owner_of(target.parent), ExitStack() as on_error:
        temporary, descriptor = _open_locked(target)
        on_error.callback(temporary.unlink, missing_ok=True)
        file = on_error.enter_context(os.fdopen(descriptor, "wb"))
        _let_the_same_read(file.fileno(), target)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
        on_error.pop_all()
    return file


def _let_the_same_read(descriptor: int, target: Path) -> None:
    """A service whose token an administrator gave to it, or to its group, reads the next one. Raises OSError."""
    if os.geteuid() != 0 or target.parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return  # a folder's owner makes all in it; where others make names, an old file may be anybody's
    with suppress(FileNotFoundError):
        old = target.lstat()
        if stat.S_ISREG(old.st_mode):
            with suppress(OSError):  # its folder's access list for what is new is not the old file's
                os.removexattr(descriptor, "system.posix_acl_access")
            os.fchown(descriptor, old.st_uid, old.st_gid)
            os.fchmod(descriptor, 0o600 | old.st_mode & 0o040)


def remove_leftovers(folder: Path, of: str = "*") -> None:
    """Remove temporary files of the file named ``of`` (default: of any) that nobody writes any more."""
    with as_owner_of(folder):
        for path in folder.glob(f".{of}.*.tmp"):
            with suppress(OSError):  # a folder is no file of ours
                if not stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()
                    continue
                # What it is may have changed since, and another user's FIFO waits.
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
                try:
                    if stat.S_ISREG(os.fstat(descriptor).st_mode):
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_locked(target: Path) -> tuple[Path, int]:
    """A new file beside ``target`` with a lock on it; another one where it was taken for a leftover before the lock, or
    where the folder's owner, who may keep it, has its lock. OSError: time after time."""
    for _ in range(MAX_NAMES):
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            path.unlink(missing_ok=True)
        except OSError:  # a file system without locks: nothing is taken for a leftover there
            return path, descriptor
        else:
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        os.close(descriptor)
    raise OSError(errno.EWOULDBLOCK, f"somebody locks each new file beside {target.name}")
