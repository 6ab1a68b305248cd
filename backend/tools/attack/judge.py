"""What an attack cost, and whether that is within the budget.

Processor time and memory are of the service and of the processes it started. They are taken in passes without the
neighbour, the median of which counts. What an attack does to PostgreSQL holds everybody up: its processor time has a
column of its own, and counts. What a fleet plan takes has its own limits, and counts in no row. The sum is judged as
that of a quiet machine: a yardstick before and after each pass tells by how much others make this one slower. A pass
in which the service started or ended a process for everybody's later work is made again: the one that waits for fleet
plans, once a minute at most, and the sandbox's first, once and after ten minutes without work. It takes about a
second, and nobody can ask for it more often.

How long the neighbour was held up is wall time, which a busy machine stretches. Three things tell the service's doing
from the machine's. The time in which somebody who takes part in the answer was ready to run and had no processor is
taken off: the kernel counts it for each thread. So is the longest of the same requests to a twin of the service, which
nobody attacks, in the same pass. And what is past the bar is tried again: a service that holds others up does so each
time, so the shortest counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tools.attack import processes, yardstick
from tools.attack.rig import FLEET_PLANS, Attack, Target, WrongAnswerError

MIB = 1024**2
CPU_SECONDS = 0.3
MEMORY_BYTES = 64 * MIB
HELD_UP_SECONDS = 0.1
QUIET_SECONDS = 0.05
BUSY = 2
MORE_TRIES = 5
SHORTEST_PASS_SECONDS = 0.25
SETTLE_SECONDS = 10.0
FOR_EVERYBODY = (FLEET_PLANS, "hugeplan.sandbox.process")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of the neighbour. ``seconds``: without those in which the machine had no processor for it."""

    whom: str
    seconds: float
    status: int


@dataclass(frozen=True, slots=True, order=True)
class Hold:
    """How long the neighbour was held up in a pass, and how long by the machine."""

    held_up_seconds: float
    noise_seconds: float

    @property
    def noise_bar_seconds(self) -> float:
        """What the machine may add: one whose idle twin is held up too cannot tell a few hundredths of a second."""
        return BUSY * self.noise_seconds if self.noise_seconds > QUIET_SECONDS else 0.0


@dataclass
class Neighbour:
    """The other client, while a block runs."""

    asked: list[Ask] = field(default_factory=list)

    def longest(self, whom: str) -> float:
        """Seconds of the longest request to the service or its twin."""
        return max((ask.seconds for ask in self.asked if ask.whom == whom), default=0.0)

    def refused(self) -> list[int]:
        """What the service answered instead of 200."""
        return [ask.status for ask in self.asked if ask.status != 200 and ask.whom == "service"]


@contextmanager
def neighbour_of(running: Target) -> Iterator[Neighbour]:
    """A neighbour that asks while the block runs."""
    process = running.neighbours()
    assert process.stdin is not None
    assert process.stdout is not None
    found = Neighbour()
    process.stdin.write("ask\n")
    for _ in range(4):  # it is there, and both know it
        process.stdout.readline()
    try:
        yield found
    finally:
        process.stdin.write("rest\n")
        while words := process.stdout.readline().split():
            whom, seconds, waited, status = words
            found.asked.append(Ask(whom, float(seconds) - float(waited), int(status)))


@dataclass
class Cost:
    """What one attack cost. ``slowness``: of the machine meanwhile. ``wrong`` is empty when it is within the budget."""

    name: str
    answered: str = ""
    cpu_seconds: float = 0.0
    database_cpu_seconds: float = 0.0
    memory_bytes: int = 0
    seconds: float = 0.0
    slowness: float = 1.0
    held_up_seconds: float = 0.0
    noise_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def measure(running: Target, attack: Attack, passes: int) -> Cost:
    """Run an attack ``passes`` times for its cost and as often for its neighbour, and judge it."""
    cost = Cost(attack.name)
    try:
        if attack.prepare is not None:
            attack.prepare(running)
        _measure_cost(running, attack, passes, cost)
        _measure_neighbour(running, attack, passes, cost)
    except Exception as error:
        cost.wrong.append(f"{type(error).__name__}: {error}"[:300])
        running.server.kill()  # it may be at work for ever
    if attack.undo is not None:
        attack.undo(running)
    if running.server.process is None or running.server.process.poll() is not None:
        cost.wrong.append("the service ended")
        running.server.start()
        running.server.wait_until_ready()
    _judge(attack, cost)
    return cost


def _run(running: Target, attack: Attack, cost: Cost) -> None:
    """Make the attack. A wrong answer is noted, and what it cost is measured all the same."""
    try:
        cost.answered = attack.run(running)
    except WrongAnswerError as wrong:
        cost.answered = "wrong"
        if str(wrong) not in cost.wrong:
            cost.wrong.append(str(wrong))


def _measure_cost(running: Target, attack: Attack, passes: int, cost: Cost) -> None:
    processes.wait_until_idle(running.families, SETTLE_SECONDS)
    found = [_undisturbed_pass(running, attack, cost) for _ in range(passes)]
    cost.cpu_seconds = statistics.median(one.cpu_seconds for one in found)
    cost.database_cpu_seconds = statistics.median(one.database_cpu_seconds for one in found)
    # The first pass also pays for what stays, such as caches and a helper's start.
    cost.memory_bytes = round(statistics.median(one.memory_bytes for one in found))
    cost.seconds = statistics.median(one.seconds for one in found)
    cost.slowness = statistics.median(one.slowness for one in found)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass cost."""

    cpu_seconds: float
    database_cpu_seconds: float
    memory_bytes: int
    seconds: float
    slowness: float


def _undisturbed_pass(running: Target, attack: Attack, cost: Cost) -> _Pass:
    for _ in range(MORE_TRIES):
        before = processes.leaders(running.pid, FOR_EVERYBODY)
        found = _pass(running, attack, cost)
        if attack.apart or processes.leaders(running.pid, FOR_EVERYBODY) == before:
            break
    return found


def _pass(running: Target, attack: Attack, cost: Cost) -> _Pass:
    slow = yardstick.slowness()
    cpu, database = processes.cpu_seconds(running.pid, attack.apart), _database_cpu(running)
    begun = time.monotonic()
    with processes.MemoryPeak(running.pid, attack.apart) as peak:
        _run(running, attack, cost)
        seconds = time.monotonic() - begun
        processes.wait_until_idle(running.families, SETTLE_SECONDS)
    used = processes.cpu_seconds(running.pid, attack.apart) - cpu
    of_database = _database_cpu(running) - database
    return _Pass(used, of_database, peak.grown_bytes, seconds, (slow + yardstick.slowness()) / 2)


def _database_cpu(running: Target) -> float:
    return processes.cpu_seconds(running.postgres.pid) if running.postgres.pid is not None else 0.0


def _measure_neighbour(running: Target, attack: Attack, passes: int, cost: Cost) -> None:
    found = statistics.median_low(_hold(running, attack, cost) for _ in range(passes))
    for _ in range(MORE_TRIES):
        if found.held_up_seconds <= _most_seconds(attack, found):
            break
        found = min(found, _hold(running, attack, cost))
    cost.held_up_seconds, cost.noise_seconds = found.held_up_seconds, found.noise_seconds


def _hold(running: Target, attack: Attack, cost: Cost) -> Hold:
    """One pass beside the neighbour."""
    with neighbour_of(running) as beside:
        begun = time.monotonic()
        _run(running, attack, cost)
        time.sleep(max(0.0, begun + SHORTEST_PASS_SECONDS - time.monotonic()))  # it asks more than once
    if beside.refused():
        cost.wrong.append(f"a neighbour was answered {beside.refused()[:5]} meanwhile")
    noise = beside.longest("twin")
    return Hold(max(0.0, beside.longest("service") - noise), noise)


def _most_seconds(attack: Attack, hold: Hold) -> float:
    return HELD_UP_SECONDS * (1 if attack.at_once else attack.requests) + hold.noise_bar_seconds


def _judge(attack: Attack, cost: Cost) -> None:
    used = (cost.cpu_seconds + cost.database_cpu_seconds) / cost.slowness
    if used > CPU_SECONDS * attack.requests:
        cost.wrong.append(f"{used:.2f} s of processor time; at most {CPU_SECONDS * attack.requests:.1f} s")
    if cost.memory_bytes > MEMORY_BYTES * attack.requests:
        cost.wrong.append(f"{cost.memory_bytes / MIB:.0f} MiB; at most {MEMORY_BYTES * attack.requests / MIB:.0f} MiB")
    most = _most_seconds(attack, Hold(cost.held_up_seconds, cost.noise_seconds))
    if cost.held_up_seconds > most:
        held_up = f"held a neighbour up for {cost.held_up_seconds * 1000:.0f} ms"
        cost.wrong.append(f"{held_up}; at most {most * 1000:.0f} ms")


HEADING = (
    f"{'attack':<58} {'answer':<26} {'CPU s':>7} {'PostgreSQL':>10} {'MiB':>6} {'seconds':>8}"
    f" {'held up':>8} {'noise':>6} {'slow':>5}"
)


def line_of(cost: Cost) -> str:
    """A row of the table."""
    mark = "" if not cost.wrong else "  <-- " + "; ".join(cost.wrong)
    return (
        f"{cost.name:<58} {cost.answered[:26]:<26} {cost.cpu_seconds:>7.2f} {cost.database_cpu_seconds:>10.2f}"
        f" {cost.memory_bytes / MIB:>6.1f} {cost.seconds:>8.2f} {cost.held_up_seconds * 1000:>5.0f} ms"
        f" {cost.noise_seconds * 1000:>3.0f} ms {cost.slowness:>5.2f}{mark}"
    )
