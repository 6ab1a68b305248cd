"""The runner of `make test`: a suite that breaks in any way is never counted as passed, and nothing stays running."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import run_tests
from run_tests import Runner, Suite, judge

GOOD_XML = '<testsuite><testcase classname="a" name="b"/></testsuite>'
SUITE = Suite("x", ".", ("true",), 5, "Makefile")


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    made = Runner(tmp_path, dict(os.environ))
    made.results_dir.mkdir()
    return made


def shell(script: str, limit_seconds: int = 20) -> Suite:
    return Suite("shell", ".", ("bash", "-c", script), limit_seconds, "Makefile", junit=False)


class TestJudge:
    def test_a_bad_exit_status_outweighs_passed_tests(self, tmp_path: Path) -> None:
        junit = tmp_path / "x.xml"
        junit.write_text(GOOD_XML)
        assert judge(SUITE, 0, "", junit).closing_line() == "1 passed, 0 failed, 0 skipped"
        assert judge(SUITE, 3, "", junit).closing_line() == "1 passed, 1 failed, 0 skipped"

    def test_no_results_file_is_a_failure(self, tmp_path: Path) -> None:
        result = judge(SUITE, 0, "", tmp_path / "absent.xml")
        assert (result.passed, result.failed) == (0, 1)

    def test_a_suite_past_its_limit_is_a_failure(self, tmp_path: Path) -> None:
        junit = tmp_path / "x.xml"
        junit.write_text(GOOD_XML)
        assert "limit of 5 seconds" in judge(SUITE, None, "", junit).failures[0]


class TestRunner:
    def test_a_missing_suite_is_a_failure(self, runner: Runner) -> None:
        result = runner.run(Suite("gone", ".", ("true",), 5, "no/such/suite"))
        assert result.failures == ("no/such/suite is missing, so the suite cannot run",)

    def test_a_missing_tool_is_a_skip_with_its_reason(self, runner: Runner, tmp_path: Path) -> None:
        (tmp_path / "bash").symlink_to("/bin/bash")
        os_path = os.environ["PATH"]
        os.environ["PATH"] = str(tmp_path)
        try:
            result = runner.run(Suite("web", ".", ("true",), 5, "Makefile", preflight=("node",)))
        finally:
            os.environ["PATH"] = os_path
        assert result.skipped == 1
        assert "Node 20 or newer" in result.skips[0]

    def test_counts_come_from_the_closing_line(self, runner: Runner) -> None:
        result = runner.run(shell("echo 'SKIP a: b'; echo '4 passed, 0 failed, 1 skipped'"))
        assert result.closing_line() == "4 passed, 0 failed, 1 skipped"

    def test_a_hanging_suite_is_stopped_with_its_children(self, runner: Runner, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        result = runner.run(
            shell(f"sleep 300 & echo $! > {pid_file}; echo '1 passed, 0 failed'; wait", limit_seconds=1)
        )
        assert result.failed == 1
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)

    def test_a_child_left_behind_is_stopped(self, runner: Runner, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        script = f"sleep 300 >/dev/null 2>&1 & echo $! > {pid_file}; echo '1 passed, 0 failed'"
        assert runner.run(shell(script)).closing_line() == "1 passed, 0 failed, 0 skipped"
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)


def test_the_users_settings_do_not_reach_the_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", "postgresql://production")
    monkeypatch.setenv("HUGEPLAN_SHARED", "/facts")
    environment = run_tests.suite_environment()
    assert "HUGEPLAN_DATABASE_URL" not in environment
    assert environment["HUGEPLAN_SHARED"] == "/facts"
