"""``hugeplan benefit FILE``: what more buffer pool buys, from a table of pool size and throughput."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Final

from hugeplan.cli.files import read_text
from hugeplan.planner.errors import PlannerError, require_finite
from hugeplan.planner.model import GIB
from hugeplan.planner.pool_benefit.benefit_of_size import worth_of_a_gib
from hugeplan.planner.pool_benefit.throughput_curve import BenefitCurve, fit_benefit
from hugeplan.planner.pool_benefit.throughput_table import parse_benefit_table
from hugeplan.planner.units import format_bytes, parse_iec_bytes

EPILOG: Final = """\
examples:
  hugeplan benefit throughput.csv
  hugeplan benefit throughput.csv --at 24GiB --at 48GiB --worth 150

Each line of the table is a pool size and a throughput, split by comma, semicolon, tab, bars or blanks.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``benefit``."""
    parser.add_argument("table", help="a file with the table; - reads standard input")
    parser.add_argument("--unit", metavar="SIZE", help="what a bare pool size counts, such as 1MiB (default: 1GiB)")
    parser.add_argument("--at", action="append", default=[], metavar="SIZE", help="a pool size to ask; may be repeated")
    parser.add_argument("--worth", type=float, metavar="X", help="throughput that a GiB is worth elsewhere")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the curve, its knees and the asked sizes; PlannerErrors go to the caller."""
    unit = GIB if arguments.unit is None else parse_iec_bytes(arguments.unit, "--unit")
    if unit < 1:
        raise PlannerError("--unit", arguments.unit, "at least 1 byte")
    curve = fit_benefit(parse_benefit_table(read_text(arguments.table), unit))
    sizes = [parse_iec_bytes(text, "--at") for text in arguments.at]
    if any(size == 0 for size in sizes):
        raise PlannerError("--at", "0", "a pool size above 0")
    if arguments.worth is not None:
        require_finite("--worth", arguments.worth, "a finite number")
    answer = (curve, sizes, arguments.worth)
    print(json.dumps(_document(*answer), indent=2, allow_nan=False) if arguments.json else _text(*answer))
    return 0


def _document(curve: BenefitCurve, sizes: list[int], worth: float | None) -> dict[str, object]:
    more = worth_of_a_gib(curve, [point.pool_bytes for point in curve.points])
    return {
        "limit": curve.limit,
        "slope": curve.slope,
        "end_bytes": round(curve.end_bytes),
        "nrmse": curve.nrmse,
        "measured_bytes": [curve.first_bytes, curve.last_bytes],
        "best": curve.best,
        "knees": [asdict(curve.knee(share)) for share in (0.95, 0.99)],
        "points": [
            asdict(point) | {"fitted": curve.throughput(point.pool_bytes), "per_gib": per_gib}
            for point, per_gib in zip(curve.points, more, strict=True)
        ],
        "at": [
            asdict(curve.estimate(size)) | {"per_gib": per_gib}
            for size, per_gib in zip(sizes, worth_of_a_gib(curve, sizes), strict=True)
        ],
        "worth_less_bytes": None if worth is None else curve.worth_less_than(worth),
    }


def _text(curve: BenefitCurve, sizes: list[int], worth: float | None) -> str:
    lines = [f"{'pool':>10} {'measured':>12} {'fitted':>12} {'one GiB more':>13}"]
    measured = [point.pool_bytes for point in curve.points]
    for point, size, more in zip(curve.points, measured, worth_of_a_gib(curve, measured), strict=True):
        lines.append(
            f"{format_bytes(size):>10} {point.throughput:>12.6g} {curve.throughput(size):>12.6g} {more:>13.4g}"
        )
    lines.append(
        f"X(B) = [Xc^-4 + (max(0, ln(D / B)) / C)^4]^(-1/4): Xc {curve.limit:.6g}, C {curve.slope:.6g},"
        f" D {curve.end_bytes / GIB:.2f} GiB; off by {100 * curve.nrmse:.2f} % of the best."
    )
    for knee in (curve.knee(share) for share in (0.95, 0.99)):
        fitted = "outside the measured sizes" if knee.fitted_bytes is None else format_bytes(knee.fitted_bytes)
        reached = format_bytes(knee.measured_bytes)
        lines.append(f"{100 * knee.share:.0f} % of the best: {reached} measured, by the curve {fitted}.")
    for size, more in zip(sizes, worth_of_a_gib(curve, sizes), strict=True):
        found = curve.estimate(size)
        how = "extrapolated: " if found.extrapolated else ""
        lines.append(
            f"{format_bytes(size)}: {found.throughput:.6g}, one GiB more brings {more:.4g} ({how}{found.note})."
        )
    if worth is not None:
        lines.append(f"From {format_bytes(curve.worth_less_than(worth))} on one GiB more brings less than {worth:g}.")
    return "\n".join(lines)
