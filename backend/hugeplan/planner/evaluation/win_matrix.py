"""How often each page size is best, and by how much on average: article E's form, over any set of runs.

A case is one point that was measured with at least two page sizes on one machine: one layout at one footprint, one
row width at one concurrency. A size wins a case when its interval lies below every other's; otherwise the case is a
tie, which counts for nobody. Article E printed 45 % for 1G, about 30 % for 2M and 20 % for 4K of 259 tests.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hugeplan.planner.model import CurvePoint, LatencyCurve

TIE = "tie"


class Timing(NamedTuple):
    """Time of one case with one backing: median and interval, in any unit; smaller is better."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WinCase:
    """One case of one machine: what was measured, and a timing for each backing (``4K``, ``THP``, ``2M``, ``1G``).

    ``base`` is the backing that the machine's base pages have: what deltas are taken against.
    """

    machine: str
    name: str
    timings: Mapping[str, Timing]
    base: str = "4K"


@dataclass(frozen=True, slots=True)
class MachineSummary:
    """One machine: its cases, wins by backing, and each backing's mean time against the base size.

    ``mean_delta_percent`` is the geometric mean over the cases that hold both; negative is faster than the base.
    ``best`` is the backing with the smallest mean; None without a comparison.
    """

    machine: str
    cases: int
    wins: Mapping[str, int]
    mean_delta_percent: Mapping[str, float]
    best: str | None


@dataclass(frozen=True, slots=True)
class WinMatrix:
    """Shares of all cases by winning backing (``tie`` among them; they sum to 1), and one summary a machine.

    ``lowest`` are the shares by the smallest median alone, however far the intervals overlap: article E's count.
    """

    cases: int
    shares: Mapping[str, float]
    machines: tuple[MachineSummary, ...]
    lowest: Mapping[str, float]


def winner(timings: Mapping[str, Timing]) -> str:
    """The backing whose interval lies wholly below all others, else ``tie``."""
    return winner_beside(fastest(timings), timings)


def winner_beside(best: str, timings: Mapping[str, Timing]) -> str:
    """``winner`` where the fastest is known."""
    high = timings[best].high
    for name, timing in timings.items():
        if name != best and high >= timing.low:
            return TIE
    return best


def fastest(timings: Mapping[str, Timing]) -> str:
    """The backing with the smallest value."""
    best, least = "", math.inf
    for name, timing in timings.items():
        if not best or timing.value < least:
            best, least = name, timing.value
    return best


def win_matrix(cases: Iterable[WinCase]) -> WinMatrix:
    """The matrix over all cases with at least two backings."""
    usable = [case for case in cases if len(case.timings) >= 2]
    by_machine: dict[str, list[WinCase]] = defaultdict(list)
    for case in usable:
        by_machine[case.machine].append(case)
    wins = Counter(winner(case.timings) for case in usable)
    names = sorted({name for case in usable for name in case.timings})
    total = len(usable)
    shares = {name: wins[name] / total for name in (*names, TIE)} if total else {}
    medians = Counter(fastest(case.timings) for case in usable)
    return WinMatrix(
        cases=total,
        shares=shares,
        machines=tuple(_summary(machine, found) for machine, found in sorted(by_machine.items())),
        lowest={name: medians[name] / total for name in names} if total else {},
    )


def _summary(machine: str, cases: Sequence[WinCase]) -> MachineSummary:
    logs: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        if case.base not in case.timings:
            continue
        for name, timing in case.timings.items():
            logs[name].append(math.log(timing.value / case.timings[case.base].value))
    deltas = {name: 100.0 * math.expm1(sum(values) / len(values)) for name, values in sorted(logs.items())}
    best = min(deltas, key=lambda name: deltas[name]) if len(deltas) >= 2 else None
    return MachineSummary(machine, len(cases), dict(Counter(winner(c.timings) for c in cases)), deltas, best)


def cases_of_curves(machine: str, curves: Sequence[LatencyCurve]) -> tuple[WinCase, ...]:
    """Every footprint of every layout that was measured with two or more backings, as cases."""
    found: dict[tuple[str, int], dict[str, CurvePoint]] = defaultdict(dict)
    for curve in sorted(curves, key=lambda curve: curve.layout):
        layout, backing = curve.layout, curve.backing
        for point in curve.points:
            if point.ns > 0.0:
                found[layout, point.footprint_bytes][backing] = point
    named = {
        f"{layout} {footprint} bytes": {backing: _timing(point) for backing, point in own.items()}
        for (layout, footprint), own in found.items()
        if len(own) >= 2
    }
    return cases_of(machine, named, {curve.backing: curve.page_bytes for curve in curves})


def cases_of(
    machine: str, timings: Mapping[str, Mapping[str, Timing]], page_bytes: Mapping[str, int]
) -> tuple[WinCase, ...]:
    """Cases by name, those with two or more backings; the base is the backing with the smallest page."""
    base = min(page_bytes, key=lambda backing: (page_bytes[backing], backing), default="4K")
    return tuple(WinCase(machine, name, own, base) for name, own in timings.items() if len(own) >= 2)


def _timing(point: CurvePoint) -> Timing:
    ns, low, high = point.ns, point.ns_low, point.ns_high
    return Timing(ns, low if low < ns else ns, high if high > ns else ns)
