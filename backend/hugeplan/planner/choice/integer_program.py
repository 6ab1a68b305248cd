"""The selection of one option per instance as an integer program, for more combinations than can be looked at.

SciPy is imported when the first such plan needs it: its import costs more than most plans (docs/adr/0019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

#: Costs are solved in GiB: the solver's tolerance of 1e-6 is then about a KiB.
_UNIT_BYTES = float(2**30)
#: Nodes of the search after which it ends, whatever the machine's speed: thousands of instances need a few hundred.
NODE_LIMIT = 20_000

_OPTIMAL, _INFEASIBLE = 0, 2


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
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - see the module's text
    from scipy.sparse import csr_array  # noqa: PLC0415

    owners = np.array([i for i, options in enumerate(scores) for _ in options])
    variables = np.arange(len(owners))
    one_each = csr_array((np.ones(len(owners)), (owners, variables)), shape=(len(scores), len(owners)))
    held = (
        np.array([[size for options in row.uses for size in options] for row in rows], dtype=np.float64) / _UNIT_BYTES
    )
    limits = np.array([row.limit_bytes / _UNIT_BYTES for row in rows])
    found = milp(
        -np.array([s for options in scores for s in options], dtype=np.float64),
        integrality=np.ones(len(owners)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(held, -np.inf, limits)],
        options={"mip_rel_gap": 0.0, "node_limit": NODE_LIMIT},
    )
    if found.x is None:
        return Answer(None, proven=found.status == _INFEASIBLE)
    starts = np.concatenate(([0], np.cumsum([len(options) for options in scores])))
    chosen = tuple(int(np.argmax(found.x[a:b])) for a, b in pairwise(starts.tolist()))
    return Answer(chosen, proven=found.status == _OPTIMAL)
