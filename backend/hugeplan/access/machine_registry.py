"""Which node a report is about, remembered: the database is asked when a token, its machine or its boot is new."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from hugeplan.access import machines, repository, service
from hugeplan.access.machines import Hints
from hugeplan.db.session import Database

MAX_REMEMBERED = 50_000
REMEMBERED_SECONDS = 600.0
"""After this a machine is checked again, so that clones that another process has met are known."""

_Key = tuple[UUID, str, bytes]
"""Token, machine, and a hash of what tells it from a clone, which may be dozens of addresses of its sender's choice."""


@dataclass(frozen=True, slots=True)
class AdmittedMachine:
    """The node's machine id, and whether its agent's id is another machine's too."""

    node_machine_id: str
    shares_machine_id: bool


@dataclass(frozen=True, slots=True)
class _Remembered:
    machine: AdmittedMachine
    boot_id: str | None
    until: float


class MachineRegistry:
    """The machines of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[_Key, _Remembered] = OrderedDict()

    async def admit(self, token_id: UUID, machine_id: str, hints: Hints) -> AdmittedMachine:
        """The machine that an agent token reports for. ForbiddenError when it may not."""
        told = repr((hints.dmi_sha256, hints.mac_sha256)).encode()
        key = (token_id, machine_id, hashlib.sha256(told).digest())
        known = self._known.get(key)
        if known is not None and known.boot_id == hints.boot_id and known.until > time.monotonic():
            return known.machine
        async with self._database.write() as session:
            machine = await service.admit_machine(session, token_id, machine_id, hints)
            sharing = await machines.with_same_id(session, machine_id)
            shares = len(sharing) > 1 or machine.boots_interleaved
            is_own = await repository.bound_machine(session, token_id) == machine.node_machine_id
            admitted = AdmittedMachine(machine.node_machine_id, shares)
        if shares:
            # The others learn it with their next report.
            for other, found in list(self._known.items()):
                if other[1] == machine_id and not found.machine.shares_machine_id:
                    del self._known[other]
        if not is_own:  # a clone may get a token of its own at any time
            return admitted
        self._known[key] = _Remembered(admitted, hints.boot_id, time.monotonic() + REMEMBERED_SECONDS)
        self._known.move_to_end(key)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return admitted

    def forget(self) -> None:
        """Ask the database about every machine again."""
        self._known.clear()
