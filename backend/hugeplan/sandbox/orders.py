"""What goes between the service and the processes that work for it: an order, its payload, and the answer."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

import msgspec

from hugeplan.errors import FieldProblem, InvalidInputError

LENGTH: Final = struct.Struct(">I")
MAX_ORDER_BYTES: Final = 1024


class Limits(msgspec.Struct, frozen=True):
    """What one piece of work may take. ``cpu_seconds`` is processor time, ``seconds`` what a clock on the wall shows.

    ``memory_bytes`` is what it may map beyond what its process has when it begins. Together with what the service does
    for the request, both stay within 0.3 s and 64 MiB: 0.03 to 0.05 s go to the fork, the process's end and the answer.
    ``used_seconds`` of the processor time went to pieces of the same work before this one.
    """

    cpu_seconds: float = 0.22
    used_seconds: float = 0.0
    seconds: float = 10.0
    memory_bytes: int = 56 * 1024**2


class Order(msgspec.Struct, frozen=True):
    """Which function to call, ``package.module:function``, and within which limits. The payload comes after it.

    ``keep``: the process may stay for the next order of this job, with what its functions remember.
    """

    job: str
    limits: Limits
    keep: bool = False


HEAD: Final = struct.Struct(">BId")
"""Of an answer: its outcome, how long it is, and the processor time that it took, in seconds."""
STAYS: Final = 0x80
"""Added to the outcome by a process that takes another payload on the same socket."""


class Outcome(IntEnum):
    """How the work ended. No answer at all: the kernel ended it, because it took too much time."""

    DONE = 0
    REFUSED = 1
    TOO_MUCH = 2
    FAILED = 3


class Refusal(msgspec.Struct, frozen=True):
    """An InvalidInputError of a job, as data."""

    detail: str
    errors: list[FieldProblem]

    @classmethod
    def of(cls, error: InvalidInputError) -> Refusal:
        """The error as data."""
        return cls(error.detail, list(error.errors))

    def error(self) -> InvalidInputError:
        """The error again."""
        return InvalidInputError(self.detail, self.errors)
