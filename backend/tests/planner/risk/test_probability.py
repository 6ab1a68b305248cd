"""Risk: probabilities against closed forms and simulation, and tri-state verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.model import GIB, MIB, MemoryHistory, Policy, Tenant
from hugeplan.planner.risk.forecast import SECONDS_PER_DAY
from hugeplan.planner.risk.probability import HORIZON_DAYS, risk, risk_of, tenant_bytes, tenant_demand


def probability(tenants: tuple[Tenant, ...], room: int) -> tuple[float, float, float]:
    found = risk(tenants, room, Policy()).probability
    assert found is not None
    return (found.low, found.likely, found.high)


def even(count: int) -> Tenant:
    return Tenant(name="app", count=count, request_bytes=GIB, limit_bytes=2 * GIB)


class TestAssumed:
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_one_copy_is_uniform(self, share: float) -> None:
        low, _, high = probability((even(1),), int(GIB * (1 + share)))
        assert low == pytest.approx(1 - share, abs=0.01)
        assert high == pytest.approx(1 - share, abs=0.01)

    def test_two_copies_between_triangle_and_line(self) -> None:
        # Sum of two uniforms above 2 + 1.5: (2 - 1.5)^2 / 2 = 0.125 when independent, 0.25 when moving together.
        low, _, high = probability((even(2),), int(3.5 * GIB))
        assert low == pytest.approx(0.125, abs=0.01)
        assert high == pytest.approx(0.25, abs=0.01)

    def test_thirty_copies_agree_with_simulation(self) -> None:
        room = int(47 * GIB)
        drawn = np.random.default_rng(1).uniform(1, 2, size=(200_000, 30)).sum(axis=1)
        low, _, _ = probability((even(30),), room)
        assert low == pytest.approx(float((drawn > 47).mean()), abs=0.003)

    def test_bounds(self) -> None:
        assert probability((even(4),), 8 * GIB) == (0.0, 0.0, 0.0)
        assert probability((even(4),), 4 * GIB - 1) == (1.0, 1.0, 1.0)

    def test_a_limit_alone_is_always_used(self) -> None:
        fixed = Tenant(name="a", count=3, limit_bytes=GIB)
        assert probability((fixed,), 3 * GIB) == (0.0, 0.0, 0.0)
        assert probability((fixed,), 3 * GIB - 1) == (1.0, 1.0, 1.0)

    def test_no_limit_is_said(self) -> None:
        assert "no limit" in risk((Tenant(name="a", request_bytes=GIB),), GIB, Policy()).basis

    @given(st.integers(1, 40), st.integers(0, 80 * GIB), st.integers(0, 80 * GIB))
    @settings(max_examples=60, deadline=None)
    def test_more_room_is_never_riskier(self, count: int, a: int, b: int) -> None:
        less, more = sorted((a, b))
        assert probability((even(count),), more)[1] <= probability((even(count),), less)[1] + 1e-6


def measured(values: list[int], days: float = 10.0) -> Tenant:
    times = tuple(np.linspace(0, days * SECONDS_PER_DAY, len(values)).tolist())
    return Tenant(name="app", history=MemoryHistory(times_seconds=times, used_bytes=tuple(values)))


class TestHistory:
    def test_short_histories_widen_the_range(self) -> None:
        flat = measured([GIB] * 20)
        _, likely, high = probability((flat,), 2 * GIB)
        assert likely == 0.0
        assert high == pytest.approx(1 - 0.05 ** (1 / 20))
        assert risk((flat,), 2 * GIB, Policy()).meets_policy is None

    def test_long_histories_can_meet_the_policy(self) -> None:
        assert risk((measured([GIB] * 400),), 2 * GIB, Policy()).meets_policy is True

    def test_growth_moves_the_demand_ahead(self) -> None:
        growing = measured([GIB + 10 * MIB * day for day in range(60)], days=59)
        after = GIB + 10 * MIB * (59 + HORIZON_DAYS)
        assert tenant_demand((growing,)).quantile_bytes(0.01) == pytest.approx(after, rel=0.01)

    def test_the_ledger_takes_the_quantile(self) -> None:
        values = list(range(1, 1001))
        np.random.default_rng(2).shuffle(values)
        assert tenant_bytes(measured([v * MIB for v in values]), 0.01) == pytest.approx(990 * MIB, rel=0.002)


class TestMeasuredTogether:
    def test_tenants_that_take_turns_are_not_added_at_their_peaks(self) -> None:
        day = [2 * GIB if k % 2 else GIB for k in range(400)]
        night = [GIB if k % 2 else 2 * GIB for k in range(400)]
        first, second = measured(day), measured(night)
        pair = (first, Tenant(name="b", history=second.history))
        low, likely, high = probability(pair, int(3.5 * GIB))
        assert (low, likely) == (0.0, 0.0)
        assert high >= 0.4  # were they to move together, half of the moments would be above
        assert probability((first, Tenant(name="b", history=first.history)), int(3.5 * GIB))[1] >= 0.4


class TestVerdicts:
    def test_above_the_policy(self) -> None:
        assert risk((even(4),), 5 * GIB, Policy()).meets_policy is False

    def test_unknown_tenants_cannot_be_judged(self) -> None:
        found = risk((even(1), Tenant(name="mystery")), 100 * GIB, Policy())
        assert found.probability is None
        assert found.meets_policy is None
        assert "mystery" in found.basis

    def test_page_cache_that_something_relies_on_counts(self) -> None:
        assert probability((even(1), Tenant(name="c", kind="page_cache", request_bytes=GIB * 50)), 2 * GIB)[0] == 1.0

    def test_a_range_that_straddles_the_policy_is_no_verdict(self) -> None:
        """Likely above the policy, at least below it: neither met nor broken."""
        tenants = (even(40), even(40))
        for room_gib in range(40, 160):
            found = risk(tenants, room_gib * GIB, Policy())
            assert found.probability is not None
            low, high = found.probability.low, found.probability.high
            expected = True if high <= 0.01 else False if low > 0.01 else None
            assert found.meets_policy is expected

    def test_no_tenants(self) -> None:
        unknown = risk((), 0, Policy())
        assert (unknown.probability, unknown.meets_policy) == (None, None)
        assert risk_of(tenant_demand(()), 0, Policy(), known=True).meets_policy is True
        assert risk((), -1, Policy()).meets_policy is False
