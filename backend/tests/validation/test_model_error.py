"""The fit of the model's error: against known truth, and against what is committed."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from validate.model_error import CELLS, LEAST_CELLS, RESULT, Cell, fit, left_out, read_cells, result


def test_the_committed_result_is_that_of_the_committed_cells() -> None:
    assert json.loads(RESULT.read_text(encoding="utf-8")) == result(), "python -m validate.model_error --write"


@pytest.mark.parametrize("method", ["reml", "moments"])
@pytest.mark.parametrize(
    ("model_sd", "noise_sd", "least"),
    # 600 tries scatter by 1.2 points (one sd). Where the noise is as large as the error, 16 cells are too few to tell
    # them apart, and the range of what is gained holds less than nine in ten.
    [(4.0, 1.5, 0.87), (4.0, 3.0, 0.86), (3.0, 0.0, 0.87), (2.0, 2.0, 0.78)],
)
def test_noise_is_taken_out_and_new_cells_are_held(method: str, model_sd: float, noise_sd: float, least: float) -> None:
    """Truth is known: of many fits to 16 cells, nine in ten of the true errors of new cells lie inside, and nine in ten
    of what one measurement shows. Noise of the committed cells is a third of the error."""
    made = np.random.default_rng(26)
    sds, held, shown, tries = [], 0, 0, 600
    for _ in range(tries):
        noise = noise_sd * made.uniform(0.5, 1.5, 16)
        found = fit(1.0 + made.normal(0.0, model_sd, 16) + made.normal(0.0, 1.0, 16) * noise, noise, method)
        sds.append(found.model_sd)
        truth = 1.0 + made.normal(0.0, model_sd)
        held += abs(truth - found.bias) <= found.reach()
        shown += abs(truth + made.normal(0.0, noise_sd) - found.bias) <= found.reach(noise_sd)
    assert np.sqrt(np.mean(np.square(sds))) == pytest.approx(model_sd, rel=0.15), "not the noise with it"
    assert held / tries > least
    assert shown / tries > 0.86


def test_noise_alone_is_no_error_of_the_model() -> None:
    made = np.random.default_rng(1)
    noise = np.full(40, 3.0)
    assert fit(made.normal(0.0, 3.0, 40), noise).model_sd < 1.5
    assert fit(made.normal(0.0, 3.0, 40), 0.0 * noise).model_sd == pytest.approx(3.0, rel=0.3)


def test_a_rate_that_was_polled_is_in_no_fit() -> None:
    """Batches of 100 ms that ended at the next look, 20 ms apart: such rates differ by steps, not by page sizes."""
    with CELLS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, cell in zip(rows, read_cells(), strict=True):
        assert row["rate_clock"] in ({"polled", "server"} if row["throughput_percent"] else {""})
        assert len(cell.measured) == (2 if row["rate_clock"] == "server" and row["cpu_percent"] else 1)


def test_what_rounds_differ_by_is_noise() -> None:
    """Servers start anew between rounds: cells whose batches agree can still be off by a round's start."""
    cells = [cell for cell in read_cells() if cell.run == "zen4-pg15"]
    assert {cell.round_sd for cell in cells if cell.clients == 1} != {
        cell.round_sd for cell in cells if cell.clients == 8
    }
    for cell in cells:
        assert cell.round_sd is not None
        assert cell.noise_sd >= cell.round_sd / np.sqrt(2.0) - 1e-9


def test_cells_that_were_disturbed_do_not_count() -> None:
    def cell(**fields: object) -> Cell:
        plain = {"machine": "a", "other_work": False, "row_bytes": 128, "operation": "key_lookup", "clients": 8}
        return Cell(**{**plain, "likely": 5.0, "measured": (5.0,), "equal_pages_differ": 3.0, **fields})  # type: ignore[arg-type]

    assert cell().is_quiet
    assert cell(equal_pages_differ=None).is_quiet
    assert not cell(other_work=True).is_quiet
    assert not cell(equal_pages_differ=35.0).is_quiet


def test_a_machine_that_is_left_out_is_judged_by_the_others_alone() -> None:
    def cells(machine: str, difference: float) -> list[Cell]:
        return [
            Cell(machine, False, 128, "key_lookup", 8, 5.0, (5.0 + difference + step,), None)
            for step in np.linspace(-1.0, 1.0, LEAST_CELLS)
        ]

    rows = left_out([*cells("a", 0.0), *cells("b", 30.0)])
    assert [(row["machine"], row["inside"]) for row in rows] == [("a", 0), ("b", 0)]
    assert left_out(cells("a", 0.0))[0]["inside"] is None, "nothing else to judge it by"


def test_cells_of_earlier_models_are_brought_to_todays() -> None:
    """128 B and 8 clients at 45 us: +3.6 % then; slow operations wait longer now, and more accesses are counted."""
    then = next(cell for cell in read_cells() if cell.run == "zen3-busy3" and cell.measured == (6.7,))
    assert (then.row_bytes, then.clients) == (128, 8)
    share = 0.036 / 1.036 * 1.5 * 1.085
    assert then.likely == pytest.approx(100 * share / (1 - share), rel=0.001)
