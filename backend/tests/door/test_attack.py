"""The short form of `make attack`: every attack once, within its budget."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hugeplan.access.schemas import Role
from tools.attack import judge, processes
from tools.attack.rig import Attack, Target, WrongAnswerError, expect, stop_seconds, target
from tools.attack.rows import all_rows
from tools.attack.warm import warm_up
from tools.attack.yardstick import MOST, slowness

PASSES = 1
STOP_SECONDS = 5.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("attack")
    for each in (folder, *list(folder.parents)[:3]):
        each.chmod(each.stat().st_mode | 0o111)  # PostgreSQL runs as another user
    with target(folder) as made:
        warm_up(made)
        yield made


@pytest.mark.parametrize("attack", [one for one in all_rows() if one.in_tests], ids=lambda attack: attack.name)
def test_an_attack_stays_within_its_budget(running: Target, attack: Attack) -> None:
    found = judge.measure(running, attack, PASSES)
    if found.wrong:  # once more: other suites run beside this one
        found = judge.measure(running, attack, 3)
    print(judge.HEADING, judge.line_of(found), sep="\n")
    assert found.wrong == []


def test_the_service_ends_while_it_is_attacked(running: Target) -> None:
    """Last: a lint that would take minutes keeps nobody from ending the service."""
    body = {"files": [{"name": "a", "text": "a: &a [x,x]\n" + "".join(f"b{n}: &b{n} [*a,*a]\n" for n in range(5000))}]}
    expect(running.ask(None, "POST", "/lint", json=body), 401)
    assert stop_seconds(running) < STOP_SECONDS
    running.server.start()
    running.server.wait_until_ready()


def test_who_comes_when_the_sandbox_starts_does_not_pay_for_it(running: Target) -> None:
    files = {"files": [{"name": "60-huge.conf", "text": "vm.nr_hugepages = 512\n"}]}
    ended: list[int] = []
    runs = 0

    def lint(target: Target) -> str:
        nonlocal runs
        runs += 1
        if not ended:
            ended.extend(processes.leaders(target.pid, ["hugeplan.sandbox.process"]))
            for each in ended:
                os.kill(each, signal.SIGKILL)
        return expect(target.ask(Role.VIEWER, "POST", "/lint", json=files), 200)

    warm_up(running)
    found = judge.measure(running, Attack("lint", lint), 1)
    assert len(ended) == 1
    assert runs >= 3  # the pass again, and one beside the neighbour
    assert found.wrong == []


WORKS_THEN_RESTS = """
import time
until = time.monotonic() + 0.5
while time.monotonic() < until: pass
print("rests", flush=True)
time.sleep(600)
"""


def test_a_family_is_idle_when_it_rests() -> None:
    with subprocess.Popen([sys.executable, "-c", WORKS_THEN_RESTS], stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        try:
            processes.wait_until_idle([one.pid], 60.0)
            ready, _, _ = select.select([one.stdout], [], [], 0)
            assert ready, "it still worked"
        finally:
            one.kill()


def test_who_gets_no_processor_is_not_idle() -> None:
    """Beside one that takes all of a CPU it uses less than can be seen in its processor time."""
    cpu = {min(os.sched_getaffinity(0))}
    with ExitStack() as ending:
        greedy, starved = (subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2))
        for each in (greedy, starved):
            ending.callback(each.wait)
            ending.callback(each.kill)
            os.sched_setaffinity(each.pid, cpu)
        os.sched_setscheduler(starved.pid, os.SCHED_IDLE, os.sched_param(0))
        begun = time.monotonic()
        processes.wait_until_idle([starved.pid], 1.0)
        assert time.monotonic() - begun >= 1.0, "it is never idle"


def test_what_costs_too_much_is_seen(running: Target) -> None:
    def idle(_: Target) -> str:
        return "nothing"

    def lie(_: Target) -> str:
        raise WrongAnswerError("answered 500")

    assert judge.measure(running, Attack("nothing", idle), 1).wrong == []
    assert judge.measure(running, Attack("a lie", lie), 1).wrong == ["answered 500"]
    dear = judge.Cost("dear", cpu_seconds=0.2, database_cpu_seconds=0.2, memory_bytes=1024**3, held_up_seconds=1.0)
    judge._judge(Attack("dear", idle), dear)
    assert len(dear.wrong) == 3
    for used, wrong in ((0.44, 0), (0.46, 1)):  # where everything takes half as long again
        slow = judge.Cost("slow", cpu_seconds=used, slowness=1.5)
        judge._judge(Attack("slow", idle), slow)
        assert len(slow.wrong) == wrong
    assert 1.0 <= slowness() <= MOST
