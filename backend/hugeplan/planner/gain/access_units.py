"""The accesses of an operation in units of memory: pages of one size, or what a line of page-table entries covers.

A region of items becomes one class of equally popular units, or a few where its rows are Zipf-popular. What a unit
size makes of a profile is remembered, since both bounds of every cost and all cache sizes ask for it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.demand.accesses import AccessProfile, AccessRegion
from hugeplan.planner.gain.translation import Floats, scattered_rows, zipf_sums
from hugeplan.planner.remembered import remembered

ZIPF_GROUPS = 8
_ZIPF_STEPS = np.arange(ZIPF_GROUPS - 1, 0, -1) / (ZIPF_GROUPS - 1e-6)

_ONE_GROUP: tuple[tuple[float, float], ...] = ((1.0, 1.0),)

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class UnitCounts:
    """A profile in units of one size. All arrays have the shape (classes,); a region's classes stand together.

    Attributes:
        starts: first class of each region, shape (regions,).
        region: index of the region of each class.
        items: distinct units of each class.
        accesses: items that an operation accesses there.
        unit_accesses: units that it accesses there: items with their near accesses.
        lines: cache lines that it reads there.
    """

    starts: Indices
    region: Indices
    items: Floats
    accesses: Floats
    unit_accesses: Floats
    lines: Floats


class AccessUnits:
    """A profile with its counts by unit size."""

    def __init__(self, profile: AccessProfile) -> None:
        self.profile = profile
        self._counts: dict[int, UnitCounts] = {}

    def in_units_of(self, unit_bytes: int) -> UnitCounts:
        """The profile in units of ``unit_bytes``."""
        counts = self._counts.get(unit_bytes)
        if counts is None:
            counts = self._counts[unit_bytes] = _unit_counts(self.profile, unit_bytes)
        return counts


@remembered(512)
def access_units(profile: AccessProfile) -> AccessUnits:
    """The one object of a profile, so that its counts are made once."""
    return AccessUnits(profile)


def _unit_counts(profile: AccessProfile, unit_bytes: int) -> UnitCounts:
    rows: list[tuple[float, ...]] = []
    starts: list[int] = []
    regions: list[int] = []
    for index, region in enumerate(profile.regions):
        starts.append(len(rows))
        # Distinct units that the region's items occupy, items lying at random in its span.
        units = max(1.0, region.span_bytes / unit_bytes)
        near = 0.0  # a unit that holds the item has none
        if unit_bytes < region.item_bytes:
            near = region.near_accesses
            distinct = min(units, region.items * (1.0 + near))
        else:
            distinct = -units * math.expm1(-region.items / units)
        groups = _ONE_GROUP
        if region.popularity_rows is not None and profile.zipf_s > 0.0:
            groups = _groups(region, region.popularity_rows, profile.zipf_s, unit_bytes)
        distinct = max(1.0, distinct)
        for item_share, share in groups:
            accesses = region.accesses * share
            # Every class has at least one item.
            rows.append((max(1.0, distinct * item_share), accesses, accesses * (1.0 + near), accesses * region.lines))
            regions.append(index)
    # Row by row in Python: a profile has a dozen classes, too few for an array to pay.
    return UnitCounts(np.array(starts), np.array(regions), *np.array([*zip(*rows, strict=True)]))


def _groups(region: AccessRegion, rows: int, zipf_s: float, unit_bytes: int) -> tuple[tuple[float, float], ...]:
    """Classes (share of the region's units, share of its references) of Zipf-popular rows."""
    units = max(1.0, region.span_bytes / max(unit_bytes, region.item_bytes))
    return _zipf_groups(_rounded(rows), zipf_s, _rounded(rows / units))


def _rounded(value: float) -> int:
    """A count to two significant digits: shares of popularity hardly change, and a slider's next step is remembered."""
    if value < 100.0:
        return max(1, round(value))
    scale = int(10.0 ** (math.floor(math.log10(value)) - 1))
    return round(value / scale) * scale


@remembered(256)
def _zipf_groups(rows: int, s: float, rows_per_unit: int) -> tuple[tuple[float, float], ...]:
    """Scattered Zipf rows folded into groups of units of like popularity: (share of units, share of references).

    Equal steps in the logarithm of popularity keep the hottest units apart from the rest.
    """
    found = scattered_rows(rows, s, rows_per_unit)
    minus_popularity, ranks, shares = zipf_sums(rows, s)
    hottest = found.rest - float(minus_popularity[0])
    if not found.hot or math.log(hottest / found.rest) < 1e-9:
        return _ONE_GROUP
    # Least popularity of each group but the coldest, hottest group first; then how many classes of rows reach it.
    least = found.rest * (hottest / found.rest) ** _ZIPF_STEPS
    ends = np.minimum(minus_popularity.searchsorted(found.rest - least, side="right"), found.hot)
    unit_sums = [0.0, *ranks[ends].tolist(), float(found.pages)]
    row_shares = [0.0, *shares[ends].tolist(), found.hot_share]
    groups = []
    for (start, end), (before, after) in zip(pairwise(unit_sums), pairwise(row_shares), strict=True):
        if end > start:
            groups.append(((end - start) / found.pages, after - before + found.rest * (end - start)))
    return tuple(groups)
