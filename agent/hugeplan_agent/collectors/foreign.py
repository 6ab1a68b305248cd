"""How much is read per observation of what other users write: who has an account may name a program as a database.

Without a bound a user's large files, or many small ones, would cost the node seconds of processor time per observation.
What does not fit is read in a later observation; meanwhile it is unknown, and said to be. Users have equal shares, and
those of the system (below 1000, as in login.defs) a room of their own.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from hugeplan_agent.host import Host

FOREIGN_BYTES = 4 * 1024 * 1024
"""Command lines, environments, option files and mappings, of the system's users and of all others."""
SHARE_BYTES = 1024 * 1024
"""Of one user."""
PROGRAM_BYTES = 32 * 1024 * 1024
"""Programs that are searched for a version: of the files that belong to root, and of all others."""
FIRST_USER = 1000


class TooMuchError(OSError):
    """Not read in this observation."""

    def __init__(self) -> None:
        super().__init__(errno.EFBIG, "too much to read in one observation")


@dataclass
class Foreign:
    """What is left in this observation."""

    left: dict[bool, int] = field(default_factory=lambda: {True: FOREIGN_BYTES, False: FOREIGN_BYTES})
    used: dict[int | None, int] = field(default_factory=dict)
    programs: dict[bool, int] = field(default_factory=lambda: {True: PROGRAM_BYTES, False: PROGRAM_BYTES})

    def require(self, user: int | None) -> None:
        """TooMuchError when a user's share, or the room that it is of, is used up."""
        if self.left[_is_system(user)] <= 0 or self.used.get(user, 0) >= SHARE_BYTES:
            raise TooMuchError

    def spend(self, user: int | None, count: int) -> None:
        """Count what was read. The last file of a user may be larger than what was left."""
        self.left[_is_system(user)] -= count
        self.used[user] = self.used.get(user, 0) + count


def _is_system(user: int | None) -> bool:
    return user is not None and user < FIRST_USER


def foreign(host: Host) -> Foreign:
    """The room of this observation."""
    return host.shared("foreign", lambda _: Foreign())
