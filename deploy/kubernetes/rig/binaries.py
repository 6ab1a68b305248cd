"""Where the Kubernetes programs are that ``binaries/build.sh`` builds, or why they are not there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "binaries" / "build.sh"


class NotAvailableError(Exception):
    """This machine cannot run the rig; the message is a reason to print behind SKIP."""


def folder() -> Path:
    """The folder with every program, already built. Never builds: that takes ten minutes of one core."""
    found = subprocess.run([str(BUILD), "--where"], capture_output=True, text=True, check=False, env=_environment())
    if found.returncode != 0:
        raise NotAvailableError(
            "Kubernetes 1.34 is not built on this machine; `make kubernetes` builds it from Go modules (10 minutes)"
        )
    return Path(found.stdout.strip())


def _environment() -> dict[str, str]:
    """``make test`` drops HUGEPLAN_ variables, so the cache is found by HOME alone there."""
    return {"HOME": str(Path.home()), **os.environ}
