"""How the processes of a node's newest sample are kept: as packed JSON.

Nothing in the database looks into them. Built as jsonb, they took a third of what a report costs PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hugeplan.documents.kept import pack, unpack
from hugeplan.documents.report import ProcessMemory


def keep_processes(processes: Sequence[ProcessMemory]) -> str:
    """``node_states.processes_kept`` as PostgreSQL spells bytea."""
    return "\\x" + pack(msgspec.json.encode(processes)).hex()


def kept_processes(former: list[dict[str, Any]], kept: bytes | None) -> list[dict[str, Any]]:
    """The processes in a row of ``node_states``. ``former``: its ``processes``, where an earlier version wrote it."""
    if former or kept is None:
        return former
    processes: list[dict[str, Any]] = msgspec.json.decode(unpack(kept))
    return processes
