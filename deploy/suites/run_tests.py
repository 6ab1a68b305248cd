"""Runs every test suite of this repository and sums them: `make test`.

Two suites run side by side on two cores, and more where they wait more than they compute; suites that use the same
thing of the machine (its huge page pools, its network interfaces) run one after the other. What takes long to prepare
(Debian packages, the programs of a cluster) is prepared meanwhile, and only the suites that need it wait for it.
What a suite prints goes into `test-results/SUITE.log` of the state folder and is shown whole when the suite ends;
`--lanes 1` runs one suite at a time and shows its output as it comes.

Each suite runs even if an earlier one failed. A suite that cannot run here is skipped with its reason, and is never
counted as passed. Few tests of a suite that fail are tried once more when all suites have ended, each suite alone: what
two cores shared made late is told apart from a fault. What passed only then is named in a line that begins with AGAIN.
`--seconds N` is for a machine that ends the whole run at some time: whatever still works then is asked to end, its
failures count, and what it did not reach is one line SKIP. What has been silent for long by then hangs, and fails.
The last line printed is exactly `N passed, N failed, N skipped`;
the exit status is 1 after a failure.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

import provision
from processes import MARK, end_marked, group_ends, processor_seconds, stop_group, stop_groups
from results import SuiteResult, failure, from_junit, from_lines, from_output, second_try, skip

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT_SETTINGS = ("HUGEPLAN_SHARED", "HUGEPLAN_INSTALL")

# What only one suite may use at a time.
POOLS = "huge page pools"
NETWORK = "network interfaces"  # Chromium drops its requests when one comes or goes, as with each container
SHARED_THINGS = frozenset({POOLS, NETWORK})


@dataclass(frozen=True)
class Suite:
    """One test suite: where it runs, what must be built first, and how long it may take."""

    name: str
    folder: str
    command: tuple[str, ...]
    limit_seconds: int
    needs_file: str
    # What must have ended before, of those that run at all.
    after: frozenset[str] = frozenset()
    preflight: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    junit: bool = True
    needs_browser: bool = False
    exclusive: frozenset[str] = frozenset()
    # Cores that it keeps busy, on average, where it runs alone (what a run prints: its processors over its own time).
    cores: float = 1.0
    # It has no tests: it prepares what others need, and they say what they miss where it fails.
    prepares: bool = False
    # What makes its command run again only what failed; empty: it can only run whole; None: what failed stays failed.
    again: tuple[str, ...] | None = None
    # Not of `make test`: it takes as long as all the others together.
    by_name_only: bool = False


# A cache for each suite: it holds what failed, and suites of one folder run side by side.
PYTEST = ("python", "-m", "pytest", "-q", "--color=no", "-o", "cache_dir={cache}", "--junitxml={junit}")
LAST_FAILED = ("--last-failed",)  # in words that pytest and Playwright share
# More than these are no matter of a late answer: on a slow machine one cause makes several tests of a suite late.
MOST_TRIED_AGAIN = 12
# Beyond what all suites have, where that is limited: for what failed beside others, alone.
SECOND_TRY_SECONDS = 600
# Of the time of all suites' end: what has said nothing for so long hangs; what is asked has so long to write results.
SILENT_SECONDS, ASKED_SECONDS = 600, 120
VITEST = (
    "npx", "--no-install", "vitest", "run", "--reporter=default", "--reporter=junit", "--outputFile.junit={junit}",
)  # fmt: skip
PLAYWRIGHT = ("npx", "--no-install", "playwright", "test")

# Where containerd is, tests of the cluster run a node: it takes pages and makes interfaces. Elsewhere they skip.
RUNS_A_NODE = shutil.which("containerd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is not None
# Docker makes an interface for each build step; podman, as the tests have it, makes none.
HAS_DOCKER = provision.has_docker()
ON_A_CLUSTER = "tests/artifacts/test_api_server.py"

# Suites start in this order, as soon as what they use is free; it keeps all lanes busy to the end: first what compiles
# beside everything, then the two that use the network one after the other, and the longest. Tests of the backend, the
# agent and deploy that take pages hold the lock of the pools (hugeplan_agent.pool_reservation) while they need them.
SUITES = (
    # These two have the least right to the cores: they compile where other suites wait, and count for less than they
    # would take alone. They hardly disturb a test of times.
    Suite(
        "cluster", ".", ("true",), 60, "deploy/kubernetes/rig/binaries/build.sh", preflight=("kubernetes",), cores=0.4,
        prepares=True,
    ),
    Suite(
        "images", "deploy", ("nice", "-n", "10", "python", "containers/clone_images.py"), 1800,
        "deploy/containers/clone_images.py", exclusive=frozenset({NETWORK}) if HAS_DOCKER else frozenset(), cores=0.3,
        prepares=True,
    ),
    Suite(
        "backend", "backend", (*PYTEST, f"--ignore={ON_A_CLUSTER}"), 5000, "backend/tests", builds=("agent",),
        cores=0.6, again=LAST_FAILED,
    ),
    # Most of its time it waits for agents that wait.
    Suite(
        "agent", "agent", PYTEST, 3600, "agent/tests", preflight=("cc",), builds=("agent",), cores=0.4,
        again=LAST_FAILED,
    ),
    Suite(
        "browser", "frontend", PLAYWRIGHT, 4000,
        "frontend/playwright.config.ts", preflight=("node", "cc"), builds=("frontend", "agent"), junit=False,
        needs_browser=True, exclusive=frozenset({NETWORK}), cores=0.6, again=LAST_FAILED,
    ),
    Suite(
        "containers", "deploy", (*PYTEST, "containers/tests"), 3600,
        "deploy/containers/tests", after=frozenset({"images"}), exclusive=frozenset({NETWORK}), cores=0.6,
        again=LAST_FAILED,
    ),
    Suite(
        "deploy", "deploy", PYTEST, 4500,
        "deploy/tests", preflight=("node", "cc"), builds=("frontend", "agent"), cores=0.5, again=LAST_FAILED,
    ),
    Suite(
        "tlbbench", ".", ("bash", "agent/tlbbench/tests/run.sh"), 3600,
        "agent/tlbbench/tests/run.sh", preflight=("cc",), builds=("agent",), junit=False, exclusive=frozenset({POOLS}),
        again=(),
    ),
    Suite(
        "kubernetes", "deploy", (*PYTEST, "kubernetes/tests"), 3600, "deploy/kubernetes/tests",
        after=frozenset({"cluster", "images"} if RUNS_A_NODE else {"cluster"}), preflight=("kubernetes",),
        exclusive=SHARED_THINGS if RUNS_A_NODE else frozenset(), cores=0.6, again=LAST_FAILED,
    ),
    # The backend's files as an API server takes them.
    Suite(
        "api-server", "backend", (*PYTEST, ON_A_CLUSTER), 1200, f"backend/{ON_A_CLUSTER}",
        after=frozenset({"cluster"}), preflight=("kubernetes",), again=LAST_FAILED,
    ),
    Suite(
        "frontend", "frontend", VITEST, 1200,
        "frontend/package.json", preflight=("node",), builds=("frontend",),
    ),
    # Every line of the guides on fresh machines, and with Docker beside podman: `make test-install`.
    Suite(
        "guides", "deploy", (*PYTEST, "-s", "guides/tests"), 5400, "deploy/guides/tests",
        after=frozenset({"images"}), exclusive=frozenset({NETWORK}), by_name_only=True,
    ),
)  # fmt: skip


def after_packages(suites: Sequence[Suite], missing: Collection[str]) -> list[Suite]:
    """These suites and, before those that miss Debian packages, what installs them; the others need not wait."""
    if not missing:
        return list(suites)
    command = ("python", str(Path(provision.__file__)), *sorted(missing))
    packages = Suite("packages", ".", command, 1800, "deploy/suites/provision.py", cores=0.4, prepares=True)
    waits = [replace(one, after=one.after | {packages.name}) if one.name in missing else one for one in suites]
    return [packages, *waits]


# Where three suites wait now and then, two cores have room for a little more than two cores' work.
ROOM_FOR_WAITS = 1.2


def next_suite(waiting: Iterable[Suite], running: Collection[Suite], lanes: int) -> Suite | None:
    """The first waiting suite that has room and uses nothing that a running one uses; None while there is none.

    A lane is a core: suites that wait more than they compute share one. With one lane there is one suite at a time.
    """
    waiting = list(waiting)
    taken = frozenset[str]().union(*(suite.exclusive for suite in running))
    unfinished = {suite.name for suite in (*waiting, *running)}
    room = lanes * ROOM_FOR_WAITS - sum(suite.cores for suite in running)
    fits = (suite for suite in waiting if not running or (lanes > 1 and suite.cores <= room))
    return next((suite for suite in fits if not suite.exclusive & taken and not suite.after & unfinished), None)


class StoppedError(Exception):
    """The runner was told to end; nothing is started any more."""


class Runner:
    """Runs suites, keeps what they print, and leaves no process behind."""

    def __init__(
        self, state_dir: Path, environment: Mapping[str, str], *, shows_output: bool = True, seconds: float = math.inf
    ) -> None:
        self.seconds, self.ends_at = seconds, time.monotonic() + seconds
        # Suites that were asked to end before they had run all their tests.
        self.asked = set[str]()
        self.results_dir = state_dir / "test-results"
        self.environment = {**environment, MARK: uuid.uuid4().hex}
        self.shows_output = shows_output
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False
        self._starting = threading.Lock()
        self._once: dict[str, threading.Lock] = {}
        self._built: dict[str, int | None] = {}
        self._found: dict[str, tuple[int | None, str]] = {}
        # What each suite's processes took of all cores. Far below the suite's own time: it waits, and may share a lane.
        self.processor_seconds: dict[str, float] = {}
        # Suites that wrote a list of what failed: they ran to their end, or ended when they were asked to.
        self.settled = set[str]()

    def log(self, suite: Suite) -> Path:
        """The file with all that a suite printed."""
        return self.results_dir / f"{suite.name}.log"

    def run(self, suite: Suite) -> SuiteResult:
        """Build what the suite needs, run it, and count its tests."""
        self.log(suite).unlink(missing_ok=True)
        if time.monotonic() > self.ends_at:
            return SuiteResult() if suite.prepares else self._not_reached("none of its tests were")
        if not (REPOSITORY / suite.needs_file).exists():
            return failure(f"{suite.needs_file} is missing, so the suite cannot run")
        environment = {**self.environment, MARK: f"{self.environment[MARK]}-{suite.name}"}
        for tool in suite.preflight:
            status, said = self._preflight(tool, suite)
            if status != 0:
                return (
                    SuiteResult()
                    if suite.prepares
                    else skip(said.strip() or f"the preflight of {tool} ended with status {status}")
                )
        if suite.needs_browser:
            browser = provision.find_browser()
            if browser is None:
                return skip("no Chromium or Chrome was found; install the package chromium")
            environment["CHROMIUM"] = browser
        for target in suite.builds:
            status = self._build(target, suite)
            if status != 0:
                return failure(f"make {target} failed with status {status}")
        return self._run_command(suite, environment)

    def _preflight(self, tool: str, suite: Suite) -> tuple[int | None, str]:
        """Look for a tool, once for all suites; a second suite waits for the first one's answer."""
        with self._once.setdefault(tool, threading.Lock()):
            if tool not in self._found:
                lowest = ("nice", "-n", "10") if suite.prepares else ()
                self._found[tool] = self._stream(
                    (*lowest, "deploy/make/preflight.sh", tool), REPOSITORY, self.environment, limit_seconds=1500,
                    log=self.log(suite),
                )  # fmt: skip
            return self._found[tool]

    def _build(self, target: str, suite: Suite) -> int | None:
        """Make a target, once for all suites; a second suite waits for the first one's build."""
        with self._once.setdefault(f"make {target}", threading.Lock()):
            if target not in self._built:
                self._built[target], _ = self._stream(
                    ("make", target), REPOSITORY, self.environment, limit_seconds=900, log=self.log(suite)
                )
            return self._built[target]

    def try_again(self, suite: Suite, first: SuiteResult) -> SuiteResult:
        """Run once more what failed in a suite, if so little failed that it may be the machine's doing.

        One that was stopped by force, or broke, has no list of what failed.
        """
        settled = suite.name in self.settled and 0 < first.failed <= MOST_TRIED_AGAIN
        # A whole suite for which there was no time before has none now.
        no_time = not suite.again and suite.name in self.asked
        if suite.again is None or not settled or no_time:
            return first
        self.log(suite).replace(self.results_dir / f"{suite.name}.first.log")
        self.asked.discard(suite.name)
        second = self.run(replace(suite, command=(*suite.command, *suite.again)))
        return second_try(first, second, whole=not suite.again)

    def _run_command(self, suite: Suite, environment: dict[str, str]) -> SuiteResult:
        junit = (self.results_dir / f"{suite.name}.xml").resolve()
        junit.unlink(missing_ok=True)
        places = {"{junit}": junit, "{cache}": junit.with_suffix(".cache")}
        command = suite.command
        for place, path in places.items():
            command = tuple(word.replace(place, str(path)) for word in command)
        status, output = self._stream(
            command, REPOSITORY / suite.folder, environment, limit_seconds=suite.limit_seconds, log=self.log(suite)
        )
        end_marked(environment[MARK])
        was_asked = suite.name in self.asked and status is not None
        if status == 1 or was_asked:  # 1 of pytest, Playwright and tlbbench's runner: tests failed, nothing else
            self.settled.add(suite.name)
        if suite.prepares:
            return SuiteResult()
        if was_asked:
            return counted(suite, output, junit) + self._not_reached("its other tests were not")
        return judge(suite, status, output, junit)

    def _not_reached(self, what: str) -> SuiteResult:
        return skip(f"{what} reached in the {self.seconds:.0f} s that all suites have here")

    def _timers(
        self, process: subprocess.Popen[bytes], limit_seconds: float, name: str, expired: threading.Event,
        heard: Sequence[float],
    ) -> list[threading.Timer]:  # fmt: skip
        """Start what ends a command at its own limit, and what asks it to end at the end of all suites' time."""

        def expire() -> None:
            expired.set()
            stop_group(process)

        def ask() -> None:
            if time.monotonic() - heard[0] > SILENT_SECONDS:
                expire()
                return
            self.asked.add(name)
            process.send_signal(signal.SIGINT)  # pytest then writes what it has found
            if not group_ends(process, ASKED_SECONDS):
                stop_group(process)

        timers = [threading.Timer(limit_seconds, expire)]
        if self.ends_at < math.inf:
            timers.append(threading.Timer(max(0.0, self.ends_at - time.monotonic()), ask))
        for timer in timers:
            timer.daemon = True
            timer.start()
        return timers

    def _stream(
        self, command: tuple[str, ...], folder: Path, environment: dict[str, str], *, limit_seconds: int, log: Path
    ) -> tuple[int | None, str]:
        """Run a command in its own process group; answer its exit status (None: its time ran out) and its output.

        Raises StoppedError when the runner was told to end.
        """
        try:
            with self._starting:
                if self.stopped:
                    raise StoppedError
                process = subprocess.Popen(
                    command, cwd=folder, env=environment, start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )  # fmt: skip
                self.running.add(process)
        except FileNotFoundError as error:
            return 127, str(error)
        expired, heard = threading.Event(), [time.monotonic()]
        timers = self._timers(process, limit_seconds, log.stem, expired, heard)
        sys.stdout.flush()
        chunks: list[bytes] = []
        assert process.stdout is not None
        with process.stdout as pipe, log.open("ab", buffering=0) as file:
            # Not line by line: a dot for each test is progress only when it is seen.
            while chunk := os.read(pipe.fileno(), 65536):
                heard[0] = time.monotonic()
                chunks.append(chunk)
                file.write(chunk)
                if self.shows_output:
                    sys.stdout.buffer.write(chunk)
                    sys.stdout.buffer.flush()
        used_seconds = processor_seconds(process.pid)
        if used_seconds is not None:
            self.processor_seconds[log.stem] = self.processor_seconds.get(log.stem, 0.0) + used_seconds
        status = process.wait()
        for timer in timers:
            timer.cancel()
        stop_group(process)
        self.running.discard(process)
        if self.stopped:
            raise StoppedError
        return (None if expired.is_set() else status), b"".join(chunks).decode(errors="replace")

    def stop(self) -> None:
        """End every command that runs, with all that it started, and start no other."""
        with self._starting:
            self.stopped = True
        stop_groups(tuple(self.running))
        end_marked(self.environment[MARK])


def counted(suite: Suite, output: str, junit: Path) -> SuiteResult:
    """What a suite says of the tests that it ran before it was asked to end, though it came to no closing line."""
    if not suite.junit:
        return from_lines(output)
    try:
        found = from_junit(junit.read_text())
    except (FileNotFoundError, ValueError):
        return failure(f"it was asked to end, and wrote no results within {ASKED_SECONDS} s")
    # pytest lists the test that it was at as one that passed.
    return replace(found, passed=max(0, found.passed - 1))


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
    # Suites side by side take turns with the machine's pools; a benchmark or a server has them for a minute or two.
    environment["HUGEPLAN_HUGE_PAGES_LOCK_SECONDS"] = "600"
    # Without compiled modules each of the hundred processes that the suites start compiles 400 sources again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # make passes these on to every recipe; an inner make would wait for a job server that is gone.
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(name, None)
    return environment


def report(results: Mapping[str, tuple[SuiteResult, float]], used_seconds: Mapping[str, float]) -> SuiteResult:
    """Print what failed and what was skipped, a line per suite, and return the sum."""
    total = SuiteResult()
    print("\n==== results ====")
    for name, (result, _) in results.items():
        for line in result.skips:
            print(f"SKIP {name}: {line}")
    for name, (result, _) in results.items():
        for line in result.late:
            print(f"AGAIN {name}: {line}")
        for line in result.failures:
            print(f"FAIL {name}: {line}")
    for name, (result, seconds) in results.items():
        counts = f"{result.passed:5} ok {result.failed:5} bad {result.skipped:5} left out"
        used = f"{used_seconds[name]:6.1f}" if name in used_seconds else "     ?"
        print(f"{name:<10} {seconds:6.1f} s  {used} s of processors  {counts}")
        total += result
    return total


def run_all(runner: Runner, suites: Sequence[Suite], lanes: int) -> dict[str, tuple[SuiteResult, float]]:
    """Run suites in so many lanes; answer the result and the seconds of each, in the order given."""
    waiting, running = list(suites), dict[str, Suite]()
    found: dict[str, tuple[SuiteResult, float]] = {}
    ended: SimpleQueue[tuple[Suite, SuiteResult, float]] = SimpleQueue()

    def lane(suite: Suite) -> None:
        started = time.monotonic()
        try:
            result = runner.run(suite)
        except StoppedError:
            result = failure("the run was stopped")
        except Exception as error:  # a fault of the runner must not count as a suite that passed
            result = failure(f"the runner failed: {error!r}")
        ended.put((suite, result, time.monotonic() - started))

    try:
        while waiting or running:
            while suite := next_suite(waiting, running.values(), lanes):
                waiting.remove(suite)
                running[suite.name] = suite
                if runner.shows_output:
                    print(f"\n==== {suite.name} ====", flush=True)
                else:
                    print(f"{time.strftime('%H:%M:%S')} {suite.name} begins", flush=True)
                threading.Thread(target=lane, args=(suite,), daemon=True).start()
            suite, result, seconds = ended.get()
            del running[suite.name]
            found[suite.name] = (result, seconds)
            if not runner.shows_output:
                show(runner, suite)
                said = f"{suite.name} took {seconds:.0f} s: {result.closing_line()}"
                print(f"{time.strftime('%H:%M:%S')} {said}", flush=True)
    except SystemExit:
        runner.stop()
        for suite in running.values():
            if not runner.shows_output:
                show(runner, suite)
        raise
    return {suite.name: found[suite.name] for suite in suites}


def try_again(runner: Runner, suites: Sequence[Suite], found: dict[str, tuple[SuiteResult, float]]) -> None:
    """Give each suite with few failed tests its second try, one suite at a time; corrects what was found."""
    for suite in suites:
        result, seconds = found[suite.name]
        started = time.monotonic()
        try:
            second = runner.try_again(suite, result)
        except StoppedError:
            return
        if second is not result:
            if not runner.shows_output:
                show(runner, suite)
            found[suite.name] = (second, seconds + time.monotonic() - started)


def show(runner: Runner, suite: Suite) -> None:
    """Print all that a suite has said."""
    print(f"\n==== {suite.name} ====", flush=True)
    if runner.log(suite).exists():
        sys.stdout.buffer.write(runner.log(suite).read_bytes())
        sys.stdout.buffer.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the test suites of this repository.")
    parser.add_argument("--state-dir", type=Path, default=REPOSITORY / ".state")
    parser.add_argument(
        "--lanes", type=int, choices=range(1, 9), metavar="N", default=min(2, os.cpu_count() or 1),
        help="cores that suites share side by side (1 to 8; default: 2, on one core 1)",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=float, default=math.inf, metavar="N",
        help="when to ask whatever still works to end (default: never)",
    )  # fmt: skip
    parser.add_argument("suites", nargs="*", help=f"only these: {', '.join(suite.name for suite in SUITES)}")
    arguments = parser.parse_args()
    named = set(arguments.suites) or {suite.name for suite in SUITES if not suite.by_name_only}
    chosen = [suite for suite in SUITES if suite.name in named]
    unknown = set(arguments.suites) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"no suite is named {', '.join(sorted(unknown))}")

    started = time.monotonic()
    lanes = min(arguments.lanes, len(chosen))
    runner = Runner(
        arguments.state_dir, suite_environment(), shows_output=lanes == 1, seconds=arguments.seconds
    )  # fmt: skip
    runner.results_dir.mkdir(parents=True, exist_ok=True)

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)

    chosen = after_packages(chosen, provision.suites_that_miss(suite.name for suite in chosen))
    results = run_all(runner, chosen, lanes)
    runner.ends_at += SECOND_TRY_SECONDS
    try_again(runner, chosen, results)
    total = report(results, runner.processor_seconds)
    print(f"{'all':<10} {time.monotonic() - started:6.1f} s  in {lanes} {'lane' if lanes == 1 else 'lanes'}")
    print(total.closing_line(), flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
