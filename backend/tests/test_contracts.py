"""The import contracts hold, and they see what they should see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
