"""``hugeplan wins RUN...``: how often each page size is best over any set of tlbbench runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from hugeplan.cli.files import read_document
from hugeplan.hardware.curves import cases_of_run
from hugeplan.planner.evaluation.win_matrix import MachineSummary, WinCase, WinMatrix, win_matrix

EPILOG: Final = """\
examples:
  hugeplan wins db-1.json db-2.json
  hugeplan wins rack-a=monday.json rack-a=tuesday.json rack-b=run.json --json

A case is one point that a run measured with two or more page sizes. A size wins it when its interval lies below every
other's; else it is a tie. Runs of one name are one machine; without a name a run is called by its file.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``wins``."""
    parser.add_argument("runs", nargs="+", metavar="[NAME=]RUN", help="a tlbbench document")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print shares of all cases and mean differences of each machine."""
    cases: list[WinCase] = []
    for given in arguments.runs:
        name, path = named(given)
        cases += cases_of_run(read_document(path), name)
    matrix = win_matrix(cases)
    print(json.dumps(asdict(matrix), indent=2, allow_nan=False) if arguments.json else _text(matrix))
    return 0


def named(given: str) -> tuple[str, str]:
    """``rack-a=run.json`` as a machine's name and a file; a file alone gives its own name."""
    name, separator, path = given.partition("=")
    return (name, path) if separator and name and not Path(given).exists() else (Path(given).stem, given)


def _text(matrix: WinMatrix) -> str:
    if not matrix.cases:
        return "No point of these runs was measured with two or more page sizes."
    lines = [
        f"{matrix.cases} cases, won with intervals apart: {_shares(matrix.shares)}.",
        f"Smallest median, intervals apart or not: {_shares(matrix.lowest)}.",
        "",
        *_rows(matrix.machines),
    ]
    return "\n".join(lines)


def _shares(shares: Mapping[str, float]) -> str:
    ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in ordered)


def _rows(machines: Sequence[MachineSummary]) -> list[str]:
    """One line a machine: its cases, wins, and the mean time of each size against the base size."""
    width = max(len(machine.machine) for machine in machines)
    lines = []
    for machine in machines:
        wins = ", ".join(f"{name} {count}" for name, count in sorted(machine.wins.items(), key=lambda item: -item[1]))
        deltas = ", ".join(f"{name} {delta:+z.1f} %" for name, delta in machine.mean_delta_percent.items() if delta)
        best = "" if machine.best is None else f"; best on average {machine.best}"
        lines.append(
            f"{machine.machine:<{width}}  {machine.cases} cases, won by {wins}; mean time against base pages:"
            f" {deltas or 'equal'}{best}"
        )
    return lines
