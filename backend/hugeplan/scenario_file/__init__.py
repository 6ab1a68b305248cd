"""The scenario file: YAML or JSON in, a PlanRequest out.

``load`` reads and validates text, ``to_request`` turns the document into what ``plan()`` takes.
"""

from hugeplan.scenario_file.as_it_runs import scenario_as_it_runs
from hugeplan.scenario_file.convert import hardware_of, to_request
from hugeplan.scenario_file.documents import ScenarioDocument
from hugeplan.scenario_file.errors import FieldProblem, ScenarioFileError
from hugeplan.scenario_file.hardware import with_catalogue
from hugeplan.scenario_file.loader import line_of, load, problems_of

__all__ = [
    "FieldProblem",
    "ScenarioDocument",
    "ScenarioFileError",
    "hardware_of",
    "line_of",
    "load",
    "problems_of",
    "scenario_as_it_runs",
    "to_request",
    "with_catalogue",
]
