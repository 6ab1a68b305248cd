"""Looks at other users' processes, in a child that may be left behind.

Whoever has an account can make a look at its process wait for good: a page or a name of a file system that it serves
itself is never answered, and no signal ends some of these waits. So a child looks, and the agent waits for the child
only while that gets on (docs/adr/0056). A child that does not is killed and left, a new one goes on, and the process
that it looked at is left alone for a while; after two processes of a user in an account, all of theirs.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import select
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from hugeplan_agent.collectors import COLLECTORS, LOOKING, Collected, collect_all, collect_one, describe
from hugeplan_agent.collectors.process_table import clock_ticks_per_second
from hugeplan_agent.errors import AgentError, CollectError
from hugeplan_agent.fragment import Collector
from hugeplan_agent.host import Host
from hugeplan_agent.known import known, take
from hugeplan_agent.left_behind import begin, living
from hugeplan_agent.looks import BOARD, Look, Watch, read_look

POLL_SECONDS = 0.1
LOOK_POLLS = 20
"""Of one look in which the child waits. They are counted, not timed: a machine that is suspended counts none."""
LOOK_SECONDS = 10.0
"""Of one look, of processor time: the kernel may walk what a process maps for long (a swapped file that each of 65,000
mappings has a part of), and no signal ends that."""
ACCOUNT_POLLS = 100
"""Of all looks at an account's processes in an observation: answers may come, and slowly. A user may have many ids."""
RANK_POLLS = (1200, 600, 300)
"""Of all looks at processes of a rank and of those after it in an observation. Then a look that waits is given up at
once, and accounts that were slow are left alone until the next observation. Who answers at once is read on."""
OTHER_POLLS = 600
"""While no process is looked at: a disk may be slow."""
FIRST_PAUSE = 2
"""Observations without a look at what did not answer: a disk may be slow for once. Each time it is doubled, up to"""
PAUSE_SECONDS = 3600.0
MAX_OF_PERSON = 2
"""Processes that did not answer, until all of the same account and real user id are left alone."""
MAX_OF_ACCOUNT = 4
"""The same of an account: all users of a system container are one, and a user may have many ids."""
MAX_LEFT_BEHIND = 8
"""Children of a node that are left behind at a time."""
MOST_OF_RANK = (MAX_LEFT_BEHIND, MAX_LEFT_BEHIND - 1, MAX_LEFT_BEHIND // 2)
"""Of these at processes of a rank and of those after it: who runs containers may run many, and one user may have
several accounts. The others are for what the system runs."""
GIVEN_UP = 3
"""So many times as many long looks are given up in an observation. After these none is begun, and it goes on with what
is known."""
MAX_PATIENT = 4
"""Long looks given up in an observation until less time is given to the others."""
HURRY = 0.25
END_SECONDS = 0.1
"""For a child to end that was killed: one that lives on counts, and no zombie is left."""


@dataclass
class _Child:
    pid: int
    channel: int
    """Requests to it and its answers, a line of JSON each."""
    lifeline: int
    """Nothing is written to it: when the last process that holds it ends, the kernel kills the child."""
    board: mmap.mmap

    def close(self) -> None:
        os.close(self.channel)
        os.close(self.lifeline)


@dataclass(frozen=True)
class _Missed:
    """A look that did not end."""

    look: Look
    child: int
    observation: int
    pause: int
    """In observations."""
    until: float
    is_over: bool = False
    """It was looked at once more since. How long the pause was still counts for the next."""
    is_long: bool = True
    """Else others of its account or rank had used up the time before, and it was given up at once."""


Job = Callable[[Host], Any]


@dataclass
class Apart:
    """Runs jobs, functions of a Host whose answers JSON can hold, in a child that keeps what the Host keeps.

    The jobs are the collectors that look into processes, and ``more``. They are forked: none can be added later.
    """

    root: str | Path
    more: Mapping[str, Job] = field(default_factory=dict)
    is_stopped: Callable[[], bool] = lambda: False
    """Asked while a look waits: nobody waits for it then, and the observation ends with an AgentError."""
    _child: _Child | None = None
    _left_behind: set[int] = field(default_factory=set)
    _of_others: set[int] = field(default_factory=set)
    """Left behind by other commands."""
    _missed: list[_Missed] = field(default_factory=list)
    _once_more: _Missed | None = None
    """Looked at again in this observation: one at a time, or they would use up what may be given up together."""
    _known: str = ""
    """What the child knew when an observation ended, for the one after it."""
    _observation: int = 0
    _given_up: int = 0
    """Long looks of this observation."""
    _is_careful: bool = False
    _polls: Counter[tuple[int, int]] = field(default_factory=Counter)
    """In which the child waited in this observation, by rank and account."""

    def __post_init__(self) -> None:
        self._jobs: dict[str, Job] = {name: partial(collect_one, name=name) for name in LOOKING}
        self._jobs["known"] = known
        self._jobs.update(self.more)

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._leave(self._child)

    def collect(self, host: Host, collectors: Mapping[str, Collector] = COLLECTORS) -> Collected:
        """A new observation: as ``collect_all``, with the collectors that look into processes in the child."""
        self._observation += 1
        self._given_up, self._is_careful = 0, False
        self._polls.clear()
        self._missed = [replace(one, is_over=True) if one == self._once_more else one for one in self._missed]
        self._reap()
        self._once_more = next((one for one in self._missed if not one.is_over and not self._is_paused(one)), None)
        if self._of_others:
            self._of_others = living() - self._left_behind
        seen = collect_all(host, collectors, self.ask)
        if self._child is not None:
            with suppress(CollectError):
                self._known = self.ask("known")
        return seen

    def ask(self, job: str) -> Any:
        """The answer of a job in this observation. CollectError: it failed, or it waits for what does not answer."""
        while True:
            self._reap()
            if self._child is None:
                self._of_others = living() - self._left_behind
            if len(self._left_behind | self._of_others) >= MAX_LEFT_BEHIND:
                raise CollectError(f"{MAX_LEFT_BEHIND} looks at processes did not end: no other is begun")
            try:
                child = self._child = self._child or self._fork()
            except OSError as error:
                raise CollectError(f"{job}: no process can be started that looks at others: {error}") from error
            answer = self._answer(child, job)
            if answer is not None:
                if "failed" in answer:
                    raise CollectError(f"{job}: {answer['failed']}")
                return answer["done"]

    def _answer(self, child: _Child, job: str) -> dict[str, Any] | None:
        """None: a look was given up, and another child may go on. Raises CollectError."""
        request = {"job": job, "observation": self._observation, "is_careful": self._is_careful, **self._refused()}
        with suppress(BrokenPipeError):  # it has ended: nothing is answered either
            _write(child.channel, request)
        rest, lines = b"", [b""]
        poll, waits = select.poll(), _Waits(child, self._polls, 1.0 if self._given_up < MAX_PATIENT else HURRY)
        poll.register(child.channel, select.POLLIN)
        while True:
            if poll.poll(POLL_SECONDS * 1000):
                piece = _received(child.channel)
                if not piece:
                    self._leave(child)
                    raise CollectError(f"{job}: the process that looks at others has ended")
                *lines, rest = (rest + piece).split(b"\n")
                for message in map(json.loads, lines):
                    if "so_far" not in message:
                        return dict(message)
                    self._known = message["so_far"]
            elif self.is_stopped():
                self._leave(child)
                raise AgentError(f"{job}: stopped while it waited; there is no report of this observation")
            elif (look := waits.too_long()) is not None:
                self._leave(child)
                self._given_up += waits.is_long
                self._is_careful = True
                if not look.pid:
                    raise CollectError(f"{job}: not done, it waited for {OTHER_POLLS * POLL_SECONDS:g} s")
                pause = max((2 * one.pause for one in self._missed if one.look.person == look.person), default=0)
                until, about = time.monotonic() + PAUSE_SECONDS, (self._observation, pause or FIRST_PAUSE)
                self._missed.append(_Missed(look, child.pid, *about, until, is_long=waits.is_long))
                return None

    def _refused(self) -> dict[str, Any]:
        """Of a request: what is not to be looked at."""
        stuck = [one for one in self._missed if one.child in self._left_behind]
        alone = {one.look for one in self._missed if one in stuck or not (one.is_over or one == self._once_more)}
        given_up = [one for one in self._missed if one.observation == self._observation]
        is_full = [
            sum(one.look.rank >= rank for one in stuck) + len(self._of_others) >= most
            or sum(one.is_long and one.look.rank >= rank for one in given_up) >= GIVEN_UP * most
            for rank, most in enumerate(MOST_OF_RANK)
        ]
        given_up_accounts = {one.look.account for one in given_up}

        def is_late(rank: int, account: int, polls: int) -> bool:
            return _is_used_up(self._polls, rank) and (polls >= LOOK_POLLS or account in given_up_accounts)

        persons, accounts = Counter(look.person for look in alone), Counter(look.account for look in alone)
        return {
            "processes": [(look.pid, look.started) for look in alone],
            "accounts": [number for number, count in persons.items() if number and count >= MAX_OF_PERSON]
            + [number for number, count in accounts.items() if number and count >= MAX_OF_ACCOUNT]
            + [number for (rank, number), count in self._polls.items() if number and is_late(rank, number, count)],
            "ranks": [*is_full, True].index(True),
        }

    def _is_paused(self, one: _Missed) -> bool:
        is_near = self._observation <= one.observation + one.pause and time.monotonic() < one.until
        return is_near or one.child in self._left_behind

    def _leave(self, child: _Child) -> None:
        """It may be that no signal ends it: nobody waits for it."""
        self._child = None
        child.close()
        _kill(child.pid)
        self._left_behind.add(child.pid)
        end = time.monotonic() + END_SECONDS
        self._reap()
        while child.pid in self._left_behind and time.monotonic() < end:  # or it would count as one that lives on
            time.sleep(0.002)
            self._reap()

    def _reap(self) -> None:
        for pid in list(self._left_behind):
            try:
                has_ended = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:  # the signal is ignored, as nohup does
                has_ended = True
            if has_ended:
                self._left_behind.discard(pid)
        least = time.monotonic() - PAUSE_SECONDS  # as long again: how long the pause was counts for the next
        self._missed = [one for one in self._missed if least < one.until or one.child in self._left_behind]

    def _fork(self) -> _Child:
        ours, theirs = socket.socketpair()
        held, lifeline = os.pipe()
        board = mmap.mmap(-1, BOARD.size)
        gc.collect()  # no file of ours is left that the child would close once more
        try:
            pid = os.fork()
        except OSError:
            for number in (ours.detach(), theirs.detach(), held, lifeline):
                os.close(number)
            raise
        if pid == 0:
            self._serve(theirs.detach(), held, board)
        theirs.close()
        os.close(held)
        return _Child(pid, ours.detach(), lifeline, board)

    def _serve(self, channel: int, lifeline: int, board: mmap.mmap) -> NoReturn:
        try:
            gc.freeze()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the agent ends, and the child with it
                signal.signal(number, signal.SIG_IGN)
            begin(channel, lifeline)
            self._work(channel, board)  # at once at its end, where the agent has ended meanwhile
        finally:
            os._exit(0)

    def _work(self, channel: int, board: mmap.mmap) -> None:
        host, observation, begun = Host(self.root), -1, dict[Hashable, Any]()

        def hand_over() -> None:
            _write(channel, {"so_far": known(host, {"walk clock": begun})})  # the next child's time is not over yet

        take(host, self._known)
        watch = host.watch = Watch(host, board)
        with open(channel, "rb", closefd=False) as requests:
            for line in requests:
                request = json.loads(line)
                watch.processes = {(pid, started) for pid, started in request["processes"]}
                host.checkpoint = hand_over if request["is_careful"] else None
                watch.accounts, watch.ranks = set(request["accounts"]), request["ranks"]
                try:
                    if request["observation"] != observation:
                        observation = request["observation"]
                        host.begin()
                        watch.begin()
                        begun = dict(host.kept("walk clock"))
                    answer = {"done": self._jobs[request["job"]](host)}
                except Exception as error:
                    answer = {"failed": describe(error)}
                _write(channel, answer)


class _Waits:
    """Whether the child does nothing but wait, by /proc/PID/stat: it is our own, so that nobody hides its state."""

    def __init__(self, child: _Child, polls: Counter[tuple[int, int]], patience: float) -> None:
        self._child, self._all, self._patience = child, polls, patience
        self._last: tuple[Look, int] | None = None
        self.is_long = True
        """Whether the look that is too long was so by itself."""
        self._polls = self._begun = 0

    def too_long(self) -> Look | None:
        """At what it waits, or what it walks, when it has for too long. Called each time that nothing was heard of it.

        While it is stopped, or waits for a processor, does not count; once it has used some (ticks of 10 ms) it gets
        on, for LOOK_SECONDS.
        """
        look, state, ticks = read_look(self._child.board), "S", 0
        with suppress(OSError):
            fields = Path(f"/proc/{self._child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            state, ticks = fields[0], int(fields[11]) + int(fields[12])
        is_waiting = state in "SD" and (self._last is None or self._last[1] == ticks)
        if self._last is None or self._last[0].number != look.number:
            self._polls, self._begun = 0, ticks
        else:
            self._polls += is_waiting
        self._last = look, ticks
        if not look.pid:
            return look if self._polls >= OTHER_POLLS else None
        self._all[look.rank, look.account] += is_waiting
        of_account = sum(count for (_, account), count in self._all.items() if account == look.account)
        is_used_up = of_account >= ACCOUNT_POLLS * self._patience or _is_used_up(self._all, look.rank)
        self.is_long = self._polls >= LOOK_POLLS * self._patience
        self.is_long |= ticks - self._begun >= LOOK_SECONDS * self._patience * clock_ticks_per_second()
        return look if self.is_long or (is_waiting and is_used_up) else None


def _is_used_up(polls: Counter[tuple[int, int]], rank: int) -> bool:
    sums = [sum(count for (each, _), count in polls.items() if each >= least) for least in range(rank + 1)]
    return any(count >= most for count, most in zip(sums, RANK_POLLS))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _received(channel: int) -> bytes:
    try:
        return os.read(channel, 1 << 16)
    except ConnectionResetError:
        return b""


def _write(channel: int, document: Any) -> None:
    left = memoryview(json.dumps(document).encode() + b"\n")
    while left:
        left = left[os.write(channel, left) :]
