"""``python slow_handler.py serve``: the service with a handler that holds others up, for what judges such handlers."""

from __future__ import annotations

import asyncio
import re
import sys
import time

from hugeplan import main as application
from hugeplan.access.dependencies import Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.cli import main

SECONDS = 1.0
CUBIC = re.compile(r"^\s*\s*\s*x")
router = api_router("slow")


def compute(seconds: float) -> None:
    """Arithmetic that gives nobody else a turn; processor time, so that a busy machine makes it no shorter."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        CUBIC.match(" " * 100)


def hold_the_interpreter() -> None:
    """One match that keeps the interpreter to itself, on a thread of its own."""
    until = time.thread_time() + SECONDS
    length = 100
    while time.thread_time() < until:
        CUBIC.match(" " * length)
        length *= 2


@router.get("/slow")
async def slow(_: Viewer, way: str) -> str:
    """Take long, in one of the ways in which a handler can."""
    if way == "computes":
        compute(SECONDS)
    elif way == "blocks":
        time.sleep(SECONDS)  # noqa: ASYNC251 - the fault
    else:
        await asyncio.to_thread(hold_the_interpreter)
    return way


if __name__ == "__main__":
    application.ROUTERS = (*application.ROUTERS, router)
    sys.exit(main())
