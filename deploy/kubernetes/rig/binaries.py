"""Where the Kubernetes programs are that ``binaries/build.sh`` builds, or why they are not there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "binaries" / "build.sh"


class NotAvailableError(Exception):
    """This machine cannot run the rig; the message is a reason to print behind SKIP."""


def folder(*programs: str) -> Path:
    """The folder that holds these programs, already built. Never builds: that takes ten minutes of one core."""
    found = subprocess.run([str(BUILD), "--where"], capture_output=True, text=True, check=False, env=_environment())
    place = Path(found.stdout.strip())
    missing = [name for name in programs if not os.access(place / name, os.X_OK)]
    if missing:
        raise NotAvailableError(
            f"{', '.join(missing)} of Kubernetes 1.34 are not built here; `make kubernetes` builds them (10 minutes)"
        )
    return place


def _environment() -> dict[str, str]:
    """``make test`` drops HUGEPLAN_ variables, so the cache is found by HOME alone there."""
    return {"HOME": str(Path.home()), **os.environ}
