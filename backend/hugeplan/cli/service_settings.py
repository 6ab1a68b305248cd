"""Settings for commands: from the environment, with errors that name the variable.

HUGEPLAN_SECRETS_DIR names a folder with one file per secret (``hugeplan_bootstrap_enrolment_token``), as container
platforms mount them; a variable of the same name wins.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_settings import SettingsError

from hugeplan.cli import InputError
from hugeplan.planner.errors import shown_value
from hugeplan.settings import ENV_PREFIX, SECRETS_DIR_VARIABLE, Settings

#: Settings of several values, by what JSON makes of them: what a right one looks like.
_EXAMPLES: Final = {"array": '["10.0.0.0/8"]', "object": '{"dba": "planner"}'}
#: Variables of commands, and of this repository's tests, that are no settings.
_OTHERS: Final = frozenset({
    SECRETS_DIR_VARIABLE, "HUGEPLAN_TOKEN", "HUGEPLAN_PROMETHEUS_TOKEN", "HUGEPLAN_DEBUG", "HUGEPLAN_ENROLMENT_TOKEN",
    "HUGEPLAN_DATABASE_PASSWORD", "HUGEPLAN_DATABASE_SERVICE_PASSWORD", "HUGEPLAN_TRIAL",
    "HUGEPLAN_HUGE_PAGES_LOCK_SECONDS", "HUGEPLAN_SHARED", "HUGEPLAN_INSTALL",
})  # fmt: skip
#: What Kubernetes tells each container of a Service that is called hugeplan, or hugeplan-postgres.
_INJECTED: Final = re.compile(
    r"\w+_(SERVICE_(HOST|PORT\w*)|PORT_\d+_(TCP|UDP|SCTP)\w*)=.*|\w+_PORT=(tcp|udp|sctp)://.*"
)


def load_settings(**given: Any) -> Settings:
    """The settings of the environment, except those ``given``.

    InputError names the first wrong variable, its value and its range. A name that is no setting's is a warning.
    """
    secrets_dir = os.environ.get(SECRETS_DIR_VARIABLE) or None
    if secrets_dir is not None and not Path(secrets_dir).is_dir():
        raise InputError(f"{SECRETS_DIR_VARIABLE} is {shown_value(secrets_dir)}: expected a folder")
    files = list(Path(secrets_dir).iterdir()) if secrets_dir else []
    for text in _unknown_variables({file.name: str(file) for file in files}):
        print(f"warning: {text}", file=sys.stderr, flush=True)
    for file in files:
        if file.is_dir() and file.name.lower().removeprefix(ENV_PREFIX.lower()) in Settings.model_fields:
            raise InputError(f"{file.name.upper()}: {file} is a folder; expected a file with the bare value")
    try:
        return Settings(**given)
    except OSError as error:
        raise InputError(_unreadable(error)) from error
    except SettingsError as error:
        raise InputError(_unread(error, secrets_dir)) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        # A secret is not repeated on a terminal.
        value = "" if _is_secret(name) else f" is {shown_value(first['input'])}:"
        message = (
            first["msg"].removeprefix("Value error, ").removeprefix("Input should be ").removeprefix("Input is not ")
        )
        raise InputError(f"{_variable(name)}{value} expected {message}{_example(name)}") from error


def _unknown_variables(files: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable, and each file of a secret, that is called like a setting and is none."""
    known = {_variable(name) for name in Settings.model_fields} | _OTHERS
    for name, value in sorted({**files, **os.environ}.items()):
        upper = name.upper()
        is_ours = upper.startswith(ENV_PREFIX) and not upper.startswith(f"{ENV_PREFIX}AGENT_")
        cut, cutoff = (ENV_PREFIX, 0.6) if is_ours else ("", 0.9)
        near = difflib.get_close_matches(upper.removeprefix(cut), [k.removeprefix(cut) for k in known], 1, cutoff)
        if _INJECTED.fullmatch(f"{upper}={value}"):
            if upper in known:
                yield f"{name} is {value!r}, which Kubernetes wrote there for a Service of that name: it is ignored"
        elif upper not in known and (is_ours or near):
            meant = f"Is {cut}{near[0]} meant?" if near else "docs/settings.md has all."
            yield f"{files.get(name, name)} is no setting of hugeplan, and nothing reads it. {meant}"


def _unread(error: SettingsError, secrets_dir: str | None) -> str:
    """What is wrong with a value whose text could not even be read: no UTF-8, or no JSON where that is expected."""
    found = re.search(r'field "(\w+)"', str(error))
    name = found[1] if found else ""
    if isinstance(error.__cause__, OSError):
        return _unreadable(error.__cause__)
    if isinstance(error.__cause__, UnicodeDecodeError):
        file = Path(secrets_dir or "") / _variable(name).lower()
        return f"{_variable(name)}: the file {file} is not UTF-8 text; write the bare value into it, with an editor"
    value = os.environ.get(_variable(name))
    shown = "" if value is None or _is_secret(name) else f" is {shown_value(value)}:"
    return f"{_variable(name)}{shown} expected JSON{_example(name)}"


def _unreadable(error: OSError) -> str:
    return (
        f"{Path(error.filename).name.upper()}: {error.filename} cannot be read: {error.strerror}; the user"
        f" {os.geteuid()} must be able to: chgrp {os.getegid()} {error.filename} && chmod 640 {error.filename}"
    )


def _variable(name: str) -> str:
    return ENV_PREFIX + name.upper()


def _is_secret(name: str) -> bool:
    return "SecretStr" in str(Settings.model_fields[name].annotation)


def _example(name: str) -> str:
    """How a setting of several values is written; nothing for others."""
    kind = Settings.model_json_schema()["properties"][name].get("type")
    return f", such as {_EXAMPLES[kind]}" if kind in _EXAMPLES else ""
