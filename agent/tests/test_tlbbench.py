"""Running the benchmark: stand-ins show the ways it can end; the real one is run when it is built."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from hugeplan_agent import tlbbench
from hugeplan_agent.errors import MeasureError

DOCUMENT = {"schema_version": 1, "sections": [{"name": "rows", "status": "stopped", "reason": "time limit"}]}


def program(folder: Path, script: str) -> str:
    """An executable stand-in for tlbbench."""
    path = folder / "tlbbench"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_complete_document(tmp_path: Path) -> None:
    result = tlbbench.measure(program(tmp_path, f"echo '{json.dumps(DOCUMENT)}'"), "quick", 10)
    assert result.document == DOCUMENT
    assert result.note is None


def test_the_profile_and_json_are_asked_for(tmp_path: Path) -> None:
    script = 'printf \'{"schema_version": 1, "words": "%s"}\' "$*"'
    result = tlbbench.measure(program(tmp_path, script), "full", 10, arguments=("--seed", "3"))
    assert result.document["words"] == "run --profile full --json --seed 3"


def test_page_walks_are_passed_on_as_they_are(tmp_path: Path) -> None:
    curve = {"x_name": "numa_node", "backing": "THP-64K", "backing_kind": "multi_size_thp", "points": [{"x": 1}]}
    document = DOCUMENT | {"latency": {"walks": {"status": "ok", "cpu_node": 0, "curves": [curve]}}}
    result = tlbbench.measure(program(tmp_path, f"echo '{json.dumps(document)}'"), "quick", 10)
    assert result.document == document


def test_a_partial_document_is_taken_with_its_reason(tmp_path: Path) -> None:
    result = tlbbench.measure(program(tmp_path, f"echo '{json.dumps(DOCUMENT)}'; exit 3"), "quick", 10)
    assert result.document == DOCUMENT
    assert result.note == "partial; rows stopped: time limit"


def test_a_level_that_no_sweep_showed_is_said(tmp_path: Path) -> None:
    reason = "no second level of 4K ended within 16384 pages"
    sections = [{"name": "geometry", "status": "cannot_tell", "reason": reason}, {"name": "rows", "status": "ok"}]
    document = {"schema_version": 1, "sections": sections}
    result = tlbbench.measure(program(tmp_path, f"echo '{json.dumps(document)}'; exit 3"), "quick", 10)
    assert result.note == f"partial; geometry cannot_tell: {reason}"


def test_the_limit_ends_it_and_takes_what_it_has(tmp_path: Path) -> None:
    script = f"trap 'echo \"$DOCUMENT\"; exit 3' TERM\nDOCUMENT='{json.dumps(DOCUMENT)}'\nwhile :; do sleep 0.05; done"
    result = tlbbench.measure(program(tmp_path, script), "quick", 0.5)
    assert result.document == DOCUMENT
    assert result.note is not None
    assert result.note.startswith("partial; its limit of 0.5 seconds was reached; rows stopped")


def test_one_that_ignores_the_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tlbbench, "GRACE_SECONDS", 0.3)
    with pytest.raises(MeasureError, match=r"was ended by signal 9 \(its limit of 0\.3 seconds was reached\)"):
        tlbbench.measure(program(tmp_path, "trap '' TERM\nwhile :; do :; done"), "quick", 0.3)


def test_a_stop_is_passed_on(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    script = f"trap 'echo \"$DOCUMENT\"; exit 3' TERM\nDOCUMENT='{json.dumps(DOCUMENT)}'\nwhile :; do sleep 0.05; done"

    def should_stop() -> bool:
        return (tmp_path / "started").exists()

    started = f"touch {tmp_path}/started\n"
    ready = script.replace("while", f"{started}while")
    result = tlbbench.measure(program(tmp_path, ready), "quick", 30, should_stop)
    assert result.note is not None
    assert "the agent was told to stop" in result.note


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo first >&2; echo 'tlbbench: no memory' >&2; exit 1", "ended with exit status 1: tlbbench: no memory"),
        ("exit 2", "ended with exit status 2: no message"),
        ("kill -SEGV $$", "was ended by signal 11: no message"),
        ("echo '{'", "printed no valid JSON document"),
        ("echo", "printed no valid JSON document"),
        ("echo '[]'", "schema_version is 'list'"),
        ("echo '{\"schema_version\": 2}'", "schema_version is 2, but this agent reads version 1"),
        ('echo \'{"schema_version": 1, "ns": NaN}\'', "NaN is not a JSON number"),
    ],
)
def test_no_usable_document_is_one_sentence(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(MeasureError, match="tlbbench") as caught:
        tlbbench.measure(program(tmp_path, script), "quick", 10)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    for path in (tmp_path / "x", tmp_path, tmp_path / "absent"):
        with pytest.raises(MeasureError, match="is not a program"):
            tlbbench.find(str(path))


def test_a_file_that_cannot_be_executed(tmp_path: Path) -> None:
    path = tmp_path / "tlbbench"
    path.write_bytes(b"\x7fELFgarbage")
    path.chmod(0o755)
    with pytest.raises(MeasureError, match="cannot be started: Exec format error"):
        tlbbench.measure(str(path), "quick", 1)


def test_it_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert tlbbench.find(None) == found


def test_the_real_program_runs_through_a_wrapper_and_stops_for_one_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("geometry", "--json", "--page-sizes", "4K", "--max-memory", "32M", "--time-limit", "50")
    wrapper = program(tmp_path, f'{tlbbench.find(None)} "$@"; exit $?')
    stopped = [("geometry", "stopped")]
    document = tlbbench.run(wrapper, words, 60, lambda: False).document
    assert [(one["name"], one["status"]) for one in document["sections"]] != stopped
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    monkeypatch.setattr(os, "getpid", lambda: ended.pid)
    document = tlbbench.run(wrapper, words, 60, lambda: False).document
    assert [(one["name"], one["status"]) for one in document["sections"]] == stopped
