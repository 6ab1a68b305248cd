"""Probes: when an agent is alive, and when it is silent."""

from __future__ import annotations

import errno
import fcntl
import json
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from hugeplan_agent import health
from hugeplan_agent.whole_files import hold_file

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


def kept(folder: Path, **changes: object) -> BinaryIO:
    """Health as a running agent of now keeps it."""
    told = BASE | {health.HELD: True, "round_at": health.now(), "delivered_at": health.now()} | changes
    return hold_file(folder / health.FILE, json.dumps(told).encode())


def test_what_a_folders_owner_wrote_reaches_no_terminal_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kept(tmp_path, started_at=-1e6, delivered_at=-1e6, why="\x1b[2J\u202e\n"):
        assert health.main(["ready"], str(tmp_path)) == 1
    assert capsys.readouterr().out.endswith(' s: \\u001b[2J\\u202e\\n"\n')


def said(folder: Path) -> dict[str, object]:
    found = health.read(str(folder))
    assert found is not None
    return found


def test_what_an_agent_left_that_has_ended_is_no_running_ones(tmp_path: Path) -> None:
    with kept(tmp_path):
        assert said(tmp_path)["is_running"] is True
        assert health.live(said(tmp_path), health.now())[0]
    for judge in (health.live, health.ready):
        assert judge(said(tmp_path), health.now()) == (False, health.ENDED)


def test_of_two_agents_the_one_that_runs_is_seen(tmp_path: Path) -> None:
    """What stands there is judged by who wrote it: the first agent's is not the second's, however young."""
    first = kept(tmp_path)
    with kept(tmp_path):
        first.close()
        assert said(tmp_path)["is_running"] is True
    with kept(tmp_path), kept(tmp_path):
        pass
    assert said(tmp_path)["is_running"] is False


def test_a_file_system_without_locks_and_an_agent_of_before_leave_it_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the age decides, as ever: a probe must not end an agent that works."""
    (tmp_path / health.FILE).write_text(json.dumps(BASE | {"round_at": health.now()}))
    assert said(tmp_path)["is_running"] is None
    assert health.live(said(tmp_path), health.now())[0]
    with kept(tmp_path):

        def refuse(_file: object, _operation: int) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "flock", refuse)
        assert said(tmp_path)["is_running"] is None


def test_a_file_that_is_replaced_while_it_is_read_is_no_ended_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [kept(tmp_path)]
    flock = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        if len(held) == 1:  # a round, after the file was opened
            monkeypatch.setattr(fcntl, "flock", flock)
            held.append(kept(tmp_path))
            held[0].close()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    assert said(tmp_path)["is_running"] is True
    held[1].close()


def test_the_probe_reads_what_the_agent_wrote(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hugeplan_agent.health", "ready"]
    with kept(tmp_path):
        done = subprocess.run(
            words, env={"HUGEPLAN_AGENT_SPOOL_DIR": str(tmp_path)}, cwd=Path(__file__).parents[1],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "reports reach the server\n", "")
