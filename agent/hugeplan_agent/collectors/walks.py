"""How much processor time the kernel is given, per observation, to walk the mappings and page tables of processes.

What a process maps is its user's choice: page tables of 100 MiB, all of the one zero page, take 0.13 s per walk, and
any number of processes may share them. So time is counted, not text. An account that took more than its share waits
until that is paid back, as a small part of the time that passes; what others run is read meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hugeplan_agent.collectors.foreign import TooMuchError
from hugeplan_agent.host import Host

FIRST_SECONDS = 2.0
"""A single observation (``observe``, ``once``) may take its time."""

MAX_TABLES_BYTES = 1024**3
"""Page tables of a process, VmPTE, that are walked: 1.4 s and more, and a walk that has begun is not ended."""


@dataclass
class Walks:
    """What is left of an observation's time for one kind of walks."""

    left_seconds: float
    share_seconds: float
    """Of one account."""
    part: float
    """Of the time that passes: what is paid back of a debt."""
    debts: dict[Hashable, float]
    """When the debt of an account will be paid back."""
    used: dict[Hashable, float] = field(default_factory=dict)
    missed: set[Hashable] = field(default_factory=set)
    """Accounts that others left less than their share."""

    @contextmanager
    def walk(self, account: Hashable) -> Iterator[None]:
        """Held during a walk for an account. Raises TooMuchError, an OSError: not in this observation."""
        used, begun = self.used.get(account, 0.0), time.thread_time()
        if used >= self.share_seconds > 0 or account in self.debts:
            raise TooMuchError
        if self.left_seconds <= 0:
            self.missed.add(account)
            raise TooMuchError
        try:
            yield
        finally:
            took = time.thread_time() - begun
            self.used[account] = used + took
            self.left_seconds -= took
            over = max(used + took - self.share_seconds, -self.left_seconds)
            if over > 0:
                self.debts[account] = time.monotonic() + over / self.part


def begin(host: Host, kind: str, part: float, shares: int) -> Walks:
    """The time of this observation for a kind of walks: seconds for the first, then a part of what has passed since.

    ``shares``: how many of it an account has one of.
    """
    clock, debts, now = host.kept("walk clock"), host.kept(f"walk debts of {kind}"), time.monotonic()
    for account in [account for account, paid_at in debts.items() if paid_at <= now]:
        del debts[account]
    last = clock.get(kind)
    clock[kind] = now
    seconds = FIRST_SECONDS if last is None else min(FIRST_SECONDS, (now - last) * part)
    return Walks(seconds, seconds / shares, part, debts)
