"""The optimiser equals brute force on small random instances."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.choice import integer_program, optimiser
from hugeplan.planner.choice.optimiser import (
    Ask,
    Budgets,
    Option,
    OptionSet,
    allocate,
    best_first,
    is_concave,
    select,
)

NODES = (0, 1)


def fits(costs: list[tuple[int | None, int]], budgets: Budgets) -> bool:
    by_node = {n: sum(c for node, c in costs if node == n) for n in NODES}
    return sum(c for _, c in costs) <= budgets.total and all(by_node[n] <= budgets.by_node[n] for n in NODES)


budgets_of_steps = st.builds(
    lambda a, b, t: Budgets({0: a, 1: b}, t), st.integers(0, 8), st.integers(0, 8), st.integers(0, 14)
)
bound_to = st.sampled_from([None, 0, 1])


@st.composite
def concave_asks(draw: st.DrawFn) -> Ask:
    marginals = sorted(draw(st.lists(st.integers(-2, 40), max_size=6)), reverse=True)
    start = draw(st.integers(0, 10))
    return Ask(tuple(float(x) for x in itertools.accumulate([start, *marginals])), draw(bound_to))


any_ask = st.builds(
    lambda values, node: Ask(tuple(map(float, values)), node),
    st.lists(st.integers(0, 60), min_size=1, max_size=6),
    bound_to,
)


def best_allocation(asks: list[Ask], budgets: Budgets) -> float:
    best = float("-inf")
    for steps in itertools.product(*(range(len(a.benefits)) for a in asks)):
        if fits([(a.numa_node, k) for a, k in zip(asks, steps, strict=True)], budgets):
            value = sum(a.benefits[k] for a, k in zip(asks, steps, strict=True))
            best = max(best, value)
    return best


class TestAllocate:
    @given(st.lists(concave_asks(), min_size=1, max_size=4), budgets_of_steps)
    @settings(max_examples=300)
    def test_concave_benefits_equal_brute_force(self, asks: list[Ask], budgets: Budgets) -> None:
        assert all(is_concave(a.benefits) for a in asks)
        found = allocate(asks, budgets)
        assert found.method == "greedy"
        assert fits([(a.numa_node, k) for a, k in zip(asks, found.steps, strict=True)], budgets)
        assert found.benefit == best_allocation(asks, budgets)

    @given(st.lists(any_ask, min_size=1, max_size=4), budgets_of_steps)
    @settings(max_examples=300)
    def test_any_benefits_equal_brute_force(self, asks: list[Ask], budgets: Budgets) -> None:
        found = allocate(asks, budgets)
        assert fits([(a.numa_node, k) for a, k in zip(asks, found.steps, strict=True)], budgets)
        assert found.benefit == best_allocation(asks, budgets)

    def test_weights_decide_who_gets_the_last_step(self) -> None:
        heavy, light = Ask((0.0, 10.0)), Ask((0.0, 9.0))
        found = allocate([light, heavy], Budgets({0: 1, 1: 0}, 1))
        assert found.steps == (0, 1)
        assert found.next_marginal == 9.0


options = st.lists(st.builds(Option, st.integers(0, 12), st.integers(-5, 30).map(float)), min_size=1, max_size=4)
option_sets = st.builds(lambda o, n: OptionSet(tuple(o), n), options, bound_to)


class TestSelect:
    @given(
        st.lists(option_sets, min_size=1, max_size=4),
        st.builds(lambda a, b, t: Budgets({0: a, 1: b}, t), *(st.integers(0, 30) for _ in range(3))),
    )
    @settings(max_examples=300)
    def test_equals_brute_force(self, sets: list[OptionSet], budgets: Budgets) -> None:
        found = select(sets, budgets)
        best = None
        for combination in itertools.product(*(s.options for s in sets)):
            if fits([(s.numa_node, o.cost) for s, o in zip(sets, combination, strict=True)], budgets):
                score = sum(o.score for o in combination)
                best = score if best is None else max(best, score)
        assert found.exact
        assert found.fits == (best is not None)
        if best is None:
            cheapest = sum(min(o.cost for o in s.options) for s in sets)
            assert sum(s.options[i].cost for s, i in zip(sets, found.chosen, strict=True)) == cheapest
        else:
            assert found.score == best

    @given(
        st.lists(option_sets, min_size=1, max_size=4),
        st.builds(lambda a, b, t: Budgets({0: a, 1: b}, t), *(st.integers(0, 30) for _ in range(3))),
    )
    @settings(max_examples=60, deadline=None)
    def test_the_integer_program_equals_brute_force(self, sets: list[OptionSet], budgets: Budgets) -> None:
        """The same small instances, with no combination looked at one by one; sizes as large as a node's memory."""
        unit = 3 * 2**30 + 4096
        sets = [OptionSet(tuple(Option(o.cost * unit, o.score) for o in s.options), s.numa_node) for s in sets]
        budgets = Budgets({i: size * unit for i, size in budgets.by_node.items()}, budgets.total * unit)
        expected = select(sets, budgets)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(optimiser, "EXHAUSTIVE_LIMIT", 0)
            found = select(sets, budgets)
        assert (found.fits, found.score, found.exact) == (expected.fits, expected.score, True)

    def test_a_search_that_ends_at_its_limit_is_not_called_proven_and_still_fits(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """30 instances on two nodes; the limit is of the search's nodes, so any machine ends at the same place."""
        rng, unit = random.Random(7), 2**20
        sets = [
            OptionSet(tuple(Option((c := rng.randrange(1, 40_000)) * unit, c / 1024) for _ in range(3)), i % 2)
            for i in range(30)
        ]
        half = sum(max(o.cost for o in s.options) for s in sets) // 4
        budgets = Budgets({0: half, 1: half}, 2 * half - unit)
        best = select(sets, budgets)
        monkeypatch.setattr(integer_program, "NODE_LIMIT", 0)
        found = select(sets, budgets)
        assert not found.exact
        assert found.fits
        assert fits([(s.numa_node, s.options[i].cost) for s, i in zip(sets, found.chosen, strict=True)], budgets)
        assert 0.9 * best.score < found.score <= best.score
        assert select(sets, budgets) == found

    def test_many_instances_are_chosen_as_well_as_by_dynamic_programming(self) -> None:
        """40 instances of 3 options on one node: 10^19 combinations; the oracle counts every sum of costs."""
        rng = random.Random(5)
        sets = [
            OptionSet(tuple(Option(rng.randrange(1, 40), round(rng.uniform(-3, 30), 3)) for _ in range(3)))
            for _ in range(40)
        ]
        for total in (300, 500, 700):
            table: dict[int, float] = {0: 0.0}
            for s in sets:
                nxt: dict[int, float] = {}
                for used, score in table.items():
                    for o in s.options:
                        if used + o.cost <= total:
                            nxt[used + o.cost] = max(nxt.get(used + o.cost, -1e9), score + o.score)
                table = nxt
            unit = 2**30
            scaled = [OptionSet(tuple(Option(o.cost * unit, o.score) for o in s.options)) for s in sets]
            found = select(scaled, Budgets({}, total * unit))
            assert found.exact
            if table:
                assert found.fits
                assert found.score == pytest.approx(max(table.values()), abs=1e-6)
            else:
                assert not found.fits


class TestBestFirst:
    SETS = (OptionSet((Option(1, 1.0), Option(3, 5.0))), OptionSet((Option(1, 2.0), Option(3, 4.0))))

    def test_all_that_fit_the_highest_score_first(self) -> None:
        assert list(best_first(self.SETS, Budgets({}, 4), 9)) == [(1, 0), (0, 1), (0, 0)]
        assert list(best_first(self.SETS, Budgets({}, 4), 2)) == [(1, 0), (0, 1)]

    @pytest.mark.parametrize("limit", [optimiser.EXHAUSTIVE_LIMIT, 0])
    def test_only_what_is_above(self, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(optimiser, "EXHAUSTIVE_LIMIT", limit)
        for above, found in ((6.0, [(1, 0)]), (7.0, []), (9.0, [])):
            assert list(best_first(self.SETS, Budgets({}, 4), 1, above=above)) == found
        assert list(best_first(self.SETS, Budgets({}, 1), 1)) == []
