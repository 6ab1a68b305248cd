"""The lock files: exact, hashed, without any registry's address, and in step with the pyproject files."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LOCKS = sorted((REPOSITORY / "deploy/python").glob("*.txt"))
PIN = re.compile(r"^([a-z0-9.-]+)==([^ ;]+)", re.MULTILINE)


def canonical(requirement: str) -> tuple[str, str]:
    """`SQLAlchemy[asyncio]==2.1.9` -> ("sqlalchemy", "2.1.9")."""
    name, _, version = requirement.partition("==")
    return re.sub(r"[-_.]+", "-", name.split("[")[0]).lower(), version


def declared() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in ("backend", "agent"):
        project = tomllib.loads((REPOSITORY / folder / "pyproject.toml").read_text())["project"]
        optional = project.get("optional-dependencies", {})
        for requirement in (*project["dependencies"], *(line for lines in optional.values() for line in lines)):
            # A marker says where it is installed; the resolver writes it its own way.
            name, version = canonical(requirement.partition(";")[0].strip())
            assert version, f"{folder}/pyproject.toml: {requirement} is not pinned with =="
            found[name] = version
    return found


def test_there_is_a_lock_for_each_purpose() -> None:
    assert [path.name for path in LOCKS] == ["development.txt", "docs.txt", "production.txt", "wheel.txt"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_package_is_pinned_and_hashed(lock: Path) -> None:
    entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", lock.read_text(), flags=re.MULTILINE))
    for entry in filter(str.strip, entries):
        assert PIN.match(entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_no_lock_names_a_registry(lock: Path) -> None:
    lines = [line.strip() for line in lock.read_text().splitlines()]
    options = {line.split()[0].split("=")[0] for line in lines if line.startswith("--")}
    assert options == {"--hash"}
    assert not [line for line in lines if "://" in line]


def test_the_development_lock_is_in_step_with_the_pyproject_files() -> None:
    pins = dict(PIN.findall((REPOSITORY / "deploy/python/development.txt").read_text()))
    # The two packages of this tree are built here: no index has them.
    others = {name: version for name, version in declared().items() if not name.startswith("hugeplan")}
    stale = {name: version for name, version in others.items() if pins.get(name) != version}
    assert not stale, f"run `make lock`: the lock differs from {stale}"


def test_production_pins_are_those_of_development() -> None:
    development, production = (
        dict(PIN.findall((REPOSITORY / "deploy/python" / name).read_text()))
        for name in ("development.txt", "production.txt")
    )
    assert production.items() <= development.items()


def test_the_npm_lock_is_pinned_and_carries_no_address() -> None:
    packages = json.loads((REPOSITORY / "frontend/package-lock.json").read_text())["packages"]
    installed = {name: entry for name, entry in packages.items() if name}
    assert len(installed) > 100
    assert not [name for name, entry in installed.items() if "resolved" in entry]
    assert not [name for name, entry in installed.items() if not {"version", "integrity"} <= set(entry)]
