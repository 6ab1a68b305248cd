"""A scenario within a body: taken as it was sent, and checked against its document in the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from hugeplan.errors import from_validation
from hugeplan.scenario_file.documents import ScenarioDocument


def _as_it_was_sent(value: object, check: ValidatorFunctionWrapHandler) -> object:
    return value if isinstance(value, dict) else check(value)


if TYPE_CHECKING:
    UncheckedScenario = dict[str, Any]
else:
    UncheckedScenario = Annotated[ScenarioDocument, WrapValidator(_as_it_was_sent)]
"""A scenario as it was sent: an object. It is checked against its document in the sandbox, as that takes a while."""


def checked(scenario: Any) -> ScenarioDocument:
    """A scenario as it was sent, checked. InvalidInputError names the field."""
    try:
        return ScenarioDocument.model_validate(scenario)
    except ValidationError as error:
        raise from_validation(error, "scenario") from error
