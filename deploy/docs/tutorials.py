"""The tutorials, replayed: each command of a ``console`` block is run, and what it prints is put beneath it.

``python deploy/docs/tutorials.py`` writes the pages again; the tests fail when a page is not what it prints today. A
command that ends in ``# not run here`` is left as it is: it changes a machine, or needs a cluster or a service.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TUTORIALS = REPOSITORY / "docs/tutorials"
# README's first screen has one answer as text.
PAGES = (*sorted(TUTORIALS.glob("*.md")), REPOSITORY / "README.md")
_BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
NOT_RUN = "# not run here"


def replayed(page: Path) -> str:
    """The page with what its commands print now. They share a folder that begins with the tutorials' input files."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (*TUTORIALS.glob("*.yaml"), *(REPOSITORY / "docs/examples").glob("*.yaml")):
            shutil.copy(name, folder)
        (Path(folder) / "docs").symlink_to(REPOSITORY / "docs")
        return _BLOCK.sub(lambda block: _run_all(block[1], Path(folder)), page.read_text(encoding="utf-8"))


def _run_all(block: str, folder: Path) -> str:
    if NOT_RUN in block:
        return block
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{command}\n{_run(command[2:], folder)}" for command in commands)


def _run(command: str, folder: Path) -> str:
    """What a reader sees at 100 columns; a status other than 0 is said by the last line."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
    status = f"(exit status {done.returncode})\n" if done.returncode else ""
    return done.stdout + status


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(replayed(each), encoding="utf-8")
