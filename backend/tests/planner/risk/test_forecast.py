"""Forecasts: right slopes with an interval, and nothing from too little."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.model import GIB, MIB, MemoryHistory, Tenant
from hugeplan.planner.risk.forecast import MIN_BUCKETS, SECONDS_PER_DAY, forecast, forecasts, trend, why_no_trend


def history(
    days: float, points: int, start: float, per_day: float, *, noise: float = 0.0, seed: int = 0
) -> MemoryHistory:
    times = np.linspace(0.0, days * SECONDS_PER_DAY, points)
    spread = np.random.default_rng(seed).normal(0.0, noise, points) if noise else np.zeros(points)
    used = np.maximum(start + per_day * times / SECONDS_PER_DAY + spread, 0.0)
    return MemoryHistory(times_seconds=tuple(times.tolist()), used_bytes=tuple(int(u) for u in used))


def tenant(given_: MemoryHistory | None, count: int = 1) -> Tenant:
    return Tenant(name="app", count=count, history=given_)


class TestTooLittle:
    @pytest.mark.parametrize(
        ("given_", "said"),
        [
            (None, "no history"),
            (MemoryHistory(times_seconds=(), used_bytes=()), "0 points"),
            (history(30, MIN_BUCKETS - 1, GIB, MIB), "9 points"),
            (history(1, 500, GIB, MIB), "1.0 days of history"),
        ],
    )
    def test_nothing_is_forecast_and_the_reason_is_said(self, given_: MemoryHistory | None, said: str) -> None:
        found = forecast(tenant(given_), 10 * GIB)
        assert found.growth_bytes_per_day is None
        assert found.days_until_full is None
        assert said in found.basis

    def test_many_points_at_few_times(self) -> None:
        times = tuple([0.0] * 50 + [5 * SECONDS_PER_DAY] * 50)
        crowded = MemoryHistory(times_seconds=times, used_bytes=tuple([GIB] * 100))
        assert "separate times" in (why_no_trend(crowded) or "")


class TestTrend:
    def test_a_straight_line(self) -> None:
        found = trend(history(30, 60, GIB, 100 * MIB))
        assert found is not None
        assert found.growth_bytes_per_day.likely == pytest.approx(100 * MIB, rel=0.001)
        assert found.level_bytes == pytest.approx(GIB + 3000 * MIB, rel=0.01)
        assert found.is_growing

    def test_one_spike_does_not_move_it(self) -> None:
        calm = history(30, 60, GIB, 100 * MIB)
        used = list(calm.used_bytes)
        used[30] *= 20
        found = trend(MemoryHistory(times_seconds=calm.times_seconds, used_bytes=tuple(used)))
        assert found is not None
        assert found.growth_bytes_per_day.likely == pytest.approx(100 * MIB, rel=0.02)

    def test_noise_without_growth_is_rarely_called_growth(self) -> None:
        called = [trend(history(14, 100, GIB, 0.0, noise=50 * MIB, seed=seed)) for seed in range(200)]
        growing = sum(found is not None and found.is_growing for found in called)
        assert growing <= 12  # 2.5 % on one side, 200 histories: 12 is beyond the 99.5th percentile

    def test_the_interval_holds_the_truth_about_as_often_as_it_says(self) -> None:
        truth = 20 * MIB
        held = 0
        for seed in range(200):
            found = trend(history(14, 100, GIB, truth, noise=100 * MIB, seed=seed))
            assert found is not None
            held += found.growth_bytes_per_day.low <= truth <= found.growth_bytes_per_day.high
        assert held >= 180


class TestDays:
    def test_headroom_over_growth(self) -> None:
        found = forecast(tenant(history(30, 60, GIB, 100 * MIB)), 5000 * MIB)
        assert found.days_until_full is not None
        assert found.days_until_full.likely == pytest.approx(50, rel=0.01)
        assert found.days_until_full.low <= 50 <= found.days_until_full.high

    def test_copies_add_up(self) -> None:
        found = forecast(tenant(history(30, 60, GIB, 100 * MIB), count=5), 5000 * MIB)
        assert found.days_until_full is not None
        assert found.days_until_full.likely == pytest.approx(10, rel=0.01)

    def test_no_further_than_the_history_can_carry(self) -> None:
        found = forecast(tenant(history(4, 60, GIB, MIB)), 100 * GIB)
        assert found.days_until_full is None
        assert "40 days" in found.basis

    def test_shrinking_never_fills(self) -> None:
        found = forecast(tenant(history(30, 60, 10 * GIB, -100 * MIB)), GIB)
        assert found.days_until_full is None
        assert "no growth" in found.basis

    def test_no_headroom_is_now(self) -> None:
        found = forecast(tenant(history(30, 60, GIB, 100 * MIB)), -1)
        assert found.days_until_full is not None
        assert found.days_until_full.high == 0.0

    def test_headroom_is_what_all_tenants_leave(self) -> None:
        growing = tenant(history(30, 60, GIB, 0.0))
        other = Tenant(name="other", request_bytes=2 * GIB)
        assert forecasts((growing, other), 10 * GIB)[0].headroom_bytes == pytest.approx(7 * GIB, rel=0.001)

    @given(
        st.lists(st.tuples(st.floats(0, 1e9), st.integers(0, 2**50)), max_size=60).map(sorted),
        st.integers(-(2**50), 2**50),
    )
    @settings(max_examples=100, deadline=None)
    def test_any_history_gives_ordered_finite_ranges(self, points: list[tuple[float, int]], headroom: int) -> None:
        given_ = MemoryHistory(times_seconds=tuple(t for t, _ in points), used_bytes=tuple(u for _, u in points))
        found = forecast(tenant(given_), headroom)
        for item in (found.growth_bytes_per_day, found.days_until_full):
            if item is not None:
                assert item.low <= item.likely <= item.high
                assert np.isfinite([item.low, item.likely, item.high]).all()
