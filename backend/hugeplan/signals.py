"""Handlers of signals for the time of a block: whoever called us gets its own back."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(
    handler: Callable[[int, FrameType | None], Any] | signal.Handlers, numbers: Sequence[signal.Signals] = _ENDING
) -> Iterator[None]:
    """Handle these signals inside the block. Afterwards the former handlers are there, whatever the block set."""
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, former in zip(numbers, before, strict=True):
            # None: the handler was not set by Python, and Python cannot set it again.
            signal.signal(number, signal.SIG_DFL if former is None else former)


def hold() -> Callable[[], object]:
    """Keep signals waiting until what is returned is called.

    What a handler raises in one of Python's own hooks, as at a fork, Python prints and drops: Ctrl-C would be lost.
    """
    return partial(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING))


def ignore() -> None:
    """No signal ends this process any more: what it does now must not stop half way."""
    for number in (*_ENDING, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


class TimeOverError(BaseException):
    """The time of a block is over. Nothing that looks after odd items on its way takes it for one of theirs."""


@contextmanager
def ended_at(until: float) -> Iterator[None]:
    """TimeOverError in a block that goes on at ``until`` of the processor time. Only the main thread can be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise TimeOverError

    before = signal.signal(signal.SIGVTALRM, end)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, max(0.001, until - time.process_time()))  # 0 is no timer
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
