"""``hugeplan backtest``: the model beside every published result."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from hugeplan.evidence.published import run_backtest
from hugeplan.planner.evaluation.backtest import (
    TOLERANCE_POINTS,
    WIDE_POINTS,
    BacktestRow,
    counts,
    counts_by_group,
    headline,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--json", action="store_true", help="print rows and counts as JSON")
    parser.add_argument("--all", action="store_true", help="also list rows the model has no inputs for")


def run(arguments: argparse.Namespace) -> int:
    """Print the table, then the reasons of rows that are not inside, then the counts."""
    rows = run_backtest()
    if arguments.json:
        json.dump(
            {
                "items": [asdict(row) for row in rows],
                "counts": counts(rows),
                "counts_by_group": counts_by_group(rows),
                "headline": asdict(headline(rows)),
            },
            sys.stdout,
            indent=1,
        )
        sys.stdout.write("\n")
        return 0
    shown = [row for row in rows if arguments.all or row.status != "no_inputs"]
    print(_LINE.format("result", "pages", "published", "predicted (range)", "error", "status"))
    for row in shown:
        print(_line(row))
    reasons = [row for row in shown if row.reason]
    if reasons:
        print("\nReasons and notes")
        for row in reasons:
            print(f"  {row.id}: {row.reason}")
    total = counts(rows)
    print()
    for group, found in counts_by_group(rows).items():
        if group != "no_inputs":
            print(
                f"{_GROUP_TITLES[group]}: {found['inside']} inside the range or the tolerance,"
                f" {found['outside'] + found['unexplained']} outside"
                + (f" ({found['unexplained']} of them unexplained)." if found["unexplained"] else ".")
            )
    h = headline(rows)
    print(
        f"Huge pages: {h.inside} of {h.results} results lie in the predicted range, {h.by_tolerance} more within the"
        f" tolerance of {TOLERANCE_POINTS:g} point, {h.outside} outside; {h.wide} of those inside have a range over"
        f" {WIDE_POINTS:g} points. Databases: {h.databases_inside} of {h.databases}."
    )
    print(
        f"{len(rows)} published results: {h.results} of huge pages with inputs, {total['no_inputs']} without inputs"
        + ("." if arguments.all else " (--all lists them).")
    )
    return 0


_GROUP_TITLES = {
    "database_huge_pages": "Database results on huge pages",
    "memory_access": "Memory accesses on huge pages",
    "buffer_pool_size": "Throughput over buffer pool size (no huge page in it)",
}
_LINE = "{:<20}{:<28}{:>22}  {:<30}{:>8}  {}"


def _line(row: BacktestRow) -> str:
    predicted, error = "", ""
    if row.predicted_percent is not None:
        p = row.predicted_percent
        predicted = f"{p.likely:+z.1f} ({p.low:+z.1f} to {p.high:+z.1f}) %"
    if row.error_percentage_points is not None:
        error = f"{row.error_percentage_points:+z.1f}"
    pages = f"{row.page_size_a or '?'} -> {row.page_size_b or '?'}"
    return _LINE.format(row.id, pages[:27], row.published, predicted, error, row.status)
