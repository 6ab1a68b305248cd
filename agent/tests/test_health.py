"""Probes: when an agent is alive, and when it is silent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hugeplan_agent import health

BASE: dict[str, object] = {
    "started_at": 1000.0,
    "round_at": 1000.0,
    "interval_seconds": 60.0,
    "measure_limit_seconds": 0.0,
}


@pytest.mark.parametrize(("age", "is_live"), [(0, True), (599, True), (601, False)])
def test_it_lives_while_its_loop_goes_round(age: float, is_live: bool) -> None:
    assert health.live(BASE, 1000 + age)[0] is is_live


def test_a_measurement_is_no_hang() -> None:
    assert health.live(BASE | {"measure_limit_seconds": 900.0}, 1000 + 1400)[0]


def test_a_long_interval_is_no_hang() -> None:
    assert health.live(BASE | {"interval_seconds": 3600.0}, 1000 + 7300)[0]


def test_it_is_ready_while_it_starts_and_silent_after_minutes_without_delivery() -> None:
    assert health.ready(BASE, 1299)[0]
    is_ready, sentence = health.ready(BASE | {"why": "status 409: known"}, 1400)
    assert not is_ready
    assert sentence == "no report has reached the server for 400 s: status 409: known"
    assert health.ready(BASE | {"delivered_at": 1390.0}, 1400) == (True, "reports reach the server")


def test_without_a_file_it_is_neither(tmp_path: Path) -> None:
    assert health.main(["live"], str(tmp_path)) == health.main(["ready"], str(tmp_path)) == 1
    assert health.main(["nonsense"], str(tmp_path)) == 2


def test_the_probe_reads_what_the_agent_wrote(tmp_path: Path) -> None:
    (tmp_path / health.FILE).write_text(json.dumps(BASE | {"round_at": health.now(), "delivered_at": health.now()}))
    words = [sys.executable, "-m", "hugeplan_agent.health", "ready"]
    done = subprocess.run(
        words, env={"HUGEPLAN_AGENT_SPOOL_DIR": str(tmp_path)}, cwd=Path(__file__).parents[1],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "reports reach the server\n", "")
