"""What a user reads when a tool is missing or too old: one sentence that says what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).resolve().parents[1] / "make/preflight.sh"


class Machine:
    """A PATH that holds only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for program in ("bash", "sh", "dirname"):
            (folder / program).symlink_to(shutil.which(program) or "")

    def put(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def check(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["bash", PREFLIGHT, *words], env={"PATH": str(self.folder)}, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


OLD_PYTHON = 'case "$1" in -V) echo "Python 3.9.2" ;; *) exit 1 ;; esac'
NEW_PYTHON = 'case "$2" in *version_info*) exit 0 ;; *executable*) echo /usr/bin/python3.12 ;; esac'
NO_VENV = 'case "$2" in *version_info*) exit 0 ;; *venv*) exit 1 ;; esac'


@pytest.mark.parametrize(
    ("tool", "programs", "sentence"),
    [
        ("python", {}, "Python 3.11 or newer is needed; install it"),
        ("python", {"python3": OLD_PYTHON}, "only python3 (Python 3.9.2) was found"),
        ("python", {"python3": NO_VENV}, "has no venv module; install it"),
        ("node", {}, "Node 20.19 or newer with npm is needed to build the user interface; install it"),
        ("node", {"node": "echo 20.1.0"}, "Node 20.19 or newer with npm is needed"),
        ("node", {"node": "echo 18.19.0", "npm": ""}, "but node is 18.19.0"),
        ("node", {"node": "echo 20.18.3", "npm": ""}, "but node is 20.18.3"),
        ("cc", {}, "a C compiler is needed to build tlbbench; install one"),
    ],
)
def test_one_sentence_says_what_to_install(
    machine: Machine, tool: str, programs: dict[str, str], sentence: str
) -> None:
    for name, script in programs.items():
        machine.put(name, script)
    status, output, errors = machine.check(tool)
    assert (status, output) == (1, "")
    assert errors.startswith("hugeplan: ")
    assert sentence in errors
    assert len(errors.splitlines()) == 1


def test_a_newer_python_beside_an_old_one_is_found(machine: Machine) -> None:
    machine.put("python3", OLD_PYTHON)
    machine.put("python3.12", NEW_PYTHON)
    assert machine.check("python") == (0, "/usr/bin/python3.12", "")


def test_the_python_that_was_asked_for_is_taken_or_refused(machine: Machine) -> None:
    machine.put("python3", NEW_PYTHON)
    machine.put("other", OLD_PYTHON)
    assert machine.check("python", "other")[2] == "hugeplan: Python 3.11 or newer is needed, but other is Python 3.9.2."
    assert "no program named absent was found" in machine.check("python", "absent")[2]


@pytest.mark.parametrize(("tool", "programs"), [("node", {"node": "echo 22.1.0", "npm": ""}), ("cc", {"gcc": ""})])
def test_what_is_there_is_said_nothing_about(machine: Machine, tool: str, programs: dict[str, str]) -> None:
    for name, script in programs.items():
        machine.put(name, script)
    assert machine.check(tool) == (0, "", "")
