"""The wheels of hugeplan and its agent: the same bytes twice, and every command works from them.

For the commands that need no server they are installed into a folder of their own. Their dependencies are those of this
environment, which the lock pins; the environment's own editable installs of the two are out of reach, because no .pth
file is read. `hugeplan demo` runs in a fresh virtual environment, with dependencies from the configured index.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import site
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("backend", "agent")
#: Statuses of `verify` for a plan that is not in force: of no single cause, unknown, and one for each cause.
NOT_IN_FORCE = {1, 3, *range(10, 20)}
BUNDLED = ("migrations", "frontend/dist")
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
    """A wheel from a copy of the sources, with what the wheel carries beside them."""
    copy = folder / source.name
    left_out = shutil.ignore_patterns("build", "build-*", "*.egg-info", "tests", "__pycache__", ".*_cache")
    shutil.copytree(source, copy, ignore=left_out)
    if source.name == "backend":
        for bundled in BUNDLED:
            shutil.copytree(REPOSITORY / bundled, folder / bundled)
        shutil.copy(REPOSITORY / "LICENSE", folder)
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both wheels."""
    folder = tmp_path_factory.mktemp("built")
    for name in PACKAGES:
        build(REPOSITORY / name, folder)
    return folder / "wheels"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """A folder with both packages as their wheels install them."""
    place = tmp_path_factory.mktemp("installed") / "site"
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
        "--target", str(place), *map(str, wheels.glob("*.whl")),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return place


def hugeplan(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command from the wheels. -S: no .pth file, so no editable install."""
    command = [sys.executable, "-S", "-c", _RUN, str(installed), site.getsitepackages()[0], *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=installed.parent)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_same_sources_give_the_same_bytes(wheels: Path, tmp_path: Path, name: str) -> None:
    """Built a second time, in another folder."""
    again = build(REPOSITORY / name, tmp_path)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheels / again.name, again)]
    assert digests[0] == digests[1]


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
    assert verified.returncode in NOT_IN_FORCE, verified.stderr
    assert "The plan of db-1 is not in force" in verified.stdout
    here = hugeplan(installed, "verify", str(path))
    assert here.returncode in NOT_IN_FORCE, here.stderr
    linted = hugeplan(installed, "lint", str(REPOSITORY / "backend/tests/lint/corpus/broken/kubelet-sum/kubelet.yaml"))
    assert linted.returncode == 1, linted.stderr
    assert "kubelet-reserved-memory-sum" in linted.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """The programs of a fresh virtual environment with hugeplan[demo,node] from its wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/pip"), "--disable-pip-version-check", "install", "--quiet"]
    (wheel,) = wheels.glob("hugeplan-*.whl")
    probe = subprocess.run(
        [*pip, "--dry-run", "--no-deps", "msgspec==0.22.0"], capture_output=True, text=True, check=False, timeout=300
    )
    if probe.returncode != 0:
        pytest.skip(f"SKIP: no package index answers: {probe.stderr.strip().splitlines()[-1]}")
    done = subprocess.run(
        # Not compiled here: the few modules that the commands import are compiled as they are.
        [*pip, "--no-compile", "--find-links", str(wheels), f"{wheel}[demo,node]"],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def test_a_fresh_environment_plans_and_sizes(environment: Path, tmp_path: Path) -> None:
    """The installed scripts, far from the checkout."""
    example = REPOSITORY / "docs/examples/bare-metal-postgresql.yaml"
    plan = run_in(tmp_path, environment / "hugeplan", "plan", str(example), "--json")
    assert plan.returncode == 0, plan.stderr
    (tmp_path / "plan.json").write_text(plan.stdout)
    for words, statuses in (
        (("size", "postgresql", "--set", "shared_buffers=8GB"), {0}),
        (("lint", str(REPOSITORY / "backend/tests/lint/corpus/broken/kubelet-sum/kubelet.yaml")), {1}),
        (("verify", "plan.json"), NOT_IN_FORCE),
        (("plan", "--node", "this"), {0, 4, 5}),
    ):
        done = run_in(tmp_path, environment / "hugeplan", *words)
        assert done.returncode in statuses, (words, done.stderr)
        assert done.stdout
        assert "internal error" not in done.stderr


def run_in(folder: Path, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program outside the checkout, without this environment's settings."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HUGEPLAN_", "PYTHON"))}
    return subprocess.run(
        [str(program), *words], cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=300
    )


def test_the_demo_of_the_wheel_serves_pages_and_lets_its_owner_in(environment: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HUGEPLAN_", "PYTHON"))}
    command = [str(environment / "hugeplan"), "demo", "--state-dir", "state", "--port", str(port), "--print-login-link"]
    output = tmp_path / "output"
    with output.open("wb") as file:
        demo = subprocess.Popen(command, cwd=tmp_path, env=own, stdout=file, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while "/login#token=" not in output.read_text():
            assert demo.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.1)
        secret = re.search(r"/login#token=(\S+)", output.read_text())
        assert secret is not None
        base = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(f"{base}/", timeout=20) as page:
            assert b"<script" in page.read()
        body = json.dumps({"token": secret[1]}).encode()
        request = urllib.request.Request(
            f"{base}/api/v1/session", data=body, headers={"Content-Type": "application/json", "Origin": base}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status in {200, 201, 204}
            assert "HttpOnly" in answer.headers["Set-Cookie"]
    finally:
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(timeout=60) == 0, output.read_text()
