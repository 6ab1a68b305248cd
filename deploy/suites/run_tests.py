"""Runs every test suite of this repository and sums them: `make test`.

Each suite runs even if an earlier one failed. A suite that cannot run here is skipped with its reason, and is never
counted as passed. The last line printed is exactly `N passed, N failed, N skipped`;
the exit status is 1 after a failure.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import provision
from results import SuiteResult, failure, from_junit, from_output, skip

HOUSE = Path(__file__).resolve().parents[2]
KEPT_SETTINGS = ("HUGEPLAN_SHARED", "HUGEPLAN_INSTALL")


@dataclass(frozen=True)
class Suite:
    """One test suite: where it runs, what must be built first, and how long it may take."""

    name: str
    folder: str
    command: tuple[str, ...]
    limit_seconds: int
    needs_file: str
    preflight: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    junit: bool = True
    needs_browser: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


PYTEST = ("python", "-m", "pytest", "-q", "--color=no", "--junitxml={junit}")
VITEST = (
    "npx", "--no-install", "vitest", "run", "--reporter=default", "--reporter=junit", "--outputFile.junit={junit}",
)  # fmt: skip
PLAYWRIGHT = ("npx", "--no-install", "playwright", "test")

SUITES = (
    Suite(
        "tlbbench", ".", ("bash", "agent/tlbbench/tests/run.sh"), 1800,
        "agent/tlbbench/tests/run.sh", preflight=("cc",), builds=("agent",), junit=False,
    ),
    Suite("agent", "agent", PYTEST, 1500, "agent/tests", preflight=("cc",), builds=("agent",)),
    Suite(
        "deploy", "deploy", PYTEST, 900,
        "deploy/tests", preflight=("node", "cc"), builds=("frontend", "agent"),
    ),
    Suite(
        "containers", "deploy", (*PYTEST, "containers/tests"), 2400,
        "deploy/containers/tests",
    ),
    # Before the backend's: their tests on an API server find it built.
    Suite(
        "kubernetes", "deploy", (*PYTEST, "kubernetes/tests"), 900,
        "deploy/kubernetes/tests", preflight=("kubernetes",),
    ),
    Suite("backend", "backend", PYTEST, 2400, "backend/tests"),
    Suite(
        "frontend", "frontend", VITEST, 600,
        "frontend/package.json", preflight=("node",), builds=("frontend",),
    ),
    Suite(
        "browser", "frontend", PLAYWRIGHT, 1200,
        "frontend/playwright.config.ts", preflight=("node", "cc"), builds=("frontend", "agent"), junit=False,
        needs_browser=True,
    ),
)  # fmt: skip


class Runner:
    """Runs suites one after the other, streams what they print, and leaves no process behind."""

    def __init__(self, state_dir: Path, environment: Mapping[str, str]) -> None:
        self.results_dir = state_dir / "test-results"
        self.environment = dict(environment)
        self.current: subprocess.Popen[bytes] | None = None

    def run(self, suite: Suite) -> SuiteResult:
        """Build what the suite needs, run it, and count its tests."""
        if not (HOUSE / suite.needs_file).exists():
            return failure(f"{suite.needs_file} is missing, so the suite cannot run")
        for tool in suite.preflight:
            check = subprocess.run(
                ["deploy/make/preflight.sh", tool], cwd=HOUSE, capture_output=True, text=True, check=False
            )
            if check.returncode != 0:
                return skip(check.stderr.strip())
        environment = {**self.environment, **suite.environment}
        if suite.needs_browser:
            browser = provision.find_browser()
            if browser is None:
                return skip("no Chromium or Chrome was found; install the package chromium")
            environment["CHROMIUM"] = browser
        for target in suite.builds:
            status, _ = self._stream(("make", target), HOUSE, environment, limit_seconds=900)
            if status != 0:
                return failure(f"make {target} failed with status {status}")
        return self._run_command(suite, environment)

    def _run_command(self, suite: Suite, environment: dict[str, str]) -> SuiteResult:
        junit = (self.results_dir / f"{suite.name}.xml").resolve()
        junit.unlink(missing_ok=True)
        command = tuple(word.replace("{junit}", str(junit)) for word in suite.command)
        status, output = self._stream(command, HOUSE / suite.folder, environment, suite.limit_seconds)
        return judge(suite, status, output, junit)

    def _stream(
        self, command: tuple[str, ...], folder: Path, environment: dict[str, str], limit_seconds: int
    ) -> tuple[int | None, str]:
        """Run a command in its own process group; answer its exit status (None: its time ran out) and its output."""
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except FileNotFoundError as error:
            return 127, str(error)
        self.current = process
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            stop_group(process)

        timer = threading.Timer(limit_seconds, expire)
        timer.start()
        sys.stdout.flush()
        chunks: list[bytes] = []
        assert process.stdout is not None
        with process.stdout as pipe:
            # Not line by line: a dot for each test is progress only when it is seen.
            while chunk := os.read(pipe.fileno(), 65536):
                chunks.append(chunk)
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
        status = process.wait()
        timer.cancel()
        stop_group(process)
        self.current = None
        return (None if expired.is_set() else status), b"".join(chunks).decode(errors="replace")


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """End everything that the command started and that is still in its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and _group_lives(process.pid):
            process.poll()
            time.sleep(0.05)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def judge(suite: Suite, status: int | None, output: str, junit: Path) -> SuiteResult:
    """Turn the end of a suite into counts. A bad exit status is a failure even if every counted test passed."""
    try:
        result = from_junit(junit.read_text()) if suite.junit else from_output(output)
    except FileNotFoundError:
        return failure(f"the suite wrote no results (exit status {status})")
    except ValueError as error:
        return failure(f"{error} (exit status {status})")
    if status is None:
        return result + failure(f"the suite was stopped after its limit of {suite.limit_seconds} seconds")
    if status != 0 and result.failed == 0:
        return result + failure(f"no test failed, but the suite ended with exit status {status}")
    return result


def suite_environment() -> dict[str, str]:
    """The environment of every suite: this repository's tools first, and none of the user's own hugeplan settings."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HUGEPLAN_") or name in KEPT_SETTINGS
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    environment["TZ"] = "UTC"
    # make passes these on to every recipe; an inner make would wait for a job server that is gone.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(name, None)
    return environment


def report(results: Mapping[str, tuple[SuiteResult, float]]) -> SuiteResult:
    """Print what failed and what was skipped, a line a suite, and return the sum."""
    total = SuiteResult()
    print("\n==== results ====")
    for name, (result, _) in results.items():
        for line in result.skips:
            print(f"SKIP {name}: {line}")
    for name, (result, _) in results.items():
        for line in result.failures:
            print(f"FAIL {name}: {line}")
    for name, (result, seconds) in results.items():
        print(f"{name:<10} {seconds:6.1f} s  {result.passed:5} ok {result.failed:5} bad {result.skipped:5} left out")
        total += result
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the test suites of this repository.")
    parser.add_argument("--state-dir", type=Path, default=HOUSE / ".state")
    parser.add_argument("suites", nargs="*", help=f"only these: {', '.join(suite.name for suite in SUITES)}")
    arguments = parser.parse_args()
    chosen = [suite for suite in SUITES if not arguments.suites or suite.name in arguments.suites]
    unknown = set(arguments.suites) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"no suite is named {', '.join(sorted(unknown))}")

    runner = Runner(arguments.state_dir, suite_environment())
    runner.results_dir.mkdir(parents=True, exist_ok=True)

    def stop(number: int, _frame: object) -> None:
        if runner.current is not None:
            stop_group(runner.current)
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)

    provision.install_missing(runner.results_dir / "provision.log", {suite.name for suite in chosen})
    results: dict[str, tuple[SuiteResult, float]] = {}
    for suite in chosen:
        print(f"\n==== {suite.name} ====", flush=True)
        started = time.monotonic()
        result = runner.run(suite)
        results[suite.name] = (result, time.monotonic() - started)
    total = report(results)
    print(total.closing_line(), flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
