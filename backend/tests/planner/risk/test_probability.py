"""Risk: probabilities against closed forms and simulation, and tri-state verdicts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.seeds import SEEDS

from hugeplan.planner.model import GIB, MIB, MemoryHistory, Policy, Risk, Tenant
from hugeplan.planner.risk.forecast import SECONDS_PER_DAY
from hugeplan.planner.risk.probability import HORIZON_DAYS, risk_of, tenant_bytes, tenant_demand
from hugeplan.planner.sentences import risk_sentence


def risk(tenants: tuple[Tenant, ...], room: int, policy: Policy, room_by_node: dict[int, int] | None = None) -> Risk:
    return risk_of(tenant_demand(tenants), room, policy, room_by_node)


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
        assert high == pytest.approx(1 / 21)
        assert risk((flat,), 2 * GIB, Policy()).meets_policy is None

    def test_a_week_of_hourly_maxima_meets_the_default_policy(self) -> None:
        hourly = measured([GIB + 1000 * k % 7777 for k in range(168)], days=7.0)
        found = risk((hourly,), 2 * GIB, Policy())
        assert found.meets_policy is True
        assert found.probability is not None
        assert found.probability.high == pytest.approx(1 / 169)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_bound_covers_what_comes_next(self, seed: int) -> None:
        """Of values in any order the next one is above n others with at most 1 / (n + 1), heavy tails included."""
        rng = np.random.default_rng(seed)
        for n, draw in ((20, rng.pareto), (99, rng.pareto), (99, rng.exponential)):
            above, trials = 0, 4000
            for _ in range(trials):
                values = draw(1.5, n + 1)
                above += values[-1] > values[:-1].max()
            assert above / trials <= 1 / (n + 1) + 4 * math.sqrt(1 / (n + 1) / trials)

    def test_what_was_seen_above_the_room_counts(self) -> None:
        values = [3 * GIB] * 5 + [GIB] * 195
        assert probability((measured(values),), 2 * GIB)[1:] == pytest.approx((5 / 200, 6 / 201))

    def test_two_nodes_measured_together_are_one_doubt(self) -> None:
        hour = [GIB + 1000 * (k * 37 % 101) for k in range(168)]
        pair = tuple(replace(measured(hour, days=7.0), name=f"t{i}", numa_node=i) for i in range(2))
        found = risk(pair, 8 * GIB, Policy(), {0: 3 * GIB, 1: 3 * GIB})
        assert found.meets_policy is True
        assert found.probability is not None
        assert found.probability.high == pytest.approx(1 / 169)

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


class TestMeasuringIsNeverLessSure:
    def test_a_request_that_nothing_limits_is_no_bound(self) -> None:
        found = risk((Tenant(name="a", request_bytes=GIB),), 100 * GIB, Policy())
        assert found.meets_policy is None
        assert found.probability is not None
        assert found.probability.high == 0.0
        assert "not all were measured or have a limit" in risk_sentence(found)

    def test_a_limit_is_one(self) -> None:
        once = measured([GIB] * 2)
        limited = replace(once, limit_bytes=2 * GIB)
        assert risk((once,), 2 * GIB, Policy()).meets_policy is None
        assert risk((limited,), 2 * GIB, Policy()).meets_policy is True
        assert risk((limited,), 2 * GIB - 1, Policy()).meets_policy is None

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_history_within_what_was_typed_keeps_the_answer(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sure = 0
        for _ in range(200):
            typed, seen = [], []
            for i in range(int(rng.integers(1, 4))):
                request = int(rng.integers(1, 8)) * GIB
                limit = None if rng.random() < 0.4 else request + int(rng.integers(0, 3)) * GIB
                values = rng.integers(0, request + 1, size=int(rng.integers(1, 300))).tolist()
                count = int(rng.integers(1, 5))
                typed.append(Tenant(name=f"t{i}", count=count, request_bytes=request, limit_bytes=limit))
                seen.append(replace(typed[-1], history=measured(values).history))
            room = int(rng.integers(1, 60)) * GIB
            guessed, known = (risk(tuple(tenants), room, Policy()).meets_policy for tenants in (typed, seen))
            sure += guessed is True
            assert known is True or guessed is not True, (seed, typed, seen, room)
        assert sure > 20


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
