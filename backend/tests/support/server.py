"""The service as a process of its own on loopback, for what only a real socket shows."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WAIT_SECONDS = 40.0
MIB = 1024**2


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Server:
    """A running service."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    admin_token: str | None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def connect(self, timeout_seconds: float = WAIT_SECONDS) -> socket.socket:
        """A plain connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout_seconds)

    def status_bytes(self, name: str) -> int:
        """A memory line of the process: VmHWM is its peak, VmRSS what it holds."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")

    def cpu_seconds(self) -> float:
        """Processor time the process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def serving(database_url: str, folder: Path, *arguments: str, **environment: str) -> Iterator[Server]:
    """``hugeplan serve`` over a migrated database, ended with the block."""
    port = free_port()
    log = folder / f"server-{port}.log"
    secret = folder / f"admin-{port}"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "hugeplan.cli", "serve", "--first-admin-file", str(secret), *arguments],
            env={**os.environ, "HUGEPLAN_DATABASE_URL": database_url, "HUGEPLAN_PORT": str(port), **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        admin_token = None
        for line in process.stdout:
            assert "hp_" not in line, "a credential in the log"
            if line.startswith("The first admin token is in"):
                admin_token = Path(re.split(" is in |;", line)[1]).read_text().strip()
            if line.startswith("hugeplan answers"):
                break
        else:
            raise AssertionError(f"the service did not start: {log.read_text()}")
        yield Server(process, port, log, admin_token)
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)
