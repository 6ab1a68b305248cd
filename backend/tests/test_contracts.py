"""The import contracts hold, and they see what they should see."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[1]
LINT = Path(sys.executable).parent / "lint-imports"


def _lint(config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT, "--config", config, "--no-cache"], cwd=BACKEND, capture_output=True, text=True, check=False, timeout=60
    )


def test_contracts_are_kept() -> None:
    done = _lint(BACKEND / ".importlinter")
    assert done.returncode == 0, done.stdout


def test_contract_of_the_pure_core_sees_the_standard_library(tmp_path: Path) -> None:
    config = tmp_path / "importlinter"
    config.write_text((BACKEND / ".importlinter").read_text().replace("    threading\n", "    threading\n    math\n"))
    done = _lint(config)
    assert done.returncode == 1
    assert "hugeplan.planner is not allowed to import math" in done.stdout


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("memory/ledger.py", "hugeplan.planner.gain.page_size_gain"),
        ("demand/base.py", "hugeplan.planner.memory.ledger"),
        ("observation/parts.py", "hugeplan.planner.memory.ledger"),
        ("gain/translation.py", "hugeplan.planner.gain.tlb_misses"),
        ("demand/settings.py", "hugeplan.planner.demand.engines.mysql"),
    ],
)
def test_an_import_against_the_pipeline_is_refused(tmp_path: Path, module: str, imported: str) -> None:
    """A copy of the package with one import the wrong way breaks a contract of the planner."""
    shutil.copytree(BACKEND / "hugeplan", tmp_path / "hugeplan", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "hugeplan" / "planner" / module
    path.write_text(path.read_text(encoding="utf-8") + f"\nimport {imported}\n", encoding="utf-8")
    command = [LINT, "--config", BACKEND / ".importlinter", "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    importer = f"hugeplan.planner.{module.removesuffix('.py').replace('/', '.')}"
    assert f"{importer} -> {imported}" in done.stdout
