"""``python -m validate.fresh_cells WORK_DIR ... --machine NAME``: keep what ``validate.matrix`` measured.

Each cell of a matrix becomes a row of ``cells.csv``, from which the model's error is fitted, and a row of
``validation_runs.json``, which the Evidence page and docs/model-results.md show. A cell is kept where it has at least
two rounds, since servers change roles between rounds and what is left of their difference is noise.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hugeplan.measuring.batches import Pair
from validate.compare import median_speedup
from validate.matrix import Cell, cells, rounds_of
from validate.model_error import CELLS

RUNS = Path(__file__).resolve().parents[1] / "hugeplan" / "evidence" / "validation_runs.json"
LEAST_ROUNDS = 2


def percent(ratio: float) -> float:
    """A speed-up (1.05) in per cent (5.0), to a tenth."""
    return round(100.0 * (ratio - 1.0), 1)


def _clients(case: str) -> int:
    return int(case.split(maxsplit=1)[0])


def csv_row(cell: Cell, made: dict[str, Any], rounds: Sequence[Sequence[Pair]], words: argparse.Namespace) -> list[Any]:
    """The cell as ``cells.csv`` has it."""
    by_round = " ".join(f"{percent(median_speedup(pairs)):g}" for pairs in rounds)
    return [
        words.machine,
        words.date,
        words.run,
        words.other_work,
        cell.row_bytes,
        "key_lookup",
        _clients(cell.case),
        round(made["base_cpu_ns"] / 1000.0, 1),
        percent(cell.predicted.likely),
        "",
        "no",
        round(100.0 * cell.noise, 2),
        percent(cell.cpu),
        percent(cell.throughput),
        by_round,
        "server",
    ]


def run_row(cell: Cell, rounds: Sequence[Sequence[Pair]], words: argparse.Namespace) -> dict[str, Any]:
    """The cell as ``validation_runs.json`` has it, with the verdict that its own figures give."""
    likely = cell.predicted.likely
    below = likely - math.hypot(likely - cell.predicted.low, cell.noise)
    above = likely + math.hypot(cell.predicted.high - likely, cell.noise)
    low, high, measured = percent(cell.predicted.low), percent(cell.predicted.high), percent(cell.cpu)
    inside = low <= measured <= high
    within = percent(below) <= measured <= percent(above)
    return {
        "date": words.date,
        "machine": words.described,
        "configuration": f"{words.configuration}, rows of {cell.row_bytes} B",
        "case": cell.case,
        "predicted_percent": {"low": low, "likely": percent(likely), "high": high},
        "noise_range_percent": {"low": percent(below), "high": percent(above)},
        "measured_percent": measured,
        "measured_throughput_percent": percent(cell.throughput),
        "measured_rounds_percent": [percent(median_speedup(pairs)) for pairs in rounds],
        "verdict": "inside" if inside else "within_noise" if within else "outside",
        "note": words.note,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Add the cells of finished matrices to the committed data."""
    parser = argparse.ArgumentParser(prog="validate.fresh_cells", description=str(__doc__).splitlines()[0])
    parser.add_argument("work_dirs", type=Path, nargs="+", help="folders that validate.matrix was given")
    parser.add_argument("--machine", required=True, help="short name, as in cells.csv: 'AMD Zen 3 guest'")
    parser.add_argument("--described", required=True, help="for people: processor, CPUs, memory, host pages")
    parser.add_argument("--date", required=True)
    parser.add_argument("--run", required=True, help="a short name of these runs")
    parser.add_argument("--other-work", choices=("yes", "no"), required=True)
    parser.add_argument("--configuration", required=True, help="'2 GiB of data, shared_buffers 2.5 GiB'")
    parser.add_argument("--note")
    words = parser.parse_args(arguments)
    rows, runs, left = [], [], 0
    for folder in words.work_dirs:
        parts = json.loads((folder / "matrix.json").read_text(encoding="utf-8"))
        for cell in cells(parts):
            rounds = rounds_of(parts, cell.row_bytes, cell.case)
            if len(rounds) < LEAST_ROUNDS:
                left += 1
                continue
            rows.append(csv_row(cell, parts[f"{cell.row_bytes} prediction {cell.case}"], rounds, words))
            runs.append(run_row(cell, rounds, words))
    with CELLS.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    document = json.loads(RUNS.read_text(encoding="utf-8"))
    document["items"] += runs
    RUNS.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    widths = [abs(r["measured_rounds_percent"][0] - r["measured_rounds_percent"][1]) for r in runs]
    apart = f"; their rounds differ by {statistics.median(widths):.1f} points (median)" if widths else ""
    print(f"{len(rows)} cells kept, {left} with fewer than {LEAST_ROUNDS} rounds left out{apart}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
