"""Caches solved together: the equation holds, and nobody's answer depends on who is solved beside it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.translation_oracles import page_popularity_of_scattered_rows

from hugeplan.planner.demand.accesses import AccessProfile, AccessRegion
from hugeplan.planner.gain.access_units import AccessUnits, _zipf_groups
from hugeplan.planner.gain.tlb_misses import (
    ALL_ENTRIES,
    HALF_THE_ENTRIES,
    Cache,
    TranslationMisses,
    TranslationSetup,
    translation_misses,
)
from hugeplan.planner.gain.translation import characteristic_times, lru_misses
from hugeplan.planner.gain.walk_cost import Reach
from hugeplan.planner.model import GIB, KIB, MIB, Range, Source

ROWS = 20_000_000
PROFILE = AccessProfile(
    regions=(
        AccessRegion("hash bucket", 16.0 * MIB, 500_000.0, 8.0, 1.0),
        AccessRegion("block", 8.0 * GIB, 1_000_000.0, 8192.0, 1.0, 1.0, 10.0, ROWS),
        AccessRegion("nothing", 1.0 * MIB, 100.0, 64.0, 0.0),
    ),
    warm_pages=30.0,
    private_pages=400.0,
    zipf_s=0.9,
    uncertainty=(0.8, 1.2),
    inputs=(),
    operation_ns=Range(20_000.0, 20_000.0, 20_000.0),
)


CACHES = tuple(Cache(float(mib * MIB)) for mib in (1, 32, 8, 128))


def setup(page_bytes: int, entries: float, *, nested: int = 0, caches: tuple[Cache, ...] = CACHES) -> TranslationSetup:
    reach = Reach(page_bytes, page_bytes, 64.0, entries, Source.ASSUMED)
    return TranslationSetup(reach, 8 * page_bytes, nested, 0, (caches, caches), 8.0, 8.0)


def solved(*setups: TranslationSetup) -> dict[TranslationSetup, tuple[TranslationMisses, ...]]:
    accesses = AccessUnits(PROFILE)
    return dict(zip(setups, translation_misses([(accesses, one) for one in setups]), strict=True))


SMALL, LARGE, HUGE = setup(4 * KIB, 2048.0), setup(2 * MIB, 1024.0), setup(GIB, 16.0)


@settings(deadline=None)
@given(
    items=st.lists(st.floats(1, 1e8), min_size=1, max_size=30),
    shares=st.lists(st.floats(1e-6, 0.999999), min_size=1, max_size=4),
    data=st.data(),
)
def test_entries_in_use_equal_the_capacity(items: list[float], shares: list[float], data: st.DataObject) -> None:
    references = data.draw(st.lists(st.floats(0.01, 10), min_size=len(items), max_size=len(items)))
    counts = np.array([items])
    rates = np.array([references]) / counts
    capacities = counts.sum() * np.array([shares])
    times = characteristic_times(rates, counts, capacities)
    occupied = -np.expm1(-rates[:, np.newaxis, :] * times[..., np.newaxis]) @ counts[0]
    assert occupied == pytest.approx(capacities, rel=1e-9)


def test_caches_that_hold_all_or_nothing() -> None:
    rates, counts = np.array([[0.1, 0.0], [0.0, 0.0]]), np.array([[10.0, 5.0], [3.0, 0.0]])
    times = characteristic_times(rates, counts, np.array([[10.0, 0.0], [1.0, 2.0]]))
    assert times.tolist() == [[math.inf, 0.0], [math.inf, math.inf]]
    assert lru_misses(rates, times)[0].tolist() == [[0.0, 0.0], [1.0, 0.0]]  # unreferenced classes miss nothing


def test_walks_do_not_depend_on_what_is_solved_beside_them() -> None:
    together = solved(SMALL, LARGE, HUGE, SMALL)
    for one in (SMALL, LARGE, HUGE):
        alone = solved(one)[one]
        for share in (ALL_ENTRIES, HALF_THE_ENTRIES):
            assert together[one][share].walks == pytest.approx(alone[share].walks, rel=1e-10)
            for cache in CACHES:
                assert together[one][share].uncached[cache] == pytest.approx(alone[share].uncached[cache], rel=1e-10)


def test_walks_have_the_order_that_physics_asks_for() -> None:
    found = solved(SMALL, LARGE)
    for walks in (*found[SMALL], *found[LARGE]):
        by_size = [walks.uncached[cache] for cache in sorted(walks.uncached, key=lambda cache: cache.bytes)]
        assert by_size == sorted(by_size, reverse=True)
        assert by_size[0] <= walks.walks <= walks.l1_misses
    for page in (SMALL, LARGE):
        assert found[page][HALF_THE_ENTRIES].walks > found[page][ALL_ENTRIES].walks
    assert found[LARGE][ALL_ENTRIES].walks < found[SMALL][ALL_ENTRIES].walks


def test_neighbours_push_page_table_lines_out() -> None:
    caches = tuple(Cache(32.0 * MIB, foreign) for foreign in (0.0, 100.0, 1000.0, 1e6))
    busy = solved(setup(4 * KIB, 2048.0, caches=caches))
    (walks, _) = next(iter(busy.values()))
    beyond = [walks.uncached[cache] for cache in caches]
    assert beyond == sorted(beyond)
    assert beyond[-1] == pytest.approx(walks.fetches, rel=0.01)  # nothing stays: every walk's entry is in memory


def test_host_entries_for_page_tables_are_references_of_their_own() -> None:
    quiet, busy = Cache(32.0 * MIB, 0.0), Cache(32.0 * MIB, 1e6)
    one = setup(4 * KIB, 2048.0, caches=(quiet, busy))
    two = setup(4 * KIB, 2048.0, nested=2 * MIB, caches=(quiet, busy))
    found = solved(one, two)
    flat, nested = found[one][ALL_ENTRIES], found[two][ALL_ENTRIES]
    assert nested.walks == flat.walks
    assert flat.uncached[quiet] < nested.uncached[quiet] < 1.5 * flat.uncached[quiet]  # one line for 64: mostly cached
    assert nested.uncached[busy] == pytest.approx(2.0 * flat.uncached[busy], rel=0.02)


@pytest.mark.parametrize("rows_per_unit", [1, 8, 1000, ROWS])
def test_groups_of_units_are_the_classes_of_pages_summed(rows_per_unit: int) -> None:
    popularity, counts = page_popularity_of_scattered_rows(ROWS, 0.9, rows_per_unit)
    logs = np.log(popularity)
    width = max(float(logs.max() - logs.min()), 1e-9)
    bins = ((logs - logs.min()) / width * (8 - 1e-6)).astype(int)
    expected = sorted(
        (float(counts[bins == b].sum() / counts.sum()), float(np.dot(counts[bins == b], popularity[bins == b])))
        for b in set(bins.tolist())
    )
    assert np.array(sorted(_zipf_groups(ROWS, 0.9, rows_per_unit))) == pytest.approx(np.array(expected), rel=1e-9)


def test_private_tables_above_the_leaf_leave_the_cache_and_shared_ones_do_not() -> None:
    """One line of the level above covers 16 MiB: few lines for one table, many for 64 of them."""
    cache = Cache(32.0 * MIB, 500.0)
    one, many = (
        replace(setup(4 * KIB, 2048.0, caches=(cache,)), upper_line_bytes=16 * MIB, tables=tables, processes=tables)
        for tables in (1.0, 64.0)
    )
    shared = replace(setup(2 * MIB, 2048.0, caches=(cache,)), tables=1.0, processes=64.0)
    found = solved(one, many, shared, replace(many, upper_line_bytes=0))
    flat = found[replace(many, upper_line_bytes=0)][ALL_ENTRIES].uncached[cache]
    above = found[many][ALL_ENTRIES].uncached[cache] - flat
    assert above > 2.0 * found[shared][ALL_ENTRIES].uncached[cache]
    assert found[one][ALL_ENTRIES].uncached[cache] < found[many][ALL_ENTRIES].uncached[cache]
