"""Any program as the subject: metrics, flags, and what wrong input is told."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hugeplan.cli import main, trial_shape
from hugeplan.measuring.program import Launch, Metric, ProgramSubject, java_flags
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.planner.model import NodeSample

PYTHON = (sys.executable, "-S", "-c")


def one_batch(tmp_path: Path, code: str, metric: Metric | None = None, arm: str = EQUAL, **launch: object) -> float:
    made = Launch(command=(*PYTHON, code), **launch)  # type: ignore[arg-type]
    subject = ProgramSubject({EQUAL: Launch(command=("true",)), arm: made}, tmp_path, metric)
    with subject.sides(arm, swapped=False) as (_, other):
        return other.batch().rate


def test_wall_time_without_a_metric(tmp_path: Path) -> None:
    assert one_batch(tmp_path, "import time; time.sleep(0.2)") < 5.0


def test_the_last_number_that_the_program_prints(tmp_path: Path) -> None:
    metric = Metric(pattern=re.compile(r"score: ([\d.,]+)"))
    assert one_batch(tmp_path, "print('score: 7'); print('score: 1,234.5')", metric) == 1234.5
    lower = Metric(pattern=re.compile(r"([\d.]+) ms"), lower_is_better=True)
    assert one_batch(tmp_path, "print('4 ms')", lower) == 0.25


@pytest.mark.parametrize("printed", ["", "score: 0", "score: ,"])
def test_output_without_a_number_is_an_error(printed: str, tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="--metric"):
        one_batch(tmp_path, f"print({printed!r})", Metric(pattern=re.compile(r"score: ([\d.,]+)")))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("printed", ["inf", "1e308", "1e-320", "5e-324"])
def test_a_number_that_no_document_takes_is_a_sentence(printed: str, lower: bool, tmp_path: Path) -> None:
    """What it had measured until then was lost to an internal error, at the end of all minutes."""
    metric = Metric(pattern=re.compile(r"(\S+)"), lower_is_better=lower)
    with pytest.raises(ArmError, match="cannot be compared"):
        one_batch(tmp_path, f"print({printed!r})", metric, arm="huge")


def test_a_failing_program_says_why(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="status 3: no such heap"):
        one_batch(tmp_path, "print('no such heap'); raise SystemExit(3)")
    with pytest.raises(ArmError, match="status 3"):
        one_batch(tmp_path, "raise SystemExit(3)", arm="huge")
    with pytest.raises(TrialError, match="No such file"):
        subject = ProgramSubject({EQUAL: Launch(command=("/no/such/program",))}, tmp_path)
        with subject.sides(EQUAL, swapped=False) as (base, _):
            base.batch()


def test_environment_and_the_thp_switch_reach_the_program(tmp_path: Path) -> None:
    """THP_enabled of /proc/self/status is what prctl(PR_SET_THP_DISABLE) changes."""
    metric = Metric(pattern=re.compile(r"THP_enabled:\s+(\d)"), lower_is_better=False)
    code = "import os; assert os.environ['A'] == 'b'; print(open('/proc/self/status').read())"
    assert one_batch(tmp_path, code, metric, environment={"A": "b"}) == 1.0
    with pytest.raises(TrialError, match="'0'"):
        one_batch(tmp_path, code, metric, environment={"A": "b"}, thp=False)


def test_java_flags_differ_by_page_size_alone() -> None:
    flags = {arm: java_flags(arm) for arm in (EQUAL, "thp", "2M", "1G")}
    assert len(set(flags.values())) == 4
    assert "-XX:-UseTransparentHugePages" in flags["2M"]
    assert "-XX:LargePageSizeInBytes=1g" in flags["1G"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["command", "--base", ""], "--base '': give a program"),
        (["command", "--base", "A=b"], "give a program"),
        (["command", "--base", "'x"], "--base"),
        (["command", "--base", "x", "--metric", "("], "--metric ("),
        (["command", "--base", "x", "--metric", "score"], "give one group"),
        (["command", "--base", "x", "--page-sizes", "3M"], "--page-sizes 3M"),
        (["command", "--base", "x", "--page-sizes", "2M"], "--pages N"),
        (["command", "--base", "x", "--runs", "0"], "--runs 0: give 1 to 200"),
        (["command", "--base", "x", "--minutes", "0"], "--minutes 0"),
        (["jvm", "--", "java", "-version"], "-Xmx"),
        (["postgresql", "--bin-dir", "/no/such/folder"], "/no/such/folder"),
        (["postgresql", "--clients", "0"], "--clients 0: give 1 to 1000"),
        (["postgresql", "--row-bytes", "0"], "--row-bytes 0"),
        (["postgresql", "--data-gib", "0"], "--data-gib 0"),
        (["postgresql", "--set", "shared_buffers=1GB"], "the trial sets shared_buffers itself"),
        (["postgresql", "--set", "work_mem"], "give NAME=VALUE"),
        (["postgresql", "--schema", "x.sql"], "needs --script"),
        (["postgresql", "--from", "/no/such/plan.json"], "/no/such/plan.json"),
        (["postgresql", "--instance", "no-such-server"], "--instance no-such-server"),
    ],
)
def test_wrong_input_is_one_line_and_starts_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_shape, "observe", lambda: (None, NodeSample(databases=())))  # whatever runs here
    kind, *rest = words
    assert main(["trial", kind, "--work-dir", str(tmp_path / "work"), *rest]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "work").exists()


def test_heaps_say_how_many_pages() -> None:
    from hugeplan.cli.trial import _java_pages  # noqa: PLC0415

    assert _java_pages(["-Xmx1g", "-Xmx512m", "-jar", "a.jar"], 2 << 20) in range(256, 500)
