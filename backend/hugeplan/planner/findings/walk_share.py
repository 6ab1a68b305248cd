"""How much of a server's time are page walks, by its processor's counters? Where it is next to nothing: leave it."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, measured, ok
from hugeplan.planner.gain.walk_bound import bound_sentence, most_speedup, share_text
from hugeplan.planner.model import Finding

CODE = "walk_share"

WORTH_SPEEDUP = 1.01
"""A gain of less than one per cent is within what a restart changes."""


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance whose server was counted while it ran on base pages."""
    for instance in inputs.request.databases:
        walks = instance.walks_now
        if walks is None:
            continue
        share = share_text(walks)
        evidence = (measured("cycles with a page walk", f"{share}, counted {walks.counted_at}"),)
        if most_speedup(walks) < WORTH_SPEEDUP:
            title = f"{share} of its cycles wait for page walks: leave it"
            why = f"{bound_sentence(walks)} Huge pages cannot make it faster as it works now."
            fix = "Leave it on base pages, unless the memory of its page tables is the reason."
            yield attention(CODE, instance.name, title, why, fix, evidence=evidence)
        else:
            title = f"{share} of its cycles wait for page walks"
            yield ok(CODE, instance.name, title, bound_sentence(walks), evidence=evidence)
