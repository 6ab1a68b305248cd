"""Which machine an agent speaks for, and who may enrol it again.

Cloned disk images share a machine id. Hashes of the firmware's ids and of hardware addresses tell the machines apart;
the first keeps the plain id, a clone gets an addition to it, and with that a node of its own. A boot that comes back
after a later one shows two machines where the hardware does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hugeplan.access import repository
from hugeplan.db.models import Machine
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import FieldProblem, ForbiddenError

FORMER_BOOTS = 16
MAX_CLONES = 256
"""Machines with one id. Each is a node: who holds one token could make any number of them up."""
CLONE_MARK = "~"
"""Between the id that clones share and what tells one apart. No agent's id has it (MachineId)."""
MARK_DIGITS = 12


def told_apart(name: str, machine_id: str) -> str:
    """How a machine is shown whose name is another's: no host name, so that no file is ever made for it."""
    return f"{name[:200]} (machine {machine_id.rpartition(CLONE_MARK)[2][:8]})"


@dataclass(frozen=True, slots=True)
class Hints:
    """What a machine says of itself beside its id. Null is unknown. ``taken_at`` is by the machine's clock."""

    dmi_sha256: str | None = None
    mac_sha256: tuple[str, ...] | None = None
    boot_id: str | None = None
    taken_at: datetime | None = None

    def fingerprint(self) -> str | None:
        """Twelve digits that stand for this hardware; None when nothing is known of it."""
        text = self.dmi_sha256 or "\n".join(sorted(self.mac_sha256 or ()))
        return hashlib.sha256(text.encode()).hexdigest()[:MARK_DIGITS] if text else None


def is_same(known: Machine, hints: Hints) -> bool | None:
    """Whether this is the known machine's hardware; None when that cannot be told."""
    if known.dmi_sha256 and hints.dmi_sha256:
        return known.dmi_sha256 == hints.dmi_sha256
    if known.mac_sha256 and hints.mac_sha256:
        return bool(set(known.mac_sha256) & set(hints.mac_sha256))
    return None


def match(known: Sequence[Machine], hints: Hints) -> Machine | None:
    """The known machine that these hints belong to; None when it is another one, a clone."""
    judged = [(machine, is_same(machine, hints)) for machine in known]
    for wanted in (True, None):
        found = [machine for machine, same in judged if same is wanted]
        # Of those that cannot be told apart by hardware, the one with this boot; else the oldest.
        found.sort(key=lambda machine: hints.boot_id is None or machine.boot_id != hints.boot_id)
        if found:
            return found[0]
    return None


async def resolve(session: WriteSession, machine_id: str, hints: Hints, now: datetime) -> Machine:
    """The machine behind a report or an enrolment, made known if it is new. ForbiddenError for one clone too many."""
    known = await repository.machines_with(session, machine_id)
    machine = match(known, hints)
    if machine is None:
        if len(known) >= MAX_CLONES:
            raise ForbiddenError(
                f"{MAX_CLONES} machines share this machine id already. Give each an id of its own: empty"
                " /etc/machine-id on the image, and systemd makes one at boot.",
                [FieldProblem(field="machine_id", value=machine_id, expected="an id that no other machine has")],
            )
        taken, mark = {one.node_machine_id for one in known}, hints.fingerprint() or ""
        node_machine_id = f"{machine_id}{CLONE_MARK}{mark}" if known else machine_id
        while node_machine_id in taken:  # by a machine that said this hardware once, and another since
            mark = hashlib.sha256(mark.encode()).hexdigest()[:MARK_DIGITS]
            node_machine_id = f"{machine_id}{CLONE_MARK}{mark}"
        machine = Machine(
            node_machine_id=node_machine_id,
            machine_id=machine_id,
            former_boot_ids=[],
            boots_interleaved=False,
            first_seen_at=now,
            last_seen_at=now,
        )
        session.add(machine)
    _learn(machine, hints, now)
    await session.flush()
    return machine


def _learn(machine: Machine, hints: Hints, now: datetime) -> None:
    machine.last_seen_at = now
    machine.dmi_sha256 = machine.dmi_sha256 or hints.dmi_sha256
    if hints.mac_sha256:
        machine.mac_sha256 = sorted(set(hints.mac_sha256))
    if hints.boot_id is None or hints.boot_id == machine.boot_id:
        return
    is_late = machine.boot_since is not None and hints.taken_at is not None and hints.taken_at <= machine.boot_since
    if hints.boot_id in machine.former_boot_ids:
        # A spooled report of an earlier boot may come late. One that was taken after the next boot began is a clone's.
        if is_late:
            return
        machine.boots_interleaved = True
    elif is_late:
        machine.former_boot_ids = [*machine.former_boot_ids, hints.boot_id][-FORMER_BOOTS:]
        return
    if machine.boot_id is not None:
        machine.former_boot_ids = [*machine.former_boot_ids, machine.boot_id][-FORMER_BOOTS:]
    machine.boot_id, machine.boot_since = hints.boot_id, hints.taken_at


async def with_same_id(session: ReadSession, machine_id: str) -> Sequence[Machine]:
    """The machines whose agents say this id, the oldest first: more than one are clones."""
    return await repository.machines_with(session, machine_id)
