"""``hugeplan secrets``: the passwords of one installation, made at its first start and kept.

``docker compose up`` in a fresh clone has no file with passwords. This command makes them: a password of
the database's owner and one of the service's role, each with a libpq password file, and an enrolment token for the
agents. What is there already stays, so that a second start finds the passwords unchanged. A value given in the
environment is written instead of a random one; whoever keeps the roles (database-roles.sh) sees the files change.
"""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path
from typing import Final

from hugeplan.cli import InputError
from hugeplan.cli.files import read_there, write_file

RANDOM_BYTES: Final = 32
SHORTEST_TOKEN_CHARACTERS: Final = 32

DATABASE_PASSWORD_VARIABLE: Final = "HUGEPLAN_DATABASE_PASSWORD"  # noqa: S105 - names of variables and files
SERVICE_PASSWORD_VARIABLE: Final = "HUGEPLAN_DATABASE_SERVICE_PASSWORD"  # noqa: S105
ENROLMENT_TOKEN_VARIABLE: Final = "HUGEPLAN_ENROLMENT_TOKEN"  # noqa: S105
DATABASE_PASSWORD_FILE: Final = "database-password"  # noqa: S105
PASSFILE: Final = "passfile"
#: The name under which the service looks for it in HUGEPLAN_SECRETS_DIR.
ENROLMENT_TOKEN_FILE: Final = "hugeplan_bootstrap_enrolment_token"  # noqa: S105


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``secrets``."""
    parser.add_argument("--database-dir", required=True, metavar="DIR", help="folder of the owner's password")
    parser.add_argument("--service-dir", metavar="DIR", help="folder of the password of the service's role")
    parser.add_argument("--enrolment-dir", required=True, metavar="DIR", help="folder of the enrolment token")


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing; say which file was made and which was kept, never its content."""
    _password(Path(arguments.database_dir), DATABASE_PASSWORD_VARIABLE)
    if arguments.service_dir is not None:
        _password(Path(arguments.service_dir), SERVICE_PASSWORD_VARIABLE)
    token = Path(arguments.enrolment_dir) / ENROLMENT_TOKEN_FILE
    # The agent's user is another than the server's, and reads this one file by the server's group.
    _kept_or_made(token, _given(ENROLMENT_TOKEN_VARIABLE, SHORTEST_TOKEN_CHARACTERS), 0o640)
    return 0


def _password(folder: Path, variable: str) -> None:
    """A role's password, and libpq's file with it: host:port:database:user:password, colon and backslash escaped."""
    password = _kept_or_made(folder / DATABASE_PASSWORD_FILE, _given(variable, 1))
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    write_secret(folder / PASSFILE, f"*:*:*:*:{escaped}")


def _given(variable: str, at_least_characters: int) -> str | None:
    value = os.environ.get(variable) or None
    if value is not None and (len(value) < at_least_characters or not value.isprintable()):
        raise InputError(f"{variable}: expected {at_least_characters} or more printable characters")
    return value


def _found(path: Path) -> str | None:
    """The secret of a file; None without one."""
    try:
        return (read_there(path, secret=True) or b"").decode().strip() or None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 text") from error


def _kept_or_made(path: Path, given: str | None, mode: int = 0o600) -> str:
    """The secret of a file; written when there is none, or when the environment gives another."""
    found = _found(path)
    value = given or found or secrets.token_urlsafe(RANDOM_BYTES)
    write_secret(path, value, mode)
    print(f"{'made' if found is None else 'kept' if value == found else 'replaced'} {path}")
    return value


def write_secret(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    try:
        write_file(path, f"{text}\n".encode(), mode, secret=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
