"""docs/settings.md, generated from the settings class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from hugeplan.settings import ENV_PREFIX, Settings

_HEADER = """\
# Settings

The service reads its settings from the environment, once, at start. A wrong value stops it with one line that names
the variable. This page is generated from `backend/hugeplan/settings.py`; a test fails when it is stale:

    make schemas

| variable | default | range | meaning |
|---|---|---|---|
"""

_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters or fewer",
}


def _range(schema: Mapping[str, Any]) -> str:
    """The bounds of one setting in words."""
    options = [schema, *schema.get("anyOf", ())]
    for option in options:
        if "enum" in option:
            return ", ".join(f"`{value}`" for value in option["enum"])
        if option.get("type") == "boolean":
            return "`true`, `false`"
        if "minimum" in option and "maximum" in option:
            return f"{_number(option['minimum'])} to {_number(option['maximum'])}"
        bounds = [text.format(option[key]) for key, text in _BOUNDS.items() if key in option]
        if bounds:
            return ", ".join(bounds)
    return ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _default(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def render() -> str:
    """The page."""
    properties = Settings.model_json_schema(mode="validation")["properties"]
    lines = []
    for name, field in Settings.model_fields.items():
        schema = properties[name]
        cells = (f"`{ENV_PREFIX}{name.upper()}`", _default(field.default), _range(schema), schema["description"])
        lines.append("| " + " | ".join(cells) + " |")
    return _HEADER + "\n".join(lines) + "\n"
