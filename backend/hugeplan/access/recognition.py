"""Whether a machine that enrols again is the one that is known (docs/adr/0029). Pure: facts in, doubts out.

An enrolment token may lie on every node of a cluster, so it proves little. What is not proved by the machine's own
token or claim is recognised only when all of it agrees: its boot or its hardware, its name, its processor and memory,
and that the agent that is known has fallen silent. A living agent can so never be displaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hugeplan.access.machines import Hints, is_same
from hugeplan.db.models import Machine
from hugeplan.planner.printable import one_line

MEMORY_TOLERANCE: Final = 0.02
"""MemTotal is what the kernel leaves of the memory: another kernel leaves a little more or less."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the machine that asks says of itself. None is unknown."""

    node_name: str
    hints: Hints
    cpu_brand: str | None = None
    mem_total_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of the machine. ``silent_for``: since its agent was heard, or got its token; ``heard_for``: for how
    long the service has heard agents without a gap.

    ``was_one_refused``: since then an administrator turned away somebody who says to be it, and who may come with
    another claim.
    """

    machine: Machine
    node_name: str | None
    cpu_brand: str | None
    mem_total_bytes: int | None
    silent_for: timedelta | None
    has_usable_token: bool
    was_one_refused: bool = False
    heard_for: timedelta = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Judgement:
    """``doubts`` need a person; ``wait_seconds`` passes by itself; ``because`` says by what it is known."""

    because: tuple[str, ...]
    doubts: tuple[str, ...]
    wait_seconds: float

    @property
    def is_recognised(self) -> bool:
        return not self.doubts and self.wait_seconds <= 0


def judge(asked: Asked, known: Remembered, silence: timedelta) -> Judgement:
    """Compare a machine that asks with the known one that its id and hardware belong to."""
    hints, machine = asked.hints, known.machine
    because = []
    if hints.boot_id is not None and hints.boot_id == machine.boot_id:
        because.append("boot id")
    if is_same(machine, hints):
        because.append("firmware ids" if machine.dmi_sha256 and hints.dmi_sha256 else "hardware addresses")
    doubts = []
    if not because:
        doubts.append("neither its boot id nor its hardware addresses are those that are known")
    if machine.boots_interleaved:
        doubts.append("two machines have reported under this machine id")
    if not known.has_usable_token:
        doubts.append("an administrator revoked the token of this machine")
    if known.was_one_refused:
        doubts.append("an administrator refused a machine that says it is this one")
    if known.node_name is not None and known.node_name != asked.node_name:
        doubts.append(f"its name is {_shown(asked.node_name)}, and was {_shown(known.node_name)}")
    if _differ(known.cpu_brand, asked.cpu_brand):
        doubts.append(f"its processor is {_shown(asked.cpu_brand)}, and was {_shown(known.cpu_brand)}")
    if known.mem_total_bytes and asked.mem_total_bytes:
        ratio = asked.mem_total_bytes / known.mem_total_bytes
        if abs(ratio - 1) > MEMORY_TOLERANCE:
            doubts.append(f"its memory is {asked.mem_total_bytes} bytes, and was {known.mem_total_bytes}")
    # Behind a gap agents come back late: each waits up to 300 s after its last failure.
    wait = timedelta() if known.silent_for is None else max(silence - known.silent_for, 3 * silence - known.heard_for)
    return Judgement(tuple(because), tuple(doubts), max(0.0, wait.total_seconds()))


def _shown(said: str | None) -> str:
    return f"'{one_line(said, 60)}'"


def _differ(known: str | None, asked: str | None) -> bool:
    return known is not None and asked is not None and known.strip() != asked.strip()
