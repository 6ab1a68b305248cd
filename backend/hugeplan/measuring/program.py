"""Any program as the subject of a trial: a batch is one run; page sizes differ by command line or environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hugeplan.measuring.batches import Batch, BatchError, Side
from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.measuring.workplace import note_session

_LAUNCHER: Final = Path(__file__).with_name("launch.py")
_LEAST_SECONDS: Final = 1e-6
_END_SECONDS: Final = 5.0
_TAIL_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the program is started on one page size. ``thp``: False keeps transparent huge pages from it."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    thp: bool = True
    page_bytes: int | None = None
    pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that the program prints: the last match's first group. Without one, wall time counts."""

    pattern: re.Pattern[str]
    lower_is_better: bool = False

    def rate_in(self, text: str) -> float:
        """The number, or one over it where lower is better. TrialError where there is none above zero."""
        found = self.pattern.findall(text)
        try:
            value = float(str(found[-1]).replace(",", "")) if found else 0.0
        except ValueError:
            value = 0.0
        if not value > 0.0:
            said = f"{found[-1]!r}" if found else "no match"
            raise TrialError(f"--metric {self.pattern.pattern}: the program's output has {said}, not a number above 0")
        return 1.0 / value if self.lower_is_better else value


@dataclass(slots=True)
class ProgramSubject:
    """The program on base pages (``equal``) and on every page size that it is to be tried on."""

    launches: Mapping[str, Launch]
    folder: Path
    metric: Metric | None = None
    pairs_per_block: int = 2
    by_cpu: bool = False

    @contextmanager
    def sides(self, arm: str, *, swapped: bool) -> Iterator[tuple[Side, Side]]:  # noqa: ARG002 - runs have no places
        """Both ways to start it, with the pages that the larger one needs."""
        launch = self.launches[arm]
        with ExitStack() as stack:
            if launch.page_bytes is not None and launch.pages:
                try:
                    stack.enter_context(reserved(launch.page_bytes, launch.pages))
                except CannotReserveError as problem:
                    raise ArmError(str(problem)) from problem
            yield _Runs(self, EQUAL), _Runs(self, arm)


@dataclass(slots=True)
class _Runs:
    subject: ProgramSubject
    arm: str

    def batch(self) -> Batch:
        """One run to its end."""
        launch = self.subject.launches[self.arm]
        with tempfile.TemporaryFile(dir=self.subject.folder) as output:
            begin = time.perf_counter()
            status, cpu_seconds = run_once(launch, output.fileno(), self.subject.folder)
            seconds = max(time.perf_counter() - begin, _LEAST_SECONDS)
            output.seek(max(0, output.tell() - _TAIL_BYTES))
            text = output.read().decode("utf-8", "replace")
        own_error = TrialError if self.arm == EQUAL else ArmError
        if status != 0:
            lines = text.strip().splitlines()
            said = lines[-1][:200] if lines else "it said nothing"
            raise own_error(f"{launch.command[0]} ended with status {status}: {said}")
        metric = self.subject.metric
        rate = 1.0 / seconds if metric is None else metric.rate_in(text)
        try:
            return Batch(rate, max(cpu_seconds, _LEAST_SECONDS) * 1e9)
        except BatchError as problem:
            raise own_error(str(problem)) from problem


def run_once(launch: Launch, output: int, folder: Path) -> tuple[int, float]:
    """Run the program with both outputs into a descriptor: its status (negative: a signal) and its CPU seconds."""
    words = [sys.executable, "-I", "-S", str(_LAUNCHER), "on" if launch.thp else "off", *launch.command]
    process = subprocess.Popen(  # noqa: S603 - the user's own program, never through a shell
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=os.environ | launch.environment,
        start_new_session=True,
    )
    try:
        note_session(folder, process.pid)  # the program may become another user
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # what became another user's takes no signal of an ordinary one
            process.wait(_END_SECONDS)
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def java_flags(arm: str) -> tuple[str, ...]:
    """The JVM's flags for a page size; they come last before the program, where they win over others."""
    off_thp, off_pool = "-XX:-UseTransparentHugePages", "-XX:-UseLargePages"
    by_arm: Mapping[str, Sequence[str]] = {
        EQUAL: (off_thp, off_pool),
        "thp": ("-XX:+UseTransparentHugePages",),
        "2M": ("-XX:+UseLargePages", off_thp, "-XX:LargePageSizeInBytes=2m"),
        "1G": ("-XX:+UseLargePages", off_thp, "-XX:LargePageSizeInBytes=1g"),
    }
    return tuple(by_arm[arm])
