"""The fit to accesses under cache pressure: known prices come back, and its counting agrees with a simulated cache."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest

from hugeplan.planner.gain.pressure_fit import Walker, _uncached, _walks, fit_pressure, nested_line_bytes
from hugeplan.planner.model import GIB, KIB, MIB, PressurePoint

BASE = Walker(2048.0, 4 * KIB, 32 * KIB, 2 * MIB)
FRACTURED = Walker(2048.0, 4 * KIB, 16 * MIB, 0)
LARGE = Walker(1024.0, 2 * MIB, 16 * MIB, 0)
PLAN = [
    (footprint, lines, wait)
    for footprint in (64 * MIB, 256 * MIB, GIB)
    for lines, wait in ((0, 0.0), (16, 0.0), (64, 0.0), (256, 0.0), (1024, 0.0), (16, 8000.0), (16, 20000.0))
]


def point(footprint: int, lines: int, wait: float, saving: float = 0.0) -> PressurePoint:
    return PressurePoint(
        backing="2M",
        page_bytes=2 * MIB,
        footprint_bytes=footprint,
        lines_between=lines,
        pages_between=lines / 16,
        period_ns=200.0 + 4.0 * lines + wait,
        saving_ns=saving,
        half_width_ns=2.0,
    )


def measured(
    cached: float, uncached: float, cache: float, foreign: float, *, noise: float = 0.0
) -> list[PressurePoint]:
    """Points of a node that obeys the formula, with noise as a share of each saving (seeded)."""
    points = [point(*plan) for plan in PLAN]
    walks = _walks(points, BASE)
    out = _uncached(points, BASE, walks, [(cache, foreign)])[0]
    scatter = np.random.default_rng(7).normal(0.0, noise, len(points))
    savings = walks * (cached + uncached * out) * (1.0 + scatter)
    return [replace(p, saving_ns=float(s)) for p, s in zip(points, savings, strict=True)]


@pytest.mark.parametrize(
    ("cached", "uncached", "cache_mib", "foreign"),
    [(10.0, 130.0, 32, 0.119), (4.0, 80.0, 64, 0.0), (20.0, 160.0, 8, 0.019)],
)
@pytest.mark.parametrize("noise", [0.0, 0.08])
def test_known_prices_come_back(cached: float, uncached: float, cache_mib: int, foreign: float, noise: float) -> None:
    points = measured(cached, uncached, float(cache_mib * MIB), foreign, noise=noise)
    fit = fit_pressure(points, BASE, FRACTURED, 0.0, fractured=True)
    assert fit is not None
    share = 0.02 if noise == 0.0 else 0.15
    assert fit.uncached_ns == pytest.approx(uncached, rel=share)
    assert fit.cached_ns == pytest.approx(cached, abs=1.0 if noise == 0.0 else 6.0)
    # What matters of cache and neighbours is what they do together to an access that was not measured.
    other = [point(512 * MIB, 40, 4000.0), point(4 * GIB, 16, 20000.0)]
    walks = _walks(other, BASE)
    found = _uncached(other, BASE, walks, [(fit.cache_bytes, fit.foreign_lines_per_ns)])[0]
    truth = _uncached(other, BASE, walks, [(float(cache_mib * MIB), foreign)])[0]
    assert fit.cached_ns + fit.uncached_ns * found == pytest.approx(cached + uncached * truth, rel=0.04 + share)


def test_too_few_points_or_too_small_ones_give_no_fit() -> None:
    points = measured(10.0, 130.0, 32.0 * MIB, 0.1)
    assert fit_pressure(points[:5], BASE, FRACTURED, 0.0, fractured=True) is None
    inside_reach = [replace(p, footprint_bytes=4 * MIB) for p in points]
    assert fit_pressure(inside_reach, BASE, FRACTURED, 0.0, fractured=True) is None


def test_prices_are_never_negative() -> None:
    losing = [replace(p, saving_ns=-20.0) for p in measured(10.0, 130.0, 32.0 * MIB, 0.1)]
    fit = fit_pressure(losing, BASE, FRACTURED, 0.0, fractured=True)
    assert fit is not None
    assert fit.cached_ns == 0.0
    assert fit.uncached_ns == 0.0
    assert fit.residual > 1.0


def test_a_large_page_with_reach_of_its_own_gets_its_walks_back() -> None:
    """Not fractured: what 2M saves is the base walk less the few and cached walks of 2M."""
    base = Walker(2048.0, 4 * KIB, 32 * KIB, 0)
    points = [point(*plan) for plan in PLAN]
    walks, large = _walks(points, base), _walks(points, LARGE)
    cache = [(32.0 * MIB, 0.0)]
    saved = walks * (8.0 + 90.0 * _uncached(points, base, walks, cache)[0])
    lost = large * (6.0 + 90.0 * _uncached(points, LARGE, large, cache)[0])
    fit = fit_pressure(
        [replace(p, saving_ns=float(s)) for p, s in zip(points, saved - lost, strict=True)],
        base,
        LARGE,
        6.0,
        fractured=False,
    )
    assert fit is not None
    assert fit.cached_ns == pytest.approx(8.0, abs=0.5)
    assert fit.uncached_ns == pytest.approx(90.0, rel=0.02)


def test_a_line_of_host_entries_covers_four_kib_of_page_table() -> None:
    assert nested_line_bytes(32 * KIB) == 2 * MIB


def test_counting_agrees_with_a_simulated_cache() -> None:
    """LRU of 1/32 scale: data, leaf and host lines, lines in between and neighbours' lines, against the formula."""
    pages, entries, lines_between, foreign, cache_lines = 8192, 64, 12, 9, 16384
    rng = np.random.default_rng(3)
    tlb: OrderedDict[int, None] = OrderedDict()
    cache: OrderedDict[tuple[str, int], None] = OrderedDict()

    def use(store: OrderedDict, key: object, size: int) -> bool:
        hit = key in store
        store[key] = None
        store.move_to_end(key)
        if len(store) > size:
            store.popitem(last=False)
        return hit

    steps, warm, walks, missed, fresh = 60_000, 20_000, 0, 0, 0
    for step, access in enumerate(rng.integers(0, pages * 64, steps + warm).tolist()):
        page, counted = access // 64, step >= warm
        if not use(tlb, page, entries):
            found = [use(cache, ("leaf", page // 8), cache_lines), use(cache, ("host", page // 512), cache_lines)]
            walks += counted
            missed += counted * found.count(False)
        use(cache, ("data", access), cache_lines)
        for _ in range(lines_between + foreign):
            fresh += 1
            use(cache, ("other", fresh), cache_lines)
    size = Walker(float(entries), 4 * KIB, 32 * KIB, 2 * MIB)
    like = replace(point(pages * 4096, lines_between, 0.0), pages_between=0.0, period_ns=100.0)
    predicted = _walks([like], size)
    out = _uncached([like], size, predicted, [(cache_lines * 64.0, foreign / 100.0)])[0]
    assert walks / steps == pytest.approx(float(predicted[0]), abs=0.005)
    assert missed / walks == pytest.approx(float(out[0]), abs=0.02)
    assert math.isclose(float(out[0]), missed / walks, rel_tol=0.05)
