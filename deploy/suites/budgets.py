"""Times the parts against their budgets: `make bench`. One JSON object a line, then a summary for people.

The parts bring their own measurements (backend/bench/*.py); the agent's and tlbbench's are here. A budget is missed
when the processor time is above it: exit status 1. Wall time above it with processor time below says that the part
waited, as it does on a busy machine; the summary shows it and the exit status stays 0.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ROUNDS = 7

INFO_BUDGET_SECONDS = 0.1
AGENT_BUDGET_SECONDS = 1.0
SETUP_BUDGET_SECONDS = 1.0


@dataclass(frozen=True)
class Figure:
    """One measurement: medians of wall and processor seconds; a budget of None is a figure to look at only."""

    name: str
    seconds: float
    cpu_seconds: float
    budget_seconds: float | None

    @property
    def verdict(self) -> str:
        """``kept``, ``missed`` (too much processor time), ``waited`` (wall time alone is above) or ``no budget``."""
        if self.budget_seconds is None:
            return "no budget"
        if self.cpu_seconds > self.budget_seconds:
            return "missed"
        return "waited" if self.seconds > self.budget_seconds else "kept"


class UnmeasuredError(Exception):
    """A part could not be measured."""


def processes_figure(name: str, budget_seconds: float, command: Sequence[str]) -> Figure:
    """The median times of a whole process and its children, after one run that warms the caches."""
    wall, processor = [], []
    for _ in range(ROUNDS + 1):
        started, used = time.perf_counter(), children_seconds()
        done = subprocess.run(
            command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        wall.append(time.perf_counter() - started)
        processor.append(children_seconds() - used)
        if done.returncode:
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise UnmeasuredError(f"{' '.join(command)}: exit status {done.returncode}: {last}")
    seconds, cpu_seconds = statistics.median(wall[1:]), statistics.median(processor[1:])
    figure = Figure(name, round(seconds, 4), round(cpu_seconds, 4), budget_seconds)
    print(json.dumps({**asdict(figure), "how": f"medians of {ROUNDS} whole processes"}), flush=True)
    return figure


def children_seconds() -> float:
    """Processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bench_figures(bench: Path) -> Iterator[Figure]:
    """The figures that a part's own benchmark prints, passed on as they come."""
    missed = False
    with subprocess.Popen(
        [sys.executable, bench], cwd=REPOSITORY / "backend", stdout=subprocess.PIPE, text=True
    ) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            found = json.loads(line)
            figure = Figure(found["name"], found["seconds"], found["cpu_seconds"], found["budget_seconds"])
            missed = missed or figure.verdict == "missed"
            yield figure
    if running.returncode != int(missed):  # status 1 says that a budget was missed, and nothing else
        raise UnmeasuredError(f"{bench.relative_to(REPOSITORY)}: exit status {running.returncode}")


def figures() -> Iterator[Figure]:
    """Every measurement of the project."""
    with tempfile.TemporaryDirectory() as spool:
        once = [str(BIN / "hugeplan-agent"), "once", "--dry-run", "--spool-dir", spool]
        yield processes_figure("tlbbench info", INFO_BUDGET_SECONDS, ["agent/build/tlbbench", "info", "--json"])
        yield processes_figure("agent sample", AGENT_BUDGET_SECONDS, once)
    yield processes_figure("make setup, nothing changed", SETUP_BUDGET_SECONDS, ["make", "setup"])
    for bench in sorted((REPOSITORY / "backend/bench").glob("*.py")):
        found = list(bench_figures(bench))
        if not found:
            raise UnmeasuredError(f"{bench.relative_to(REPOSITORY)}: it printed no figure")
        yield from found


def summary(found: Sequence[Figure]) -> str:
    """A line a figure, worst news last, and the totals."""
    order = ("no budget", "kept", "waited", "missed")
    lines = ["", f"{'':10} {'processor':>12} {'wall':>12} {'budget':>12}"]
    for figure in sorted(found, key=lambda figure: order.index(figure.verdict)):
        budget = "" if figure.budget_seconds is None else milliseconds(figure.budget_seconds)
        times = f"{milliseconds(figure.cpu_seconds):>12} {milliseconds(figure.seconds):>12} {budget:>12}"
        lines.append(f"{figure.verdict:10} {times}  {figure.name}")
    counts = {verdict: sum(figure.verdict == verdict for figure in found) for verdict in order}
    total = f"budgets: {counts['kept'] + counts['waited']} kept, {counts['missed']} missed"
    waited = f", {counts['waited']} of the kept ones with more wall time (a busy machine)" if counts["waited"] else ""
    return "\n".join([*lines, "", total + waited])


def milliseconds(seconds: float) -> str:
    """``4.37 ms``."""
    return f"{1000.0 * seconds:.2f} ms"


def main() -> int:
    """Print every figure and the summary; 1 when a budget was missed or a part could not be measured."""
    found: list[Figure] = []
    broken = None
    try:
        for figure in figures():
            found.append(figure)
    except (UnmeasuredError, OSError) as error:
        broken = error
    print(summary(found))
    if broken:
        print(f"hugeplan: the measurements ended early: {broken}", file=sys.stderr)
    return 1 if broken or any(figure.verdict == "missed" for figure in found) else 0


if __name__ == "__main__":
    sys.exit(main())
