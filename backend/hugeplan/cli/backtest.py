"""``hugeplan backtest``: the model beside every published result, or beside every trial that a service has."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from itertools import groupby
from typing import Any

from hugeplan.evidence.published import run_backtest
from hugeplan.planner.evaluation.backtest import (
    TOLERANCE_POINTS,
    WIDE_POINTS,
    BacktestRow,
    counts,
    counts_by_group,
    headline,
)
from hugeplan.planner.printable import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--json", action="store_true", help="print rows and counts as JSON")
    parser.add_argument("--all", action="store_true", help="also list rows the model has no inputs for")
    parser.add_argument(
        "--trials", metavar="URL", help="the trials of this service instead, predicted beside measured, by machine type"
    )
    parser.add_argument("--token-file", metavar="FILE", help="of a viewer, for --trials (default: HUGEPLAN_TOKEN)")


def run(arguments: argparse.Namespace) -> int:
    """Print the table, then the reasons of rows that are not inside, then the counts."""
    if arguments.trials is not None:
        return _run_trials(arguments)
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
                f"{_GROUP_TITLES[group]}: {found['inside']} inside the range, {found['by_tolerance']} within the"
                f" tolerance, {found['outside'] + found['unexplained']} outside"
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
        predicted = _percent(asdict(row.predicted_percent))
    if row.error_percentage_points is not None:
        error = f"{row.error_percentage_points:+z.1f}"
    pages = f"{row.page_size_a or '?'} -> {row.page_size_b or '?'}"
    status = f"{row.status.replace('_', ' ')}{', wide range' if row.is_wide else ''}"
    return _LINE.format(row.id, pages[:27], row.published, predicted, error, status)


_MOST_SIZES = 16  # of one trial, each of which is a copy of it: no machine has so many
_TRIAL_LINE = "{:<11}{:<18}{:<22}{:<6}{:<24}{:<28}{:<18}{}"
_CLASSES = {"rows_inline": "rows inline", "rows_out_of_line": "rows out of line", "clients": "any rows"}


def _run_trials(arguments: argparse.Namespace) -> int:
    """Print each trial that is an answer, by machine type, then how many lie inside what was predicted."""
    from hugeplan.cli.service_client import ServiceClient  # noqa: PLC0415 - no HTTP client where nothing is asked

    client = ServiceClient(arguments.trials, option="--trials", token_file=arguments.token_file)
    with client.understood():
        rows = [
            {**trial, "size": size}
            for trial in client.items("trials")
            for size in trial["page_sizes"][:_MOST_SIZES]
            if size["text"] is not None and size["page_size"] != "equal"
        ]
        rows.sort(key=lambda row: (row["machine_type"] or "", row["started_at"]))
        predicted = [row for row in rows if row["size"]["predicted"]]
        inside = [row for row in predicted if _is_inside(row["size"])]
        by_type = groupby(rows, key=lambda row: row["machine_type"] or "unknown machine type")
        lines = [line for kind, of_type in by_type for line in (one_line(kind, 80), *map(_trial_line, of_type))]
    if arguments.json:
        answer = {"items": rows, "predicted": len(predicted), "inside": len(inside)}
        json.dump(answer, sys.stdout, indent=1)
        sys.stdout.write("\n")
        return 0
    print(_TRIAL_LINE.format("day", "node", "engine", "pages", "measured", "predicted (range)", "class", "status"))
    for line in lines:
        print(line)
    print(
        f"{len(rows)} measured page sizes of trials, {len(predicted)} predicted from their node's curves:"
        f" {len(inside)} inside the predicted range, {len(predicted) - len(inside)} outside."
    )
    return 0


def _is_inside(size: dict[str, Any]) -> bool:
    return bool(size["predicted"]["low"] <= size["gain"]["likely"] <= size["predicted"]["high"])


def _trial_line(row: dict[str, Any]) -> str:
    size, made = row["size"], row["size"]["predicted"]
    return _TRIAL_LINE.format(
        one_line(row["started_at"], 10),
        one_line(row["node_name"], 17),
        one_line(f"{row['engine']} {row['version'] or ''}", 21),
        one_line(size["page_size"], 80),
        _percent(size["gain"]),
        "unknown" if made is None else _percent(made),
        "" if made is None else _CLASSES.get(made["error_class"], one_line(made["error_class"], 80)),
        "no curves" if made is None else "inside" if _is_inside(size) else "outside",
    )


def _percent(gain: dict[str, Any]) -> str:
    return f"{gain['likely']:+z.1f} ({gain['low']:+z.1f} to {gain['high']:+z.1f}) %"
