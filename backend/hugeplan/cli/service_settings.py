"""Settings for commands: from the environment, with errors that name the variable."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from hugeplan.cli import InputError
from hugeplan.settings import ENV_PREFIX, Settings


def load_settings(**given: Any) -> Settings:
    """The settings of the environment, except those ``given``.

    InputError names the first wrong variable, its value and its range.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        variable = ENV_PREFIX + "_".join(str(part) for part in first["loc"]).upper()
        # A secret is not repeated on a terminal.
        value = "" if "token" in variable.lower() or "url" in variable.lower() else f" is {first['input']!r}:"
        message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        raise InputError(f"{variable}{value} expected {message}") from error
