"""Settings for commands: from the environment, with errors that name the variable.

HUGEPLAN_SECRETS_DIR names a folder with one file per secret (``hugeplan_bootstrap_enrolment_token``), as container
platforms mount them; a variable of the same name wins.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hugeplan.cli import InputError
from hugeplan.settings import ENV_PREFIX, SECRETS_DIR_VARIABLE, Settings

__all__ = ["SECRETS_DIR_VARIABLE", "load_settings"]


def load_settings(**given: Any) -> Settings:
    """The settings of the environment, except those ``given``.

    InputError names the first wrong variable, its value and its range.
    """
    secrets_dir = os.environ.get(SECRETS_DIR_VARIABLE) or None
    if secrets_dir is not None and not Path(secrets_dir).is_dir():
        raise InputError(f"{SECRETS_DIR_VARIABLE} is {secrets_dir!r}: expected a folder")
    try:
        return Settings(**given)
    except OSError as error:
        raise InputError(
            f"{SECRETS_DIR_VARIABLE}: {error.filename} cannot be read: {error.strerror}; it must be readable for the"
            f" user {os.geteuid()}: chown {os.geteuid()} {error.filename}"
        ) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        variable = ENV_PREFIX + "_".join(str(part) for part in first["loc"]).upper()
        # A secret is not repeated on a terminal.
        value = "" if "token" in variable.lower() or "url" in variable.lower() else f" is {first['input']!r}:"
        message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        raise InputError(f"{variable}{value} expected {message}") from error
