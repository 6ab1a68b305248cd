"""The packages as a user installs them: in clean environments, with every Python at hand, twice the same bytes."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import hugeplan_agent

AGENT = Path(__file__).resolve().parents[1]
BUILD = AGENT / "packaging" / "build.py"
EPOCH = "1700000000"


def pythons() -> list[str]:
    """Interpreters from 3.9 on: of the PATH, of pyenv, and the one that runs the tests."""
    found: dict[str, str] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", "/nonexistent")) / "versions"
    places = [*pyenv.glob("3.*/bin/python"), Path(sys.executable), Path("/usr/bin/python3")]
    for place in places:
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        told = subprocess.run([str(place), "-Ic", code], capture_output=True, text=True, check=False)
        number = told.stdout.strip()
        if told.returncode == 0 and tuple(map(int, number.split("."))) >= (3, 9):
            found.setdefault(number, str(place))
    return sorted(found.values())


def build(out: Path, kinds: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": EPOCH,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    words = [sys.executable, str(BUILD), "--out", str(out), "--kinds", kinds]
    return subprocess.run(words, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All kinds that can be built here."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip(f"SKIP: no packages for {platform.machine()}")
    out = tmp_path_factory.mktemp("packages")
    kinds = "wheel,deb,rpm" if shutil.which("rpmbuild") else "wheel,deb"
    done = build(out, kinds)
    if done.returncode and "is not installed" in done.stderr:
        pytest.skip(f"SKIP: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return out


def one(packages: Path, pattern: str) -> Path:
    found = list(packages.glob(pattern))
    if not found:
        pytest.skip(f"SKIP: no {pattern} was built: rpmbuild is not installed")
    return found[0]


def test_the_same_sources_give_the_same_bytes(packages: Path, tmp_path: Path) -> None:
    kinds = ",".join(
        kind
        for kind, pattern in (("wheel", "*.whl"), ("deb", "*.deb"), ("rpm", "*.rpm"))
        if list(packages.glob(pattern))
    )
    assert build(tmp_path, kinds).returncode == 0
    for path in packages.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


@pytest.mark.parametrize("python", pythons())
def test_the_wheel_installs_and_runs(packages: Path, tmp_path: Path, python: str) -> None:
    environment = tmp_path / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", str(environment)], check=True)
    wheel = one(packages, "*.whl")
    target = ["--python", str(environment / "bin/python")]
    install = [sys.executable, "-m", "pip", *target, "install", "--no-index", "--quiet", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)

    def call(*words: str) -> str:
        command = [str(environment / "bin" / words[0]), *words[1:]]
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert call("hugeplan-agent", "--version") == f"hugeplan-agent {hugeplan_agent.__version__}\n"
    report = json.loads(call("hugeplan-agent", "observe", "--spool-dir", str(tmp_path / "none")))
    assert report["sample"]["memory"]["mem_total_bytes"] > 0
    assert [one["name"] for one in report["collectors"] if one["status"] == "failed"] == []
    assert json.loads(call("tlbbench", "info", "--json"))["schema_version"] == 1


def test_the_benchmark_in_the_wheel_needs_no_library(packages: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(one(packages, "*.whl")) as archive:
        program = Path(archive.extract("hugeplan_agent/bin/tlbbench", tmp_path))
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    assert "not a dynamic executable" in told.stderr + told.stdout or "statically linked" in told.stdout


def test_the_wheel_names_its_files_with_their_digests(packages: Path) -> None:
    with zipfile.ZipFile(one(packages, "*.whl")) as archive:
        names = archive.namelist()
        record = archive.read(next(name for name in names if name.endswith("RECORD"))).decode()
    assert sorted(line.split(",")[0] for line in record.splitlines()) == sorted(names)
    assert not any("test" in name or name.endswith((".pyc", ".c")) for name in names)


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Path]:
    """This machine's file system with a layer on top that is thrown away."""
    if os.geteuid() != 0:
        pytest.skip("SKIP: an overlay needs root")
    top = tmp_path / "top"
    merged = tmp_path / "merged"
    merged.mkdir()
    top.mkdir()
    # The layer must not lie on an overlay itself, so it lies in memory.
    subprocess.run(["mount", "-t", "tmpfs", "hugeplan", str(top)], check=True)
    try:
        (top / "upper").mkdir()
        (top / "work").mkdir()
        options = f"lowerdir=/,upperdir={top}/upper,workdir={top}/work"
        done = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, str(merged)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"SKIP: no overlay file system here ({done.stderr.decode().strip()})")
        for name in ("proc", "dev"):
            subprocess.run(["mount", "--bind", f"/{name}", str(merged / name)], check=True)
        yield merged
    finally:
        for name in ("proc", "dev", ""):
            subprocess.run(["umount", str(merged / name)], check=False, capture_output=True)
        subprocess.run(["umount", str(top)], check=False)


def inside(system: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["chroot", str(system), *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def check_installed(system: Path) -> None:
    assert inside(system, "hugeplan-agent", "--version").stdout == f"hugeplan-agent {hugeplan_agent.__version__}\n"
    report = json.loads(inside(system, "hugeplan-agent", "observe").stdout)
    assert report["sample"]["memory"]["mem_total_bytes"] > 0
    doctor = inside(system, "hugeplan-agent", "doctor").stdout
    assert "/usr/lib/hugeplan-agent/hugeplan_agent/bin/tlbbench" in doctor
    assert (system / "usr/lib/systemd/system/hugeplan-agent.service").exists()


def test_the_deb_installs_runs_and_goes(packages: Path, system: Path) -> None:
    deb = one(packages, "*.deb")
    if shutil.which("dpkg") is None:
        pytest.skip("SKIP: dpkg is not installed")
    shutil.copy(deb, system / "root")
    installed = inside(system, "dpkg", "-i", f"/root/{deb.name}")
    assert installed.returncode == 0, installed.stderr
    check_installed(system)
    assert inside(system, "dpkg", "--verify", "hugeplan-agent").stdout == ""
    (system / "etc/hugeplan/agent.env").write_text("HUGEPLAN_AGENT_SERVER=https://mine.example\n")
    assert inside(system, "dpkg", "-r", "hugeplan-agent").returncode == 0
    assert not (system / "usr/bin/hugeplan-agent").exists()
    assert (system / "etc/hugeplan/agent.env").exists(), "settings outlive the package"


def test_the_rpm_installs_runs_and_goes(packages: Path, system: Path) -> None:
    rpm = one(packages, "*.rpm")
    if shutil.which("rpm") is None:
        pytest.skip("SKIP: rpm is not installed")
    shutil.copy(rpm, system / "root")
    # This machine's Python is not in RPM's database, so the dependency on it is not checked here.
    installed = inside(system, "rpm", "-i", "--nodeps", f"/root/{rpm.name}")
    assert installed.returncode == 0, installed.stderr
    check_installed(system)
    told = inside(system, "rpm", "-qp", "--requires", f"/root/{rpm.name}").stdout
    assert "python3 >= 3.9" in told
    assert inside(system, "rpm", "-V", "--nodeps", "hugeplan-agent").stdout == ""
    assert inside(system, "rpm", "-e", "hugeplan-agent").returncode == 0
    assert not (system / "usr/bin/hugeplan-agent").exists()
