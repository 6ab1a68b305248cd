"""Reports that the agent gave up: the history has gaps."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention

CODE = "reports_lost"
_WHY = (
    ("dropped_size", "the spool was full"),
    ("dropped_age", "they were too old"),
    ("dropped_disk_full", "the disk was full"),
    ("dropped_rejected", "too many were refused"),
)


def check(observed: Observed) -> Iterable[NodeFinding]:
    """Any report dropped or refused since the agent's spool was made."""
    spool = observed.spool
    if spool is None:
        return
    parts = [f"{count} because {why}" for name, why in _WHY if (count := getattr(spool, name))]
    if spool.rejected:
        parts.append(f"{spool.rejected} were refused by the server and are kept on the node")
    if parts:
        yield attention(
            CODE,
            observed.name,
            "Reports were lost",
            f"The agent gave up reports: {', '.join(parts)}. The history of the node has gaps.",
            "See the agent's log; give its spool more room, or let it reach the server.",
        )
