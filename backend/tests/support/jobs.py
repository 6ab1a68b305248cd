"""Work for the sandbox's tests; its process finds them from the folder that the tests run in."""

from __future__ import annotations

import os
import re
import time

from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.planner.errors import PlannerError

remembered: list[bytes] = []


def upper(payload: bytes) -> bytes:
    return payload.upper()


def spin(_: bytes) -> bytes:
    while True:
        pass


def compute(payload: bytes) -> bytes:
    """So many seconds of processor time."""
    until = time.process_time() + float(payload)
    while time.process_time() < until:
        pass
    return b""


def hold_the_interpreter(_: bytes) -> bytes:
    """A pattern that goes back over what it read: nothing of Python runs meanwhile."""
    re.match(r"(a+)+b", "a" * 64)
    return b""


def sleep(_: bytes) -> bytes:
    time.sleep(600)
    return b""


def fill(_: bytes) -> bytes:
    return bytes(1024**3)


def refuse(_: bytes) -> bytes:
    raise invalid_input([FieldProblem(field="x", value="1", expected="2")])


def refuse_as_the_planner(_: bytes) -> bytes:
    raise PlannerError("x", 1, "2")


def fail(_: bytes) -> bytes:
    raise LookupError


def raise_a_power(_: bytes) -> bytes:
    return str(1e308**2).encode()


def which(payload: bytes) -> bytes:
    """Its process, and how many payloads that has had."""
    remembered.append(payload)
    return f"{os.getpid()} {len(remembered)}".encode()
