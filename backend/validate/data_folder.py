"""Where the servers' data is kept between runs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hugeplan.measuring.postgresql_server import ServerError
from hugeplan.unprivileged import require_own

PARENT: Final = Path("/var/tmp/hugeplan-validate")  # noqa: S108 - large, survives a reboot, fixed name wanted


def data_folder(name: str, parent: Path = PARENT) -> Path:
    """A folder's path below ``parent``, which is made.

    ServerError where another user can change ``parent``: root gives what lies there to the server's user.
    """
    try:
        parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        require_own(parent, "Remove it.")
    except OSError as error:
        raise ServerError(f"the data's folder {parent} cannot be used: {error}") from error
    return parent.resolve() / name
