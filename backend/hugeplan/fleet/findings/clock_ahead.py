"""The node's clock is ahead of the server's, so its times are taken from the arrival instead."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention

CODE = "clock_ahead"
LEAST_AHEAD_SECONDS = 60.0


def check(observed: Observed) -> Iterable[NodeFinding]:
    """A report that claims to be from the future, by more than a minute."""
    ahead = observed.clock_ahead_seconds
    if ahead is not None and ahead >= LEAST_AHEAD_SECONDS:
        yield attention(
            CODE,
            observed.name,
            "Its clock is ahead",
            f"The newest report was dated {ahead:.0f} s after its arrival. Its samples are kept under their arrival.",
            "Set the clock of the node (NTP).",
        )
