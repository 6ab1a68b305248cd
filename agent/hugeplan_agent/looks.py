"""What a child that may be left behind looks at: written down before each look, in memory that its parent reads."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import NamedTuple

from hugeplan_agent.collectors.cgroup_units import owner_of
from hugeplan_agent.collectors.cpu import base_page_bytes
from hugeplan_agent.collectors.foreign import FIRST_USER, Account, foreign
from hugeplan_agent.collectors.process_table import Process, need_status, parse_stat, table_of
from hugeplan_agent.collectors.unit_names import name_of
from hugeplan_agent.errors import NoData
from hugeplan_agent.host import Host, NoAnswerError

_LOOK = re.compile(r"proc/([0-9]{1,9})/(?!(?:stat|status|cgroup|limits)$)")
"""The four files are printed from what the kernel holds itself. All else may wait for the process's memory or files."""
BOARD = struct.Struct("=6q")
RANKS = 3
"""Whose processes: of what the system runs itself, of containers, and of users. Who may run many of these differs."""


class Look(NamedTuple):
    """What the child looks at. ``number`` changes with each look; a pid of 0 is none."""

    number: int = 0
    pid: int = 0
    started: int = 0
    account: int = 0
    """A number for it; 0: unknown."""
    person: int = 0
    """A number for the account and the real user id."""
    rank: int = 0


class Watch:
    """The child's side: writes down each look before it begins, and refuses those that are not to be tried."""

    def __init__(self, host: Host, board: mmap.mmap) -> None:
        self._host, self._board = host, board
        self.processes: set[tuple[int, int]] = set()
        self.accounts: set[int] = set()
        self.ranks = RANKS
        """How many are looked at."""

    def begin(self) -> None:
        """What was read of them before may still be reported: it is said that they are left alone all the same."""
        alive = table_of(self._host).by_pid if self.processes else {}
        keys = {(process.pid, process.start_time_ticks or 0) for process in alive.values()}
        self._host.left_alone.update(pid for pid, _ in self.processes & keys)

    def __call__(self, name: str) -> AbstractContextManager[object]:
        found = _LOOK.match(name)
        return self._announced(int(found[1])) if found else nullcontext()

    @contextmanager
    def _announced(self, pid: int) -> Iterator[None]:
        before = read_look(self._board)
        look, account = self._look_at(pid, before.number + 1)
        is_known = (pid, look.started) in self.processes or {look.account, look.person} & self.accounts
        if is_known or look.rank >= self.ranks:
            self._host.left_alone.add(pid)
            if not is_known and account is not None:
                foreign(self._host).missed.add(account)  # for others: it comes first in the next observation
            raise NoAnswerError
        BOARD.pack_into(self._board, 0, *look)
        try:
            yield
        finally:
            BOARD.pack_into(self._board, 0, *before._replace(number=look.number + 1))

    def _look_at(self, pid: int, number: int) -> tuple[Look, Account | None]:
        process = None
        with suppress(NoData):
            stat = self._host.read_record(f"proc/{pid}/stat") or ""
            process = table_of(self._host).by_pid.get(pid) or parse_stat(stat, base_page_bytes(self._host))
        if process is None:
            return Look(number, pid), None
        # The children of one process have its secret, and so the same numbers.
        account = owner_of(self._host)(need_status(self._host, process))
        person = hash((account, process.user)) or 1
        rank = _rank(process, account)
        return Look(number, pid, process.start_time_ticks or 0, hash(account) or 1, person, rank), account


def _rank(process: Process, account: Account) -> int:
    if not account.is_system or process.user is None or process.user >= FIRST_USER:
        return 2
    name = name_of(account.cgroup)
    is_inside = name is not None and name.kind in ("pod", "container")
    return int(process.is_below or is_inside or account.cgroup.startswith("machine.slice"))


def read_look(board: mmap.mmap) -> Look:
    return Look(*BOARD.unpack_from(board))
