"""Private memory of an instance's connections: what is certain, and what is possible when all of them work at once.

``max_connections x work_mem`` is an upper bound. Where it is known how many connections work at the same time, only
these are counted with all that a working one may take; the others with a fresh one's memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.model import Demand, Workload
from hugeplan.planner.model.words import IDLE_CONNECTION_BYTES


@dataclass(frozen=True, slots=True)
class ConnectionMemory:
    """Connections that may be open, those that work, and bytes: planned, and if all worked at once."""

    connections: int
    active: int
    per_connection_bytes: int
    certain_bytes: int
    possible_bytes: int


def connection_memory(demand: Demand, workload: Workload) -> ConnectionMemory | None:
    """The one count of connections' memory, for ledger, findings and files; None where it is not known."""
    connections, each = demand.connections, demand.private_bytes_per_connection
    if connections is None or each is None:
        return None
    active = connections if workload.active_connections is None else min(connections, workload.active_connections)
    idle = min(each, IDLE_CONNECTION_BYTES)
    return ConnectionMemory(
        connections, active, each, active * each + (connections - active) * idle, connections * each
    )
