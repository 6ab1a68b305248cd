"""Whose a node's name is. Files that root applies are put where a name says, and a report may say any name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from hugeplan.access.machines import CLONE_MARK
from hugeplan.db.exchange import Exchange, texts, uuids
from hugeplan.db.locks import AdvisoryLock
from hugeplan.fleet.ingest import statements

HELD: Final = timedelta(days=1)
"""How long a machine that is silent keeps its name from another that says the same."""
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """A machine that says a name, the one that came first before the others. ``node_id``: of its row, None without."""

    first_at: datetime
    machine_id: str
    node_id: UUID | None = field(default=None, compare=False)


def told_apart(name: str, machine_id: str) -> str:
    """How a machine is shown whose name is another's: no host name, so that no file is ever made for it."""
    return f"{name[:_LONGEST]} (machine {machine_id.rpartition(CLONE_MARK)[2][:8]})"


async def settle(
    exchange: Exchange, claims: Mapping[str, Iterable[Claim]], now: datetime, *, alone: bool
) -> dict[tuple[str, str], str]:
    """How machines are shown that say a name they do not have yet, by machine and name.

    A name is the machine's that reported it first, as long as it reports; all others are told apart from it. In a
    transaction, which others that settle names wait for where it is to be ``alone``.
    """
    if alone:
        await exchange.run([(statements.LOCK_NAMES, [str(AdvisoryLock.NAMES.value).encode()])])
    (rows,) = await exchange.run([(statements.NAMESAKES, [texts(sorted(claims))])])
    stored: dict[str, list[tuple[Claim, datetime]]] = {}
    for row in rows:
        name, node_id, machine_id, first_at, last_at = [value.decode() for value in row if value is not None]
        claim = Claim(datetime.fromisoformat(first_at), machine_id, UUID(node_id))
        stored.setdefault(name, []).append((claim, datetime.fromisoformat(last_at)))
    shown: dict[tuple[str, str], str] = {}
    for name, here in claims.items():
        own = {claim.machine_id for claim in here}
        others = [(claim, last_at) for claim, last_at in stored.get(name, ()) if claim.machine_id not in own]
        first = min([*here, *(claim for claim, last_at in others if last_at > now - HELD)])
        has_it = first.machine_id in own and await _renamed(
            exchange, name, [claim for claim, _ in stored.get(name, ()) if claim.machine_id != first.machine_id]
        )
        shown |= {
            (claim.machine_id, name): name
            if has_it and claim.machine_id == first.machine_id
            else told_apart(name, claim.machine_id)
            for claim in here
        }
    return shown


async def _renamed(exchange: Exchange, name: str, claims: list[Claim]) -> bool:
    """Tell nodes apart that have a name which is another's now. False where somebody has locked one of them."""
    if not claims:
        return True
    (free,) = await exchange.run([(statements.LOCK_THESE, [uuids(claim.node_id for claim in claims)])])
    if len(free) != len(claims):
        return False
    rows = [{"id": claim.node_id, "name": told_apart(name, claim.machine_id)} for claim in claims]
    await exchange.run([(statements.RENAME_NODES, [msgspec.json.encode(rows)])])
    return True
