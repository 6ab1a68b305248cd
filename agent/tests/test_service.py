"""The grid of samples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hugeplan_agent.service import next_tick


def test_the_next_tick_is_one_interval_on() -> None:
    assert next_tick(100.0, 60.0, 100.2) == 160.0


def test_missed_ticks_are_skipped() -> None:
    assert next_tick(100.0, 60.0, 300.0) == 340.0


@given(st.floats(0, 1e6), st.floats(1, 86400), st.floats(0, 1e6))
def test_it_is_ahead_by_at_most_one_interval(last: float, interval_seconds: float, late_seconds: float) -> None:
    now = last + late_seconds
    tick = next_tick(last, interval_seconds, now)
    rounding = 1e-9 * (now + interval_seconds)
    assert now - rounding <= tick <= now + interval_seconds + rounding
