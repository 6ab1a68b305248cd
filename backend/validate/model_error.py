"""``python -m validate.model_error [--write]``: how far the model errs, with the measuring noise taken out.

A measured gain differs from the likely one by the model's error and by the measuring noise. Per class of cells this
fits ``difference_i = bias + error_i + noise_i`` with ``error_i ~ N(0, sd^2)`` and the noise of each cell known (random
effects; ``sd`` by restricted maximum likelihood, checked against the method of moments). Two ranges follow, both for a
cell that was not among the fitted ones:

* what is gained: ``bias -+ t sqrt(sd^2 + var(bias))``, with Student's t of n - 2 degrees (Higgins, Thompson and
  Spiegelhalter, J. R. Stat. Soc. A 172, 2009, "A re-evaluation of random-effects meta-analysis");
* what one measurement will show: the same with the noise of one quiet measurement added.

An error has two parts: one that all cells of a machine type share, and one of each cell. The range of a cell that was
not compared needs their sum alone; trials on a type tell the first (docs/adr/0049). :func:`fit_parts` fits both, with
blocks per machine, and :func:`weights` says what the cells say for each pair of them. Few machines tell them apart
badly: then many pairs keep weight, and the planner counts with all of them.

``cells.csv`` holds the cells as docs/model-results.md has them. Gains of cells that were predicted by an earlier model
are brought to today's: ``count_ratio`` is the saving by today's counts of accesses over that of then (same shape,
prices assumed), ``without_slowdown`` says that the slowdown of slow operations was not in the model yet.
``rate_clock`` says how throughput was timed: ``server`` is the server's own clock; ``polled`` are cells before
2026-11-25, whose batches of about 100 ms ended at the next look 20 ms apart. Their throughput is data, and in no fit.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

from hugeplan.planner.demand.accesses import CLIENT_OPERATION_NS, LONGEST_SLOWDOWN
from hugeplan.planner.demand.engines.postgresql_accesses import PG_TOAST_THRESHOLD_BYTES

CELLS = Path(__file__).with_name("cells.csv")
RESULT = Path(__file__).resolve().parents[1] / "hugeplan" / "planner" / "demand" / "model_error.json"

PLOT = Path(__file__).resolve().parents[2] / "docs" / "images" / "model-error.svg"

LARGEST_NOISE_POINTS = 10.0
"""A cell counts where equal pages differed by at most this and nothing of ours ran beside it."""

COVERED = 0.9
"""Share of new cells that a range is to hold."""

LEAST_MACHINES = 4
"""Fewer machines do not tell the part that a type's cells share from the part of each cell."""

SHARES = tuple(step / 10.0 for step in range(10))
SUMS = (0.7, 1.0, 1.4, 2.0)
"""The pairs of variances that are weighed: the type's share of the variance, and the standard deviation of both parts
together over the fitted one. Before any cell all pairs count alike."""

LEAST_WEIGHT = 0.001
"""Pairs that the cells say less for are left out."""

LEAST_CELLS = 5
"""Fewer cells make no class of their own: they stay in the class of all clients, or keep the range of their parts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, gains and noise in points. ``rounds``: gains of its rounds, between which the servers change roles.

    ``other_work``: work of ours ran beside it. ``equal_pages_differ`` is None where it was not recorded, and counts as
    none then. ``round_sd``: how far one round of this run is off, pooled over all cells of the run: a round starts both
    servers anew, and where a start puts their memory changes a gain by more than its batches scatter.
    """

    machine: str
    other_work: bool
    row_bytes: int | None
    operation: str
    clients: int | None
    likely: float
    measured: tuple[float, ...]
    equal_pages_differ: float | None
    rounds: tuple[float, ...] = ()
    run: str = ""
    round_sd: float | None = None

    @property
    def difference(self) -> float:
        """Measured (mean of its one or two ways) less likely."""
        return statistics.mean(self.measured) - self.likely

    @property
    def noise_sd(self) -> float:
        """What rounds say, or equal pages where that is more: those differ by twice the error of half the pairs."""
        by_rounds = 0.0 if self.round_sd is None else self.round_sd / math.sqrt(len(self.rounds))
        return max(by_rounds, (self.equal_pages_differ or 0.0) / (2.0 * math.sqrt(2.0)))

    @property
    def is_quiet(self) -> bool:
        return not self.other_work and (self.equal_pages_differ or 0.0) <= LARGEST_NOISE_POINTS


def read_cells(path: Path = CELLS) -> list[Cell]:
    """The committed cells, with the likely gain that today's model gives them."""
    with path.open(encoding="utf-8", newline="") as file:
        cells = [_cell(row) for row in csv.DictReader(file)]
    return [replace(cell, round_sd=_round_sd(cell, cells)) for cell in cells]


def _round_sd(cell: Cell, cells: Sequence[Cell]) -> float | None:
    """How far one round of such a cell is off in points, pooled over the cells of its run; None where it had one round.

    One client and several clients are pooled apart.
    """
    if len(cell.rounds) < 2:
        return None
    alike = [
        other.rounds
        for other in cells
        if len(other.rounds) > 1 and (other.run, other.clients == 1) == (cell.run, cell.clients == 1)
    ]
    squares = sum(statistics.variance(rounds) * (len(rounds) - 1) for rounds in alike)
    return math.sqrt(squares / sum(len(rounds) - 1 for rounds in alike))


def _cell(row: dict[str, str]) -> Cell:
    then = float(row["likely_then_percent"])
    scale = float(row["count_ratio"] or 1.0)
    if row["without_slowdown"] == "yes":
        slower = 1000.0 * float(row["operation_us"]) / CLIENT_OPERATION_NS.likely
        scale *= math.sqrt(min(LONGEST_SLOWDOWN, max(1.0, slower)))
    share = scale * then / (100.0 + then)
    return Cell(
        machine=row["machine"],
        other_work=row["other_work"] == "yes",
        row_bytes=int(row["row_bytes"]) if row["row_bytes"] else None,
        operation=row["operation"],
        clients=int(row["clients"]) if row["clients"] else None,
        likely=100.0 * share / (1.0 - share),
        measured=_measured(row),
        equal_pages_differ=float(row["noise_percent"]) if row["noise_percent"] else None,
        rounds=tuple(float(word) for word in row["rounds_percent"].split()),
        run=row["run"],
    )


def _measured(row: dict[str, str]) -> tuple[float, ...]:
    ways = ("cpu_percent", *(("throughput_percent",) if row["rate_clock"] == "server" else ()))
    return tuple(float(row[name]) for name in ways if row[name])


@dataclass(frozen=True, slots=True)
class Fit:
    """Bias and standard deviation of the model's error in points, and the ranges around the likely gain."""

    cells: int
    bias: float
    bias_sd: float
    model_sd: float

    def reach(self, noise_sd: float = 0.0) -> float:
        """Half the width of the range that holds a new cell, or what one measurement of it with that noise shows."""
        t = stats.t.ppf(0.5 + COVERED / 2.0, self.cells - 2)
        return float(t * math.sqrt(self.model_sd**2 + self.bias_sd**2 + noise_sd**2))

    def holds(self, cell: Cell, *, with_noise: bool = False) -> bool:
        """Whether the cell's measured gain lies in the range of what is gained, or of what it would show."""
        return abs(cell.difference - self.bias) <= self.reach(cell.noise_sd if with_noise else 0.0)


def fit(differences: Sequence[float], noise_sds: Sequence[float], method: str = "reml") -> Fit:
    """The random-effects fit. ``method``: ``reml``, or ``moments`` (Paule and Mandel, J. Res. NBS 87, 1982)."""
    y, v = np.asarray(differences, dtype=float), np.asarray(noise_sds, dtype=float) ** 2 + 1e-9
    largest = 10.0 * float(np.var(y, ddof=1)) + 1.0

    def weighted(variance: float) -> tuple[float, float, float]:
        """(mean, its variance, weighted sum of squares) where the model's error has this variance."""
        w = 1.0 / (v + variance)
        mean = float(np.dot(w, y) / w.sum())
        return mean, 1.0 / float(w.sum()), float(np.dot(w, (y - mean) ** 2))

    def minus_likelihood(variance: float) -> float:
        _, mean_variance, squares = weighted(variance)
        return 0.5 * (float(np.log(v + variance).sum()) - math.log(mean_variance) + squares)

    def too_much(variance: float) -> float:
        return weighted(variance)[2] - (len(y) - 1)

    if method == "reml":
        inside = optimize.minimize_scalar(minus_likelihood, bounds=(0.0, largest), method="bounded")
        variance = float(inside.x) if inside.fun < minus_likelihood(0.0) else 0.0
    else:
        variance = float(optimize.brentq(too_much, 0.0, largest)) if too_much(0.0) > 0.0 else 0.0
    mean, mean_variance, _ = weighted(variance)
    return Fit(len(y), mean, math.sqrt(mean_variance), math.sqrt(variance))


def fit_cells(cells: Sequence[Cell], method: str = "reml") -> Fit:
    """:func:`fit` of cells."""
    return fit([cell.difference for cell in cells], [cell.noise_sd for cell in cells], method)


def fit_parts(cells: Sequence[Cell]) -> tuple[float, float]:
    """Standard deviations of what a machine's cells share and of each cell's own part, by restricted likelihood."""
    start = fit_cells(cells).model_sd

    def minus_likelihood(parts: Sequence[float]) -> float:
        return -_log_likelihood(cells, parts[0], parts[1])

    found = min(
        (
            optimize.minimize(minus_likelihood, (share * start, start), bounds=((0.0, 50.0), (1e-3, 50.0)))
            for share in (0.1, 1.0)
        ),
        key=lambda each: float(each.fun),
    )
    return float(found.x[0]), float(found.x[1])


def _log_likelihood(cells: Sequence[Cell], type_sd: float, cell_sd: float) -> float:
    """Restricted likelihood of both parts; a machine's cells share one draw of the first."""
    y = np.array([cell.difference for cell in cells])
    machines = np.array([cell.machine for cell in cells])
    own = np.array([cell.noise_sd**2 + cell_sd**2 + 1e-9 for cell in cells])
    covariance = type_sd**2 * (machines[:, None] == machines[None, :]) + np.diag(own)
    inverse, ones = np.linalg.inv(covariance), np.ones(len(y))
    information = float(ones @ inverse @ ones)
    off = y - float(ones @ inverse @ y) / information
    return -0.5 * (float(np.linalg.slogdet(covariance)[1]) + math.log(information) + float(off @ inverse @ off))


def weights(cells: Sequence[Cell]) -> list[list[float]]:
    """Standard deviations of both parts in points, and what the cells say for the pair; these weights sum to 1.

    The sum of both and its split are weighed apart: a machine alone says nothing of the split that the sum does not.
    """
    fitted = max(fit_cells(cells).model_sd, 0.1)
    of_sums = np.array([_log_likelihood(cells, 0.0, scale * fitted) for scale in SUMS])
    of_shares = np.array(
        [_log_likelihood(cells, fitted * math.sqrt(share), fitted * math.sqrt(1.0 - share)) for share in SHARES]
    )
    made = np.exp(of_sums[:, None] + of_shares[None, :] - of_sums.max() - of_shares.max())
    made /= made.sum()
    kept = [
        (scale * fitted, share, float(weight))
        for scale, row in zip(SUMS, made, strict=True)
        for share, weight in zip(SHARES, row, strict=True)
        if weight >= LEAST_WEIGHT
    ]
    whole = sum(weight for *_, weight in kept)
    return [
        [round(both * math.sqrt(share), 2), round(both * math.sqrt(1.0 - share), 2), round(weight / whole, 4)]
        for both, share, weight in kept
    ]


def noise_of_one_measurement(cells: Sequence[Cell]) -> float:
    """Standard deviation of one quiet measurement of several rounds, in points (root of the mean square over cells)."""
    return math.sqrt(statistics.mean(cell.noise_sd**2 for cell in cells if len(cell.rounds) > 1))


def left_out(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Per machine: how many of its cells the range holds that is fitted to the cells of all other machines."""
    rows = []
    for machine in sorted({cell.machine for cell in cells}):
        others = [cell for cell in cells if cell.machine != machine]
        own = [cell for cell in cells if cell.machine == machine]
        if len(others) < LEAST_CELLS:
            why = f"{len(others)} cells of other machines are too few"
            rows.append({"machine": machine, "cells": len(own), "inside": None, "why": why})
            continue
        made = fit_cells(others)
        rows.append({"machine": machine, "cells": len(own), "inside": sum(made.holds(cell) for cell in own)})
    return rows


def _points(value: float) -> float:
    return round(value, 1)


def described(name: str, about: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """One class as the result has it."""
    made, moments = fit_cells(cells), fit_cells(cells, "moments")
    held, apart = sum(made.holds(cell) for cell in cells), left_out(cells)
    judged = [row for row in apart if row["inside"] is not None]
    share = sum(row["inside"] for row in judged) / max(1, sum(row["cells"] for row in judged))
    noise_sd = noise_of_one_measurement(cells)
    reach, shown = made.reach(), made.reach(noise_sd)
    type_sd, cell_sd = fit_parts(cells)
    machines = len({cell.machine for cell in cells})
    counted = "1 machine is" if machines == 1 else f"{machines} machines are"
    apart_why = f"{counted} too few to tell them apart: every pair keeps what the cells say for it"
    return {
        "name": name,
        "about": about,
        "cells": made.cells,
        "machines": machines,
        "differences_sd_points": _points(statistics.stdev(cell.difference for cell in cells)),
        "bias_points": _points(made.bias),
        "bias_sd_points": _points(made.bias_sd),
        "model_sd_points": _points(made.model_sd),
        "model_sd_points_by_moments": _points(moments.model_sd),
        "gained_points": {"low": _points(made.bias - reach), "high": _points(made.bias + reach)},
        "one_measurement_points": {"low": _points(made.bias - shown), "high": _points(made.bias + shown)},
        "one_measurement_noise_sd_points": _points(noise_sd),
        "machine_type_sd_points": _points(type_sd),
        "cell_sd_points": _points(cell_sd),
        "parts_told_apart": machines >= LEAST_MACHINES,
        "parts_why": None if machines >= LEAST_MACHINES else apart_why,
        "variances": weights(cells),
        "inside": held,
        "leave_one_machine_out": apart,
        "coverage": "shown" if judged and share >= COVERED else "not shown",
    }


def result() -> dict[str, Any]:
    """The whole result, from the committed cells alone."""
    cells = read_cells()
    clients = [cell for cell in cells if cell.operation == "key_lookup" and cell.row_bytes is not None]
    unclassed = [cell for cell in cells if cell.row_bytes is None]
    quiet = [cell for cell in clients if cell.is_quiet]
    inline = [cell for cell in quiet if (cell.row_bytes or 0) <= PG_TOAST_THRESHOLD_BYTES and cell.clients != 1]
    one = [cell for cell in quiet if (cell.row_bytes or 0) <= PG_TOAST_THRESHOLD_BYTES and cell.clients == 1]
    wide = [cell for cell in quiet if (cell.row_bytes or 0) > PG_TOAST_THRESHOLD_BYTES]
    busy = [cell for cell in clients if not cell.is_quiet]
    classes = [
        described("one_client", f"one client, rows of at most {PG_TOAST_THRESHOLD_BYTES} bytes", one),
        described("rows_inline", f"several clients, rows of at most {PG_TOAST_THRESHOLD_BYTES} bytes", inline),
        described("rows_out_of_line", f"clients, rows above {PG_TOAST_THRESHOLD_BYTES} bytes", wide),
        described("clients", "clients of any row size; where row size or engine were not compared", quiet),
    ]
    of_all = fit_cells(quiet)
    loops = [cell for cell in cells if cell.operation == "nested_loop"]
    return {
        "about": "How far the model's likely gain of a client's operation was off, in points of throughput, with the "
        "measuring noise taken out: the range of what is gained, and of what one measurement will show.",
        "command": "python -m validate.model_error --write",
        "source": "backend/validate/cells.csv",
        "covered": COVERED,
        "bound": f"equal pages differ by at most {LARGEST_NOISE_POINTS:g} points and no other work of ours ran",
        "one_measurement_noise_sd_points": _points(noise_of_one_measurement(quiet)),
        "classes": classes,
        "not_classes": [
            {"name": "loops in the server", "cells": len(loops), "why": "too few: the range of the parts is kept"},
            {"name": "whole pages", "cells": 0, "why": "every guest compared is fractured: the class of its rows"},
        ],
        "checks": {
            "busy_cells": len(busy),
            "busy_inside": sum(of_all.holds(cell, with_noise=True) for cell in busy),
            "row_size_not_recorded_cells": len(unclassed),
            "row_size_not_recorded_inside": sum(of_all.holds(cell) for cell in unclassed),
        },
    }


def text_of(result: dict[str, Any]) -> str:
    """The result for people."""
    lines = [result["about"], f"Cells count where {result['bound']}.", ""]
    for each in result["classes"]:
        gained, shown = each["gained_points"], each["one_measurement_points"]
        lines += [
            f"{each['name']}: {each['about']}; {each['cells']} cells of {each['machines']} machines",
            f"  differences sd {each['differences_sd_points']}, model error sd {each['model_sd_points']}"
            f" (moments {each['model_sd_points_by_moments']}), bias {each['bias_points']:+}",
            f"  gained: likely {gained['low']:+} to {gained['high']:+}; one measurement {shown['low']:+} to"
            f" {shown['high']:+}; inside {each['inside']} of {each['cells']}",
        ]
        lines.append(
            f"  of it shared by a machine type sd {each['machine_type_sd_points']}, each cell's own"
            f" {each['cell_sd_points']}" + ("" if each["parts_told_apart"] else f" ({each['parts_why']})")
        )
        for row in each["leave_one_machine_out"]:
            found = row.get("why") or f"{row['inside']} of {row['cells']} inside"
            lines.append(f"  without {row['machine']}: {found}")
        lines.append(f"  coverage of {result['covered']:.0%} on a machine that was left out: {each['coverage']}")
    checks = result["checks"]
    lines += [
        *(f"no class: {row['name']}, {row['cells']} cells: {row['why']}" for row in result["not_classes"]),
        f"busy cells inside clients' range with their noise: {checks['busy_inside']} of {checks['busy_cells']}",
        "cells whose row size was not recorded, never fitted:"
        f" {checks['row_size_not_recorded_inside']} of {checks['row_size_not_recorded_cells']} inside clients' range",
    ]
    return "\n".join(lines)


def plot_of(cells: Sequence[Cell]) -> str:
    """Differences from the likely gain over how far equal pages differed, as SVG: dark what counts, light what not."""
    wide, high, left, most_x, most_y = 640, 360, 56, 26.0, 20.0

    def x(noise: float) -> float:
        return left + (wide - left - 20) * min(noise, most_x) / most_x

    def y(difference: float) -> float:
        return 20 + (high - 64) * (most_y - difference) / (2 * most_y)

    marks = []
    for cell in sorted(cells, key=lambda cell: cell.is_quiet):
        at = f'cx="{x(cell.equal_pages_differ or 0.0):.1f}" cy="{y(cell.difference):.1f}"'
        paint = "#1c4e80" if cell.is_quiet else "#b8c4d0"
        hollow = f'fill="none" stroke="{paint}"' if cell.equal_pages_differ is None else f'fill="{paint}"'
        marks.append(f'<circle {at} r="4" {hollow}/>')
    ticks = [f'<text x="{left - 8}" y="{y(v) + 4:.0f}" text-anchor="end">{v:+d}</text>' for v in (-20, -10, 0, 10, 20)]
    ticks += [f'<text x="{x(v):.0f}" y="{high - 26}" text-anchor="middle">{v}</text>' for v in (0, 5, 10, 15, 20, 25)]
    bound = x(LARGEST_NOISE_POINTS)
    lines = [
        f'<line x1="{left}" x2="{wide - 20}" y1="{y(0):.1f}" y2="{y(0):.1f}" stroke="#888"/>',
        f'<line x1="{bound:.1f}" x2="{bound:.1f}" y1="20" y2="{high - 44}" stroke="#888" stroke-dasharray="4 4"/>',
    ]
    title = "points by which equal pages differed (hollow: not recorded, drawn at 0; above 26: drawn at 26)"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif"'
            ' font-size="12">',
            f'<rect width="{wide}" height="{high}" fill="#fff"/>',
            *lines,
            *ticks,
            *marks,
            f'<text x="{wide / 2:.0f}" y="{high - 8}" text-anchor="middle">{title}</text>',
            '<text x="8" y="14">measured less likely gain, points</text>',
            "</svg>\n",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the result; ``--write`` also writes what the planner reads."""
    parser = argparse.ArgumentParser(prog="validate.model_error", description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--write", action="store_true", help=f"write {RESULT.name}, which the planner reads, and {PLOT.name}"
    )
    options = parser.parse_args(arguments)
    found = result()
    print(text_of(found))
    if options.write:
        text = re.sub(r"\[\s+([\d.]+),\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2, \3]", json.dumps(found, indent=1))
        RESULT.write_text(text + "\n", encoding="utf-8")
        clients = [cell for cell in read_cells() if cell.operation == "key_lookup"]
        PLOT.write_text(plot_of(clients), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
