"""Any program as the subject of a trial: a batch is one run; page sizes differ by command line or environment.

While a run lasts, its mappings are read at times that double, so that its second half is seen however long it is and
both sides are disturbed as often. A run that does not show the pages it is to have ends with a sentence.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final

from hugeplan.measuring import launch as launcher
from hugeplan.measuring.batches import Batch, BatchError, Side
from hugeplan.measuring.pools import CannotReserveError, reserved
from hugeplan.measuring.trial import EQUAL, ArmError, TrialError
from hugeplan.measuring.user_programs import BASE_BYTES, memory_of
from hugeplan.measuring.workplace import note_session
from hugeplan.planner.units import format_bytes

_LAUNCHER: Final = Path(launcher.__file__)
_LEAST_SECONDS: Final = 1e-6
_END_SECONDS: Final = 5.0
_TAIL_BYTES: Final = 1 << 20
_FIRST_LOOK_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the program is started on one page size. ``thp``: False keeps transparent huge pages from it.

    ``page_bytes``: of the pool that it is to use; None where it may use any huge pages. Most of its own memory must be
    on them, and ``heap_bytes`` at least.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    thp: bool = True
    page_bytes: int | None = None
    pages: int = 0
    heap_bytes: int = 0

    def why_not(self, seen: Sequence[Counter[int]], *, is_base: bool) -> str | None:
        """Why a run was not on the pages that it is compared for; None where it was. ``seen``: what ``_memory_of``
        found."""
        program = self.command[0]
        if not seen:
            return f"which pages {program} uses is not known: it ended too soon to be looked at, or nobody may"
        if is_base:
            huge = max(memory.total() - memory[BASE_BYTES] for memory in seen)
            return f"{program} on base pages has {format_bytes(huge)} on huge pages" if huge else None
        largest = max(seen, key=Counter.total)
        total = largest.total()
        found = total - largest[BASE_BYTES] if self.page_bytes is None else largest[self.page_bytes]
        if found >= max(self.heap_bytes, total / 2):
            return None
        kind = "huge pages" if self.page_bytes is None else f"pages of {format_bytes(self.page_bytes)}"
        heap = f", its heap being {format_bytes(self.heap_bytes)}" if self.heap_bytes else ""
        pages = f"; {self.pages} pages were reserved for it" if self.pages else ""
        return f"{program} has {format_bytes(found)} on {kind} of the {format_bytes(total)} that it uses{heap}{pages}"


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
            run = run_once(launch, output.fileno(), self.subject.folder)
            output.seek(max(0, output.tell() - _TAIL_BYTES))
            text = output.read().decode("utf-8", "replace")
        own_error = TrialError if self.arm == EQUAL else ArmError
        if run.status != 0:
            lines = text.strip().splitlines()
            said = lines[-1][:200] if lines else "it said nothing"
            ended = f"{launch.command[0]} ended with status {run.status}"
            if self.arm == EQUAL:
                raise TrialError(f"{ended}: {said}")
            problem = ArmError(ended)  # which the document repeats: others read that, and said may be a secret
            problem.add_note(said)
            raise problem
        metric = self.subject.metric
        rate = 1.0 / run.seconds if metric is None else metric.rate_in(text)
        try:
            batch = Batch(rate, max(run.cpu_seconds, _LEAST_SECONDS) * 1e9)
        except BatchError as error:
            raise own_error(str(error)) from error
        why_not = launch.why_not(run.seen, is_base=self.arm == EQUAL)
        if why_not is not None:
            raise own_error(why_not)
        return batch


@dataclass(slots=True)
class Run:
    """A run that ended: its status (negative: a signal), s, s of CPU time, and its memory whenever it was looked at."""

    status: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    seen: list[Counter[int]] = field(default_factory=list)

    def look(self, session: int, is_over: Event) -> None:
        """Look at its processes until it is over."""
        delay = _FIRST_LOOK_SECONDS
        while not is_over.wait(delay):
            memory = _memory_of(session)
            self.seen += [memory] if memory else []
            delay *= 2


def run_once(launch: Launch, output: int, folder: Path) -> Run:
    """Run the program with both outputs into a descriptor."""
    words = [sys.executable, "-I", "-S", str(_LAUNCHER), "on" if launch.thp else "off", *launch.command]
    run, is_over = Run(), Event()
    with ThreadPoolExecutor(1) as beside:
        begin = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - the user's own program, never through a shell
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | launch.environment,
            start_new_session=True,
        )
        try:
            beside.submit(run.look, process.pid, is_over)
            note_session(folder, process.pid)  # the program may become another user
            _, status, usage = os.wait4(process.pid, 0)
            run.seconds = max(time.perf_counter() - begin, _LEAST_SECONDS)
        except BaseException:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # what became another user's takes no signal of an ordinary one
                process.wait(_END_SECONDS)
            raise
        finally:
            is_over.set()
    run.status = process.returncode = os.waitstatus_to_exitcode(status)
    run.cpu_seconds = usage.ru_utime + usage.ru_stime
    return run


def _memory_of(session: int) -> Counter[int]:
    """Of a session's programs; empty where there are none that may be looked at."""
    found = Counter[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):  # it has ended, or is another user's
            name, _, fields = (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            if int(fields.split()[3]) == session and not name.endswith(f"({launcher.NAME}"):
                found += memory_of(int(process.name))
    return found


def java_flags(arm: str) -> str:
    """The JVM's flags for a page size, to stand where they win over all others.

    None is switched off by name but all: up to JDK 21 that would end the pool's pages, too.
    """
    by_arm = {
        EQUAL: "-XX:-UseLargePages",
        "thp": "-XX:+UseLargePages -XX:+UseTransparentHugePages",
        "2M": "-XX:+UseLargePages -XX:LargePageSizeInBytes=2m",
        "1G": "-XX:+UseLargePages -XX:LargePageSizeInBytes=1g",
    }
    return by_arm[arm]
