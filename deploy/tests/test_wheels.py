"""The wheels of hugeplan and its agent: the same bytes twice, and the commands that need no server work from them.

They are installed into a folder of their own. Their dependencies are those of this environment, which the lock pins;
the environment's own editable installs of the two are out of reach, because no .pth file is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("backend", "agent")
_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
sys.path.append(sys.argv[2])
import hugeplan, hugeplan_agent
assert hugeplan.__file__.startswith(sys.argv[1]) and hugeplan_agent.__file__.startswith(sys.argv[1])
from hugeplan.cli import main
sys.exit(main(sys.argv[3:]))
"""


def build(source: Path, folder: Path) -> Path:
    """A wheel from a copy of the sources alone."""
    copy = folder / source.name
    left_out = shutil.ignore_patterns("build", "build-*", "*.egg-info", "tests", "__pycache__", ".*_cache")
    shutil.copytree(source, copy, ignore=left_out)
    command = [
        sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-build-isolation", "--no-index", "--wheel-dir", str(folder / "wheels"), str(copy),
    ]  # fmt: skip
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    (wheel,) = (folder / "wheels").glob(f"hugeplan{'_agent' if source.name == 'agent' else ''}-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages as their wheels install them."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels = [build(REPOSITORY / name, folder) for name in PACKAGES]
    place = folder / "site"
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
        "--target", str(place), *map(str, wheels),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return place


def hugeplan(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command from the wheels. -S: no .pth file, so no editable install."""
    command = [sys.executable, "-S", "-c", _RUN, str(installed), site.getsitepackages()[0], *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=installed.parent)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_same_sources_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    sums = set()
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        wheel = build(REPOSITORY / name, tmp_path / run)
        sums.add((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert len(sums) == 1, sums


def test_the_commands_without_a_server_work(installed: Path) -> None:
    size = hugeplan(installed, "size", "postgresql", "--set", "shared_buffers=8GB", "--json")
    assert size.returncode == 0, size.stderr
    example = REPOSITORY / "docs/examples/bare-metal-postgresql.yaml"
    planned = hugeplan(installed, "plan", str(example), "--json")
    assert planned.returncode == 0, planned.stderr
    path = installed.parent / "plan.json"
    path.write_text(planned.stdout)
    assert json.loads(planned.stdout)["plan"]["node"] == "db-1"
    verified = hugeplan(installed, "verify", str(path), "--report", str(REPOSITORY / "docs/report.example.json"))
    assert verified.returncode in {1, 3}, verified.stderr
    assert "The plan of db-1 is not in force." in verified.stdout
    here = hugeplan(installed, "verify", str(path))
    assert here.returncode in {1, 3}, here.stderr
    linted = hugeplan(installed, "lint", str(REPOSITORY / "backend/tests/lint/corpus/broken/kubelet-sum/kubelet.yaml"))
    assert linted.returncode == 1, linted.stderr
    assert "kubelet-reserved-memory-sum" in linted.stdout
