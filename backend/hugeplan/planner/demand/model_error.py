"""How far likely gains of a client's operation were off: ``model_error.json``, which ``validate.model_error`` writes.

The file holds the fit with the measuring noise taken out, its cells and its checks (docs/adr, docs/model-results.md).
Points are points of throughput: 0.01 is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from hugeplan.planner.model import Source, Term
from hugeplan.planner.remembered import remembered


@dataclass(frozen=True, slots=True)
class ModelError:
    """One class of operations.

    ``gained``: how far below and above the likely gain the true one lies in nine of ten cells, as (low, high), signed.
    ``one_measurement``: the same for what one measurement on a quiet machine shows. ``is_covered``: a machine that was
    left out of the fit had nine tenths of its cells inside.
    """

    name: str
    about: str
    cells: int
    machines: int
    gained: tuple[float, float]
    one_measurement: tuple[float, float]
    is_covered: bool

    def term(self) -> Term:
        """The class and its cells as an input of a gain."""
        unproven = "" if self.is_covered else "; nine in ten on a machine left out of the fit is not shown"
        low, high = (100.0 * points for points in self.gained)
        machines = "1 machine" if self.machines == 1 else f"{self.machines} machines"
        value = f"likely {low:+.1f} to {high:+.1f} points, from {self.cells} quiet cells of {machines}{unproven}"
        return Term("error of the model", value, Source.MEASURED, self.about)


@remembered(1)
def document() -> Mapping[str, Any]:
    """The whole file: classes, cells left out, checks."""
    text = files("hugeplan.planner.demand").joinpath("model_error.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


@remembered(1)
def _classes() -> Mapping[str, ModelError]:
    made = {}
    for row in document()["classes"]:
        gained, shown = row["gained_points"], row["one_measurement_points"]
        made[row["name"]] = ModelError(
            name=row["name"],
            about=row["about"],
            cells=row["cells"],
            machines=row["machines"],
            gained=(gained["low"] / 100.0, gained["high"] / 100.0),
            one_measurement=(shown["low"] / 100.0, shown["high"] / 100.0),
            is_covered=row["coverage"] == "shown",
        )
    return MappingProxyType(made)


def error_of_clients() -> ModelError:
    """The class of every client's operation whose own class is not known or was not compared."""
    return _classes()["clients"]


def error_of_rows(*, inline: bool, clients: int | None) -> ModelError:
    """The class of PostgreSQL's lookups by where their rows lie and by how many clients look up side by side."""
    return _classes()["rows_out_of_line" if not inline else "one_client" if clients == 1 else "rows_inline"]
