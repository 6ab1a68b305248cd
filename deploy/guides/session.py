"""A shell that a guide's commands are typed into, one by one, with what each prints, its status and its time."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

SENTINEL = "----the-command-ended-with-"


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    command: str
    status: int
    output: str
    seconds: float


@dataclass
class Session:
    """One bash, entered by ``words``; its folder, variables and umask last from command to command, as typed.

    ``scripts`` is a folder that the shell sees as ``seen_as``: a command goes there first, and no quoting changes it.
    """

    words: Sequence[str]
    scripts: Path
    seen_as: str
    environment: dict[str, str] | None = None
    done: list[Done] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.scripts.mkdir(parents=True, exist_ok=True)
        self.shell = subprocess.Popen(
            [*self.words, "bash", "--noprofile", "--norc"],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.close()
        try:
            self.shell.wait(30)
        except subprocess.TimeoutExpired:
            self.shell.kill()
            self.shell.wait()
        self.shell.stdout.close()

    def type(self, command: str, *, seconds: float = 1200) -> Done:
        """Type a command and wait for its end. AssertionError when it does not end."""
        script = self._script(command)
        return self._wait(command, f". {script} </dev/null\n", seconds)

    def until(self, command: str, words: str, *, seconds: float = 600) -> Done:
        """Type a command that stays in the foreground, on a terminal; Ctrl-C once its output has these words."""
        script = self._script(command)
        log = self.scripts / f"{script.rpartition('/')[2]}.out"
        terminal = f"script --quiet --return --command {shlex.quote(f'. {script}')} /dev/null"
        # With job control the job does not ignore SIGINT, as what a script puts into the background does.
        started = f"mkfifo {script}.in; set -m; {terminal} <{script}.in >{script}.out 2>&1 & job=$!; set +m"
        self._send(f"{started}; exec 9>{script}.in\n")
        deadline = time.monotonic() + seconds
        while not (log.exists() and re.search(words, log.read_text(errors="replace"))):
            said = log.read_text(errors="replace")[-3000:] if log.exists() else ""
            assert time.monotonic() < deadline, f"{command} did not say {words!r} within {seconds:g} s:\n{said}"
            ended = self._wait("", "kill -0 $job 2>/dev/null\n", 30, record=False)
            assert ended.status == 0, f"{command} ended before it said {words!r}:\n{said}"
            time.sleep(0.5)
        ended = self._wait(command, "printf '\\003' >&9; wait $job\n", 120, record=False)
        self._send("exec 9>&-\n")
        found = Done(command, ended.status, log.read_text(errors="replace"), seconds - (deadline - time.monotonic()))
        self.done.append(found)
        return found

    def _script(self, command: str) -> str:
        name = f"step-{len(self.done):03}"
        (self.scripts / name).write_text(command + "\n", encoding="utf-8")
        return f"{self.seen_as}/{name}"

    def _send(self, line: str) -> None:
        assert self.shell.stdin is not None
        self.shell.stdin.write(line.encode())
        self.shell.stdin.flush()

    def _wait(self, command: str, line: str, seconds: float, *, record: bool = True) -> Done:
        started = time.monotonic()
        self._send(f"{line}printf '\\n{SENTINEL}%d\\n' $?\n")
        assert self.shell.stdout is not None
        got = b""
        pattern = re.compile(rb"\n" + SENTINEL.encode() + rb"(\d+)\n")
        with selectors.DefaultSelector() as selector:
            selector.register(self.shell.stdout, selectors.EVENT_READ)
            while not (end := pattern.search(got)):
                left = started + seconds - time.monotonic()
                tail = got[-3000:].decode(errors="replace")
                assert left > 0, f"{command} did not end within {seconds:g} s:\n{tail}"
                if selector.select(min(left, 5)):
                    part = os.read(self.shell.stdout.fileno(), 1 << 16)
                    assert part, f"{command}: the shell is gone:\n{tail}"
                    got += part
        found = Done(command, int(end[1]), got[: end.start()].decode(errors="replace"), time.monotonic() - started)
        if record:
            self.done.append(found)
        return found
