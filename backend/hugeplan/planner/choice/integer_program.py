"""The selection of one option per instance as an integer program, for more combinations than can be looked at.

The solver is imported when the first such plan needs it (docs/adr/0019 and 0031).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

#: Costs are solved in GiB: the solver's tolerance of 1e-6 is then about a KiB.
_UNIT_BYTES = float(2**30)
#: Nodes of the search after which it ends, whatever the machine's speed: thousands of instances need a few hundred.
NODE_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Row:
    """One budget: what each option takes of it, by instance and option, and its bytes."""

    uses: Sequence[Sequence[int]]
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Chosen option per instance, None where nothing fits or nothing was found; ``proven``: no answer is better."""

    chosen: tuple[int, ...] | None
    proven: bool


def best_selection(scores: Sequence[Sequence[float]], rows: Sequence[Row]) -> Answer:
    """One option per instance with the highest sum of scores within all budgets, by branch and bound (HiGHS).

    ``scores`` are by instance and option. The search ends by the number of its nodes, never by a clock: the same
    request has the same answer on any machine, and ``proven`` says whether the search came to its end.
    """
    import highspy  # noqa: PLC0415 - see the module's text

    # highspy.Highs() also registers callbacks, which writes a banner to descriptor 1 before it can be told not to.
    solver: Any = highspy._Highs()  # type: ignore[attr-defined]
    # One thread: a pool of them would stay in a service that forks.
    options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_max_nodes": NODE_LIMIT}
    for option, value in options.items():
        solver.setOptionValue(option, value)
    solver.passModel(_program(highspy, scores, rows))
    solver.run()
    status = solver.getModelStatus()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Answer(None, proven=status == highspy.HighsModelStatus.kInfeasible)
    values = np.asarray(solver.getSolution().col_value)
    starts = np.concatenate(([0], np.cumsum([len(options) for options in scores])))
    chosen = tuple(int(np.argmax(values[a:b])) for a, b in pairwise(starts.tolist()))
    return Answer(chosen, proven=status == highspy.HighsModelStatus.kOptimal)


def _program(highspy: Any, scores: Sequence[Sequence[float]], rows: Sequence[Row]) -> Any:
    """One 0-1 variable per option: exactly one of each instance, and at most the budget of each row."""
    gain = np.array([score for options in scores for score in options], dtype=np.float64)
    uses = [np.array([size for options in row.uses for size in options], dtype=np.float64) for row in rows]
    held = [(np.flatnonzero(sizes), sizes[sizes != 0] / _UNIT_BYTES) for sizes in uses]
    widths = [*(len(options) for options in scores), *(len(places) for places, _ in held)]
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = len(widths), len(gain)
    program.col_cost_ = -gain
    program.col_lower_, program.col_upper_ = np.zeros(len(gain)), np.ones(len(gain))
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(gain)
    program.row_lower_ = np.concatenate((np.ones(len(scores)), np.full(len(rows), -highspy.kHighsInf)))
    program.row_upper_ = np.concatenate((np.ones(len(scores)), [row.limit_bytes / _UNIT_BYTES for row in rows]))
    # By rows: an instance's options stand side by side, so the first rows together are every variable once.
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.concatenate(([0], np.cumsum(widths)))
    program.a_matrix_.index_ = np.concatenate((np.arange(len(gain)), *(places for places, _ in held)))
    program.a_matrix_.value_ = np.concatenate((np.ones(len(gain)), *(sizes for _, sizes in held)))
    return program
