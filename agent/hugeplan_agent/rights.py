"""What a user may read, told from a file's mode and access list: for who looks with more rights than that user has.

To become that user takes CAP_SETUID, which the agent has not where it has CAP_DAC_READ_SEARCH.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass

READ, SEARCH = 4, 1
NOBODY = -1
"""A user who may read what everybody may."""
_USER, _GROUP_OWNER, _GROUP, _MASK, _OTHER = 2, 4, 8, 16, 32
"""Of an entry of an access list (linux/posix_acl.h)."""


@dataclass(frozen=True)
class Rights:
    """A user with its groups, as seen from this user namespace."""

    uid: int
    gids: frozenset[int] = frozenset()
    rules: tuple[tuple[range, ...], tuple[range, ...]] = ((), ())
    """Users and groups whose files no mode closes to it: of root those of its user namespace."""
    folder: str = ""
    """Where its relative names begin, such as ``proc/900/cwd``: it is in there, and searches no folder above."""

    def require(self, found: int, wanted: int) -> None:
        """PermissionError where this user may not read what a descriptor stands for, or search it."""
        state = os.fstat(found)
        if all(any(who in one for one in of) for of, who in zip(self.rules, (state.st_uid, state.st_gid))):
            return
        if not any(bits & wanted == wanted for bits in self._bits(found, state)):
            raise PermissionError(errno.EACCES, "its server's user may not read it")

    def _bits(self, found: int, state: os.stat_result) -> list[int]:
        """What the owner has, else what a list says of this user, else of each of its groups, else of all others."""
        mode = stat.S_IMODE(state.st_mode)
        if state.st_uid == self.uid:
            return [mode >> 6 & 7]
        entries = [(_GROUP_OWNER, mode >> 3 & 7, 0), (_OTHER, mode & 7, 0)]
        if mode & stat.S_IRWXG:  # else the kernel asks no list
            with suppress(OSError):  # without one, or on a file system that has none
                said = os.getxattr(f"/proc/self/fd/{found}", "system.posix_acl_access")
                entries = [*struct.iter_unpack("<HHI", said[4:])]  # after its version
        mask = next((bits for tag, bits, _ in entries if tag == _MASK), 7)
        own = [bits & mask for tag, bits, who in entries if tag == _USER and who == self.uid]
        groups = [
            bits & mask
            for tag, bits, who in entries
            if (tag == _GROUP and who in self.gids) or (tag == _GROUP_OWNER and state.st_gid in self.gids)
        ]
        return own or groups or [bits for tag, bits, _ in entries if tag == _OTHER]
