"""What the scatter section of a run says beyond its own crossing: from how many hot lines on huge pages lose."""

from __future__ import annotations

import re

from hugeplan.documents.tlbbench import Scatter

#: How tlbbench (scatter.c) names a scatter curve: "scatter 4K, one line in each 2M".
_BESIDE = re.compile(r"one line in each (\w+)$")


def beside_backing(section: str, name: str) -> str | None:
    """The backing that a scatter curve is measured beside; tlbbench gives it in the curve's name alone."""
    found = _BESIDE.search(name) if section == "scatter" else None
    return found[1] if found else None


def loses_from_lines(scatter: Scatter | None) -> int | None:
    """The fewest hot lines from which on the size was slower than base pages at every count up to the confirmed one.

    tlbbench confirms a crossing at few counts, and the size may have lost before. None without a confirmed crossing.
    """
    crossing = scatter.crossing if scatter else None
    if scatter is None or crossing is None or crossing.hot_lines is None:
        return None
    huge = next((curve for curve in scatter.curves if curve.backing == crossing.backing), None)
    base = next((c for c in scatter.curves if beside_backing("scatter", c.name) == crossing.backing != c.backing), None)
    if huge is None or base is None:
        return crossing.hot_lines
    base_ns = {point.x: point.ns_p50 for point in base.points}
    first = crossing.hot_lines
    for point in sorted(huge.points, key=lambda point: -point.x):
        if point.x > crossing.hot_lines:
            continue
        other = base_ns.get(point.x)
        if point.ns_p50 is None or other is None or point.ns_p50 <= other:
            break
        first = int(point.x)
    return first
