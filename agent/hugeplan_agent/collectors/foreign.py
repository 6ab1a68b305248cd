"""How much is read per observation of what other users write: who has an account may name a program as a database.

Without a bound a user's large files, or many small ones, would cost the node seconds of processor time per observation.
What does not fit is read in a later observation; meanwhile it is as it was read before, or unknown and said to be.
Accounts have equal shares, and those of the system a room of their own. Whom others left too little is read first in
the next observation: the first of all has the whole room, so each account has its turn.
"""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from hugeplan_agent.host import Host

FOREIGN_BYTES = 4 * 1024 * 1024
"""Command lines, environments, option files and mappings, of the system's accounts and of all others."""
SHARE_BYTES = 1024 * 1024
"""Of one account."""
PROGRAM_BYTES = 32 * 1024 * 1024
"""Programs that are searched for a version: of the files that belong to root, and of all others."""
FIRST_USER = 1000
"""As in login.defs."""


class Account(NamedTuple):
    """Who a process runs for, by what nobody makes without root: a cgroup, and within one of several users the user.

    A user id alone tells little. A service with PrivateUsers reads 65534 for most, and subordinate ids are many.
    """

    cgroup: str
    user: int | None = None

    @property
    def is_system(self) -> bool:
        """Whether it is none of a person who logs in."""
        return not self.cgroup.startswith("user.slice") and (self.user or 0) < FIRST_USER


class TooMuchError(OSError):
    """Not read in this observation."""

    def __init__(self) -> None:
        super().__init__(errno.EFBIG, "too much to read in one observation")


@dataclass
class Foreign:
    """What is left in this observation."""

    left: dict[bool, int] = field(default_factory=lambda: {True: FOREIGN_BYTES, False: FOREIGN_BYTES})
    used: dict[Account, int] = field(default_factory=dict)
    programs: dict[bool, int] = field(default_factory=lambda: {True: PROGRAM_BYTES, False: PROGRAM_BYTES})
    searched: Counter[tuple[Account, bool]] = field(default_factory=Counter)
    missed: set[Account] = field(default_factory=set)
    """Accounts that others left less than a share."""

    def require(self, account: Account) -> None:
        """TooMuchError when an account's share, or the room that it is of, is used up."""
        if self.used.get(account, 0) >= SHARE_BYTES:
            raise TooMuchError
        if self.left[account.is_system] <= 0:
            self.missed.add(account)
            raise TooMuchError

    def may_search(self, account: Account, *, is_roots: bool) -> bool:
        """Whether a program, root's or another's, is searched on for an account."""
        if self.programs[is_roots] <= 0 and self.searched[account, is_roots] < PROGRAM_BYTES:
            self.missed.add(account)
        return self.programs[is_roots] > 0

    def search(self, account: Account, count: int, *, is_roots: bool) -> None:
        """Count what was searched."""
        self.programs[is_roots] -= count
        self.searched[account, is_roots] += count

    def spend(self, account: Account, count: int) -> None:
        """Count what was read. The last file of an account may be larger than what was left."""
        self.left[account.is_system] -= count
        self.used[account] = self.used.get(account, 0) + count


def foreign(host: Host) -> Foreign:
    """The room of this observation."""
    return host.shared("foreign", lambda _: Foreign())
