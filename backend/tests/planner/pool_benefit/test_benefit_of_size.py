"""What buffer pool is worth: by a measured table, by a working set, or by a stated guess."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hugeplan.planner.choice.optimiser import is_concave
from hugeplan.planner.model import GIB, BenefitPoint, Workload
from hugeplan.planner.pool_benefit.benefit_of_size import hit_ratio, measured_points, pool_benefit, table_says


def table(*rows: tuple[int, float]) -> tuple[BenefitPoint, ...]:
    return tuple(BenefitPoint(pool_bytes=size * GIB, throughput=value) for size, value in rows)


class TestTable:
    def test_two_points_are_straight_lines_and_flat_past_the_end(self) -> None:
        values, basis = pool_benefit(Workload(benefit_points=table((1, 50.0), (3, 100.0))), [GIB, 2 * GIB, 9 * GIB])
        assert values == (50.0, 75.0, 100.0)
        assert "no more past 3 GiB" in basis

    def test_a_dip_is_bridged(self) -> None:
        points = table((1, 50.0), (2, 40.0), (3, 100.0), (4, 90.0))
        values = measured_points(points, np.asarray([2.0 * GIB, 4.0 * GIB]))
        assert values.tolist() == [75.0, 100.0]

    def test_a_smooth_table_is_fitted(self) -> None:
        sizes = (1, 2, 4, 8, 16, 32)
        points = table(*((s, (1000.0**-4 + (max(0.0, np.log(40 / s)) / 0.003) ** 4) ** -0.25) for s in sizes))
        values, basis = pool_benefit(Workload(benefit_points=points), [s * GIB for s in sizes])
        assert "fitted curve" in basis
        expected = [100 * p.throughput / points[-1].throughput for p in points]
        assert values == pytest.approx(expected, rel=0.01)

    def test_it_never_falls(self) -> None:
        points = table((1, 10.0), (2, 90.0), (4, 60.0), (8, 95.0), (16, 50.0))
        values, _ = pool_benefit(Workload(benefit_points=points), [k * GIB for k in range(1, 20)])
        assert all(b >= a - 1e-9 for a, b in itertools.pairwise(values))


class TestWhatTheTableSays:
    def test_points_by_size_and_figures_written_out(self) -> None:
        points = table((45, 127828.82), (5, 42427.57), (25, 108077.56), (15, 78991.67), (75, 133184.7))
        found = table_says(points, 8 * GIB)
        assert found is not None
        assert found.pool_bytes == 8 * GIB
        assert [p.pool_bytes // GIB for p in found.measured] == [5, 15, 25, 45, 75]
        assert "of 133,000 measured at best" in found.statement
        assert "e+" not in found.statement

    def test_the_curve_is_given_between_the_measured_sizes_and_at_each_of_them(self) -> None:
        points = table((45, 127828.82), (5, 42427.57), (25, 108077.56), (15, 78991.67), (75, 133184.7))
        found = table_says(points, 8 * GIB)
        assert found is not None
        sizes = [p.pool_bytes for p in found.fitted]
        assert (sizes[0], sizes[-1]) == (5 * GIB, 75 * GIB)
        assert sizes == sorted(set(sizes))
        assert {p.pool_bytes for p in points} <= set(sizes)
        by_size = {p.pool_bytes: p.throughput for p in found.fitted}
        misses = [math.log(found.end_bytes / size) / found.slope for size in sizes]
        assert list(by_size.values()) == pytest.approx(
            [(found.limit**-4 + max(0.0, miss) ** 4) ** -0.25 for miss in misses], rel=1e-6
        )

    def test_fewer_than_four_sizes_make_no_curve(self) -> None:
        assert table_says(table((1, 50.0), (2, 60.0), (3, 100.0)), GIB) is None


class TestWorkingSet:
    def test_uniform_access_is_a_line_to_the_working_set(self) -> None:
        sizes = np.asarray([1.0, 2.0, 4.0, 8.0]) * GIB
        assert hit_ratio(sizes, 4 * GIB, 0.0) == pytest.approx([0.25, 0.5, 1.0, 1.0], rel=1e-3)

    @pytest.mark.parametrize("zipf_s", [0.5, 0.99, 1.0, 1.5])
    def test_skew_agrees_with_the_sums(self, zipf_s: float) -> None:
        blocks = 100_000
        weights = 1.0 / np.arange(1, blocks + 1) ** zipf_s
        held = 5_000
        exact = float(weights[:held].sum() / weights.sum())
        found = float(hit_ratio(np.asarray([held * 8192.0]), blocks * 8192, zipf_s)[0])
        assert found == pytest.approx(exact, abs=0.001)

    def test_it_is_concave(self) -> None:
        values, basis = pool_benefit(Workload(working_set_bytes=64 * GIB, zipf_s=0.99), [k * GIB for k in range(1, 80)])
        assert is_concave(values, tolerance=1e-6)
        assert "Zipf s = 0.99" in basis


def test_nothing_known_is_said() -> None:
    values, basis = pool_benefit(Workload(), [GIB, 2 * GIB, 4 * GIB])
    assert values == pytest.approx((0.0, 10.0, 20.0))
    assert "not given" in basis
