"""Errors of a scenario file: every one says the line, the field, the value and what was expected."""

from __future__ import annotations

from dataclasses import dataclass

from hugeplan.planner.errors import shown_value
from hugeplan.planner.printable import printable


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with a scenario. ``line`` counts from 1; None where the text has no such place."""

    field: str
    value: object
    expected: str
    line: int | None = None

    def text(self) -> str:
        """The problem without its line: ``node.memory: '64GB' is not valid; expected ...``."""
        where = self.field or "document"
        return f"{where}: {shown_value(self.value)} is not valid; expected {self.expected}"


class ScenarioFileError(ValueError):
    """A scenario that cannot be loaded, with all of its problems."""

    def __init__(self, path: str, problems: tuple[FieldProblem, ...]) -> None:
        self.path = path
        self.problems = problems
        super().__init__("\n".join(self._line(problem) for problem in problems))

    def _line(self, problem: FieldProblem) -> str:
        place = self.path if problem.line is None else f"{self.path}:{problem.line}"
        line = f"{place}: {problem.text()}"
        return printable(line, len(line))
