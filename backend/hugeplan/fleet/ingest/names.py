"""Whose a node's name is. Files that root applies are put where a name says, and a report may say any name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from hugeplan.access.machines import told_apart
from hugeplan.db.exchange import Exchange, texts, uuids
from hugeplan.db.locks import AdvisoryLock
from hugeplan.fleet.ingest import statements
from hugeplan.planner.host_names import HostNames

HELD: Final = timedelta(days=1)
"""How long a machine that is silent, while it could be heard, keeps its name from another that says the same."""


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """A machine that says a name which it does not have, and when that machine reported first."""

    first_at: datetime
    machine_id: str
    name: str


@dataclass(frozen=True, slots=True)
class _Held:
    """A name that a node has. ``node_id`` is None where it was given only now."""

    name: str
    machine_id: str
    node_id: UUID | None
    is_alive: bool


async def settle(exchange: Exchange, claims: Collection[Claim]) -> dict[tuple[str, str], str]:
    """How machines are shown that say a name they do not have, by machine and name.

    A machine that has a name keeps it as long as it reports; all others are told apart from it, and wait for nobody. So
    are those that say a name which many have, silent or not. Of several that say a free one the first to report has it.
    In a transaction, which others that settle free names wait for.
    """
    shown = {(claim.machine_id, claim.name): told_apart(claim.name, claim.machine_id) for claim in claims}
    held = await _read(exchange, sorted(claims))
    free = [claim for claim in sorted(claims) if _may_have(_others(claim, held))]
    if free:
        await exchange.run([(statements.LOCK_NAMES, [str(AdvisoryLock.NAMES.value).encode()])])
        held = await _read(exchange, free)
    former: set[_Held] = set()
    for claim in free:
        others = [one for one in _others(claim, held) if one not in former]
        if _may_have(others) and await _renamed(exchange, others):
            former.update(others)
            held.add(claim.name, _Held(claim.name, claim.machine_id, None, True))
            shown[claim.machine_id, claim.name] = claim.name
    return shown


async def _read(exchange: Exchange, claims: Sequence[Claim]) -> HostNames[_Held]:
    """Who has the names that machines say."""
    said = [texts(claim.name for claim in claims), texts(claim.machine_id for claim in claims)]
    (found,) = await exchange.run([(statements.NAMESAKES, [*said, f"{HELD.total_seconds()} seconds".encode()])])
    held = HostNames[_Held]()
    for name, node_id, machine, is_alive in {tuple((value or b"").decode() for value in row) for row in found}:
        held.add(name, _Held(name, machine, UUID(node_id), is_alive == "t"))
    return held


def _others(claim: Claim, held: HostNames[_Held]) -> list[_Held]:
    return [one for one in held.of(claim.name) if one.machine_id != claim.machine_id]


def _may_have(others: Sequence[_Held]) -> bool:
    """Whether those that have a name are silent, and few enough to give it up."""
    return len(others) < statements.MOST_NAMESAKES and not any(one.is_alive for one in others)


async def _renamed(exchange: Exchange, nodes: Sequence[_Held]) -> bool:
    """Tell nodes apart whose name is another's now. False where somebody has locked one of them."""
    if not nodes:
        return True
    (free,) = await exchange.run([(statements.LOCK_THESE, [uuids(one.node_id for one in nodes)])])
    if len(free) != len(nodes):
        return False
    rows = [{"id": one.node_id, "name": told_apart(one.name, one.machine_id)} for one in nodes]
    await exchange.run([(statements.RENAME_NODES, [msgspec.json.encode(rows)])])
    return True
