"""The win matrix: shares that sum, ties that count for nobody, deltas against the base size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hugeplan.planner.evaluation.win_matrix import TIE, Timing, WinCase, cases_of_curves, win_matrix, winner
from hugeplan.planner.model import CurvePoint, LatencyCurve


def exact(value: float) -> Timing:
    return Timing(value, value, value)


def test_article_e_in_its_own_form() -> None:
    """259 cases made to the article's counts give its shares back: 45, 30, 20 and 5 % of ties."""
    counts = {"1G": 117, "2M": 78, "4K": 52}
    cases = []
    for best, count in counts.items():
        for n in range(count):
            timings = {name: exact(90.0 if name == best else 100.0) for name in counts}
            cases.append(WinCase(f"machine {n % 4}", f"{best} {n}", timings))
    cases += [WinCase("machine 0", f"tie {n}", dict.fromkeys(counts, exact(100.0))) for n in range(12)]
    matrix = win_matrix(cases)
    assert matrix.cases == 259
    assert {name: round(100 * share) for name, share in matrix.shares.items()} == {"1G": 45, "2M": 30, "4K": 20, TIE: 5}
    assert len(matrix.machines) == 4
    assert {machine.best for machine in matrix.machines} == {"1G"}


def test_overlapping_intervals_are_a_tie() -> None:
    assert winner({"4K": Timing(100, 98, 102), "2M": Timing(99, 97, 101)}) == TIE
    assert winner({"4K": Timing(100, 98, 102), "2M": Timing(90, 89, 91)}) == "2M"
    assert winner({"4K": Timing(80, 79, 81), "2M": Timing(90, 89, 91)}) == "4K"


def test_deltas_are_geometric_means_against_the_base() -> None:
    cases = [
        WinCase("a", "1", {"4K": exact(100), "2M": exact(50)}),
        WinCase("a", "2", {"4K": exact(100), "2M": exact(200)}),
        WinCase("a", "3", {"2M": exact(10), "1G": exact(5)}),
    ]
    summary = win_matrix(cases).machines[0]
    assert summary.cases == 3
    assert summary.mean_delta_percent == {"2M": pytest.approx(0.0), "4K": 0.0}
    assert summary.wins == {"2M": 1, "4K": 1, "1G": 1}


def test_curves_become_cases_where_two_sizes_meet() -> None:
    def curve(backing: str, page: int, footprints: list[int], ns: float) -> LatencyCurve:
        points = tuple(CurvePoint(f, ns, ns - 1, ns + 1) for f in footprints)
        return LatencyCurve(backing=backing, page_bytes=page, layout="random_64b", points=points)

    cases = cases_of_curves("node", [curve("4K", 4096, [1, 2, 3], 100), curve("2M", 2 << 20, [2, 3, 4], 90)])
    assert [case.name for case in cases] == ["random_64b 2 bytes", "random_64b 3 bytes"]
    assert win_matrix(cases).shares["2M"] == 1.0


def test_nothing_measured_is_nothing_said() -> None:
    matrix = win_matrix([WinCase("a", "1", {"4K": exact(1)})])
    assert matrix.cases == 0
    assert matrix.shares == {}
    assert matrix.machines == ()


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["4K", "THP", "2M", "1G"]), st.floats(1, 1e6), min_size=1, max_size=4),
        min_size=1,
        max_size=30,
    )
)
def test_shares_sum_to_one(values: list[dict[str, float]]) -> None:
    cases = [WinCase(f"m{n % 3}", str(n), {k: exact(v) for k, v in d.items()}) for n, d in enumerate(values)]
    matrix = win_matrix(cases)
    if matrix.cases:
        assert sum(matrix.shares.values()) == pytest.approx(1.0)
        assert sum(m.cases for m in matrix.machines) == matrix.cases
        assert all(sum(m.wins.values()) == m.cases for m in matrix.machines)


def test_the_base_is_the_smallest_page_of_the_machine() -> None:
    """A node with 64K base pages has no 4K to compare with."""

    def curve(backing: str, page: int, ns: float) -> LatencyCurve:
        points = (CurvePoint(1 << 30, ns, ns, ns),)
        return LatencyCurve(backing=backing, page_bytes=page, layout="random_64b", points=points)

    cases = cases_of_curves("arm", [curve("512M", 512 << 20, 80), curve("64K", 64 << 10, 100)])
    summary = win_matrix(cases).machines[0]
    assert summary.mean_delta_percent == {"512M": pytest.approx(-20.0), "64K": 0.0}


def test_ties_still_say_whose_median_is_smallest() -> None:
    close = {"4K": Timing(100, 90, 110), "2M": Timing(99, 89, 109)}
    matrix = win_matrix([WinCase("a", "1", close)])
    assert matrix.shares[TIE] == 1.0
    assert matrix.lowest == {"4K": 0.0, "2M": 1.0}


def test_a_point_without_a_time_is_no_case() -> None:
    points = (CurvePoint(1 << 20, 0.0, 0.0, 0.0),)
    curves = [LatencyCurve(backing=b, page_bytes=p, layout="l", points=points) for b, p in (("4K", 1), ("2M", 2))]
    assert cases_of_curves("m", curves) == ()
