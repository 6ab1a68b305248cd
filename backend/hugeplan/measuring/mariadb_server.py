"""A private MariaDB or MySQL for a trial: loaded by its own bootstrap, started with and without huge pages.

Nobody else can reach it: no network, and a socket in a folder of the server's own user.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hugeplan.measuring.user_programs import (
    apart,
    as_user,
    cpu_ns_of,
    created,
    ended,
    give,
    is_copied,
    load_seconds,
    said_by,
    text_of,
    version_said,
)

LAUNCHER: Final = Path(__file__).with_name("launch.py")
PROGRAM_NAMES: Final[Mapping[str, tuple[str, ...]]] = {"mariadb": ("mariadbd", "mysqld"), "mysql": ("mysqld",)}
_RELEASE: Final = {
    "mariadb": re.compile(r"Ver (\d+\.\d+\.\d+)-MariaDB"),
    "mysql": re.compile(r"Ver (\d+\.\d+\.\d+)(?!\S*MariaDB)"),
}
_OPTIONS: Final = {
    "mariadb": ("--innodb-buffer-pool-load-at-startup=0",),
    # One instance of the pool, as MariaDB's has; neither a port, keys nor secondary engines are made.
    "mysql": ("--innodb-buffer-pool-load-at-startup=0", "--innodb-buffer-pool-instances=1", "--mysqlx=0",
              "--secure-file-priv=NULL", "--auto-generate-certs=0", "--caching-sha2-password-auto-generate-rsa-keys=0"),
}  # fmt: skip
_FOLDERS: Final = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", "/opt/mariadb/bin")
_PAGE_BYTES, _PAGE_FILLED = 16384, 15236
_ROW_OVERHEAD_BYTES: Final = 25
"""InnoDB's record header, key, transaction id, roll pointer, length and its share of the page directory."""

LARGEST_ROW_BYTES: Final = 8000
"""Longer rows leave their page, which the lookup here does not mean to measure."""

_START_SECONDS, _STOP_SECONDS = 300.0, 300.0


class MariadbError(Exception):
    """The server or its client cannot be used; the message says what failed."""


def find_server(given: Path | None, engine: str = "mariadb") -> Path:
    """The server's program: in the given folder and no other, else on PATH or where packages put it."""
    path = os.environ.get("PATH", "").split(os.pathsep)
    folders = [given] if given else [Path(folder) for folder in (*path, *_FOLDERS) if folder]
    for name in PROGRAM_NAMES[engine]:
        for folder in folders:
            if (folder / name).exists():
                return folder / name
    where = f"{given} has" if given else "there is"
    raise MariadbError(f"{where} no {' or '.join(PROGRAM_NAMES[engine])}; name its folder with --bin-dir")


def release_of(program: Path, engine: str = "mariadb") -> str:
    """``10.11.19``. MariadbError where the program is none of the engine."""
    try:
        said = version_said(program, _server_user())
    except OSError as problem:
        raise MariadbError(f"{program} cannot be run: {problem.strerror}") from problem
    match = _RELEASE[engine].search(said)
    if match is None:
        raise MariadbError(f"{program} --version does not tell a version of {engine}: {said.strip()[:100]}")
    return match[1]


def rows_of(data_bytes: int, row_bytes: int) -> int:
    """Rows that fill so many bytes of InnoDB's clustered index."""
    per_row = (row_bytes + _ROW_OVERHEAD_BYTES) * _PAGE_BYTES / _PAGE_FILLED
    return max(1000, int(data_bytes / per_row))


class MariadbServer:
    """One data folder and the server on it."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        rows: int,
        row_bytes: int,
        pool_bytes: int,
        settings: Mapping[str, str],
        engine: str = "mariadb",
    ) -> None:
        self.program, self.folder, self.rows, self.row_bytes = program, folder, rows, row_bytes
        self.pool_bytes, self.settings, self.engine = pool_bytes, settings, engine
        self.user = _server_user()
        self.held = folder
        self.pid = 0

    def command(self, *words: str) -> list[str]:
        """A command line as the server's user."""
        return [*as_user(self.user, self.held), *words]

    def _server(self, *options: str) -> list[str]:
        return [
            str(self.program),
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            "--skip-grant-tables",
            "--skip-networking",
            "--skip-log-bin",
            "--innodb-flush-method=nosync",  # nothing here is to outlive a crash
            "--innodb-doublewrite=0",
            f"--innodb-buffer-pool-size={self.pool_bytes}",
            f"--innodb-buffer-pool-chunk-size={self.pool_bytes}",  # one mapping, whose page size can be read
            *_OPTIONS[self.engine],
            "--innodb-buffer-pool-dump-at-shutdown=0",
            *(f"--{name.replace('_', '-')}={value}" for name, value in self.settings.items()),
            *options,
        ]

    def load(self) -> None:
        """Make the data folder and fill the table, by the server's own bootstrap."""
        # Whoever reaches the socket is its root. The outer one last: its owner may change what it holds.
        for path in (self.folder / "data", self.folder):
            self.held = give(path, self.user)
        path = self.folder / "load.sql"
        start = ["--initialize-insecure", f"--init-file={path}"] if self.engine == "mysql" else ["--bootstrap"]
        with created(self.held / path.name) as file:
            file.write(self._statements().encode())
            file.seek(0)
            command = self.command(*self._server(*start))
            status, said = said_by(command, seconds=load_seconds(self.pool_bytes), stdin=file.fileno())
        if status != 0:
            raise MariadbError(f"the table could not be loaded: {last_error(said)}")

    def _statements(self) -> str:
        """One per line, as an init file has them: the table is doubled until it has its rows."""
        table = "trial.`rows`"
        columns = f"id int not null primary key, payload varchar({self.row_bytes}) not null"
        lines = ["create database trial;", f"create table {table} ({columns}) engine=innodb character set latin1;"]
        lines.append(f"insert into {table} values (1, repeat('x', {self.row_bytes}));")  # noqa: S608 - our own numbers
        for more in (1 << k for k in range((self.rows - 1).bit_length())):
            doubled = f"select id + {more}, payload from {table} where id <= {self.rows - more}"  # noqa: S608 - the same
            lines.append(f"insert into {table} {doubled};")
        return "\n".join([*lines, ""])

    def copy_of(self, other: MariadbServer) -> None:
        """The same data as another server's that is stopped."""
        self.held = give(self.folder, self.user)
        if not is_copied(other.folder, self.folder, self.user, load_seconds(self.pool_bytes)):
            raise MariadbError(f"{other.folder} could not be copied to {self.folder}")

    def data_bytes(self) -> int:
        """Bytes of the table as it is, which its user looks at: root would follow links that were put there."""
        said = said_by(self.command("stat", "-c%s", str(self.folder / "data/trial/rows.ibd")))[1].strip()
        if re.fullmatch(r"[0-9]{1,18}", said) is None:
            raise MariadbError(f"the table's file cannot be read: {said[-300:]}")
        return int(said)

    @contextmanager
    def running(self, *, large_pages: bool, thp: bool) -> Iterator[None]:
        """The server, up for the time of the block. ``thp``: whether it may have transparent huge pages."""
        own = (
            f"--socket={self.socket}",
            f"--pid-file={self.folder / 'pid'}",
            "--max-connections=2000",
            "--thread-cache-size=0",
            f"--large-pages={int(large_pages)}",
        )
        launch = [sys.executable, "-I", "-S", str(LAUNCHER), "on" if thp else "off"]
        log = self.held / "log"
        with created(log) as output:
            process = subprocess.Popen(  # noqa: S603 - our own command line
                [*launch, *self.command(*self._server(*own))],
                stdout=output,
                stderr=output,
                **apart(),
            )
        self.pid = process.pid
        try:
            self._wait_for_start(process, log)
            yield
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_SECONDS)
        except BaseException as problem:
            # Nobody starts this server again, and one that was stopped takes no other signal.
            process.kill()
            ended(process)
            if isinstance(problem, subprocess.TimeoutExpired):
                raise MariadbError(f"the server did not stop within {_STOP_SECONDS:g} s") from problem
            raise

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / "s"

    def _wait_for_start(self, process: subprocess.Popen[bytes], log: Path) -> None:
        end = time.monotonic() + _START_SECONDS
        while "ready for connections" not in (said := text_of(log)):
            if process.poll() is not None or time.monotonic() > end:
                raise MariadbError(f"the server did not start: {last_error(said)}")
            time.sleep(0.05)

    def cpu_ns(self) -> int:
        """CPU time of the server with all its threads, also those that ended. MariadbError where it has ended."""
        return cpu_ns([self.pid])


def cpu_ns(pids: Sequence[int]) -> int:
    """CPU time of processes with all their threads. MariadbError where one has ended."""
    try:
        return sum(map(cpu_ns_of, pids))
    except OSError as problem:
        raise MariadbError("a program ended while it was measured") from problem


def last_error(said: str) -> str:
    """The first line of a log that tells an error, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"ERROR|FATAL", line) and not line.endswith("Aborting")]
    return (errors[:1] or lines or ["it said nothing"])[-1][:300]


def _server_user() -> str:
    """The user to run as: ourselves, or when root ``mysql`` if there is one, else ``nobody``."""
    if os.geteuid() != 0:
        return ""
    return "mysql" if any(entry.pw_name == "mysql" for entry in pwd.getpwall()) else "nobody"
