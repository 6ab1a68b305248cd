"""Private memory of an instance's connections: what is certain, and what is possible when all of them work at once.

``max_connections`` times the memory of a working connection is an upper bound. Where it is known how many connections
work at the same time, only these are counted with all that a working one may take; the others with an idle one's,
which is less for a thread than for a process.
"""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.model import Demand, Workload
from hugeplan.planner.model.words import IDLE_CONNECTION_BYTES, IDLE_THREAD_BYTES


@dataclass(frozen=True, slots=True)
class ConnectionMemory:
    """Connections that may be open, those that work, and bytes: planned, and if all worked at once."""

    connections: int
    active: int
    per_connection_bytes: int
    idle_bytes: int
    certain_bytes: int
    possible_bytes: int


def connection_memory(demand: Demand, workload: Workload) -> ConnectionMemory | None:
    """The one count of connections' memory, for ledger, findings and files; None where it is not known."""
    connections, each = demand.connections, demand.private_bytes_per_connection
    if connections is None or each is None:
        return None
    active = connections if workload.active_connections is None else min(connections, workload.active_connections)
    idle = min(each, IDLE_CONNECTION_BYTES if demand.process_per_connection else IDLE_THREAD_BYTES)
    return ConnectionMemory(
        connections, active, each, idle, active * each + (connections - active) * idle, connections * each
    )
