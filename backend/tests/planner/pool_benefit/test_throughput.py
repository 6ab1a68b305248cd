"""The buffer-pool curve against oracle 8, and what it refuses to say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, BenefitPoint
from hugeplan.planner.pool_benefit.throughput_curve import BenefitCurve, fit_benefit
from hugeplan.planner.pool_benefit.throughput_table import parse_benefit_table

SIZES_GIB = range(5, 116, 10)
# Percona 2016, tpcc-mysql NOTPM over buffer pool size (published_results.json, article C).
SERIES = {
    "pm1725_16k": """42427.57 78991.67 108077.56 122582.17 127828.82 130724.59
        131901.38 133184.7 133058.5 133553.49 134021.26 134037.09""",
    "pm1725_4k": """73287.07 134466.86 173988.05 195116.8 209513.65 216793.99
        224729.32 229089.61 227588.18 226241.41 224831.81 225632.8""",
    "sam863_16k": """14709.69 31655.18 56777.82 93828.48 123979.99 127971.3
        131020.07 131410.4 131657.16 132882.29 132126.29 132683.55""",
    "sam850_16k": """1931.54 2750.85 5156.72 8986.15 12136.51 19547.81
        27653.94 38210.94 39669.9 39519.18 39631.03 39469.34""",
    "sam850_4k": """2682.29 6587.72 10817.23 11922.59 20316.91 24476.74
        23989.01 23457.18 24400.27 24327.22 24273.07 24073.36""",
}


def table(name: str) -> str:
    """The series as a person would paste it: a heading, then size and throughput."""
    return "pool_gib,notpm\n" + "\n".join(f"{b},{x}" for b, x in zip(SIZES_GIB, SERIES[name].split(), strict=True))


def curve(name: str) -> BenefitCurve:
    return fit_benefit(parse_benefit_table(table(name)))


@pytest.mark.parametrize(
    ("name", "limit", "slope", "end_gib", "nrmse"),
    [
        ("pm1725_16k", 132334.1, 118863.95, 66.51, 0.0144),
        ("pm1725_4k", 225170.8, 246191.1, 94.94, 0.0193),
        ("sam863_16k", 130919.6, 43059.72, 54.01, 0.0158),
        ("sam850_16k", 39469.5, 7560.34, 83.38, 0.0201),
        ("sam850_4k", 24198.0, 8929.56, 66.15, 0.0335),
    ],
)
def test_oracle_8_parameters(*, name: str, limit: float, slope: float, end_gib: float, nrmse: float) -> None:
    fitted = curve(name)
    assert fitted.limit == pytest.approx(limit, rel=0.02)
    assert fitted.slope == pytest.approx(slope, rel=0.02)
    assert fitted.end_bytes / GIB == pytest.approx(end_gib, rel=0.02)
    assert fitted.nrmse == pytest.approx(nrmse, abs=0.0002)


@pytest.mark.parametrize(
    ("name", "at_95", "at_99"),
    [("pm1725_16k", 45, 75), ("pm1725_4k", 65, 75), ("sam850_16k", 75, 85), ("sam850_4k", 55, 55)],
)
def test_oracle_8_knees(name: str, at_95: int, at_99: int) -> None:
    fitted = curve(name)
    assert fitted.knee(0.95).measured_bytes == at_95 * GIB
    assert fitted.knee(0.99).measured_bytes == at_99 * GIB
    crossing = fitted.knee(0.95).fitted_bytes
    assert crossing is not None
    assert fitted.throughput(crossing) == pytest.approx(0.95 * fitted.best, rel=1e-6)


def test_marginal_value_is_the_slope_of_the_curve() -> None:
    fitted = curve("pm1725_16k")
    for gib in (7.0, 20.0, 40.0, 60.0):
        numeric = (fitted.throughput((gib + 0.01) * GIB) - fitted.throughput((gib - 0.01) * GIB)) / 0.02
        assert fitted.marginal_per_gib(gib * GIB) == pytest.approx(numeric, rel=1e-3)
    assert fitted.marginal_per_gib(fitted.end_bytes * 1.01) == 0.0
    stop = fitted.worth_less_than(200.0)
    assert fitted.marginal_per_gib(stop) >= 200.0 > fitted.marginal_per_gib(stop + GIB)


def test_outside_the_data_it_says_so() -> None:
    fitted = curve("pm1725_4k")
    inside, beyond, below = (fitted.estimate(gib * GIB) for gib in (50, 500, 1))
    assert not inside.extrapolated
    assert beyond.extrapolated
    assert "outside the measured 5 to 115 GiB" in beyond.note
    assert beyond.throughput <= fitted.best
    assert below.extrapolated


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("8GiB 100\n16GiB\t150\n", [(8, 100), (16, 150)]),
        ("# a comment\nsize;tps\n\n8;100\n16;150", [(8, 100), (16, 150)]),
        ("8192MiB, 1e2", [(8, 100)]),
        ("| pool (MiB) | tps |\n|---|---:|\n| 8192 | 100 |", [(8, 100)]),
        ("\ufeffsize;tps\n8,0;100,0", [(8, 100)]),
    ],
)
def test_pasted_tables(text: str, points: list[tuple[int, int]]) -> None:
    assert [(p.pool_bytes // GIB, p.throughput) for p in parse_benefit_table(text)] == points


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 100\n16", "line 2"),
        ("8 100\n16XB 3", "line 2"),
        ("8 100\n16 fast", "line 2"),
        ("8 100\n16 150tps", "line 2"),
        ("", "lines of a pool size and a throughput"),
        ("8 100\n" * 10_001, "at most 10000"),
        ("8,100,5", "more columns need a heading for each"),
        ("size,tps,p99\n8,100", "3 columns, as in the heading"),
        ("run,size MiB\n8,100", "the pool size in the first column"),
        ("1,234;100", "line 1"),
        ("8;100\n1,234;100", "line 2"),
        (f'8,100\n16,"{"1" * 140_000}', "line 2"),
    ],
)
def test_a_wrong_line_is_named(text: str, expected: str) -> None:
    with pytest.raises(PlannerError, match=expected):
        parse_benefit_table(text)


@pytest.mark.parametrize(
    "points",
    [
        [(1, 1.0), (2, 2.0), (3, 2.5)],
        [(1, 1.0), (2, 2.0), (3, 2.5), (3, 2.6)],
        [(1, 1.0), (2, 2.0), (3, 2.5), (4, 0.0)],
        [(0, 1.0), (2, 2.0), (3, 2.5), (4, 3.0)],
    ],
)
def test_points_that_cannot_be_fitted(points: list[tuple[int, float]]) -> None:
    with pytest.raises(PlannerError, match="benefit"):
        fit_benefit(tuple(BenefitPoint(pool_bytes=size * GIB, throughput=value) for size, value in points))


@settings(deadline=None, max_examples=25)
@given(limit=st.floats(10, 1e6), slope_share=st.floats(0.2, 3.0), end_gib=st.floats(20, 100))
def test_exact_data_gives_its_parameters_back(limit: float, slope_share: float, end_gib: float) -> None:
    made = BenefitCurve(limit, limit * slope_share, end_gib * GIB, 0.0, ())
    points = tuple(
        BenefitPoint(pool_bytes=gib * GIB, throughput=made.throughput(gib * GIB)) for gib in range(4, 121, 6)
    )
    fitted = fit_benefit(points)
    assert fitted.nrmse < 1e-4
    for gib in (5, 15, 60, 119):
        assert fitted.throughput(gib * GIB) == pytest.approx(made.throughput(gib * GIB), rel=2e-3)
