"""A release: the same bytes from two checkouts, complete, and installed without asking an index for our own names."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from clone_images import clone_into
from container_rig import CACHE, REPOSITORY
from version import PLACES, differing, version

DATE = "1700000000"
ACTIONLINT = "v1.7.12"


def make(checkout: Path, out: Path) -> Path:
    """The release of a checkout, with the tools of this environment."""
    words = [sys.executable, str(checkout / "deploy/release/release.py"), "--out", str(out)]
    path = f"{checkout}/backend{os.pathsep}{checkout}/agent"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": DATE, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return out


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders as a clone has them. The second builds its own user interface, the first has this tree's."""
    folders = []
    for name in ("first", "a-longer-name-of-a-second"):
        folder = tmp_path_factory.mktemp(name) / "hugeplan"
        folder.mkdir()
        clone_into(folder)
        # Links to the same files: npm takes a link to the whole folder for strangers.
        subprocess.run(["cp", "-al", REPOSITORY / "frontend/node_modules", folder / "frontend"], check=True)
        folders.append(folder)
    shutil.copytree(REPOSITORY / "frontend/dist", folders[0] / "frontend/dist")
    words = ["npm", "run", "--silent", "build"]
    built = subprocess.run(words, cwd=folders[1] / "frontend", capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folders[0], folders[1]


@pytest.fixture(scope="module")
def release(checkouts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(checkouts[0], tmp_path_factory.mktemp("release") / "dist")


def test_two_checkouts_give_the_same_bytes(release: Path, checkouts: tuple[Path, Path], tmp_path: Path) -> None:
    again = make(checkouts[1], tmp_path / "dist")
    first, second = ((folder / "SHA256SUMS").read_text().splitlines() for folder in (release, again))
    assert first == second
    assert len(first) >= 10


def test_it_is_complete_and_its_sums_hold(release: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=release, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    names = " ".join(sorted(path.name for path in release.iterdir()))
    rpm = ["hugeplan-agent-.*rpm"] if shutil.which("rpmbuild") else []
    for wanted in (
        r"hugeplan-\S+-py3-none-any\.whl", r"hugeplan_agent-\S+\.whl", r"hugeplan-agent_\S+\.deb", *rpm,
        r"hugeplan-server_\S+\.deb",
        r"hugeplan-chart-\S+\.tgz", r"hugeplan-\S+-man\.tar\.gz", r"requirements\.txt", r"THIRD-PARTY-NOTICES\.txt",
        r"-python\.cdx\.json", r"-ui\.cdx\.json", "LICENSE",
    ):  # fmt: skip
        assert re.search(wanted, names), wanted
    assert str(REPOSITORY) not in "".join(
        path.read_text(errors="replace") for path in release.iterdir() if path.suffix in {".json", ".txt"}
    )


def test_the_services_wheel_holds_interface_migrations_data_and_licences(release: Path) -> None:
    (wheel,) = release.glob("hugeplan-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "hugeplan/bundled/ui/index.html", "hugeplan/bundled/ui/third-party-notices.txt",
        "hugeplan/bundled/migrations/env.py", "hugeplan/bundled/LICENSE", "hugeplan/bundled/openapi.json",
    ):  # fmt: skip
        assert [name for name in names if name.endswith(wanted)], wanted
    assert [name for name in names if name.startswith("hugeplan/") and name.endswith((".csv", ".json"))]
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]


def test_bills_of_materials_name_every_locked_package(release: Path) -> None:
    locked = dict(
        re.findall(r"^([a-z0-9.-]+)==([^ ;\\]+)", (REPOSITORY / "deploy/python/wheel.txt").read_text(), re.MULTILINE)
    )
    (path,) = release.glob("*-python.cdx.json")
    document = json.loads(path.read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert {part["name"]: part["version"] for part in document["components"]} == locked
    (path,) = release.glob("*-ui.cdx.json")
    document = json.loads(path.read_text())
    named = {part["name"] for part in document["components"]}
    assert {"react", "react-dom", "recharts"} <= named
    assert "vite" not in named, "what only builds is not in the bundle"
    notices = (release / "THIRD-PARTY-NOTICES.txt").read_text()
    for part in document["components"]:
        name = part["name"]
        assert f"{name} {part['version']}  (" in notices, name
    assert "GNU C Library" in notices


def test_manual_pages_cover_every_command(release: Path, tmp_path: Path) -> None:
    from hugeplan.cli import COMMANDS  # noqa: PLC0415 - heavy

    (packed,) = release.glob("*-man.tar.gz")
    with tarfile.open(packed) as tar:
        tar.extractall(tmp_path, filter="data")
    pages = {path.name for path in (tmp_path / "man1").iterdir()}
    assert pages == {"hugeplan.1", "hugeplan-agent.1", *(f"hugeplan-{row.name}.1" for row in COMMANDS)}
    if man := shutil.which("man"):
        for page in sorted((tmp_path / "man1").iterdir()):
            done = subprocess.run([man, "--warnings", "-l", str(page)], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), page.name


def test_one_file_names_the_version() -> None:
    assert differing() == []
    assert len({place.file for place in PLACES}) == 8
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    assert f"## {version()}" in changes or "## Unreleased" in changes


@pytest.mark.parametrize("path", sorted((REPOSITORY / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_the_forges_files_have_the_forges_form(path: Path) -> None:
    schema = "vendor.github-workflows" if path.parent.name == "workflows" else "vendor.github-issue-forms"
    if path.name == "config.yml":
        assert path.read_text() == "blank_issues_enabled: false\n"
        return
    command = [str(Path(sys.executable).parent / "check-jsonschema"), "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_workflows_run_what_a_developer_runs() -> None:
    """Each `make` target that a workflow names exists."""
    folder = REPOSITORY / ".github/workflows"
    texts = {path.name: path.read_text() for path in folder.glob("*.yml")}
    assert ".ci/run" in texts["test.yml"]
    assert "make release" in texts["release.yml"]
    targets = set(re.findall(r"^([a-z-]+):.*## ", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert {
        name for text in texts.values() for name in re.findall(r"run: make ([a-z-]+)$", text, re.MULTILINE)
    } <= targets


def actionlint() -> Path:
    """The linter of workflows, built from its Go module once; SKIP where there is neither it nor Go nor a network."""
    if found := shutil.which("actionlint"):
        return Path(found)
    target = CACHE.parent / f"actionlint-{ACTIONLINT}"
    if not (target / "actionlint").exists():
        if shutil.which("go") is None:
            pytest.skip("SKIP: neither actionlint nor Go, which builds it, is installed")
        words = ["go", "install", f"github.com/rhysd/actionlint/cmd/actionlint@{ACTIONLINT}"]
        environment = {**os.environ, "GOBIN": str(target), "GOFLAGS": "-modcacherw"}
        built = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if built.returncode:
            pytest.skip(f"SKIP: actionlint cannot be built here: {built.stderr.strip().splitlines()[-1]}")
    return target / "actionlint"


def test_actionlint_finds_nothing_in_the_workflows() -> None:
    files = sorted(map(str, (REPOSITORY / ".github/workflows").glob("*.yml")))
    done = subprocess.run([actionlint(), *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


class TestOurOwnNames:
    """Whoever registers our names on a public index must not get into an installation."""

    @pytest.fixture
    def evil_index(self, tmp_path: Path) -> Path:
        """A folder that offers newer packages of our names, as an index would."""
        for name in ("hugeplan", "hugeplan_agent"):
            path = tmp_path / "evil" / f"{name}-99.0-py3-none-any.whl"
            path.parent.mkdir(exist_ok=True)
            with zipfile.ZipFile(path, "w") as wheel:
                wheel.writestr(f"{name}/__init__.py", "raise SystemExit('taken over')\n")
                about = f"{name}-99.0.dist-info"
                wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")
                wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr(f"{about}/RECORD", "")
        return tmp_path / "evil"

    def test_an_install_takes_the_wheels_of_the_folder(self, release: Path, evil_index: Path, tmp_path: Path) -> None:
        lines = (release / "requirements.txt").read_text().splitlines()
        ours = [line for line in lines if line.startswith("./")]
        assert len(ours) == 2
        assert all(re.search(r" --hash=sha256:[0-9a-f]{64}$", line) for line in ours)
        assert not [line for line in lines if re.match(r"hugeplan", line)]
        venv.create(tmp_path / "environment", with_pip=True)
        pip = tmp_path / "environment/bin/pip"
        # --no-deps: what they need comes from the lock, by hash, and its index is not the question here.
        (tmp_path / "ours.txt").write_text("\n".join(ours) + "\n")
        done = subprocess.run(
            [str(pip), "install", "--quiet", "--no-deps", "--require-hashes", "--no-index", "--find-links",
             str(evil_index), "--requirement", str(tmp_path / "ours.txt")],
            cwd=release, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        shown = subprocess.run([str(pip), "freeze"], capture_output=True, text=True, check=True).stdout
        assert f"hugeplan-{version()}-" in shown
        assert "99.0" not in shown

    def test_a_wheel_that_was_changed_is_refused(self, release: Path, tmp_path: Path) -> None:
        folder = tmp_path / "dist"
        shutil.copytree(release, folder)
        (wheel,) = folder.glob("hugeplan-*.whl")
        with zipfile.ZipFile(wheel, "a") as changed:
            changed.writestr("hugeplan/more.py", "")
        ours = [line for line in (folder / "requirements.txt").read_text().splitlines() if line.startswith("./")]
        (folder / "ours.txt").write_text("\n".join(ours) + "\n")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-index",
             "--target", str(tmp_path / "there"), "--requirement", "ours.txt"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode != 0
        assert "DO NOT MATCH THE HASHES" in done.stderr
        assert hashlib.sha256(wheel.read_bytes()).hexdigest() not in (folder / "requirements.txt").read_text()
