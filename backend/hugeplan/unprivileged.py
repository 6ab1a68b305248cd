"""Run a program as an ordinary user without any right of root's:
``python unprivileged.py UID GID SIGNAL FOLDER PROGRAM ...``.

UID and GID are those to become; without root they are our own. SIGNAL (0: none) comes to the program when the thread
that started it ends, however that ends, so it must be one that stays. FOLDER is where
it works. Root's part must not begin there: its loader would take libraries from there (an empty LD_LIBRARY_PATH entry).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
import warnings  # noqa: F401 - execvp's, which the user may not be able to reach
from collections.abc import Sequence
from contextlib import suppress

TYPE_CHECKING = False  # typing's, which each program would wait for
if TYPE_CHECKING:
    from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64
_KEYCTL = {"x86_64": 250, "ppc64le": 271, "s390x": 280}.get(os.uname().machine, 219)
_KEYCTL_JOIN_SESSION_KEYRING = 1
_MOST_STEPS = 1000


def own_path() -> dict[str, str]:
    """The environment that lets a Python of ours import from where this one does, and not from the folder that it works
    in, which may be anybody's."""
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def words_before(uid: int, gid: int, signal_of_end: int = 0, folder: str | Path = "/") -> list[str]:
    """What makes a command line one of that user's, which works in that folder, and is to be started in ours."""
    # By its path, and without what is installed: the package would be loaded for each program.
    return [sys.executable, "-I", "-S", __file__, str(uid), str(gid), str(signal_of_end), str(folder)]


def become(uid: int, gid: int, program: str) -> None:
    """Give up root for good, for this process and the programs it becomes. OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(_KEYCTL, _KEYCTL_JOIN_SESSION_KEYRING, None)  # root's would give root's keys; some kernels have none
    own: list[str] = []
    with suppress(OSError):
        own = os.listxattr(program)
    # A program with capabilities of its own, as a MariaDB has, starts within that bound alone, and gets none of them.
    for capability in range(0 if "security.capability" in own else _CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    header, none = struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if libc.capset(header, none) or libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def require_own(
    parent: Path, advice: str = "Name a folder of your own with --work-dir.", *, make: bool = False
) -> None:
    """PermissionError where another user made ``parent``, or can put something else in its place or into it.

    What root makes there it also gives to the server's user and to everybody to read. ``make``: what is missing, each
    folder in one that has been judged.
    """
    me, here, left = os.geteuid(), parent / "/", [*reversed(parent.absolute().parts)]
    users = users_mounts()
    for _ in range(_MOST_STEPS):
        if not left:
            return
        above, name = here, left.pop()
        here = here.parent if name == ".." else here / name
        if (user := users.get(str(here), me)) != me:
            raise PermissionError(f"{here} is a mount of user {user}. {advice}")
        try:
            at = here.lstat()
        except FileNotFoundError:
            if not make:
                raise
            with suppress(FileExistsError):  # what somebody made meanwhile is judged as what was there before
                here.mkdir()
            here, left = above, [*left, name]
            continue
        is_link = stat.S_ISLNK(at.st_mode)
        is_above = bool(left) or is_link
        is_own_group = at.st_gid == os.getegid() and not _has_access_list(here)
        shared = at.st_mode & (stat.S_IWOTH if is_own_group else stat.S_IWOTH | stat.S_IWGRP)
        is_open = shared and not is_link and not (is_above and at.st_mode & stat.S_ISVTX)
        if is_open or not (is_link or stat.S_ISDIR(at.st_mode)) or at.st_uid not in ({0, me} if is_above else {me}):
            what = f"{here} (owner {at.st_uid}, mode {stat.filemode(at.st_mode)})"
            raise PermissionError(f"{what} can be changed by another user. {advice}")
        if is_link:
            here, left = here.parent, [*left, *reversed(here.readlink().parts)]
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def users_mounts() -> dict[str, int]:
    """Who serves each mount of FUSE: what such a one says of owners is its own word, if it answers at all."""
    found: dict[str, int] = {}
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:  # noqa: PTH123 - pathlib is not loaded
        for line in mounts:
            # Of what parts words for Python the kernel escapes a blank, a tab and a line's end alone.
            place, _, options = line.rstrip(b"\n").partition(b" - ")
            at = os.fsdecode(place.split(b" ")[4].decode("unicode_escape").encode("latin-1"))
            ids = dict(one.split(b"=", 1) for one in options.split(b" ")[-1].split(b",") if b"_id=" in one)
            found.pop(at, None)  # another is over it
            if b"user_id" in ids:
                found[at] = int(ids[b"user_id"])
    return found


def _has_access_list(folder: Path) -> bool:
    """Whether users or groups of a list may write, whom the bits of the group speak for (acl(5))."""
    with suppress(OSError):
        return bool(os.getxattr(folder, "system.posix_acl_access", follow_symlinks=False))
    return False


def main(arguments: Sequence[str]) -> None:
    """Become the user, then the program."""
    uid, gid, number, folder, program, *rest = arguments
    try:
        held = os.open(folder, os.O_PATH)  # the way there may lead through folders of root alone
        if int(uid) != os.geteuid():
            become(int(uid), int(gid), program)
        os.fchdir(held)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)  # after the user: changing it clears this
        os.execvp(program, [program, *rest])  # noqa: S606 - no shell is wanted
    except OSError as problem:
        sys.exit(f"{program}: {problem.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
