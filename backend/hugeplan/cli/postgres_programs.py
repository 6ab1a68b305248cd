"""PostgreSQL's own programs, run on the database of the settings. The password goes by the environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from hugeplan import embedded
from hugeplan.cli import InputError
from hugeplan.settings import Settings

_NAME_UNKNOWN = "failed to resolve host"
_NAME_SECONDS = 5.0
_NAME_PAUSE_SECONDS = 0.5


def find(program: str) -> Path:
    """The program of the embedded PostgreSQL where it is installed, else that of the PATH. InputError without one."""
    try:
        return embedded.programs_dir() / program
    except embedded.EmbeddedPostgresError:
        found = shutil.which(program)
    if found is None:
        raise InputError(f"{program} is missing: install the client programs of PostgreSQL")
    return Path(found)


def environment_of(url: str) -> dict[str, str]:
    """The variables that stand for a database URL: each keyword of libpq has its own, a password file's, too."""
    variables = {
        option.keyword.decode(): option.envvar.decode() for option in pq.Conninfo.get_defaults() if option.envvar
    }
    given = conninfo_to_dict(url)
    return {variables[name]: str(value) for name, value in given.items() if name in variables and value}


def run(
    settings: Settings,
    program: str,
    *arguments: str,
    given: IO[bytes] | None = None,
    output: IO[bytes] | None = None,
    held: int | None = None,
) -> None:
    """Run a program to its end, which has the descriptor ``held``. InputError with the line that says why it fails."""
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own program, never through a shell
        [str(find(program)), "--no-password", *arguments],
        env={**os.environ, **environment_of(settings.psycopg_url())},
        stdin=subprocess.DEVNULL if given is None else given,
        stdout=subprocess.DEVNULL if output is None else output,
        stderr=subprocess.PIPE,
        pass_fds=() if held is None else (held,),
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        # Details and hints follow the error, and it is named by the program that speaks.
        found = next((line for line in lines if re.search("error: |ERROR: |FATAL: ", line)), lines[-1])
        raise InputError(f"{program} failed: {found.removeprefix(f'{program}: error: ')}{mending(found)}")


_MENDING = (
    (
        r'(role|database) "[^"]*" does not exist',
        'the roles and the database are made once, as docs/install-bare-metal.md, "The service", has them',
    ),
    (
        "password authentication failed",
        "it is not the role's password: ALTER ROLE ... PASSWORD '...', or correct the URL",
    ),
    ("is starting up|is shutting down|in recovery mode", "PostgreSQL starts or stops just now: try again in a moment"),
)
_IS_AWAY: Final = (
    "Connection refused|No such file or directory|timeout expired|timed out|No route to host|unreachable"
    f"|{_NAME_UNKNOWN}|Name or service not known|closed the connection unexpectedly|Connection reset"
)


def mending(reason: str) -> str:
    """What mends a connection that fails for this reason, as the end of a sentence; nothing where that is not known."""
    if re.search(_IS_AWAY, reason):
        return f"; {start_it(os.environ)}"
    return next((f"; {text}" for pattern, text in _MENDING if re.search(pattern, reason)), "")


def start_it(environment: Mapping[str, str], root: Path = Path("/")) -> str:
    """How PostgreSQL is started where this runs: in a pod, in a container, under systemd, or in general."""
    if environment.get("KUBERNETES_SERVICE_HOST"):
        how = (
            "PostgreSQL's pod does not answer: kubectl get pods, then kubectl describe pod of the one that is not ready"
        )
    elif (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        how = "start PostgreSQL: docker compose up --detach postgres (or podman-compose)"
    elif (root / "run/systemd/system").is_dir():
        how = "start PostgreSQL: systemctl start postgresql"
    else:
        how = "start PostgreSQL"
    return f"{how}; or correct the URL"


def unreachable(error: Exception) -> str:
    """Why a database cannot be reached, in one sentence, and what mends it where that is known."""
    reason = str(error).splitlines()[0]
    return f"the database cannot be reached: {reason}{mending(reason)}"


def connect(settings: Settings, *, is_patient: bool = True) -> psycopg.Connection[tuple[object, ...]]:
    """A connection for a command. InputError when the database cannot be reached.

    While containers come and go their name server may lose a question, and the machine's own then says that there is no
    such name. A patient command asks again before it believes that.
    """
    until: float | None = None
    while True:
        try:
            return psycopg.connect(
                settings.psycopg_url(), connect_timeout=max(2, round(settings.database_timeout_seconds))
            )
        except psycopg.OperationalError as error:
            reason = str(error).splitlines()[0]
            until = until or time.monotonic() + _NAME_SECONDS
            if not (is_patient and _NAME_UNKNOWN in reason and time.monotonic() < until):
                raise InputError(f"HUGEPLAN_DATABASE_URL: {unreachable(error)}") from error
        time.sleep(_NAME_PAUSE_SECONDS)


def address_of(connection: psycopg.Connection[tuple[object, ...]]) -> str | None:
    """The address that a database's one name has now; None for a socket, and for several names."""
    hosts = str(conninfo_to_dict(connection.info.dsn).get("host", ""))
    return None if "," in hosts else connection.info.hostaddr or None


def database_name(settings: Settings) -> str:
    """The database's name."""
    parts = conninfo_to_dict(settings.psycopg_url())
    return str(parts.get("dbname") or parts.get("user") or "")
