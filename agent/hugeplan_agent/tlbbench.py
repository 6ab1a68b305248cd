"""Runs the benchmark and takes its document, also when it is only partial."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hugeplan_agent.errors import MeasureError

DONE, PARTIAL = 0, 3
LIMIT_SECONDS = {"quick": 150.0, "full": 600.0}
"""Twice the benchmark's own budget: past it something is wrong, and the partial document is taken."""

GRACE_SECONDS = 20.0
POLL_SECONDS = 0.1
LOWEST_PRIORITY = 19


@dataclass(frozen=True)
class Measurement:
    """A tlbbench document, and one line on what it lacks (None when it is complete)."""

    document: dict[str, Any]
    note: str | None


def find(given: str | None) -> str:
    """The benchmark's path: what was given, else the one in this package, on PATH, or in the build folder beside."""
    if given:
        if not os.access(given, os.X_OK) or Path(given).is_dir():
            raise MeasureError(f"tlbbench: {given} is not a program; build it with `make agent`, or name another")
        return given
    here = Path(__file__).resolve().parent
    for candidate in (
        str(here / "bin" / "tlbbench"),
        shutil.which("tlbbench"),
        str(here.parent / "build" / "tlbbench"),
    ):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise MeasureError("tlbbench was not found; build it with `make agent`, or name it with --tlbbench")


def measure(
    program: str,
    profile: str,
    limit_seconds: float,
    should_stop: Callable[[], bool] = lambda: False,
    arguments: tuple[str, ...] = (),
) -> Measurement:
    """Run ``tlbbench run``; see :func:`run`."""
    return run(program, ("run", "--profile", profile, "--json", *arguments), limit_seconds, should_stop)


def run(program: str, arguments: tuple[str, ...], limit_seconds: float, should_stop: Callable[[], bool]) -> Measurement:
    """Run the benchmark with these arguments. Its progress goes straight to our terminal.

    On the limit or a stop it gets SIGTERM, upon which it writes what it has; when this thread ends, the kernel sends it
    the same. Raises MeasureError without a document.
    """
    command, environment = [program, *arguments], {**os.environ, "TLBBENCH_PARENT": str(os.getpid())}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        stderr = None if sys.stderr.isatty() else errors
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator names the program, and no shell is involved
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=stderr, env=environment
            )
        except OSError as error:
            raise MeasureError(f"{program} cannot be started: {error.strerror}") from error
        _step_back(process.pid)
        why_ended = _wait(process, limit_seconds, should_stop)
        return read_document(process.returncode, _text(output), _text(errors), why_ended)


def _step_back(pid: int) -> None:
    """Give the benchmark the lowest priority, and let it be the first to go when memory runs out."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, LOWEST_PRIORITY)
    with suppress(OSError), Path(f"/proc/{pid}/oom_score_adj").open("w") as file:
        file.write("1000")


def _wait(process: subprocess.Popen[bytes], limit_seconds: float, should_stop: Callable[[], bool]) -> str | None:
    """Wait for the end; answer why the process had to be ended, or None."""
    deadline = time.monotonic() + limit_seconds
    try:
        while process.poll() is None:
            if should_stop():
                return _end(process, "the agent was told to stop")
            if time.monotonic() > deadline:
                return _end(process, f"its limit of {limit_seconds:g} seconds was reached")
            try:
                process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    except BaseException:
        _end(process, "")
        raise
    return None


def _end(process: subprocess.Popen[bytes], why: str) -> str:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return why


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def read_document(status: int, output: str, errors: str, why_ended: str | None) -> Measurement:
    """The document of a finished run. Raises MeasureError when there is none that can be sent."""
    last_words = errors.strip().splitlines()[-1:] or [""]
    if status not in (DONE, PARTIAL):
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        raise MeasureError(f"tlbbench {how}{f' ({why_ended})' if why_ended else ''}: {last_words[0] or 'no message'}")
    try:
        document = json.loads(output, parse_constant=_refuse_constant)
    except ValueError as error:
        raise MeasureError(f"tlbbench printed no valid JSON document: {error}") from error
    if not isinstance(document, dict) or document.get("schema_version") != 1:
        found = document.get("schema_version") if isinstance(document, dict) else type(document).__name__
        raise MeasureError(f"tlbbench: schema_version is {found!r}, but this agent reads version 1")
    return Measurement(document, _note(document, status, why_ended))


def _refuse_constant(word: str) -> None:
    """Infinity and NaN are not JSON; unknown is null."""
    raise ValueError(f"{word} is not a JSON number")


def _note(document: dict[str, Any], status: int, why_ended: str | None) -> str | None:
    if status == DONE and why_ended is None:
        return None
    sections = document.get("sections") or []
    parts = [
        f"{section.get('name')} {section.get('status')}{': ' + section['reason'] if section.get('reason') else ''}"
        for section in sections
        if isinstance(section, dict) and section.get("status") != "ok"
    ]
    return "; ".join(filter(None, ["partial", why_ended, *parts]))[:500]


def run_program() -> None:
    """The command ``tlbbench`` of a wheel: becomes the program that the wheel carries."""
    try:
        program = find(None)
    except MeasureError as error:
        sys.exit(str(error))
    os.execv(program, [program, *sys.argv[1:]])  # noqa: S606 - no shell is involved
