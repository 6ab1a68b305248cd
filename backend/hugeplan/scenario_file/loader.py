"""From text to a validated ScenarioDocument, with errors that name line, field and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hugeplan.errors import errors_of
from hugeplan.planner.errors import PlannerError
from hugeplan.scenario_file.documents import ScenarioDocument
from hugeplan.scenario_file.errors import FieldProblem, ScenarioFileError
from hugeplan.scenario_file.yaml_lines import FieldPath, field_name, parse_text

_MISSING = "nothing"
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
    "model_attributes_type": "a mapping of names to values",
}
_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "too_long": ("a list of at most", "max_length"),
    "too_short": ("a list of at least", "min_length"),
    "string_too_long": ("text of at most this many characters:", "max_length"),
    "string_too_short": ("text of at least this many characters:", "min_length"),
    "literal_error": ("", "expected"),
    "string_pattern_mismatch": ("text that matches", "pattern"),
}


def load(text: str, path: str = "scenario") -> ScenarioDocument:
    """A scenario from YAML or JSON text. ``path`` is what errors call the file.

    Raises ScenarioFileError with every problem found, each with its line.
    """
    value, lines = parse_text(text, path)
    if not isinstance(value, dict):
        raise ScenarioFileError(path, (FieldProblem("", value, "a mapping with the keys node, databases, ...", 1),))
    try:
        return ScenarioDocument.model_validate(value)
    except ValidationError as error:
        problems = tuple(_problem(details, lines) for details in errors_of(error))
        raise ScenarioFileError(path, problems) from error


def problems_of(error: ValidationError) -> tuple[FieldProblem, ...]:
    """The problems of a document that did not come from a file (the API's bodies)."""
    return tuple(_problem(details, {}) for details in errors_of(error))


def line_of(field: str, text: str) -> int | None:
    """The line of a field in a scenario's text, by the name errors use; the nearest parent's when it has none."""
    try:
        _, lines = parse_text(text, "scenario")
    except ScenarioFileError:
        return None
    by_name = {field_name(at): line for at, line in lines.items()}
    while field:
        if field in by_name:
            return by_name[field]
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return by_name.get("")


def _problem(details: ErrorDetails, lines: Mapping[FieldPath, int]) -> FieldProblem:
    at = tuple(details["loc"])
    value = _MISSING if details["type"] == "missing" else details["input"]
    if isinstance(value, dict | list):
        value = f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    if details["type"] == "extra_forbidden":
        value = str(at[-1])
    return FieldProblem(field_name(at), value, _expected(details, at), _nearest_line(at, lines))


def _nearest_line(at: FieldPath, lines: Mapping[FieldPath, int]) -> int | None:
    while at and at not in lines:
        at = at[:-1]
    return lines.get(at)


def _expected(details: ErrorDetails, at: FieldPath) -> str:
    kind = details["type"]
    context: dict[str, Any] = details.get("ctx") or {}
    if kind == "extra_forbidden":
        return _known_keys(at)
    if kind == "missing":
        return "a value: this key is required"
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _LIMITS:
        words, name = _LIMITS[kind]
        return f"{words} {context.get(name, '')}".strip()
    cause = context.get("error")
    if isinstance(cause, PlannerError):
        return cause.expected
    return details["msg"]


def _known_keys(at: FieldPath) -> str:
    """``one of a, b, c; did you mean b?`` for a key that the document does not have."""
    model = _model_at(ScenarioDocument, at[:-1])
    if model is None:
        return "no such key here"
    keys = list(model.model_fields)
    close = difflib.get_close_matches(str(at[-1]), keys, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"one of the keys {', '.join(keys)}{hint}"


def _model_at(model: type[BaseModel], at: FieldPath) -> type[BaseModel] | None:
    for part in at:
        if isinstance(part, int):
            continue
        found = model.model_fields.get(part)
        inner = None if found is None else _inner_model(found.annotation)
        if inner is None:
            return None
        model = inner
    return model


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in get_args(annotation):
        inner = _inner_model(argument)
        if inner is not None:
            return inner
    return None
