"""Which node a report is about, remembered: the database is asked when a token, its machine or its boot is new."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID
from weakref import WeakValueDictionary

from hugeplan.access import machines, service
from hugeplan.access.machines import MAX_CLONES, Hints
from hugeplan.db.session import Database
from hugeplan.shares import Line

MAX_REMEMBERED = 50_000
"""Machine ids. Of each, twice as many senders as it may have clones."""
AT_A_TIME = 4
"""Machines that are looked up at a time, of one address half as many: each takes a connection of all others'."""
REMEMBERED_SECONDS = 600.0
"""After this a machine is checked again, so that clones that another process has met are known."""

_Key = tuple[UUID, bytes]
"""Token, and a hash of what tells its machine from a clone, which may be dozens of addresses of its sender's choice."""


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
        self._known: OrderedDict[str, OrderedDict[_Key, _Remembered]] = OrderedDict()
        self._line = Line(AT_A_TIME, AT_A_TIME // 2)
        self._machines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def admit(
        self, token_id: UUID, machine_id: str, hints: Hints, *, whose: str, address: str
    ) -> AdmittedMachine:
        """The machine that an agent token reports for. ForbiddenError when it may not.

        Who stores the report asks again whether a clone has a token of its own.
        """
        told = repr((hints.dmi_sha256, hints.mac_sha256, hints.boot_id)).encode()
        key = (token_id, hashlib.sha256(told).digest())
        if (known := self._recall(machine_id, key)) is not None:
            return known
        # In this order: who waits for a machine's lock holds up its own address alone. Nobody waits with a connection.
        of_machine = self._machines.setdefault(machine_id, asyncio.Lock())
        async with self._line.turn(whose, address), of_machine:
            # Whoever waited may learn it from the one before.
            return self._recall(machine_id, key) or await self._ask(key, machine_id, hints)

    def _recall(self, machine_id: str, key: _Key) -> AdmittedMachine | None:
        senders = self._known.get(machine_id)
        known = None if senders is None else senders.get(key)
        return None if known is None or known.until <= time.monotonic() else known.machine

    async def _ask(self, key: _Key, machine_id: str, hints: Hints) -> AdmittedMachine:
        async with self._database.write() as session:
            machine = await service.admit_machine(session, key[0], machine_id, hints)
            sharing = await machines.with_same_id(session, machine_id)
            shares = len(sharing) > 1 or machine.boots_interleaved
            admitted = AdmittedMachine(machine.node_machine_id, shares)
        of_machine = self._known.setdefault(machine_id, OrderedDict())
        # Those that do not know yet that they share their id ask again, and what has started again tells of a clone.
        for other, found in list(of_machine.items()):
            if found.machine.shares_machine_id != shares or (not shares and found.boot_id != hints.boot_id):
                del of_machine[other]
        of_machine[key] = _Remembered(admitted, hints.boot_id, time.monotonic() + REMEMBERED_SECONDS)
        of_machine.move_to_end(key)
        self._known.move_to_end(machine_id)
        while len(of_machine) > 2 * MAX_CLONES:
            of_machine.popitem(last=False)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return admitted

    def forget(self) -> None:
        """Ask the database about every machine again."""
        self._known.clear()
