"""The processor's own word on a gain: no page size can buy more than what page walks cost today.

A share ``f`` of a server's cycles bounds its speed-up by ``1 / (1 - f)`` (Amdahl, all of the share gone). It holds for
a server on base pages as it worked when it was counted. Hits of the second-level TLB cost something too, and are in the
bound where they are counted; what the tables' lines push out of the caches is not.
"""

from __future__ import annotations

from dataclasses import replace

from hugeplan.planner.model import Gain, Range, Source, Term, WalkShare


def most_speedup(walks: WalkShare) -> float:
    """The most that any page size can buy (x); infinite where walks are in progress all the time."""
    return float("inf") if walks.bound_fraction >= 1.0 else 1.0 / (1.0 - walks.bound_fraction)


def bounded_by_walks(gain: Gain, walks: WalkShare | None, cost_ns: float) -> Gain:
    """The gain with its range below the bound; as it is where none is known, or a trial measured it.

    ``cost_ns``: one operation.
    """
    if walks is None or gain.speedup is None or gain.measured_here is not None or gain.backing_kind == "base":
        return gain
    most = most_speedup(walks)
    speedup, shown = below(gain.speedup, most), gain.one_measurement
    saving = below(gain.saving_ns_per_operation, cost_ns * min(walks.bound_fraction, 1.0))
    if shown is not None:  # its noise is around what is gained
        shown = Range(min(shown.low, speedup.likely), speedup.likely, shown.high - (gain.speedup.high - speedup.high))
    narrowed = "" if speedup == gain.speedup else f" {bound_sentence(walks)}"
    return replace(
        gain,
        speedup=speedup,
        saving_ns_per_operation=saving,
        one_measurement=shown,
        inputs=(*gain.inputs, Term("cycles with a page walk", share_text(walks), Source.MEASURED, walks.counted_at)),
        statement=gain.statement + narrowed,
    )


def below(wide: Range, most: float) -> Range:
    """The range, none of it above ``most``."""
    return Range(min(wide.low, most), min(wide.likely, most), min(wide.high, most))


def share_text(walks: WalkShare) -> str:
    """``11.8 %``."""
    return f"{100.0 * walks.fraction:.1f} %"


def bound_sentence(walks: WalkShare) -> str:
    """What the share allows at most, in words."""
    most = most_speedup(walks)
    least = "more than all" if most == float("inf") else f"more than {100.0 * (most - 1.0):+.1f} %"
    return (
        f"Its processor counted {share_text(walks)} of its cycles with a page walk in progress, so no page size buys"
        f" {least}."
    )
