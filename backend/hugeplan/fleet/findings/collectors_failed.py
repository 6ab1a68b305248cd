"""A part of the report that the agent could not read."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention

CODE = "collectors_failed"


def check(observed: Observed) -> Iterable[NodeFinding]:
    """The collectors that failed, together: what they would have said is unknown."""
    failed = [collector for collector in observed.collectors if collector.status == "failed"]
    if failed:
        first = f" ({failed[0].reason})" if failed[0].reason else ""
        yield attention(
            CODE,
            observed.name,
            "The agent could not read everything",
            f"Failed: {', '.join(collector.name for collector in failed)}{first}. What they observe is unknown.",
            "See the log of the agent, or give it the rights that the reasons name.",
        )
