"""The runner of `make test`: a suite that breaks in any way is never counted as passed, and nothing stays running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import run_tests
from results import SuiteResult, second_try
from run_tests import NETWORK, POOLS, SUITES, Runner, Suite, after_packages, judge, next_suite, run_all

GOOD_XML = '<testsuite><testcase classname="a" name="b"/></testsuite>'
SUITE = Suite("x", ".", ("true",), 5, "Makefile")


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    made = Runner(tmp_path, dict(os.environ))
    made.results_dir.mkdir()
    return made


def shell(script: str, limit_seconds: int = 20, name: str = "shell", *exclusive: str) -> Suite:
    command = ("bash", "-c", script)
    return Suite(name, ".", command, limit_seconds, "Makefile", junit=False, exclusive=frozenset(exclusive))


def until(is_true: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:g} s"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """True for a process that runs; one that has ended and was not waited for does not count."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


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
        runner.environment["PATH"] = str(tmp_path)
        result = runner.run(Suite("web", ".", ("true",), 5, "Makefile", preflight=("node",)))
        assert result.skipped == 1
        assert "Node 20.19 or newer" in result.skips[0]

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

    def test_what_works_at_the_end_of_all_time_is_asked_to_end_and_its_failures_count(self, tmp_path: Path) -> None:
        (tmp_path / "test_some.py").write_text(
            "import time\ndef test_a(): pass\ndef test_b(): assert 0\ndef test_c(): time.sleep(300)\n"
        )
        runner = Runner(tmp_path, dict(os.environ), seconds=20)
        runner.results_dir.mkdir()
        words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={junit}", "test_some.py")
        result = runner.run(Suite("some", str(tmp_path), words, 200, "Makefile"))
        assert result.closing_line() == "1 passed, 1 failed, 1 skipped"
        assert result.skips == ("its other tests were not reached in the 20 s that all suites have here",)
        waits = runner.run(shell("echo '1 passed, 0 failed'"))
        assert waits.skips == ("none of its tests were reached in the 20 s that all suites have here",)

    def test_what_has_said_nothing_for_long_by_then_has_failed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_tests, "SILENT_SECONDS", 1)
        runner = Runner(tmp_path, dict(os.environ), seconds=3)
        runner.results_dir.mkdir()
        assert runner.run(shell("echo '1 passed, 0 failed'; sleep 300")).failed == 1

    def test_what_writes_no_results_when_it_is_asked_to_end_has_failed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_tests, "ASKED_SECONDS", 1)
        runner = Runner(tmp_path, dict(os.environ), seconds=2)
        runner.results_dir.mkdir()
        hangs = replace(shell("trap '' INT; echo .F; while :; do read -t 1; done", 200), junit=True)
        assert "wrote no results" in runner.run(hangs).failures[0]

    def test_a_suite_of_lines_that_is_asked_to_end_says_what_it_ran(self, tmp_path: Path) -> None:
        runner = Runner(tmp_path, dict(os.environ), seconds=2)
        runner.results_dir.mkdir()
        result = runner.run(shell("trap 'exit 2' INT; echo PASS a; echo FAIL b; while :; do read -t 1; done", 200))
        assert (result.passed, result.failures, result.skipped) == (1, ("b",), 1)

    def test_a_child_left_behind_is_stopped(self, runner: Runner, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        script = f"sleep 300 >/dev/null 2>&1 & echo $! > {pid_file}; echo '1 passed, 0 failed'"
        assert runner.run(shell(script)).closing_line() == "1 passed, 0 failed, 0 skipped"
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)

    def test_a_child_in_a_session_of_its_own_is_stopped(self, runner: Runner, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        script = f"setsid bash -c 'echo $$ > {pid_file}; exec sleep 300' >/dev/null 2>&1 & "
        script += f"while [ ! -s {pid_file} ]; do :; done; echo '1 passed, 0 failed'"
        assert runner.run(shell(script)).closing_line() == "1 passed, 0 failed, 0 skipped"
        until(lambda: not lives(int(pid_file.read_text())), "the end of what was left behind")

    def test_the_time_of_processors_is_told_apart_from_waiting(self, runner: Runner) -> None:
        busy = "import time\nwhile time.process_time() < 0.5: pass"
        works = f"{sys.executable} -c '{busy}'; echo '1 passed, 0 failed'"
        runner.run(shell(works, name="works"))
        runner.run(shell("sleep 0.6; echo '1 passed, 0 failed'", name="waits"))
        assert runner.processor_seconds["works"] >= 0.45
        assert runner.processor_seconds["waits"] < 0.4


class TestLanes:
    def test_two_suites_run_side_by_side(self, runner: Runner, tmp_path: Path) -> None:
        """Each waits for the other one to begin."""
        meet = "touch {0}/{1}; while [ ! -e {0}/{2} ]; do sleep 0.02; done; echo '1 passed, 0 failed'"
        pair = [shell(meet.format(tmp_path, *names), name=names[0]) for names in (("a", "b"), ("b", "a"))]
        results = run_all(runner, pair, lanes=2)
        assert [(name, result.passed, result.failed) for name, (result, _) in results.items()] == [
            ("a", 1, 0),
            ("b", 1, 0),
        ]

    def test_what_only_one_may_use_is_used_by_one_at_a_time(self, runner: Runner, tmp_path: Path) -> None:
        alone = f"mkdir {tmp_path}/taken && sleep 0.2 && rmdir {tmp_path}/taken && echo '1 passed, 0 failed'"
        suites = [shell(alone, 20, name, POOLS) for name in ("a", "b", "c")]
        assert [result.failed for result, _ in run_all(runner, suites, lanes=3).values()] == [0, 0, 0]

    def test_the_first_suite_whose_things_are_free_is_next(self) -> None:
        pools, network, neither = (shell("", 1, name, *things) for name, *things in [("p", POOLS), ("n", NETWORK), "x"])
        assert next_suite([pools, network], [], 3) == pools
        assert next_suite([pools, network], [pools], 3) == network
        assert next_suite([pools, network], [pools, network], 3) is None
        assert next_suite([pools, neither], [pools, network], 3) == neither

    def test_what_a_suite_comes_after_has_ended_first(self) -> None:
        build, test = shell("", 1, "build"), replace(shell("", 1, "test"), after=frozenset({"build"}))
        assert next_suite([test, build], [], 2) == build
        assert next_suite([test], [build], 2) is None
        assert next_suite([test], [], 2) == test, "what does not run at all is not waited for"

    def test_only_suites_that_miss_packages_wait_for_them(self) -> None:
        there, misses = shell("", 1, "there"), replace(shell("", 1, "misses"), after=frozenset({"build"}))
        assert after_packages([there, misses], frozenset()) == [there, misses]
        packages, *rest = after_packages([there, misses], {"misses"})
        assert packages.prepares
        assert packages.command[-1] == "misses"
        assert [suite.after for suite in rest] == [set(), {"build", "packages"}]

    def test_a_preparation_that_fails_is_no_failed_test(self, runner: Runner) -> None:
        """The suites that need what it makes say what they miss."""
        prepares = replace(shell("exit 3"), prepares=True)
        assert runner.run(prepares).closing_line() == "0 passed, 0 failed, 0 skipped"

    def test_a_tool_is_looked_for_once(self, runner: Runner, tmp_path: Path) -> None:
        prepares = Suite("cc", ".", ("true",), 5, "Makefile", preflight=("cc",), prepares=True)
        runner.run(prepares)
        runner.environment["PATH"] = str(tmp_path)  # nothing is there now
        assert runner.run(replace(shell("", name="uses"), preflight=("cc",))).skipped == 0

    def test_suites_that_wait_share_a_core(self) -> None:
        half, other, whole, two = (replace(SUITE, name=str(cores), cores=cores) for cores in (0.5, 0.4, 1.0, 2.5))
        assert next_suite([whole, half], [whole, half], 2) == half
        assert next_suite([half], [whole, whole], 2) is None
        assert next_suite([two], [], 2) == two, "what needs more than there is runs alone"
        assert next_suite([other], [half], 1) is None, "with one lane there is one suite at a time"

    def test_output_is_shown_whole_and_in_one_piece(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        quiet = Runner(tmp_path, dict(os.environ), shows_output=False)
        quiet.results_dir.mkdir()
        said = "for n in 1 2 3; do echo {0} $n; sleep 0.1; done; echo '1 passed, 0 failed'"
        run_all(quiet, [shell(said.format(name), name=name) for name in ("a", "b")], lanes=2)
        shown = capfd.readouterr().out
        for name in ("a", "b"):
            assert f"==== {name} ====\n{name} 1\n{name} 2\n{name} 3\n1 passed, 0 failed\n" in shown
            assert f"{name} 1\n" in (quiet.results_dir / f"{name}.log").read_text()

    def test_a_hanging_suite_is_stopped_beside_one_that_works(self, runner: Runner) -> None:
        suites = [shell("echo '9 passed, 0 failed'; sleep 300", 1, "hangs"), shell("echo '1 passed, 0 failed'")]
        results = run_all(runner, suites, lanes=2)
        assert "limit of 1 seconds" in results["hangs"][0].failures[0]
        assert results["shell"][0].closing_line() == "1 passed, 0 failed, 0 skipped"

    def test_a_fault_of_the_runner_is_a_failed_suite(self, runner: Runner) -> None:
        nowhere = Suite("x", "Makefile", ("true",), 5, "Makefile", junit=False)
        (result, _) = run_all(runner, [nowhere], lanes=2)["x"]
        assert result.failed == 1
        assert "NotADirectoryError" in result.failures[0]

    def test_a_stop_ends_all_and_starts_nothing_more(self, runner: Runner, tmp_path: Path) -> None:
        script = "setsid bash -c 'echo $$ > {0}.own; exec sleep 300' & echo $$ > {0}; sleep 300"
        suites = [shell(script.format(tmp_path / name), name=name) for name in ("a", "b", "never")]
        results = {}
        whole = threading.Thread(target=lambda: results.update(run_all(runner, suites, lanes=2)))
        whole.start()
        files = [tmp_path / name for name in ("a", "a.own", "b", "b.own")]
        until(lambda: all(file.exists() and file.read_text().strip() for file in files), "four processes")
        runner.stop()
        whole.join(20)
        assert {name: result.failures for name, (result, _) in results.items()} == dict.fromkeys(
            ("a", "b", "never"), ("the run was stopped",)
        )
        until(lambda: not any(lives(int(file.read_text())) for file in files), "the end of all")
        assert not (tmp_path / "never").exists()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_shows_what_ran_and_ends_it(self, tmp_path: Path, number: signal.Signals) -> None:
        """The program itself, with suites of this test in place of its own."""
        pid_file = tmp_path / "pid"
        driver = f"""
import run_tests
script = "echo said by {{0}}; echo $$ > {pid_file}.{{0}}; sleep 300"
run_tests.SUITES = [
    run_tests.Suite(name, ".", ("bash", "-c", script.format(name)), 60, "Makefile", junit=False) for name in ("a", "b")
]
raise SystemExit(run_tests.main())
"""
        command = [sys.executable, "-c", driver, "--state-dir", str(tmp_path), "--lanes", "2"]
        with subprocess.Popen(
            command,
            cwd=run_tests.REPOSITORY / "deploy/suites",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as program:
            files = [tmp_path / "pid.a", tmp_path / "pid.b"]
            until(lambda: all(file.exists() and file.read_text().strip() for file in files), "both suites")
            program.send_signal(number)
            said, _ = program.communicate(timeout=60)
        assert program.returncode == 128 + number, said
        assert "said by a" in said
        assert "said by b" in said
        assert not any(lives(int(file.read_text())) for file in files)


class TestSecondTry:
    """What fails beside other suites is tried once more alone, and never passes unseen."""

    @staticmethod
    def pytest_suite(folder: Path, body: str, **changes: object) -> Suite:
        (folder / "test_it.py").write_text(body)
        # Its own root: one above, such as somebody's pyproject.toml in /tmp, would be part of the tests' names.
        (folder / "pytest.ini").write_text("[pytest]\n")
        made = Suite("py", str(folder), run_tests.PYTEST, 60, str(folder), again=run_tests.LAST_FAILED)
        return replace(made, **changes)  # type: ignore[arg-type]

    def after_both(self, runner: Runner, suite: Suite) -> SuiteResult:
        found = run_all(runner, [suite], lanes=1)
        run_tests.try_again(runner, [suite], found)
        return found[suite.name][0]

    LATE = """
from pathlib import Path
import pytest

def test_good(): pass

@pytest.mark.parametrize("seconds", [1, 2])
def test_late(seconds):
    seen = Path(__file__).with_name(f"seen{seconds}")
    if not seen.exists():
        seen.touch()
        raise AssertionError(f"{seconds} s")
"""

    def test_what_passes_alone_has_passed_and_is_named(
        self, runner: Runner, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        suite = self.pytest_suite(tmp_path, self.LATE)
        result = self.after_both(runner, suite)
        assert result.closing_line() == "3 passed, 0 failed, 0 skipped"
        run_tests.report({"py": (result, 1.0)}, {})
        assert "AGAIN py: test_it test_late[1]: AssertionError: 1 s" in capfd.readouterr().out
        assert "1 passed" in (runner.results_dir / "py.first.log").read_text()

    def test_what_fails_again_has_failed(self, runner: Runner, tmp_path: Path) -> None:
        suite = self.pytest_suite(tmp_path, self.LATE + "\ndef test_bad(): raise AssertionError('always')\n")
        result = self.after_both(runner, suite)
        assert result.closing_line() == "3 passed, 1 failed, 0 skipped"
        assert result.failures == ("test_it test_bad: AssertionError: always",)

    def test_many_failures_are_no_matter_of_time(self, runner: Runner, tmp_path: Path) -> None:
        body = self.LATE.replace("[1, 2]", "range(13)")
        result = self.after_both(runner, self.pytest_suite(tmp_path, body))
        assert result.closing_line() == "1 passed, 13 failed, 0 skipped"

    def test_what_failed_before_a_suite_was_asked_to_end_is_tried_again(self, tmp_path: Path) -> None:
        runner = Runner(tmp_path, dict(os.environ), seconds=20)
        runner.results_dir.mkdir()
        suite = self.pytest_suite(tmp_path, self.LATE + "\nimport time\ndef test_long(): time.sleep(300)\n")
        found = run_all(runner, [replace(suite, limit_seconds=200)], lanes=1)
        assert found["py"][0].closing_line() == "1 passed, 2 failed, 1 skipped"
        runner.ends_at += 60
        run_tests.try_again(runner, [suite], found)
        result = found["py"][0]
        assert result.closing_line() == "3 passed, 0 failed, 1 skipped"
        assert len(result.late) == 2

    def test_a_suite_that_breaks_or_may_not_try_again_stays_failed(self, runner: Runner, tmp_path: Path) -> None:
        never = self.pytest_suite(tmp_path, self.LATE, again=None)
        assert self.after_both(runner, never).failed == 2
        broken = self.pytest_suite(tmp_path, "raise SystemExit(3)")
        assert self.after_both(runner, broken).failed == 1

    def test_a_suite_without_a_list_of_what_failed_runs_whole(self, runner: Runner, tmp_path: Path) -> None:
        script = f"[ -e {tmp_path}/seen ] && {{ echo '2 passed, 0 failed'; exit; }}; touch {tmp_path}/seen; "
        suite = replace(shell(f"{script} echo 'FAIL slow'; echo '1 passed, 1 failed'; exit 1"), again=())
        result = self.after_both(runner, suite)
        assert result.closing_line() == "2 passed, 0 failed, 0 skipped"
        assert result.late == ("slow",)

    def test_a_second_try_that_does_not_reach_what_failed_is_no_pass(self) -> None:
        first = SuiteResult(passed=5, failed=2, failures=("a: x", "b: y"))
        assert second_try(first, SuiteResult(passed=1), whole=False).closing_line() == "6 passed, 1 failed, 0 skipped"
        assert second_try(first, SuiteResult(passed=2), whole=False).late == ("a: x", "b: y")


def test_suites_that_need_pools_or_a_quiet_network_say_so() -> None:
    """Chromium drops requests when a container's interface comes; pools have one writer."""
    uses = {suite.name: suite.exclusive for suite in SUITES}
    node = {"kubernetes"} if run_tests.RUNS_A_NODE else set()
    assert {name for name, things in uses.items() if POOLS in things} == {"tlbbench"} | node
    always = {"browser", "containers", "guides"}
    docker = {"images"} if run_tests.HAS_DOCKER else set()
    assert {name for name, things in uses.items() if NETWORK in things} == always | node | docker
    assert {suite.name for suite in SUITES if "cluster" in suite.after} == {"kubernetes", "api-server"}
    assert {suite.name for suite in SUITES if "images" in suite.after} == {"containers", "guides"} | node


def test_every_test_of_the_backend_is_in_one_suite() -> None:
    commands = {suite.name: suite.command for suite in SUITES}
    assert f"--ignore={run_tests.ON_A_CLUSTER}" in commands["backend"]
    assert commands["api-server"][-1] == run_tests.ON_A_CLUSTER
    assert (run_tests.REPOSITORY / "backend" / run_tests.ON_A_CLUSTER).exists()


def test_the_users_settings_do_not_reach_the_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUGEPLAN_DATABASE_URL", "postgresql://production")
    monkeypatch.setenv("HUGEPLAN_SHARED", "/facts")
    environment = run_tests.suite_environment()
    assert "HUGEPLAN_DATABASE_URL" not in environment
    assert environment["HUGEPLAN_SHARED"] == "/facts"
