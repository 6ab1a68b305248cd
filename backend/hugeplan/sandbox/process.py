"""The process that forks one process per order: ``python -m hugeplan.sandbox.process FD``.

Each order comes over the control socket with a socket of its own, on which the payload comes and the answer goes. This
process imports what a job needs, once, and forks: its child has everything loaded, does one job and ends; where
an order says so, it stays for the next one of its kind. The kernel keeps its limits: no code here has to be awake.

* Processor time: a timer of the kernel (ITIMER_PROF), whose signal ends the process. RLIMIT_CPU counts whole seconds
  only, and stands behind it.
* The clock on the wall: ITIMER_REAL, in the same way.
* Memory: RLIMIT_AS, above what the process has when it begins.
* Its client: when the service closes the socket, the kernel's SIGIO ends the process.

This process ends with its control socket, so it never outlives the service; and after a while without an order.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import logging
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from pydantic import BaseModel

from hugeplan.errors import FieldProblem, InvalidInputError
from hugeplan.planner.errors import PlannerError
from hugeplan.sandbox.orders import HEAD, LENGTH, MAX_ORDER_BYTES, STAYS, Limits, Order, Outcome, Refusal

IDLE_SECONDS: Final = 600.0
LEAST_SECONDS: Final = 0.001
"""No timer is set for nothing."""
KEPT_BYTES: Final = 16 * 1024**2
"""A process that has grown by more does not stay for another order."""
NICENESS: Final = 5
"""The service goes first: one job per core must not keep it from answering others."""

Job = Callable[[bytes], bytes]


def main() -> None:
    """Fork a process for each order until the control socket ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    os.nice(NICENESS)
    known: dict[str, Job] = {}
    with socket.socket(fileno=int(sys.argv[1])) as control:
        control.settimeout(IDLE_SECONDS)
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(control, MAX_ORDER_BYTES, 1)
            except TimeoutError:
                return
            if not message:
                return
            order = msgspec.msgpack.decode(message, type=Order)
            with socket.socket(fileno=descriptors[0]) as line:
                if order.job not in known:
                    with suppress(Exception):  # the child tries again, and says what is wrong
                        known[order.job] = _load(order.job)
                        _complete(BaseModel)
                        gc.collect()
                        gc.freeze()  # so that no child copies pages only to look for garbage
                if os.fork() == 0:
                    control.close()
                    _work(order, known.get(order.job), line)


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load(job: str) -> Job:
    module, _, name = job.partition(":")
    loaded = importlib.import_module(module)
    getattr(loaded, "prepare", lambda: None)()
    found: Job = getattr(loaded, name)
    return found


def _complete(model: type[BaseModel]) -> None:
    """Build what validates the models that are known, once: each child would build it anew."""
    for one in model.__subclasses__():
        if not one.__pydantic_complete__:
            one.model_rebuild()
        _complete(one)


def _work(order: Order, job: Job | None, line: socket.socket) -> NoReturn:
    """Do one job, or several of a kind, and end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.disable()  # looking for garbage takes a third of a short job's time; the memory has a limit
        roomy = _mapped_bytes() + KEPT_BYTES
        limit_memory(order.limits.memory_bytes)
        stays, used = True, 0.0
        while stays:
            payload = _read(line)
            _limit_time(order.limits)
            _end_with(line)
            outcome, answer = _outcome(order.job, job, payload)
            signal.setitimer(signal.ITIMER_PROF, 0)
            fcntl.fcntl(line, fcntl.F_SETFL, 0)  # from here on the service reads
            stays = order.keep and outcome in {Outcome.DONE, Outcome.REFUSED} and _mapped_bytes() <= roomy
            before, used = used, time.process_time()
            line.sendall(HEAD.pack(outcome | (STAYS if stays else 0), len(answer), used - before))
            line.sendall(answer)
            signal.setitimer(signal.ITIMER_REAL, 0)
            del payload, answer
            if stays:
                gc.collect()  # nobody waits for it
    finally:
        os._exit(0)


def _read(line: socket.socket) -> bytes:
    size = LENGTH.unpack(_exactly(line, LENGTH.size))[0]
    return _exactly(line, size)


def _exactly(line: socket.socket, size: int) -> bytes:
    found = bytearray(size)
    view = memoryview(found)
    while view:
        got = line.recv_into(view)
        if not got:
            raise EOFError("the service went away")
        view = view[got:]
    return bytes(found)


def _mapped_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def limit_memory(memory_bytes: int) -> None:
    """Let the kernel refuse this process, and those that it forks, more memory than so much above what it has."""
    room = _mapped_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(limits: Limits) -> None:
    signal.setitimer(signal.ITIMER_REAL, limits.seconds)
    left = max(LEAST_SECONDS, limits.cpu_seconds - limits.used_seconds)
    whole = math.ceil(time.process_time() + left) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, left)


def _end_with(line: socket.socket) -> None:
    """Let the kernel end this process when the service closes its side."""
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    seen = select.poll()
    seen.register(line, 0)
    if seen.poll(0):  # it closed it before there was a signal for that
        raise EOFError("the service went away")


def _outcome(name: str, job: Job | None, payload: bytes) -> tuple[Outcome, bytes]:
    try:
        return Outcome.DONE, (job or _load(name))(payload)
    except InvalidInputError as error:
        return Outcome.REFUSED, msgspec.msgpack.encode(Refusal.of(error))
    except PlannerError as error:
        return Outcome.REFUSED, msgspec.msgpack.encode(Refusal.of(InvalidInputError.of_planner(error)))
    except (MemoryError, RecursionError):
        return Outcome.TOO_MUCH, b""
    except ArithmeticError as error:
        # A bound that is missing somewhere, so it is logged; who sent the number learns more from this than from a 500.
        logging.getLogger(__name__).exception("work for the service met a number out of range")
        refusal = InvalidInputError("A number in it is too large or too small to compute with.", [_absurd(error)])
        return Outcome.REFUSED, msgspec.msgpack.encode(Refusal.of(refusal))
    except Exception:
        logging.getLogger(__name__).exception("work for the service failed")
        return Outcome.FAILED, b""


def _absurd(error: ArithmeticError) -> FieldProblem:
    return FieldProblem(field="body", value=None, expected=f"numbers that can be computed with ({error})")


if __name__ == "__main__":
    main()
