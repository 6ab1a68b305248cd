"""A Debian tree by debootstrap.

Who has root and debootstrap wants the tests to run: where it fails they fail with its reason, and do not skip.
"""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_tree(suite: str, root: Path, *, packages: str = "", mirror: str = "") -> None:
    """A minimal tree of a release with packages; AssertionError with debootstrap's own words where it fails."""
    words = ["debootstrap", "--variant=minbase", *([f"--include={packages}"] if packages else []), suite, str(root)]
    words += [mirror] if mirror else []
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        log = root / "debootstrap/debootstrap.log"
        logged = log.read_text(errors="replace").splitlines() if log.exists() else []
        said = done.stdout.splitlines()[-3:] + logged[-3:]
        raise AssertionError(f"debootstrap of {suite} ended with status {done.returncode}: {' / '.join(said)}")
