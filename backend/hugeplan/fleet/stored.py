"""A node as it is stored, and as the planner takes it: the one road from the database to a plan's request.

Reading needs the database and is done for many nodes at once; making facts of what was read needs nothing else, so
that another process can do it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from hugeplan.db.session import ReadSession
from hugeplan.documents.report import Inventory
from hugeplan.errors import DamagedError
from hugeplan.fleet import repository
from hugeplan.fleet.facts import IncompleteReportError, hardware_facts, node_facts
from hugeplan.fleet.hardware_state import MeasuredState, unpacked
from hugeplan.fleet.newest import newest_of
from hugeplan.fleet.observation import node_sample
from hugeplan.fleet.selector import NodeSelector, conditions
from hugeplan.planner.model import HardwareFacts, MeasuredTrial, MemoryHistory, NodeFacts, NodeSample, TrialDifference

HISTORY: Final = timedelta(days=7)
"""How far back a plan looks for what the workloads use."""
YOUNG: Final = timedelta(hours=2)
"""How long a node has too few full hours, so that its samples themselves are read."""
HISTORY_STEP: Final = timedelta(minutes=5)
"""Samples of a young node that are closer together count as one, their maximum."""

AT_ONCE: Final = 20
"""Nodes that one statement reads of many: a number that is no multiple of it says that there are no more."""

HardwareReader = Callable[[Inventory, HardwareFacts | None], HardwareFacts]
MeasuredReader = Callable[[str], MeasuredState]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNode:
    """What the database holds of a node; ``newest_of`` it is what its newest report says.

    ``trials``: what was measured on it, newest first; ``type_trials``: how far predictions were off on its
    machine type.
    """

    id: UUID
    name: str
    labels: Mapping[str, str]
    machine_type: str | None
    mem_total_bytes: int
    taken_at: datetime
    last_report_at: datetime
    inventory: str | None
    sample: str | None
    collectors: str | None
    processes: str | None
    processes_kept: bytes | None
    base_kept: bytes | None
    newest_kept: bytes | None
    document: bytes | None
    reference: bytes | None
    measured: str | None
    history: MemoryHistory | None = None
    trials: tuple[MeasuredTrial, ...] = ()
    type_trials: tuple[TrialDifference, ...] = ()


async def read_node(session: ReadSession, node_id: UUID) -> StoredNode | None:
    """One node without its history."""
    found = await repository.stored_nodes(session, [repository.is_one_of([node_id])], after=None, limit=1)
    return StoredNode(**found[0]) if found else None


async def read_nodes_by_id(session: ReadSession, node_ids: Collection[UUID]) -> list[StoredNode]:
    """Some nodes with their histories, in a few statements however many they are; without those that are gone."""
    which = [repository.is_one_of(node_ids)]
    found = await repository.stored_nodes(session, which, after=None, limit=len(node_ids))
    return await _with_histories(session, found)


async def read_nodes(
    session: ReadSession, selector: NodeSelector, *, after: tuple[str, UUID] | None, limit: int, most_bytes: float
) -> list[StoredNode]:
    """The next nodes of a selector by name, with their histories; ``after`` is name and id of the last one before.

    At most ``limit``, and none after those whose columns have ``most_bytes`` together.
    """
    which = conditions(selector)
    found: list[dict[str, Any]] = []
    size = 0
    while part := await repository.stored_nodes(session, which, after=after, limit=min(AT_ONCE, limit - len(found))):
        found += part
        size += sum(len(value) for row in part for value in row.values() if isinstance(value, str | bytes))
        after = (part[-1]["name"], part[-1]["id"])
        if size >= most_bytes or len(found) == limit or len(part) < AT_ONCE:
            break
    return await _with_histories(session, found)


async def _with_histories(session: ReadSession, found: Sequence[dict[str, Any]]) -> list[StoredNode]:
    nodes = [StoredNode(**row) for row in found]
    histories = await read_histories(session, {node.id: node.taken_at for node in nodes})
    return [replace(node, history=histories.get(node.id)) for node in nodes]


async def read_histories(session: ReadSession, until: Mapping[UUID, datetime]) -> dict[UUID, MemoryHistory]:
    """AnonPages + Shmem of nodes over the last HISTORY, by hour; none of a node with fewer than two values.

    ``until``: when each node's sample was taken. A node that has not reported for two hours yet is taken from its few
    samples.
    """
    starts = {node_id: taken_at - HISTORY for node_id, taken_at in until.items()}
    found = _histories(await repository.hourly_histories(session, starts), "hourly maxima")
    young = {node_id: taken_at - YOUNG for node_id, taken_at in until.items() if node_id not in found}
    if young:
        rows = await repository.sample_histories(session, young, every=HISTORY_STEP)
        found |= _histories(rows, f"maxima of {HISTORY_STEP // timedelta(minutes=1)} minutes each")
    return found


def _histories(
    rows: Sequence[tuple[UUID, Sequence[float], Sequence[int]]], values_are: str
) -> dict[UUID, MemoryHistory]:
    return {
        node_id: MemoryHistory(times_seconds=tuple(times), used_bytes=tuple(sizes), values_are=values_are)
        for node_id, times, sizes in rows
        if len(times) > 1
    }


def read_measured(text: str) -> MeasuredState:
    """What runs measured on a node, from its JSON."""
    return unpacked(msgspec.json.decode(text, type=MeasuredState))


def as_observed(
    stored: StoredNode,
    *,
    measured: MeasuredReader = read_measured,
    hardware: HardwareReader = hardware_facts,
) -> tuple[NodeFacts, NodeSample]:
    """The node as the planner takes it. IncompleteReportError when the report lacks what the planner needs.

    ``measured`` and ``hardware`` may remember: nodes of which the same is known then share objects.
    """
    try:
        inventory, sample = newest_of(stored).parsed()
    except DamagedError as error:
        raise IncompleteReportError(str(error)) from error
    known = None if stored.measured is None else measured(stored.measured).hardware
    facts = node_facts(stored.name, inventory, sample, measured=known, hardware=hardware)
    if stored.trials or stored.type_trials:
        facts = replace(facts, trials=stored.trials, type_trials=stored.type_trials)
    return facts, node_sample(inventory, sample, sample.processes, stored.history, stored.labels)
