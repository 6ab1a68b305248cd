"""Root leaves nothing behind that the service's own user cannot use.

``enrol`` and ``doctor`` are typed by an administrator, and the service runs as a user of its own. What root wrote into
its folder would lock it out, and that user could put a link where root writes. So root becomes that user where it can
(hugeplan_agent.privileges), and where it must stay, for what it does in that folder.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SERVICE_USER = "hugeplan-agent"
SYSTEM_SPOOL_DIR = "/var/lib/hugeplan-agent"
MOST_STEPS = 1000
UNNAMED = 65534
"""Who owns what is no user's of this user namespace (kernel.overflowuid); else nobody."""


def service_user() -> pwd.struct_passwd | None:
    """The user that the packages make; None where there is none."""
    try:
        return pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return None


@contextmanager
def as_owner_of(path: Path, make: int | None = None) -> Iterator[None]:
    """For the time of the block root is the user who could lead this folder elsewhere at any moment, if there is one.

    What root makes is then that user's, and a link leads only where that user may go. Raises OSError, also where a
    group, all or a second user may lead it elsewhere: nobody knows then whose rights would do. ``make``: the mode with
    which missing folders are made, each in one that has been judged, so that nobody else can make it first.
    """
    with ExitStack() as back:
        if os.geteuid() == 0:
            _become_who_may_lead(path, make, back)
        if make is not None:
            path.mkdir(mode=make, parents=True, exist_ok=True)
        yield


@dataclass(frozen=True)
class _User:
    """Whom root acts as. ``groups``: those whose only member that user is; root's own group counts as such."""

    uid: int
    gid: int
    groups: tuple[int, ...] = (0,)

    @property
    def words(self) -> str:
        return f"root and user {self.uid}" if self.uid else "root"


def _become_who_may_lead(path: Path, make: int | None, back: ExitStack) -> None:
    """Walk to a path, and become the first user on the way that is not root, who can change all that follows.

    So the rest is walked with that user's rights, and nobody but root and that user may lead it elsewhere.
    """
    here, left, is_anybodys = Path("/"), [*reversed(path.absolute().parts)], False
    me, since = _User(0, 0), here
    users = users_mounts()
    for _ in range(MOST_STEPS):
        if not left:
            return
        above, name = here, left.pop()
        here = here.parent if name == ".." else here / name
        served = users.get(here)
        try:
            state = None if served else here.lstat()  # who serves a mount may leave root waiting
        except FileNotFoundError:
            if make is not None:
                with suppress(FileExistsError):  # what somebody made meanwhile is judged as what was there before
                    here.mkdir(mode=0o755 if left else make)
                here, left = above, [*left, name]
                continue
            if is_anybodys:  # a sticky folder: whoever likes makes it at any moment
                raise
            return  # root alone makes it, or who leads
        is_link = state is not None and stat.S_ISLNK(state.st_mode)
        is_hosts = state is not None and state.st_uid == UNNAMED and _is_unnamed()
        if is_hosts and is_link:
            raise PermissionError(errno.EACCES, f"{here} is a link of nobody knows which user of the host")
        if is_anybodys and is_link and me.uid:  # of that user, perhaps, but others may have moved it there
            raise PermissionError(errno.EACCES, f"{here} is a link where everybody may put one: use another folder")
        owner = served or _owner(state, is_hosts=is_hosts)
        if owner[0] not in (0, me.uid):
            if me.uid:
                whose = f"{since} belongs to user {me.uid} and {here} to user {owner[0]}"
                raise PermissionError(errno.EACCES, f"{whose}, and root acts as one of them: use another folder")
            me, since = _become(*owner, back), here
        if state is None:
            return
        if is_link:
            left += reversed(here.readlink().parts)
            here = here.parent
            continue
        is_anybodys = _is_anybodys(here, state, me)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_anybodys(here: Path, state: os.stat_result, me: _User) -> bool:
    """Whether others may make names there, in a sticky folder; PermissionError where they may also replace some."""
    is_only_ours = state.st_gid in me.groups and not _has_access_list(here)
    is_anybodys = bool(state.st_mode & (stat.S_IWOTH if is_only_ours else stat.S_IWOTH | stat.S_IWGRP))
    if is_anybodys and not state.st_mode & stat.S_ISVTX:  # as hugeplan.unprivileged.require_own judges
        what = f"{here} (group {state.st_gid}, mode {stat.filemode(state.st_mode)})"
        advice = f"chmod go-w {here}, or use another folder"
        raise PermissionError(errno.EACCES, f"{what} can be changed by others than {me.words}: {advice}")
    return is_anybodys


def _owner(state: os.stat_result | None, *, is_hosts: bool) -> tuple[int, int]:
    """User and group to act as: not the folder's group, which is often still root's."""
    if state is None or is_hosts:
        return 0, 0
    with suppress(KeyError):
        return state.st_uid, pwd.getpwuid(state.st_uid).pw_gid
    return state.st_uid, state.st_gid


def _become(uid: int, gid: int, back: ExitStack) -> _User:
    back.callback(os.setgroups, os.getgroups())  # called last: as root again
    back.callback(os.setegid, os.getegid())
    back.callback(os.seteuid, 0)
    os.setgroups([])
    os.setegid(gid)
    os.seteuid(uid)
    with suppress(KeyError):  # a user's private group has the user's name: new folders are open to it (pam_umask(8))
        name, group = pwd.getpwuid(uid).pw_name, grp.getgrgid(gid)
        firsts = {one.pw_name for one in pwd.getpwall() if one.pw_gid == gid}  # whose first group it is
        if group.gr_name == name and {*group.gr_mem, *firsts} <= {name}:
            return _User(uid, gid, (0, gid))
    return _User(uid, gid)


def users_mounts() -> dict[Path, tuple[int, int]]:
    """User and group of each that serves a mount of FUSE: what it says of owners is its own word, where it answers."""
    found: dict[Path, tuple[int, int]] = {}
    with suppress(OSError), Path("/proc/self/mountinfo").open("rb") as mounts:
        for line in mounts:
            # Of what parts words for Python the kernel escapes a blank, a tab and a line's end alone.
            place, _, options = line.rstrip(b"\n").partition(b" - ")
            at = Path(os.fsdecode(place.split(b" ")[4].decode("unicode_escape").encode("latin-1")))
            ids = dict(one.split(b"=", 1) for one in options.split(b" ")[-1].split(b",") if b"_id=" in one)
            found.pop(at, None)  # another is over it
            if (user := int(ids.get(b"user_id", 0))) != 0:
                found[at] = user, int(ids.get(b"group_id", user))
    return found


def _has_access_list(folder: Path) -> bool:
    """Whether users or groups of a list may write, whom the bits of the group speak for (acl(5))."""
    with suppress(OSError):
        return bool(os.getxattr(folder, "system.posix_acl_access", follow_symlinks=False))
    return False


def _is_unnamed() -> bool:
    """Whether this is a user namespace without that id: there it is the host's users, its root too, whom nobody can
    become. Where the namespace has the id, it is the user nobody."""
    with suppress(OSError, ValueError):
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
        return not any(int(first) <= UNNAMED < int(first) + int(count) for first, _, count in map(str.split, lines))
    return False


def adopt(folder: Path) -> None:
    """Give the system's spool folder to the service's user, when root has just made it."""
    user = service_user()
    if os.geteuid() == 0 and user is not None and folder == Path(SYSTEM_SPOOL_DIR):
        with suppress(OSError):
            os.chown(folder, user.pw_uid, user.pw_gid)
