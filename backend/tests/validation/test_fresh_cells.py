"""What a finished matrix adds to the committed cells."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from validate import fresh_cells, model_error


def _rounds(ratio: float) -> list[dict[str, dict[str, float]]]:
    base, huge = {"rate": 1000.0, "cpu_ns": 20_000.0}, {"rate": 1000.0 * ratio, "cpu_ns": 20_000.0 / ratio}
    return [{"first": base, "second": huge} for _ in range(8)]


def test_a_cell_of_two_rounds_is_kept_with_both_and_one_round_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, runs = tmp_path / "cells.csv", tmp_path / "runs.json"
    written.write_text(model_error.CELLS.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    runs.write_text('{"items": []}', encoding="utf-8")
    monkeypatch.setattr(fresh_cells, "CELLS", written)
    monkeypatch.setattr(fresh_cells, "RUNS", runs)
    prediction = {
        "row_bytes": 128,
        "case": "1 client",
        "speedup": {"low": 0.98, "likely": 1.04, "high": 1.06},
        "base_cpu_ns": 20_000.0,
        "noise": 0.05,
    }
    parts = {
        "128 prediction 1 client": prediction,
        "128 round 1 1 client": _rounds(1.07),
        "128 round 2 1 client": _rounds(1.09),
        "256 prediction 1 client": {**prediction, "row_bytes": 256},
        "256 round 1 1 client": _rounds(1.07),
    }
    (tmp_path / "matrix.json").write_text(json.dumps(parts), encoding="utf-8")
    words = {"machine": "a guest", "described": "a guest", "date": "2026-01-02", "run": "r", "other-work": "no"}
    given = [word for name, value in words.items() for word in (f"--{name}", value)]
    assert fresh_cells.main([str(tmp_path), *given, "--configuration", "2 GiB of data, shared_buffers 3 GiB"]) == 0

    (cell,) = model_error.read_cells(written)
    assert (cell.row_bytes, cell.clients, cell.likely) == (128, 1, pytest.approx(4.0))
    assert cell.rounds == (7.0, 9.0)
    assert cell.measured[0] == pytest.approx(8.0, abs=0.11)
    with written.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert None not in {*rows[0], *rows[0].values()}, "as many fields as names"
    (run,) = json.loads(runs.read_text(encoding="utf-8"))["items"]
    assert run["verdict"] == "within_noise", "+8 is outside -2 to +6, and inside with the noise of 5 points"
    assert run["measured_rounds_percent"] == [7.0, 9.0]
