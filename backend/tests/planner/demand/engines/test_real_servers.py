"""MariaDB and the JVM on a real huge page pool: what they map is what the planner says.

``backend/tools/mapped_pages.py`` does the work; it reserves pages, so it needs root, and it says why where it
cannot run. A trial that cannot run is a skipped test with that reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[4] / "tools" / "mapped_pages.py"


def _install_mariadb() -> None:
    """On a CI machine, where the tests may install what they need, bring the distribution's server."""
    present = shutil.which("mariadbd", path="/usr/sbin:/usr/bin")
    apt = shutil.which("apt-get")
    if present or os.environ.get("CI") != "true" or os.geteuid() != 0 or apt is None:
        return
    # The runner of all suites may be installing, too.
    wait = ("-o", "DPkg::Lock::Timeout=300")
    install = [apt, "install", *wait, "-y", "-qq", "--no-install-recommends", "mariadb-server-core"]
    for command in ([apt, "update", "-qq"], install):
        subprocess.run(command, check=False, capture_output=True, timeout=300)


@lru_cache(maxsize=2)
def _trials(engine: str) -> tuple[dict[str, Any], ...]:
    if engine == "mariadb":
        _install_mariadb()
    done = subprocess.run(
        [sys.executable, TOOL, engine, "--json"], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode in {0, 1, 3}, done.stderr
    return tuple(json.loads(done.stdout))


@pytest.mark.parametrize("engine", ["mariadb", "jvm"])
def test_real_mappings_are_what_the_planner_says(engine: str) -> None:
    trials = _trials(engine)
    ran = [trial for trial in trials if trial["status"] != "skipped"]
    if not ran:
        pytest.skip("; ".join(sorted({str(trial["reason"]) for trial in trials})))
    for trial in ran:
        assert abs(trial["real_pages"] - trial["predicted_pages"]) <= trial["error_pages"], trial


def test_jvm_17_is_exact() -> None:
    ran = [trial for trial in _trials("jvm") if trial["status"] != "skipped" and trial["version"] == "17"]
    if not ran:
        pytest.skip("; ".join(sorted({str(t["reason"] or f"Java {t['version']}, not 17") for t in _trials("jvm")})))
    for trial in ran:
        assert trial["real_pages"] == trial["predicted_pages"], trial
