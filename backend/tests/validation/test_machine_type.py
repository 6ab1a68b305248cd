"""Trials on a machine type narrow the range of its untried nodes: against known truth, from cells to the new range."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import mean

import numpy as np
import pytest

from hugeplan.planner.demand.model_error import ModelError, calibrated, class_of
from hugeplan.planner.model import MIB, TrialDifference
from validate.model_error import Cell, described, fit_parts, weights

M2 = 2 * MIB
BIAS, ERROR_SD, CELL_NOISE_SD, TRIAL_NOISE_SD = 1.5, 4.0, 1.0, 0.6
Draw = Callable[[int], np.ndarray]


def a_machine_type(made: np.random.Generator, share: float) -> Draw:
    """Draws true differences in points of cells of one machine type that share this part of the error's variance."""
    of_type = made.normal(0.0, ERROR_SD * np.sqrt(share))
    return lambda count: BIAS + of_type + made.normal(0.0, ERROR_SD * np.sqrt(1.0 - share), count)


def cells_of(made: np.random.Generator, share: float, machines: int, each: int = 8) -> list[Cell]:
    found = []
    for machine in range(machines):
        differences = a_machine_type(made, share)(each) + made.normal(0.0, CELL_NOISE_SD, each)
        noise = CELL_NOISE_SD * 2.0 * np.sqrt(2.0)
        found += [
            Cell(str(machine), False, 128, "key_lookup", 8, 5.0, (5.0 + d,), noise, (5.0 + d,) * 2) for d in differences
        ]
    return found


def published(cells: list[Cell]) -> ModelError:
    return class_of(described("rows_inline", "simulated", cells))


def trials(points: list[float], noise_sd: float = TRIAL_NOISE_SD, **changes: object) -> list[TrialDifference]:
    fields = {"engine": "postgresql", "error_class": "rows_inline", "page_bytes": M2, "fractured": True} | changes
    return [TrialDifference(difference=float(each) / 100, noise_sd=noise_sd / 100, **fields) for each in points]  # type: ignore[arg-type]


def after(error: ModelError, *points: float, noise_sd: float = TRIAL_NOISE_SD) -> ModelError:
    return calibrated(error, trials(list(points), noise_sd), engine="postgresql")


def width(error: ModelError) -> float:
    return 100 * (error.gained[1] - error.gained[0])


@pytest.mark.parametrize("machines", [2, 6])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_untried_nodes_lie_inside_whatever_a_type_shares(share: float, machines: int) -> None:
    """Nine in ten true gains of untried nodes, over many publications, for a part shared by the type that is known
    here and to nobody else. What a type shares is badly known from two machines, and before any trial the published
    range then holds fewer; trials only ever mend that. Counts scatter by 0.02 (nodes of a type are drawn together)."""
    made = np.random.default_rng(49)
    counts = (0, 1, 3, 10)
    held, widths, tries = dict.fromkeys(counts, 0), {count: [] for count in counts}, 0  # type: ignore[var-annotated]
    for _ in range(25):
        error = published(cells_of(made, share, machines))
        for _ in range(6):
            draw = a_machine_type(made, share)
            shown = draw(10) + made.normal(0.0, TRIAL_NOISE_SD, 10)
            truth = draw(10) / 100
            tries += 10
            for count in counts:
                found = after(error, *shown[:count])
                low, high = (found.moved + end for end in found.gained)
                held[count] += int(((low <= truth) & (truth <= high)).sum())
                widths[count].append(width(found))
    inside = {count: held[count] / tries for count in counts}
    print(f"{machines} machines, share {share}:", {count: (inside[count], mean(widths[count])) for count in counts})
    assert all(inside[count] > min(0.9, inside[0]) - 0.03 for count in counts), inside
    assert min(inside[3], inside[10]) > (0.87 if machines == 6 else 0.84), inside
    for fewer, more in pairwise(counts):
        assert mean(widths[more]) < mean(widths[fewer]) + 0.1, "more trials never leave a wider range"
    if share == 0.9:
        assert mean(widths[10]) < 0.6 * mean(widths[0])


def test_more_trials_that_agree_narrow_more_and_move_to_what_they_show() -> None:
    error = published(cells_of(np.random.default_rng(3), 0.6, 8))
    found = [after(error, *[5.0] * count) for count in (1, 2, 4, 8, 16)]
    widths = [width(each) for each in (error, *found)]
    assert widths == sorted(widths, reverse=True)
    moved = [100 * each.moved for each in found]
    assert moved == sorted(moved)
    assert 4.0 < moved[-1] < 5.0
    assert found[2].said.startswith("4 trials on nodes of this machine type moved the likely gain by +")
    assert after(error, 5.0).said.startswith("1 trial on a node of this machine type moved")
    assert "narrowed the model's error around it, from" in found[2].said


def test_trials_that_are_noise_change_nothing() -> None:
    error = published(cells_of(np.random.default_rng(4), 0.6, 8))
    found = after(error, 8.0, -7.0, 9.0, noise_sd=1e4)
    assert 100 * found.moved == pytest.approx(0.0, abs=0.01)
    assert found.gained == pytest.approx(error.gained, abs=2e-4)
    assert found.one_measurement == pytest.approx(error.one_measurement, abs=2e-4)


def test_trials_that_contradict_each_other_do_not_narrow() -> None:
    error = published(cells_of(np.random.default_rng(5), 0.3, 4))
    found = after(error, 12.0, -9.0, 12.0, -9.0)
    assert width(found) > width(error)
    assert "widened" in found.said


def test_one_odd_node_counts_as_no_farther_than_three_deviations() -> None:
    error = published(cells_of(np.random.default_rng(6), 0.3, 4))
    assert after(error, 190.0) == after(error, 60.0)


@pytest.mark.parametrize("changes", [{"engine": "mariadb"}, {"error_class": "rows_out_of_line"}])
def test_trials_of_something_else_do_not_count(changes: dict[str, object]) -> None:
    error = published(cells_of(np.random.default_rng(7), 0.3, 4))
    assert calibrated(error, trials([5.0], **changes), engine="postgresql") is error


def test_both_parts_are_found_where_machines_are_many() -> None:
    made = np.random.default_rng(8)
    found = np.array([fit_parts(cells_of(made, 0.5, 15)) for _ in range(8)])
    assert np.sqrt((found**2).mean(axis=0)) == pytest.approx([ERROR_SD * np.sqrt(0.5)] * 2, rel=0.2)
    alone = np.array([fit_parts(cells_of(made, 0.0, 15)) for _ in range(8)])
    assert np.sqrt((alone**2).mean(axis=0))[0] < 1.0


def test_few_machines_are_said_to_be_few_and_keep_many_pairs() -> None:
    made = np.random.default_rng(9)
    few, many = (described("x", "x", cells_of(made, 0.5, machines)) for machines in (2, 12))
    assert (few["parts_told_apart"], many["parts_told_apart"]) == (False, True)
    assert "2 machines are too few" in few["parts_why"]
    for row in (few, many):
        assert sum(weight for *_, weight in row["variances"]) == pytest.approx(1.0, abs=0.01)
    shares = [
        sum(weight for of_type, of_cell, weight in weights(cells_of(made, share, 15)) if of_type > of_cell)
        for share in (0.1, 0.9)
    ]
    assert shares[0] < 0.1
    assert shares[1] > 0.9
