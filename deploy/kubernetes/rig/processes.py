"""Starting a server, waiting until it answers, and ending it: shared by the rig's parts."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class StartError(Exception):
    """A server did not come up; the message ends with the last lines of its log."""


def free_ports(count: int) -> list[int]:
    """Loopback TCP ports that are free now. All are held open until every one is known, so they differ."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _end_with_parent() -> None:
    """A test run that is killed must not leave servers behind."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One program running in the background with its output in a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - one prctl call, nothing that could deadlock
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return once ``ready`` says so. StartError when the program ends first or the time is over."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise StartError(f"{self.name} ended with status {self.process.returncode}:\n{self.last_lines()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self.name} was not ready after {seconds:g} s:\n{self.last_lines()}")
            time.sleep(0.05)

    def last_lines(self, count: int = 15) -> str:
        """The end of the program's output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def stop(self, seconds: float = 10) -> None:
        """Ask it to end; kill it when it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def kill(self) -> None:
        """End it as a power failure would."""
        self.process.kill()
        self.process.wait()
