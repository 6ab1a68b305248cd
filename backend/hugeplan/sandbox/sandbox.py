"""Work in processes beside the service, a few at a time, each ended by the kernel when it takes too much.

The first order starts ``hugeplan.sandbox.process``, which forks a process per order. Work whose caller is cancelled
ends at once: its socket closes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from hugeplan.errors import FieldProblem, InvalidInputError, UnavailableError
from hugeplan.sandbox.orders import HEAD, LENGTH, STAYS, Limits, Order, Outcome, Refusal
from hugeplan.shares import RETRY, InFlight, Line, Turns
from hugeplan.unprivileged import own_path

AT_ONCE: Final = 4
"""Pieces of work at a time: with the memory that each may take, 224 MiB in all."""
AT_ONCE_OF_ONE: Final = 2
"""Of one credential, so that others find room."""
WAITING_OF_ONE: Final = 8
WAITING: Final = 64
WAITING_OF_AGENTS: Final = 32
"""Of all agents, of whose work one piece at a time is done: who has an enrolment token has as many as it likes."""
OF_ONE_AGENT: Final = 2
"""Running and waiting: an agent sends one after the other."""
START_SECONDS: Final = 30.0
LESS: Final = "send less of it"
"""What to do in place of what takes too much, where there is no other way."""


_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_Answer = tuple[int, bytes, float]
"""Outcome, answer, and seconds of processor time."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who has work done: a credential's line, or the service itself. Agents of one ``address`` share a place."""

    name: str
    is_agent: bool = False
    address: str = ""


class _Process:
    """The running process and its control socket."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - this Python, with a fixed module
                [sys.executable, "-m", "hugeplan.sandbox.process", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                # Threads of a linear algebra library would not survive the fork.
                env={
                    **os.environ,
                    **own_path(),
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                    "MALLOC_ARENA_MAX": "1",
                },
            )
        self.control.setblocking(False)
        self.end = weakref.finalize(self, _end, self.process, self.control)

    def is_alive(self) -> bool:
        """Whether it holds its end of the control socket: known at once, and not when it has been waited for."""
        try:
            return bool(self.control.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self, order: Order, line: socket.socket) -> None:
        """Hand an order over, with the socket of its payload. OSError when the process is not there."""
        socket.send_fds(self.control, [msgspec.msgpack.encode(order)], [line.fileno()])


def _abandon(kept: dict[Order, _Line]) -> None:
    """Close the lines that are kept; those of an event loop that has ended went with it."""
    for _, writer in kept.values():
        with suppress(RuntimeError):
            writer.transport.abort()
    kept.clear()


def _end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    """End the process with what it forked: none of it has anything of value."""
    control.close()
    process.kill()
    process.wait()


class Sandbox:
    """The processes beside one process of the service."""

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._room = asyncio.Semaphore(AT_ONCE)
        self._turns, self._line_of_agents = Turns(AT_ONCE_OF_ONE), Line()
        self._asked, self._asked_of_agents = InFlight("such requests"), InFlight("such requests")
        self._kept: dict[Order, _Line] = {}
        # Whoever forgets `close` leaves no open socket behind.
        weakref.finalize(self, _abandon, self._kept).atexit = False

    async def work(
        self,
        job: str,
        payload: bytes,
        *,
        whose: Asker,
        what: str,
        instead: str = LESS,
        limits: Limits | None = None,
        keep: bool = False,
        spend: Callable[[float], object] = lambda _: None,
    ) -> bytes:
        """What ``job`` (``package.module:function``) makes of the payload.

        ``whose`` work it is; ``what`` it is about begins the sentence of a refusal, and what to do
        ``instead`` of what takes too much ends it; with ``keep`` its process may stay for the next one. ``spend`` is
        told the seconds of processor time. Raises InvalidInputError for what the job refuses and for what takes more
        than ``limits``, RateLimitedError and UnavailableError when too much waits.
        """
        order = Order(job, limits or Limits(), keep)
        async with self._place(whose):
            for _ in range(2):  # it may have ended for want of work at this moment
                answer = await self._try(order, payload)
                if answer is not None:
                    spend(answer[2])
                    return _answer_of(answer, what, instead, order.limits)
        raise UnavailableError("The process for this work does not start; try again later.", headers=RETRY)

    async def close(self) -> None:
        """End the process, and with it what waits."""
        _abandon(self._kept)
        if self._process is not None:
            self._process.end()
            self._process = None

    @asynccontextmanager
    async def _place(self, whose: Asker) -> AsyncIterator[None]:
        people, agents, each = self._asked, self._asked_of_agents, whose.address if whose.is_agent else whose.name
        if whose.is_agent:
            asked, most_of_one, most = agents, OF_ONE_AGENT, min(1 + WAITING_OF_AGENTS, AT_ONCE + WAITING - people.held)
        else:
            asked, most_of_one, most = people, AT_ONCE_OF_ONE + WAITING_OF_ONE, AT_ONCE + WAITING - agents.held
        asked.take_of(whose.name, 1, most_of_one, most, each=each)
        try:
            line = self._line_of_agents.turn(whose.name, each) if whose.is_agent else self._turns.turn(whose.name)
            async with line, self._room:
                yield
        finally:
            asked.give_back(whose.name, 1, each)

    async def _try(self, order: Order, payload: bytes) -> _Answer | None:
        """None when nothing was answered."""
        kept = self._kept.pop(order, None)
        line = kept or await self._line(order)
        if line is None:
            return None
        reader, writer = line
        stays = False
        try:
            async with asyncio.timeout(START_SECONDS + order.limits.seconds):
                writer.writelines((LENGTH.pack(len(payload)), payload))
                outcome, size, used_seconds = HEAD.unpack(await reader.readexactly(HEAD.size))
                answer = await reader.readexactly(size)
                stays = bool(outcome & STAYS) and order not in self._kept
                return outcome & ~STAYS, answer, used_seconds
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            running = self._process
            if running is not None and running.is_alive():
                return Outcome.TOO_MUCH, b"", order.limits.cpu_seconds - order.limits.used_seconds
            return None
        finally:
            if stays:
                self._kept[order] = line
            else:
                writer.transport.abort()

    async def _line(self, order: Order) -> _Line | None:
        """A socket whose other end a process of this order has; None when none takes it."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._hand_over(order, theirs)
            except OSError:
                ours.close()
                return None
        return await asyncio.open_unix_connection(sock=ours)

    def _hand_over(self, order: Order, line: socket.socket) -> None:
        if self._process is None or not self._process.is_alive():
            self._start()
        assert self._process is not None
        try:
            self._process.send(order, line)
        except ConnectionError:
            self._start()
            self._process.send(order, line)

    def _start(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process = _Process()


def _answer_of(found: _Answer, what: str, instead: str, limits: Limits) -> bytes:
    outcome, answer, _ = found
    if outcome == Outcome.DONE:
        return answer
    if outcome == Outcome.REFUSED:
        raise msgspec.msgpack.decode(answer, type=Refusal).error()
    if outcome == Outcome.TOO_MUCH:
        raise _too_much(what, instead, limits)
    raise RuntimeError(f"work for the service failed: {what}")


def _too_much(what: str, instead: str, limits: Limits) -> InvalidInputError:
    most = f"{limits.cpu_seconds:g} s of processor time and {limits.memory_bytes // 1024**2} MiB"
    problem = FieldProblem(field="body", value=None, expected=f"work of at most {most}")
    return InvalidInputError(f"{what} takes more than {most}; {instead}.", [problem])
